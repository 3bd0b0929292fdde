"""A tiny random LLaVA-OneVision-2 checkpoint, with stand-ins for the code that the real one brings.

They are those of the trained one in `data/`; vLLM loads the classes by their file and class names, as it does the
hub's. The tower has what vLLM's `LlavaOnevision2VisionTower` loads: heads of 32 channels
(the split 4:6:6 of a head's half needs a multiple of 16), patches of 14 x 14, merged 2 x 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.checkpoints.common import (
    chatml_template,
    copy_code,
    main,
    qwen3_shapes,
    write_json,
    write_tokenizer,
    write_weights,
)

CODE = Path(__file__).resolve().parents[2] / "data" / "tiny-llava-onevision2"
END, PAD = "<|im_end|>", "<|endoftext|>"
CONTROL = (PAD, "<|im_start|>", END, "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
PATCH, MERGE = 14, 2
IMAGE_MEAN, IMAGE_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
TEMPLATE = chatml_template("<|vision_start|><|video_pad|><|vision_end|>", "<|vision_start|><|image_pad|><|vision_end|>")


@dataclass(frozen=True)
class Sizes:
    """How large a checkpoint's two halves are."""

    width: int = 64
    inner: int = 128
    layers: int = 2
    heads: int = 4
    key_value_heads: int = 2
    head: int = 32
    vision_width: int = 64
    vision_inner: int = 128
    vision_layers: int = 2
    vision_heads: int = 2
    rope_theta: float = 1e6
    max_pixels: int = 1605632


def make(folder: Path) -> None:
    """Write the checkpoint into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = write_tokenizer(folder, CONTROL, end=END, pad=PAD, template=TEMPLATE)
    write_configs(folder, ids, Sizes())
    write_weights(folder, shapes(Sizes(), ids["size"]))


def write_configs(folder: Path, ids: Mapping[str, int], sizes: Sizes) -> None:
    """Configuration files and stand-in code.

    Args:
        folder: The checkpoint.
        ids: Id of each control word, and the number of tokens under `size`.
        sizes: Of the model.
    """
    copy_code(CODE, folder)
    text = {
        "model_type": "qwen3", "vocab_size": ids["size"], "hidden_size": sizes.width, "num_hidden_layers": sizes.layers,
        "intermediate_size": sizes.inner, "num_attention_heads": sizes.heads, "head_dim": sizes.head,
        "num_key_value_heads": sizes.key_value_heads, "max_position_embeddings": 32768, "rope_theta": sizes.rope_theta,
        "tie_word_embeddings": False, "eos_token_id": ids[END],
    }  # fmt: skip
    vision = {
        "hidden_size": sizes.vision_width, "intermediate_size": sizes.vision_inner,
        "num_hidden_layers": sizes.vision_layers, "num_attention_heads": sizes.vision_heads,
        "patch_size": PATCH, "spatial_merge_size": MERGE, "temporal_patch_size": 1, "frame_windows_size": 4,
    }  # fmt: skip
    write_json(folder, "config.json", {
        "model_type": "llava_onevision2", "architectures": ["LlavaOnevision2ForConditionalGeneration"],
        "auto_map": {
            "AutoConfig": "configuration_llava_onevision2.LlavaOnevision2Config",
            "AutoProcessor": "processing_llava_onevision2.LlavaOnevision2Processor",
        },
        "text_config": text, "vision_config": vision, "dtype": "bfloat16", "tie_word_embeddings": False,
        "image_token_id": ids["<|image_pad|>"], "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"], "vision_end_token_id": ids["<|vision_end|>"],
    })  # fmt: skip
    write_json(folder, "generation_config.json", {"eos_token_id": ids[END], "pad_token_id": ids[PAD]})
    write_json(folder, "preprocessor_config.json", {
        "image_processor_type": "Qwen2VLImageProcessor", "processor_class": "LlavaOnevision2Processor",
        "auto_map": {"AutoProcessor": "processing_llava_onevision2.LlavaOnevision2Processor"},
        "patch_size": PATCH, "temporal_patch_size": 1, "merge_size": MERGE,
        "size": {"shortest_edge": 3136, "longest_edge": sizes.max_pixels},
        "image_mean": IMAGE_MEAN, "image_std": IMAGE_STD,
        "codec": {"target_canvas": 4, "group_size": 8, "images_per_group": 2, "max_pixels": 50176},
    })  # fmt: skip
    video = {"video_processor_type": "LlavaOnevision2VideoProcessor", "patch_size": PATCH, "merge_size": MERGE}
    write_json(folder, "video_preprocessor_config.json", video)


def shapes(sizes: Sizes, vocabulary: int) -> dict[str, tuple[int, ...]]:
    """Shape of each parameter by its name in the checkpoint."""
    found = qwen3_shapes(
        "model.language_model.",
        vocabulary=vocabulary, width=sizes.width, inner=sizes.inner, layers=sizes.layers, heads=sizes.heads,
        key_value_heads=sizes.key_value_heads, head=sizes.head,
    )  # fmt: skip
    found["lm_head.weight"] = (vocabulary, sizes.width)
    width, inner, merged = sizes.vision_width, sizes.vision_inner, MERGE**2 * sizes.vision_width
    tower: dict[str, tuple[int, ...]] = {"embeddings.patch_embedding.weight": (width, 3, PATCH, PATCH)}
    norms = ["layernorm_pre", "merger.ln_q"]
    linears = {"merger.mlp.0": (merged, merged), "merger.mlp.2": (sizes.width, merged)}
    for layer in range(sizes.vision_layers):
        at = f"encoder.layers.{layer}."
        norms += [f"{at}layer_norm1", f"{at}layer_norm2"]
        linears |= {
            f"{at}self_attn.qkv": (3 * width, width),
            f"{at}self_attn.proj": (width, width),
            f"{at}mlp.fc1": (inner, width),
            f"{at}mlp.fc2": (width, inner),
        }
    for name in norms:
        tower |= {f"{name}.weight": (width,), f"{name}.bias": (width,)}
    for name, shape in linears.items():
        tower |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return found | {f"model.visual.{name}": shape for name, shape in tower.items()}


if __name__ == "__main__":
    main(make)
