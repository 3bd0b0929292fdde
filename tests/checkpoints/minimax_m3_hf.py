"""A tiny random MiniMax-M3 checkpoint for transformers, which runs on a CPU where vLLM does not.

For a second opinion on prompts: the same tokenizer and template as `minimax_m3`.
"""

from __future__ import annotations

from pathlib import Path

from tests.checkpoints.common import SEED, main, write_tokenizer
from tests.checkpoints.minimax_m3 import CONTROL, END, IMAGE, TEMPLATE, UNKNOWN, VIDEO, write_processors
from vidpipe.engine import torchvision_on_cpu

WIDTH, HEADS, KEY_VALUE_HEADS, HEAD = 64, 4, 2, 64


def make(folder: Path) -> None:
    """Write the checkpoint into `folder`."""
    torchvision_on_cpu.install()
    import torch
    from transformers import MiniMaxM3SparseForConditionalGeneration, MiniMaxM3VLConfig

    folder.mkdir(parents=True, exist_ok=True)
    ids = write_tokenizer(folder, CONTROL, end=END, pad=UNKNOWN, template=TEMPLATE, unk_token=UNKNOWN)
    text = {
        "vocab_size": ids["size"], "hidden_size": WIDTH, "intermediate_size": WIDTH,
        "dense_intermediate_size": 2 * WIDTH, "shared_intermediate_size": WIDTH, "num_hidden_layers": 2,
        "num_attention_heads": HEADS, "num_key_value_heads": KEY_VALUE_HEADS, "head_dim": HEAD,
        "rotary_dim": HEAD // 2, "num_local_experts": 4, "num_experts_per_tok": 2, "index_n_heads": KEY_VALUE_HEADS,
        "index_head_dim": HEAD, "index_topk_blocks": 4, "max_position_embeddings": 32768,
        "bos_token_id": ids["]~!b["], "eos_token_id": ids[END], "pad_token_id": ids[UNKNOWN],
    }  # fmt: skip
    vision = {
        "hidden_size": 96, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
        "image_size": 672,
    }  # fmt: skip
    config = MiniMaxM3VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_index=ids[IMAGE],
        video_token_index=ids[VIDEO],
        projector_hidden_size=WIDTH,
    )
    torch.manual_seed(SEED)
    model = MiniMaxM3SparseForConditionalGeneration(config).to(torch.bfloat16)
    model.save_pretrained(folder)
    write_processors(folder, ids, "MiniMaxM3VLProcessor")


if __name__ == "__main__":
    main(make)
