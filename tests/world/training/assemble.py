"""From a training's folder to a checkpoint: `python -m tests.world.training.assemble FOLDER CHECKPOINT`.

Writes config, weights in bfloat16, tokenizer and the log into `CHECKPOINT`; chat template and processor settings are
those of the checkpoint that ships with vidpipe.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import torch

from tests.world.training import store
from tests.world.training.network import new_model
from tests.world.training.vocabulary import Vocabulary
from vidpipe.engine import torchvision_on_cpu

SHIPPED = Path(__file__).resolve().parents[3] / "data" / "tiny-qwen3vl"
KEPT = ("chat_template.jinja", "tokenizer_config.json", "preprocessor_config.json", "video_preprocessor_config.json")


def assemble(folder: Path, checkpoint: Path) -> None:
    """Write the checkpoint."""
    torchvision_on_cpu.install()
    words = Vocabulary()
    model = new_model(words)
    weights, _ = store.read(folder, "weights")
    if not weights:
        raise FileNotFoundError(f"{folder} has no weights-*.safetensors. Train first (tests/world/training/README.md).")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    checkpoint.mkdir(parents=True, exist_ok=True)
    model.bfloat16().save_pretrained(checkpoint)
    words.tokenizer.save(str(checkpoint / "tokenizer.json"))
    for name in KEPT:
        if checkpoint.resolve() != SHIPPED:
            shutil.copy(SHIPPED / name, checkpoint)
    shutil.copy(folder / "log.jsonl", checkpoint / "training.jsonl")


if __name__ == "__main__":
    assemble(Path(sys.argv[1]), Path(sys.argv[2]))
