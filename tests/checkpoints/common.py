"""Pieces of the tiny random checkpoints: tokenizer, chat template, weights, JSON files.

They answer nonsense. What they are for is everything around the weights: that an engine
loads the family, that prompts and pixels are what the rules say.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

SEED = 0
WHOLE_WORDS = (" seconds", " time", "The", " is")
"""Words that are one token each, so that a prompt tokenised in other pieces than it should be has other ids."""


def chatml_template(video: str, image: str) -> str:
    """A chat template in the ChatML form of the Qwen family.

    Args:
        video: What stands for a video part.
        image: What stands for an image part.
    """
    parts = (
        "{% for part in message.content %}"
        "{% if part.type == 'video' %}" + video + "{% elif part.type == 'image' %}" + image + "{% else %}"
        "{{ part.text }}{% endif %}{% endfor %}"
    )
    return (
        "{% for message in messages %}<|im_start|>{{ message.role }}\n"
        "{% if message.content is string %}{{ message.content }}{% else %}" + parts + "{% endif %}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )


def write_tokenizer(
    folder: Path, control: Sequence[str], *, end: str, pad: str, template: str, **settings: Any
) -> dict[str, int]:
    """A tokenizer with a token for each byte, a few for `WHOLE_WORDS`, and one for each control word.

    Args:
        folder: Gets `tokenizer.json`, `tokenizer_config.json` and `chat_template.jinja`.
        control: Control words in the order of their ids.
        end: The control word that ends an answer.
        pad: The control word for padding.
        template: The chat template.
        settings: Further keys of `tokenizer_config.json`.

    Returns:
        Id of each control word, and the number of tokens under `size`.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges: dict[tuple[str, str], None] = {}  # in order, each once
    for word in WHOLE_WORDS:
        text = word.replace(" ", "Ġ")  # how byte-level tokenizers write a space
        merges |= dict.fromkeys((text[:n], text[n]) for n in range(1, len(text)))
    vocabulary = {piece: number for number, piece in enumerate([*letters, *("".join(pair) for pair in merges)])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=list(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in control])
    tokenizer.save(str(folder / "tokenizer.json"))
    known = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end, "pad_token": pad}
    write_json(folder, "tokenizer_config.json", {**known, "model_max_length": 32768, **settings})
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    return {word: tokenizer.token_to_id(word) for word in control} | {"size": tokenizer.get_vocab_size()}


def write_json(folder: Path, name: str, values: Mapping[str, Any]) -> None:
    """Write one of a checkpoint's JSON files."""
    (folder / name).write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def write_weights(folder: Path, shapes: Mapping[str, Sequence[int]]) -> None:
    """Random weights in bfloat16, small enough to keep activations tame; scales of norms are 1, biases 0.

    Args:
        folder: Gets `model.safetensors`.
        shapes: Shape of each parameter by its name in the checkpoint.
    """
    import torch
    from safetensors.torch import save_file

    random = torch.Generator().manual_seed(SEED)
    weights = {}
    for name, shape in shapes.items():
        if name.endswith(".bias"):
            weights[name] = torch.zeros(*shape, dtype=torch.bfloat16)
        elif len(shape) == 1:
            weights[name] = torch.ones(*shape, dtype=torch.bfloat16)
        else:
            weights[name] = (torch.randn(*shape, generator=random) * 0.05).to(torch.bfloat16)
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})


def qwen3_shapes(
    prefix: str, *, vocabulary: int, width: int, inner: int, layers: int, heads: int, key_value_heads: int, head: int
) -> dict[str, tuple[int, ...]]:
    """Parameters of a Qwen3 text model without its output head.

    Args:
        prefix: What stands before each name.
        vocabulary: Tokens.
        width: Hidden size.
        inner: Width of the feed-forward layers.
        layers: Number of layers.
        heads: Query heads.
        key_value_heads: Key and value heads.
        head: Width of one head.
    """
    shapes: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (vocabulary, width), "norm.weight": (width,)}
    for layer in range(layers):
        at = f"layers.{layer}."
        shapes |= {
            f"{at}input_layernorm.weight": (width,),
            f"{at}post_attention_layernorm.weight": (width,),
            f"{at}self_attn.q_proj.weight": (heads * head, width),
            f"{at}self_attn.k_proj.weight": (key_value_heads * head, width),
            f"{at}self_attn.v_proj.weight": (key_value_heads * head, width),
            f"{at}self_attn.o_proj.weight": (width, heads * head),
            f"{at}self_attn.q_norm.weight": (head,),
            f"{at}self_attn.k_norm.weight": (head,),
            f"{at}mlp.gate_proj.weight": (inner, width),
            f"{at}mlp.up_proj.weight": (inner, width),
            f"{at}mlp.down_proj.weight": (width, inner),
        }
    return {prefix + name: shape for name, shape in shapes.items()}


def copy_code(source: Path, folder: Path) -> None:
    """Copy the Python files of `source`, which stand in for code that the model hub has, into a checkpoint."""
    for file in sorted(source.glob("*.py")):
        if file.name != "__init__.py":
            (folder / file.name).write_bytes(file.read_bytes())


def main(make: Callable[[Path], None]) -> None:
    """The command line of a checkpoint's module: `python -m tests.checkpoints.<family> OUT`."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: python -m tests.checkpoints.{Path(sys.argv[0]).stem} OUT")
    folder = Path(sys.argv[1])
    make(folder)
    size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
    print(f"{folder}: {size / 1e6:.2f} MB")
