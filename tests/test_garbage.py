"""What lasts as long as its process is not searched for garbage."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

from tests.conftest import TINY_MODEL
from vidpipe.garbage import lasting


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_is_made_inside_is_not_searched() -> None:
    with lasting():
        assert not gc.isenabled()
        made = [[] for _ in range(50_000)]
    assert gc.isenabled()
    assert len(gc.get_objects()) < len(made)


def test_an_error_leaves_the_search_on() -> None:
    with pytest.raises(ZeroDivisionError), lasting():
        _ = 1 / 0
    assert gc.isenabled()


@pytest.mark.engine
def test_an_engine_starts_to_import_vllm_without_a_search() -> None:
    program = """
        import gc, sys
        from vidpipe.engine.vllm_engine import VllmEngine
        from vidpipe.errors import EngineError
        from vidpipe.recipe.schema import EngineSection, Model

        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "vllm":
                    print("searching" if gc.isenabled() else "not searching")
                    raise ImportError("that is all")

        sys.meta_path.insert(0, Finder())
        try:
            VllmEngine(Model(path=sys.argv[1]), EngineSection(), sys.argv[1]).start()
        except EngineError:
            print("searching" if gc.isenabled() else "not searching")
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(TINY_MODEL)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["not searching", "searching", ""]
