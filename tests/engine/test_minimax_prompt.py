"""MiniMax-M3's prompt as vLLM really makes it; needs the files of a checkpoint, but no weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vidpipe.engine import torchvision_on_cpu, vllm_environment
from vidpipe.errors import EngineError
from vidpipe.models.clock import FrameClock
from vidpipe.models.minimax_m3 import END, START, VIDEO
from vidpipe.models.prompt import token_ids
from vidpipe.models.registry import get_family
from vidpipe.recipe.schema import Sampling

pytestmark = pytest.mark.engine

try:
    vllm_environment.installed()
    torchvision_on_cpu.install()
    torchvision_on_cpu.reach_children()  # vLLM inspects the model class in one
except EngineError:
    pytest.skip("vLLM is not installed here", allow_module_level=True)

PAD, STOP, IMAGE = "<unk>", "[e~[", "]<]image[>["
HEADS, WIDTH = 4, 64


def write_tokenizer(folder: Path) -> dict[str, int]:
    """One token a byte, and the control words."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    words = [PAD, STOP, IMAGE, VIDEO, START, END]
    tokenizer.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in words])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": STOP, "pad_token": PAD, "unk_token": PAD}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return {word: tokenizer.token_to_id(word) for word in words} | {"size": tokenizer.get_vocab_size()}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("minimax")
    ids = write_tokenizer(folder)
    layers = [0, 0]  # no mixture of experts, no sparse attention: only the processor is of interest
    text = {
        "model_type": "minimax_m3_text", "vocab_size": ids["size"], "hidden_size": WIDTH, "intermediate_size": WIDTH,
        "dense_intermediate_size": WIDTH, "shared_intermediate_size": WIDTH, "num_hidden_layers": len(layers),
        "num_attention_heads": HEADS, "num_key_value_heads": 2, "head_dim": 64, "max_position_embeddings": 32768,
        "rotary_dim": 32, "partial_rotary_factor": 0.5, "num_local_experts": 4, "num_experts_per_tok": 2,
        "n_shared_experts": 1, "num_mtp_modules": 0, "moe_layer_freq": layers,
        "sparse_attention_config": {
            "use_sparse_attention": True, "sparse_index_dim": 64, "sparse_num_index_heads": 2, "sparse_topk_blocks": 4,
            "sparse_block_size": 128, "sparse_disable_index_value": layers, "sparse_score_type": "max",
            "sparse_init_block": 0, "sparse_local_block": 1, "sparse_attention_freq": layers,
        },
    }  # fmt: skip
    vision = {
        "model_type": "clip_vision_model", "hidden_size": WIDTH, "intermediate_size": WIDTH, "num_hidden_layers": 2,
        "num_attention_heads": HEADS, "patch_size": 14, "num_channels": 3, "image_size": 672, "rope_theta": 10000.0,
        "position_embedding_type": "rope",
        "img_token_compression_config": {
            "image_token_compression_method": "patch_merge", "spatial_merge_size": 2, "temporal_patch_size": 2,
        },
    }  # fmt: skip
    config = {
        "model_type": "minimax_m3_vl", "architectures": ["MiniMaxM3SparseForConditionalGeneration"],
        "text_config": text, "vision_config": vision, "dtype": "bfloat16", "projector_hidden_size": WIDTH,
        "image_token_index": ids[IMAGE], "image_token_id": ids[IMAGE], "video_token_index": ids[VIDEO],
        "video_token_id": ids[VIDEO], "tie_word_embeddings": False,
    }  # fmt: skip
    processor = {"patch_size": 14, "temporal_patch_size": 2, "merge_size": 2, "processor_class": "MiniMaxVLProcessor"}
    for name, values in (
        ("config", config),
        ("preprocessor_config", {**processor, "image_processor_type": "MiniMaxM3VLImageProcessor"}),
        ("video_preprocessor_config", {**processor, "video_processor_type": "MiniMaxM3VLVideoProcessor"}),
    ):
        (folder / f"{name}.json").write_text(json.dumps(values))
    return folder


def prompts(checkpoint: Path, **args: Any) -> tuple[list[int], list[int]]:
    """Ids that vLLM makes of a video, and those that the family says."""
    from vllm import EngineArgs
    from vllm.renderers import renderer_from_config

    limits = {"video": 1, "image": 0}
    config = EngineArgs(model=str(checkpoint), max_model_len=8192, limit_mm_per_prompt=limits, **args)
    renderer = renderer_from_config(config.create_engine_config())
    tokenizer = renderer.get_tokenizer()
    family = get_family("minimax_m3")
    sampling = family.complete(Sampling(max_pixels=40_000), {})
    clock = FrameClock((0, 8, 16, 25, 33), 8.0, 40)
    pixels = np.zeros((len(clock.ticks), 90, 160, 3), np.uint8)
    item = {
        "prompt": VIDEO,
        "multi_modal_data": {"video": [(pixels, family.engine_metadata(clock, sampling))]},
        "mm_processor_kwargs": family.processor_kwargs(sampling, {}),
    }
    layout = family.layout(len(pixels), 160, 90, sampling, {})
    spans = family.prompt(clock.times_s, layout, sampling)

    def tokenise(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False)
        return ids

    said = token_ids(spans, tokenise, tokenizer.convert_tokens_to_ids)
    return renderer.render_cmpl([item])[0]["prompt_token_ids"], said


def test_the_family_says_the_prompt_token_by_token(checkpoint: Path) -> None:
    made, said = prompts(checkpoint, **get_family("minimax_m3").abilities.engine_args)
    assert made == said


def test_vllms_processor_cache_loses_all_times(checkpoint: Path) -> None:
    """Found with vLLM 0.32: items that miss the cache are parsed again, without their metadata."""
    made, said = prompts(checkpoint)
    times = 3 * len("]<]0.0 seconds[>[")
    assert len(made) == len(said) - times
