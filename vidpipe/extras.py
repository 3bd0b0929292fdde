"""What to type for a part of vidpipe that is not installed."""

from __future__ import annotations

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
"""The folder of the source, where vidpipe runs from one."""


def install(extra: str) -> str:
    """The command that installs an extra, such as `cuda`: from the checkout that vidpipe runs from, else by name."""
    if (CHECKOUT / "pyproject.toml").is_file():
        return f"pip install -e '{CHECKOUT}[{extra}]'"
    return f"pip install 'vidpipe[{extra}]'"
