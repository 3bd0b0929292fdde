"""Model shapes and videos of `encoder.py`: folders without weights; frames of noise, of sizes that stay as they are."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vidpipe.models.clock import clock_of
from vidpipe.models.registry import get_family
from vidpipe.plan.graph_packing import EncoderItem
from vidpipe.plan.graph_proposal import encoder_item
from vidpipe.recipe.schema import Sampling

ROOT = Path(__file__).resolve().parents[2]
CHAT = "<|im_start|>user\n<|vision_start|><|video_pad|><|vision_end|>What happens?<|im_end|>\n<|im_start|>assistant\n"
FPS = 2.0


@dataclass(frozen=True)
class Shape:
    """A model without weights."""

    family: str
    make: Callable[[Path], None]
    side: int
    """Pixels of which every side of a frame is a multiple."""
    most_frames: int
    remote_code: bool
    kv_cache_gib: int


@dataclass(frozen=True)
class Workload:
    """Videos that reach the engine together, or one after another."""

    sizes: tuple[tuple[int, int, int], ...]
    """Frames, height and width in multiples of the shape's side."""
    alone: bool = False


def qwen3_vl_2b(folder: Path) -> None:
    """Of Qwen3-VL-2B-Instruct."""
    from tests.perf.qwen3_vl_2b import make

    make(folder, 2**25)


def qwen3_vl_tiny(folder: Path) -> None:
    """The demo's model without its weights, so that the script can be tried on any machine."""
    import shutil

    shutil.copytree(ROOT / "data" / "tiny-qwen3vl", folder, ignore=shutil.ignore_patterns("*.safetensors"))


def llava_onevision2_8b(folder: Path) -> None:
    """LLaVA-OneVision-2-8B: a Qwen3-8B behind a tower of 24 layers with 16 heads of 64 channels."""
    from tests.checkpoints.llava_onevision2 import make

    make(folder)
    (folder / "model.safetensors").unlink()
    config = json.loads((folder / "config.json").read_text())
    config["text_config"] |= {
        "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960,
    }  # fmt: skip
    config["vision_config"] |= {
        "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
        "out_hidden_size": 4096,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config, indent=1))


def llava_onevision2_tiny(folder: Path) -> None:
    """The tiny checkpoint of the tests without its weights, so that the script can be tried on any machine."""
    from tests.checkpoints.llava_onevision2 import make

    make(folder)
    (folder / "model.safetensors").unlink()


SHAPES = {
    "qwen3_vl_2b": Shape("qwen3_vl", qwen3_vl_2b, 32, 64, False, 24),
    "llava_onevision2_8b": Shape("llava_onevision2", llava_onevision2_8b, 28, 32, True, 30),
    "llava_onevision2_tiny": Shape("llava_onevision2", llava_onevision2_tiny, 28, 16, True, 1),
    "qwen3_vl_tiny": Shape("qwen3_vl", qwen3_vl_tiny, 32, 16, False, 1),
}


def workloads(shape: Shape, *, small: bool) -> dict[str, Workload]:
    """Short, mixed and long videos; and short ones that come one at a time."""
    draw = random.Random(0)
    most, count = shape.most_frames, 6 if small else 48
    sides = (2, 3, 4) if small else tuple(range(5, 15))
    short = ((8, 2, 2) if small else (16, 7, 7),)
    mixed = tuple((2 * draw.randint(2, most // 2), draw.choice(sides), draw.choice(sides)) for _ in range(count))
    long = ((most, 3, 3) if small else (120 if shape.family == "qwen3_vl" else most, 14, 14),)
    return {
        "lone short": Workload(short * (count // 2), alone=True),
        "short": Workload(short * count),
        "mixed": Workload(mixed),
        "long": Workload(long * (2 if small else 8)),
    }


def item_of(shape: Shape, size: tuple[int, int, int], processor: dict[str, Any]) -> EncoderItem:
    """The video as the encoder sees it."""
    family, (frames, height, width) = get_family(shape.family), size
    sampling = family.complete(Sampling(), processor)
    layout = family.layout(frames, width * shape.side, height * shape.side, sampling, processor)
    return encoder_item(layout.grid_thw, layout.merge)


def prompt_of(shape: Shape, size: tuple[int, int, int], processor: dict[str, Any], number: int) -> dict[str, Any]:
    """A prompt for vLLM's renderer with frames of noise."""
    family, (frames, height, width) = get_family(shape.family), size
    sampling = family.complete(Sampling(), processor)
    pixels = np.random.default_rng(number).integers(
        0, 255, (frames, height * shape.side, width * shape.side, 3), np.uint8
    )
    times_s = [index / FPS for index in range(frames)]
    clock = clock_of(range(frames), times_s, first_index=0, frames=frames, fps=FPS, zero_s=0.0, time_base="real")
    return {
        "prompt": CHAT,
        "multi_modal_data": {"video": [(pixels, family.engine_metadata(clock, sampling))]},
        "mm_processor_kwargs": family.processor_kwargs(sampling, processor),
        "multi_modal_uuids": {"video": [f"video-{number}"]},
    }
