"""From a training's folder to a checkpoint: `python -m tests.world.training.assemble FOLDER CHECKPOINT`.

Writes config, weights in bfloat16, tokenizer and the log into `CHECKPOINT`; the chat template is that of the checkpoint
that ships with vidpipe.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import torch

from tests.world.training import store
from tests.world.training.families import TAUGHT
from tests.world.training.qwen3_vl import SHIPPED
from tests.world.training.vocabulary import Vocabulary
from vidpipe.engine import torchvision_on_cpu


def assemble(folder: Path, checkpoint: Path) -> None:
    """Write the checkpoint."""
    torchvision_on_cpu.install()
    words = Vocabulary()
    weights, about = store.read(folder, "weights")
    if not weights:
        raise FileNotFoundError(f"{folder} has no weights-*.safetensors. Train first (tests/world/training/README.md).")
    taught = TAUGHT[about["family"]]
    model = taught.new_model(words)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    checkpoint.mkdir(parents=True, exist_ok=True)
    taught.write(model, words, checkpoint)
    words.tokenizer.save(str(checkpoint / "tokenizer.json"))
    for name in ("chat_template.jinja", "tokenizer_config.json"):
        if checkpoint.resolve() != SHIPPED:
            shutil.copy(SHIPPED / name, checkpoint)
    shutil.copy(folder / "log.jsonl", checkpoint / "training.jsonl")


if __name__ == "__main__":
    assemble(Path(sys.argv[1]), Path(sys.argv[2]))
