"""What differs between the models that are trained on the world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from tests.world.training import llava_onevision2, qwen3_vl
from tests.world.training.network import Network
from tests.world.training.vocabulary import Vocabulary
from tests.world.view import LLAVA_ONEVISION2, QWEN3_VL, Eye


@dataclass(frozen=True)
class Taught:
    """A family as it is trained."""

    eye: Eye
    new_model: Callable[[Vocabulary], Any]
    """Random weights in float32 under the names of the checkpoint."""
    network: type[Network]
    patches: Callable[[Tensor, int, int], Tensor]
    """Clip [B, F, 3, height, width], rows and columns of vision tokens -> what the encoder takes."""
    write: Callable[[Any, Vocabulary, Path], None]
    """Model, tokenizer and folder -> the checkpoint's weights and configuration."""
    qualities: tuple[str, ...]
    """What heads say of vision tokens, of `labels.QUALITIES`."""
    later: frozenset[str]
    """Those of them that one step does not show."""


SEEN = ("colour", "shape", "size", "motion", "news")
TAUGHT = {
    one.eye.family.name: one
    for one in (
        Taught(
            QWEN3_VL,
            qwen3_vl.new_model,
            qwen3_vl.Qwen3VLNetwork,
            qwen3_vl.patches,
            qwen3_vl.write,
            SEEN,
            frozenset(),
        ),
        # Its tower has no learned positions and its text model one axis: where a thing is must be learnt, too.
        Taught(
            LLAVA_ONEVISION2,
            llava_onevision2.new_model,
            llava_onevision2.LlavaOnevision2Network,
            llava_onevision2.patches,
            llava_onevision2.write,
            (*SEEN, "row", "column"),
            frozenset({"motion", "news"}),
        ),
    )
}
