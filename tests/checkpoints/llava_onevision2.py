"""A tiny random LLaVA-OneVision-2 checkpoint, with stand-ins for the code that the real one brings.

vLLM loads the classes in `llava_onevision2_code` by their file and class names, as it does
the hub's. The tower has what vLLM's `LlavaOnevision2VisionTower` loads: heads of 32 channels
(the split 4:6:6 of a head's half needs a multiple of 16), patches of 14 x 14, merged 2 x 2.
"""

from __future__ import annotations

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

CODE = Path(__file__).parent / "llava_onevision2_code"
END, PAD = "<|im_end|>", "<|endoftext|>"
CONTROL = (PAD, "<|im_start|>", END, "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
PATCH, MERGE = 14, 2
WIDTH, INNER, LAYERS = 64, 128, 2


def make(folder: Path) -> None:
    """Write the checkpoint into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    copy_code(CODE, folder)
    template = chatml_template(
        "<|vision_start|><|video_pad|><|vision_end|>", "<|vision_start|><|image_pad|><|vision_end|>"
    )
    ids = write_tokenizer(folder, CONTROL, end=END, pad=PAD, template=template)
    _write_configs(folder, ids)
    write_weights(folder, _shapes(ids["size"]))


def _write_configs(folder: Path, ids: dict[str, int]) -> None:
    text = {
        "model_type": "qwen3", "vocab_size": ids["size"], "hidden_size": WIDTH, "intermediate_size": INNER,
        "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
        "max_position_embeddings": 32768, "rope_theta": 1e6, "tie_word_embeddings": False, "eos_token_id": ids[END],
    }  # fmt: skip
    vision = {
        "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": 2,
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
        "size": {"shortest_edge": 3136, "longest_edge": 1605632},
        "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711],
        "codec": {"target_canvas": 4, "group_size": 8, "images_per_group": 2, "max_pixels": 50176},
    })  # fmt: skip
    video = {"video_processor_type": "LlavaOnevision2VideoProcessor", "patch_size": PATCH, "merge_size": MERGE}
    write_json(folder, "video_preprocessor_config.json", video)


def _shapes(vocabulary: int) -> dict[str, tuple[int, ...]]:
    shapes = qwen3_shapes(
        "model.language_model.",
        vocabulary=vocabulary, width=WIDTH, inner=INNER, layers=LAYERS, heads=4, key_value_heads=2, head=32,
    )  # fmt: skip
    shapes["lm_head.weight"] = (vocabulary, WIDTH)
    tower: dict[str, tuple[int, ...]] = {"embeddings.patch_embedding.weight": (WIDTH, 3, PATCH, PATCH)}
    norms, linears = ["layernorm_pre", "merger.ln_q"], {
        "merger.mlp.0": (MERGE**2 * WIDTH, MERGE**2 * WIDTH),
        "merger.mlp.2": (WIDTH, MERGE**2 * WIDTH),
    }  # fmt: skip
    for layer in range(LAYERS):
        at = f"encoder.layers.{layer}."
        norms += [f"{at}layer_norm1", f"{at}layer_norm2"]
        linears |= {
            f"{at}self_attn.qkv": (3 * WIDTH, WIDTH),
            f"{at}self_attn.proj": (WIDTH, WIDTH),
            f"{at}mlp.fc1": (INNER, WIDTH),
            f"{at}mlp.fc2": (WIDTH, INNER),
        }
    for name in norms:
        tower |= {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}
    for name, shape in linears.items():
        tower |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return shapes | {f"model.visual.{name}": shape for name, shape in tower.items()}


if __name__ == "__main__":
    main(make)
