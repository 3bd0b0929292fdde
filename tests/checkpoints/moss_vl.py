"""A tiny random Moss-VL checkpoint, with stand-ins for the code that the real one brings.

A Qwen3 text model in which every other layer attends across to the vision tower's output, as SGLang's
`srt/models/moss_vl.py` loads it: the tower is Qwen3-VL's, its merger joins the features of all depths at once.
`make` writes heads of 32 channels for the CPU, `make_for_gpu` of 64, the least that flashinfer is built for.
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
from vidpipe.models import moss_vl

CODE = Path(__file__).parent / "moss_vl_code"
END, PAD = "<|im_end|>", "<|endoftext|>"
CONTROL = (
    PAD, "<|im_start|>", END, moss_vl.START, moss_vl.END, moss_vl.IMAGE, "<|video_pad|>",
    moss_vl.TIME_START, moss_vl.TIME_END,
)  # fmt: skip
PATCH, MERGE = moss_vl.PATCH, moss_vl.MERGE
ACROSS = (1, 3)
"""Layers of the text model that attend to the vision tower's output."""
WIDTH, INNER, LAYERS, HEADS, KEY_VALUE_HEADS = 64, 128, 4, 4, 2
TOWER_WIDTH, TOWER_INNER, TOWER_LAYERS, TOWER_HEADS, TOWER_SIDE = 64, 128, 2, 2, 8
DEEP = (0,)
"""Layers of the tower whose output is joined to that of the last one."""


def make(folder: Path, *, head: int = 32, slot_is_a_token: bool = False) -> None:
    """Write the checkpoint into `folder`.

    Args:
        folder: Made if it does not exist.
        head: Channels of a head of the text model.
        slot_is_a_token: Whether the tokenizer knows the word that stands for a video.
    """
    folder.mkdir(parents=True, exist_ok=True)
    copy_code(CODE, folder)
    control = (*CONTROL, moss_vl.SLOT) if slot_is_a_token else CONTROL
    template = chatml_template(moss_vl.SLOT, "<|image|>")
    ids = write_tokenizer(folder, control, end=END, pad=PAD, template=template)
    _write_configs(folder, ids, head)
    write_weights(folder, _shapes(ids["size"], head))


def _write_configs(folder: Path, ids: dict[str, int], head: int) -> None:
    third = head // 2 // 3
    text = {
        "model_type": "moss_vl_text", "vocab_size": ids["size"], "hidden_size": WIDTH, "intermediate_size": INNER,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KEY_VALUE_HEADS,
        "head_dim": head, "attention_bias": False, "hidden_act": "silu", "rms_norm_eps": 1e-6,
        "max_position_embeddings": 32768, "rope_theta": 1e6, "cross_attention_layers": list(ACROSS),
        "rope_scaling": {
            "rope_type": "default", "mrope_section": [head // 2 - 2 * third, third, third], "mrope_interleaved": True,
        },
        "eos_token_id": ids[END], "tie_word_embeddings": False,
    }  # fmt: skip
    vision = {
        "model_type": "moss_vl_vision", "depth": TOWER_LAYERS, "hidden_size": TOWER_WIDTH, "hidden_act": "silu",
        "intermediate_size": TOWER_INNER, "num_heads": TOWER_HEADS, "in_channels": 3, "patch_size": PATCH,
        "spatial_merge_size": MERGE, "temporal_patch_size": 1, "out_hidden_size": WIDTH,
        "num_position_embeddings": TOWER_SIDE**2, "deepstack_visual_indexes": list(DEEP),
    }  # fmt: skip
    processor = {
        "AutoProcessor": "processing_moss_vl.MossVLProcessor",
        "AutoVideoProcessor": "video_processing_moss_vl.MossVLVideoProcessor",
    }
    write_json(folder, "config.json", {
        "model_type": "moss_vl", "architectures": ["MossVLForConditionalGeneration"],
        "auto_map": {"AutoConfig": "configuration_moss_vl.MossVLConfig", **processor},
        "text_config": text, "vision_config": vision, "dtype": "bfloat16", "tie_word_embeddings": False,
        "image_token_id": ids[moss_vl.IMAGE], "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids[moss_vl.START], "vision_end_token_id": ids[moss_vl.END],
    })  # fmt: skip
    write_json(folder, "generation_config.json", {"eos_token_id": ids[END], "pad_token_id": ids[PAD]})
    sizes = {"patch_size": PATCH, "temporal_patch_size": 1, "merge_size": MERGE}
    sizes["size"] = {"shortest_edge": 4096, "longest_edge": 16777216}  # type: ignore[assignment]
    write_json(folder, "preprocessor_config.json", {
        "image_processor_type": "Qwen2VLImageProcessor", "processor_class": "MossVLProcessor", "auto_map": processor,
        **sizes,
    })  # fmt: skip
    write_json(folder, "video_preprocessor_config.json", {
        "video_processor_type": "MossVLVideoProcessor", "processor_class": "MossVLProcessor", "auto_map": processor,
        **sizes,
    })  # fmt: skip


def _shapes(vocabulary: int, head: int) -> dict[str, tuple[int, ...]]:
    model = "model.language_model."
    shapes = qwen3_shapes(
        model, vocabulary=vocabulary, width=WIDTH, inner=INNER, layers=LAYERS, heads=HEADS,
        key_value_heads=KEY_VALUE_HEADS, head=head,
    )  # fmt: skip
    for layer in ACROSS:
        own, across = f"{model}layers.{layer}.self_attn.", f"{model}layers.{layer}.cross_attn."
        shapes = {name.replace(own, across): of for name, of in shapes.items()}
        gates = ("cross_attn_attn_gate", "cross_attn_mlp_gate")  # one-dimensional: 1, so that they are open
        shapes |= {f"{model}layers.{layer}.{gate}": (1,) for gate in gates}
    shapes |= {"lm_head.weight": (vocabulary, WIDTH), "model.separator_token": (WIDTH,)}
    return shapes | {f"model.visual.{name}": of for name, of in _tower().items()}


def _tower() -> dict[str, tuple[int, ...]]:
    cell = TOWER_WIDTH * MERGE**2 * (1 + len(DEEP))
    parts: dict[str, tuple[int, ...]] = {
        "patch_embed.proj": (TOWER_WIDTH, 3, 1, PATCH, PATCH),
        "merger.linear_fc1": (cell, cell),
        "merger.linear_fc2": (WIDTH, cell),
        **{f"merger.norms.{number}": (TOWER_WIDTH,) for number in range(1 + len(DEEP))},
    }
    for block in range(TOWER_LAYERS):
        at = f"blocks.{block}."
        parts |= {
            f"{at}norm1": (TOWER_WIDTH,),
            f"{at}norm2": (TOWER_WIDTH,),
            f"{at}attn.qkv": (3 * TOWER_WIDTH, TOWER_WIDTH),
            f"{at}attn.proj": (TOWER_WIDTH, TOWER_WIDTH),
            f"{at}mlp.linear_fc1": (TOWER_INNER, TOWER_WIDTH),
            f"{at}mlp.linear_fc2": (TOWER_WIDTH, TOWER_INNER),
        }
    tower: dict[str, tuple[int, ...]] = {"pos_embed.weight": (TOWER_SIDE**2, TOWER_WIDTH)}
    for name, of in parts.items():
        tower |= {f"{name}.weight": of, f"{name}.bias": of[:1]}
    return tower


if __name__ == "__main__":
    main(make)
