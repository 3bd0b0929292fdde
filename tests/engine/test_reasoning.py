"""Reasoning models and budgets of a few tokens."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import TINY_MODEL, vidpipe
from vidpipe.engine.reasoning import budget_warning, thinks_aloud

ANSWERS = "{{ messages }}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
THINKS = "{{ messages }}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
STRIPS = "{{ messages.split('<think>')[0] }}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"


@pytest.mark.parametrize(("template", "expected"), [(ANSWERS, False), (THINKS, True), (STRIPS, False)])
@pytest.mark.parametrize("name", ["chat_template.jinja", "chat_template.json", "tokenizer_config.json"])
def test_the_template_that_opens_the_models_turn_tells(
    tmp_path: Path, name: str, template: str, expected: bool
) -> None:
    (tmp_path / name).write_text(template if name.endswith("jinja") else json.dumps({"chat_template": template}))
    assert thinks_aloud(str(tmp_path)) == expected
    assert (budget_warning(str(tmp_path), 16) is not None) == expected
    assert budget_warning(str(tmp_path), 4096) is None


def test_a_checkpoint_without_a_template_is_not_warned_of(tmp_path: Path) -> None:
    assert not thinks_aloud(str(tmp_path))


def test_check_warns_on_standard_error(tmp_path: Path) -> None:
    shutil.copytree(TINY_MODEL, tmp_path / "model", ignore=shutil.ignore_patterns("*.safetensors"))
    for name in ("chat_template.json", "tokenizer_config.json", "chat_template.jinja"):
        (tmp_path / "model" / name).unlink(missing_ok=True)
    (tmp_path / "model" / "chat_template.jinja").write_text(THINKS)
    (tmp_path / "a.mp4").write_bytes(b"not looked into")
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "video": "a.mp4", "question": "?"}\n')
    settings = ("--set", f"model.path={tmp_path / 'model'}", "--set", "generation.max_tokens=16")
    result = vidpipe("check", tmp_path / "rows.jsonl", *settings, "--json")
    assert result.returncode == 0 and "thinks aloud" in result.stderr and json.loads(result.stdout)["faults"] == []
    result = vidpipe("check", tmp_path / "rows.jsonl", *settings[:2], "--set", "generation.max_tokens=4096")
    assert "thinks aloud" not in result.stderr
