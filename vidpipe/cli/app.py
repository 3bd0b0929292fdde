"""The `vidpipe` program: finds the command, runs it, turns our errors into exit codes.

Command modules import only typer; whatever a command needs is imported when it
runs, so that `vidpipe --help` answers in well under half a second.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from vidpipe import __version__
from vidpipe.cli import exit_codes
from vidpipe.cli.probe import probe
from vidpipe.errors import EngineError, VidpipeError

app = typer.Typer(
    name="vidpipe",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"vidpipe {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Answer questions about videos in bulk: exact frames in, one recorded answer a row out."""


app.command()(probe)


def main() -> None:
    """Run the command line; exit with one of `vidpipe.cli.exit_codes`."""
    try:
        app()
    except EngineError as error:
        _fail(error, exit_codes.ENGINE_FAILED)
    except VidpipeError as error:
        _fail(error, exit_codes.WRONG_INPUT)


def _fail(error: VidpipeError, code: int) -> None:
    print(f"vidpipe: {error}", file=sys.stderr)  # noqa: T201
    sys.exit(code)
