"""A tiny random ERNIE-4.5-VL checkpoint, with stand-ins for the code that the real one brings.

A dense first layer, then layers with two sets of experts: one for text, one for vision. Behind the
tower a resampler joins 2 x 2 patches of two frames each.
"""

from __future__ import annotations

from pathlib import Path

from tests.checkpoints.common import copy_code, main, write_json, write_tokenizer, write_weights

CODE = Path(__file__).parent / "ernie45_vl_code"
END, UNKNOWN = "</s>", "<unk>"
PLACEHOLDER, VIDEO_START, VIDEO_END = "<|IMAGE_PLACEHOLDER|>", "<|VIDEO_START|>", "<|VIDEO_END|>"
IMAGE_START, IMAGE_END = "<|IMAGE_START|>", "<|IMAGE_END|>"
CONTROL = (
    UNKNOWN, "<s>", END, "<|image@placeholder|>", "<|video@placeholder|>", PLACEHOLDER,
    IMAGE_START, IMAGE_END, VIDEO_START, VIDEO_END,
)  # fmt: skip
TEMPLATE = (
    "{% set seen = namespace(videos=0, images=0) %}"
    "{% for message in messages %}"
    "{% if message.role == 'user' %}User: {% elif message.role == 'assistant' %}Assistant: {% endif %}"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'video' %}{% set seen.videos = seen.videos + 1 %}"
    "Video {{ seen.videos }}:<|VIDEO_START|><|video@placeholder|><|VIDEO_END|>"
    "{% elif part.type == 'image' %}{% set seen.images = seen.images + 1 %}"
    "Picture {{ seen.images }}:<|IMAGE_START|><|image@placeholder|><|IMAGE_END|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}\n"
    "{% endfor %}{% if add_generation_prompt %}Assistant: {% endif %}"
)
PATCH, MERGE, TEMPORAL = 14, 2, 2


WIDTH, INNER, LAYERS = 128, 128, 3
HEADS, KEY_VALUE_HEADS, HEAD = 2, 1, 64
EXPERTS, EXPERTS_PER_TOKEN = 4, 2
EXPERT_INNER = (64, 32)
"""Inner width of an expert for text and of one for vision."""
TOWER_WIDTH, TOWER_HEADS, TOWER_LAYERS = 64, 2, 2


def make(folder: Path) -> None:
    """Write the checkpoint into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    copy_code(CODE, folder)
    ids = write_tokenizer(folder, CONTROL, end=END, pad=UNKNOWN, template=TEMPLATE, unk_token=UNKNOWN)
    _write_configs(folder, ids)
    write_weights(folder, _shapes(ids["size"]))


def _write_configs(folder: Path, ids: dict[str, int]) -> None:
    code = "processing_ernie4_5_vl.Ernie4_5_VL"
    auto_map = {"AutoProcessor": f"{code}Processor", "AutoImageProcessor": f"{code}ImageProcessor"}
    write_json(folder, "config.json", {
        "model_type": "ernie4_5_moe_vl", "architectures": ["Ernie4_5_VLMoeForConditionalGeneration"],
        "auto_map": {"AutoConfig": "configuration_ernie4_5_vl.Ernie4_5_VLMoEConfig", **auto_map},
        "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": KEY_VALUE_HEADS, "head_dim": HEAD, "freq_allocation": 8,
        "vocab_size": ids["size"], "max_position_embeddings": 32768, "dtype": "bfloat16",
        "im_patch_id": ids[PLACEHOLDER], "image_start_token_id": ids[IMAGE_START],
        "image_end_token_id": ids[IMAGE_END], "video_start_token_id": ids[VIDEO_START],
        "video_end_token_id": ids[VIDEO_END], "bos_token_id": ids["<s>"], "eos_token_id": ids[END],
        "pad_token_id": ids[UNKNOWN], "pixel_hidden_size": TOWER_WIDTH,
        "moe_num_experts": [EXPERTS] * 2, "moe_k": EXPERTS_PER_TOKEN,
        "moe_intermediate_size": list(EXPERT_INNER), "moe_num_shared_experts": 1,
        "moe_layer_start_index": [1, 1], "moe_layer_end_index": [LAYERS - 1] * 2,
        "vision_config": {
            "depth": TOWER_LAYERS, "embed_dim": TOWER_WIDTH, "hidden_size": TOWER_WIDTH,
            "num_heads": TOWER_HEADS, "mlp_ratio": 2, "patch_size": PATCH, "spatial_merge_size": MERGE,
        },
    })  # fmt: skip
    write_json(folder, "generation_config.json", {"eos_token_id": ids[END], "pad_token_id": ids[UNKNOWN]})
    write_json(folder, "preprocessor_config.json", {
        "image_processor_type": "Ernie4_5_VLImageProcessor", "processor_class": "Ernie4_5_VLProcessor",
        "auto_map": auto_map, "patch_size": PATCH, "merge_size": MERGE, "temporal_conv_size": TEMPORAL,
        "min_pixels": 56 * 56, "max_pixels": 6177 * 28 * 28,
    })  # fmt: skip


def _shapes(vocabulary: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (vocabulary, WIDTH), "norm.weight": (WIDTH,)}
    for layer in range(LAYERS):
        at = f"layers.{layer}."
        queries, keys = HEADS * HEAD, KEY_VALUE_HEADS * HEAD
        shapes |= {
            f"{at}input_layernorm.weight": (WIDTH,),
            f"{at}post_attention_layernorm.weight": (WIDTH,),
            f"{at}self_attn.q_proj.weight": (queries, WIDTH),
            f"{at}self_attn.k_proj.weight": (keys, WIDTH),
            f"{at}self_attn.v_proj.weight": (keys, WIDTH),
            f"{at}self_attn.o_proj.weight": (WIDTH, queries),
        }
        if layer == 0:
            shapes |= _gated(f"{at}mlp.", WIDTH, INNER)
            continue
        shapes |= {
            f"{at}mlp.gate.weight": (WIDTH, EXPERTS),
            f"{at}mlp.gate.weight_1": (WIDTH, EXPERTS),
            f"{at}mlp.moe_statics.e_score_correction_bias": (2, EXPERTS),
            **_gated(f"{at}mlp.shared_experts.", WIDTH, EXPERT_INNER[0]),
        }
        for expert in range(2 * EXPERTS):
            shapes |= _gated(f"{at}mlp.experts.{expert}.", WIDTH, EXPERT_INNER[expert >= EXPERTS])
    shapes |= _resampler()
    return {f"model.{name}": of for name, of in shapes.items()} | _tower()


def _gated(at: str, width: int, inner: int) -> dict[str, tuple[int, ...]]:
    return {
        f"{at}gate_proj.weight": (inner, width),
        f"{at}up_proj.weight": (inner, width),
        f"{at}down_proj.weight": (width, inner),
    }


def _resampler() -> dict[str, tuple[int, ...]]:
    cell = TOWER_WIDTH * MERGE**2
    linears = {
        "spatial_linear.0": (cell, cell),
        "spatial_linear.2": (cell, cell),
        "temporal_linear.0": (cell, TEMPORAL * cell),
        "temporal_linear.2": (cell, cell),
        "mlp": (WIDTH, cell),
        "spatial_linear.3": (cell,),
        "temporal_linear.3": (cell,),
    }
    named = {f"{name}.weight": of for name, of in linears.items()} | {f"{n}.bias": of[:1] for n, of in linears.items()}
    named["after_norm.weight"] = (WIDTH,)
    return {f"resampler_model.{name}": of for name, of in named.items()}


def _tower() -> dict[str, tuple[int, ...]]:
    tower: dict[str, tuple[int, ...]] = {"patch_embed.proj.weight": (TOWER_WIDTH, 3 * PATCH * PATCH)}
    parts: dict[str, tuple[int, ...]] = {"ln": (TOWER_WIDTH,)}
    for block in range(TOWER_LAYERS):
        at = f"blocks.{block}."
        parts |= {
            f"{at}norm1": (TOWER_WIDTH,),
            f"{at}norm2": (TOWER_WIDTH,),
            f"{at}attn.qkv": (3 * TOWER_WIDTH, TOWER_WIDTH),
            f"{at}attn.proj": (TOWER_WIDTH, TOWER_WIDTH),
            f"{at}mlp.fc1": (2 * TOWER_WIDTH, TOWER_WIDTH),
            f"{at}mlp.fc2": (TOWER_WIDTH, 2 * TOWER_WIDTH),
        }
    for name, of in parts.items():
        tower |= {f"{name}.weight": of, f"{name}.bias": of[:1]}
    return {f"vision_model.{name}": of for name, of in tower.items()}


if __name__ == "__main__":
    main(make)
