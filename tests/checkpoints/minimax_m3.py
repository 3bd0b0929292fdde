"""The files of a MiniMax-M3 checkpoint without its weights, in the layout that vLLM reads.

vLLM's kernels for it need CUDA, so on a CPU only its renderer works with this folder; on a GPU it runs with
`load_format: dummy`. Sizes are the smallest that those kernels take: heads of 128 channels, 64 of them
rotated; as many index heads as key-value heads; 16 query heads for each of these.
"""

from __future__ import annotations

from pathlib import Path

from tests.checkpoints.common import main, write_json, write_tokenizer

END, UNKNOWN = "[e~[", "<unk>"
IMAGE, VIDEO = "]<]image[>[", "]<]video[>["
CONTROL = (
    UNKNOWN, "]~!b[", "]~b]", END, IMAGE, VIDEO, "]<]start of image[>[", "]<]end of image[>[",
    "]<]start of video[>[", "]<]end of video[>[",
)  # fmt: skip
TEMPLATE = (
    "{% for message in messages %}]~b]{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'video' %}" + VIDEO + "{% elif part.type == 'image' %}" + IMAGE + "{% else %}"
    "{{ part.text }}{% endif %}{% endfor %}{% endif %}[e~[\n"
    "{% endfor %}{% if add_generation_prompt %}]~b]ai\n{% endif %}"
)
PATCH, MERGE, TEMPORAL = 14, 2, 2
KEY_VALUE_HEADS, GROUP, HEAD = 2, 16, 128
LAYERS = (0, 0, 1, 1)
"""Of each layer, whether it has experts and sparse attention."""
TOWER_WIDTH, TOWER_HEADS, TOWER_LAYERS = 512, 8, 2


def make(folder: Path) -> None:
    """Write the checkpoint into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = write_tokenizer(folder, CONTROL, end=END, pad=UNKNOWN, template=TEMPLATE, unk_token=UNKNOWN)
    layers = list(LAYERS)
    text = {
        "model_type": "minimax_m3_text", "vocab_size": ids["size"], "hidden_size": 1024, "intermediate_size": 256,
        "dense_intermediate_size": 512, "shared_intermediate_size": 256, "num_hidden_layers": len(layers),
        "num_attention_heads": GROUP * KEY_VALUE_HEADS, "num_key_value_heads": KEY_VALUE_HEADS, "head_dim": HEAD,
        "max_position_embeddings": 32768, "rotary_dim": HEAD // 2, "partial_rotary_factor": 0.5,
        "num_local_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1, "num_mtp_modules": 0,
        "moe_layer_freq": layers, "bos_token_id": ids["]~!b["], "eos_token_id": ids[END],
        "sparse_attention_config": {
            "use_sparse_attention": True, "sparse_index_dim": HEAD, "sparse_num_index_heads": KEY_VALUE_HEADS,
            "sparse_topk_blocks": 16, "sparse_block_size": 128, "sparse_disable_index_value": layers,
            "sparse_score_type": "max", "sparse_init_block": 0, "sparse_local_block": 1,
            "sparse_attention_freq": layers,
        },
    }  # fmt: skip
    vision = {
        "model_type": "clip_vision_model", "hidden_size": TOWER_WIDTH, "intermediate_size": 2 * TOWER_WIDTH,
        "num_hidden_layers": TOWER_LAYERS, "num_attention_heads": TOWER_HEADS, "patch_size": PATCH, "num_channels": 3,
        "layer_norm_eps": 1e-5, "hidden_act": "gelu", "image_size": 672, "rope_theta": 10000.0,
        "position_embedding_type": "rope",
        "img_token_compression_config": {
            "image_token_compression_method": "patch_merge", "spatial_merge_size": MERGE,
            "temporal_patch_size": TEMPORAL,
        },
    }  # fmt: skip
    write_json(folder, "config.json", {
        "model_type": "minimax_m3_vl", "architectures": ["MiniMaxM3SparseForConditionalGeneration"],
        "text_config": text, "vision_config": vision, "dtype": "bfloat16", "projector_hidden_size": 1024,
        "image_token_index": ids[IMAGE], "image_token_id": ids[IMAGE], "video_token_index": ids[VIDEO],
        "video_token_id": ids[VIDEO], "tie_word_embeddings": False,
    })  # fmt: skip
    write_processors(folder, ids, "MiniMaxVLProcessor")


def write_processors(folder: Path, ids: dict[str, int], processor_class: str) -> None:
    """Write the files that are the same for vLLM and for transformers but for the name of a class."""
    processor = {"processor_class": processor_class, "patch_size": PATCH, "temporal_patch_size": TEMPORAL}
    processor["merge_size"] = MERGE
    image, video = "MiniMaxM3VLImageProcessor", "MiniMaxM3VLVideoProcessor"
    write_json(folder, "preprocessor_config.json", {**processor, "image_processor_type": image})
    write_json(folder, "video_preprocessor_config.json", {**processor, "video_processor_type": video})
    write_json(folder, "generation_config.json", {"eos_token_id": ids[END], "pad_token_id": ids[UNKNOWN]})


if __name__ == "__main__":
    main(make)
