"""The reproductions in docs/upstream show their faults with the installed vLLM."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from vidpipe.engine import vllm_environment

CODE_AND_OUTPUT = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
PAGES = [
    page for page in sorted((ROOT / "docs" / "upstream").glob("[0-9]*.md")) if CODE_AND_OUTPUT.search(page.read_text())
]


@pytest.mark.engine
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_reproduction_prints_what_its_page_says(page: Path) -> None:
    vllm_environment.prepare("")
    found = CODE_AND_OUTPUT.search(page.read_text())
    assert found is not None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(found[1], str(page), "exec"), {})
    assert printed.getvalue() == found[2]


def test_every_page_is_listed() -> None:
    index = (ROOT / "docs" / "upstream" / "README.md").read_text()
    pages = {page.name for page in (ROOT / "docs" / "upstream").glob("[0-9]*.md")}
    assert pages and all(f"({name})" in index for name in pages)
