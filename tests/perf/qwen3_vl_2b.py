"""A folder with the shape of Qwen3-VL-2B-Instruct and no weights, for `load_format="dummy"`.

    python tests/perf/qwen3_vl_2b.py OUT [--max-pixels N]

The tokenizer and the chat template are those of the demo's toy model; its few hundred token ids
are ids of the large vocabulary too.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

TOY = Path(__file__).resolve().parents[2] / "data" / "tiny-qwen3vl"
MAX_PIXELS = 32 * 448 * 448
"""Frames x height x width that a clip is resized to: 3,136 vision tokens."""

TEXT = {
    "head_dim": 128,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "max_position_embeddings": 262144,
    "num_attention_heads": 16,
    "num_hidden_layers": 28,
    "num_key_value_heads": 8,
    "rope_parameters": {
        "mrope_interleaved": True,
        "mrope_section": [24, 20, 20],
        "rope_theta": 5000000.0,
        "rope_type": "default",
    },
    "tie_word_embeddings": True,
    "vocab_size": 151936,
}
VISION = {
    "deepstack_visual_indexes": [5, 11, 17],
    "depth": 24,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_heads": 16,
    "num_position_embeddings": 2304,
    "out_hidden_size": 2048,
}


def make(folder: Path, max_pixels: int = MAX_PIXELS) -> Path:
    """Write the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in TOY.iterdir():
        if path.suffix not in (".safetensors", ".md"):
            shutil.copy(path, folder / path.name)
    config = json.loads((TOY / "config.json").read_text())
    config["text_config"] |= TEXT
    config["vision_config"] |= VISION
    config["tie_word_embeddings"] = True
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    processor = json.loads((TOY / "video_preprocessor_config.json").read_text())
    processor["size"]["longest_edge"] = max_pixels
    (folder / "video_preprocessor_config.json").write_text(json.dumps(processor, indent=1))
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--max-pixels", type=int, default=MAX_PIXELS)
    given = parser.parse_args()
    print(make(given.out, given.max_pixels))
