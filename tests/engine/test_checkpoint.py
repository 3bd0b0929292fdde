import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, TINY_MODEL
from vidpipe.engine.checkpoint import read_checkpoint
from vidpipe.errors import RecipeError
from vidpipe.models.registry import get_family


def test_a_folder_beside_the_recipe() -> None:
    checkpoint = read_checkpoint("../data/tiny-qwen3vl", ROOT / "recipes")
    assert checkpoint.location == str(TINY_MODEL)
    assert checkpoint.config["model_type"] == "qwen3_vl"
    assert checkpoint.video_processor["size"]["shortest_edge"] == 4096


def test_the_checkpoints_own_font_is_found(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "preprocessor_config.json").write_text('{"patch_size": 14, "font": "Named.ttf"}')
    family = get_family("ernie45_vl")
    assert "font" not in read_checkpoint(".", tmp_path).processor(family), "named, but not there"
    for name, settings in (("Named.ttf", '{"font": "Named.ttf"}'), ("Roboto-Regular.ttf", "{}")):
        (tmp_path / name).write_bytes(b"")
        (tmp_path / "preprocessor_config.json").write_text(settings)
        assert read_checkpoint(".", tmp_path).processor(family)["font"] == str(tmp_path / name)


def test_faults_are_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no such folder"):
        read_checkpoint("./none", tmp_path)
    with pytest.raises(RecipeError, match=r"no config\.json"):
        read_checkpoint(".", tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(RecipeError, match="not JSON"):
        read_checkpoint(".", tmp_path)


def test_a_hub_name_without_a_hub_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def unreachable(*args: object, **options: object) -> str:
        raise OSError("no route to the hub")

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", unreachable)
    with pytest.raises(RecipeError, match="no route to the hub"):
        read_checkpoint("Qwen/none", tmp_path)


def test_a_hub_is_named_before_it_is_asked_and_asked_once(tmp_path: Path) -> None:
    """With no network the hub's own client tries six times, in 24 s."""
    pytest.importorskip("huggingface_hub")
    with socket.create_server(("127.0.0.1", 0)) as server:  # closed at once: nobody listens there then
        nowhere = f"http://127.0.0.1:{server.getsockname()[1]}"
    code = "from pathlib import Path; from vidpipe.engine.checkpoint import read_checkpoint as r; r('who/what', Path())"
    asked = {"HF_ENDPOINT": nowhere, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
    result = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, cwd=ROOT, check=False
    )
    first, *others = result.stderr.splitlines()
    assert first == f"model.path who/what is no folder: asking {nowhere} for its settings"
    assert f"no such folder in {Path()}, where paths start" in result.stderr
    assert "the hub says ConnectError" in result.stderr and "hf download who/what" in others[-1], result.stderr
    assert "Retrying" not in result.stderr
