"""A second implementation of the tiny Moss-VL, in plain torch and without a cache.

What is at stake is laid out by vidpipe's own rules: positions, separators, and which slots each token sees
(`vidpipe.models.moss_vl_layout`). The rest is the architecture as SGLang's `srt/models/moss_vl.py` has it. Computed in
float32, it must find the tokens that SGLang finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.checkpoints import moss_vl as tiny
from vidpipe.models.moss_vl_layout import SEPARATOR, position_metadata, visible_frames, visible_slots, with_separators

EPS = 1e-6
Grid = tuple[int, int, int]


def answer(folder: Path, ids: Sequence[int], image_id: int, media: dict[str, Any] | None, tokens: int) -> list[int]:
    """The likeliest `tokens` next tokens, one after the other.

    Args:
        folder: The checkpoint.
        ids: The prompt.
        image_id: Its token that stands for a frame.
        media: Patches `pixel_values` and `grid_thw`, in patches.
        tokens: How many.
    """
    import torch
    from safetensors.torch import load_file

    weights = {name: value.float() for name, value in load_file(str(folder / "model.safetensors")).items()}
    grids: list[Grid] = [] if media is None else [tuple(grid) for grid in media["grid_thw"].tolist()]
    slots = None
    if media is not None:
        seen = _tower(weights, media["pixel_values"].float(), grids)
        separator = weights["model.separator_token"]
        layout = with_separators(grids, tiny.MERGE)
        slots = torch.stack([separator if number == SEPARATOR else seen[number] for number in layout])
    found = list(ids)
    for _ in range(tokens):
        found.append(int(_text(weights, found, image_id, grids, slots)[-1].argmax()))
    return found[len(ids) :]


def _text(weights: dict[str, Any], ids: Sequence[int], image_id: int, grids: Sequence[Grid], slots: Any) -> Any:
    """Logits [tokens, vocabulary]."""
    import torch

    places = position_metadata(ids, image_id, grids, tiny.MERGE)
    head = weights["model.language_model.layers.0.self_attn.q_norm.weight"].shape[0]
    turns = _turns(torch.from_numpy(places.text), head)
    causal = torch.ones(len(ids), len(ids)).tril().bool()
    sees, masked = None, None
    if slots is not None:
        counts = torch.tensor(visible_slots(visible_frames(ids, image_id), grids, tiny.MERGE))
        sees = torch.arange(len(slots)) < counts[:, None]
        masked = (counts > 0)[:, None]
    x = weights["model.language_model.embed_tokens.weight"][list(ids)]
    for layer in range(tiny.LAYERS):
        of = {name[len(at) :]: w for name, w in weights.items() if name.startswith(at := _layer(layer))}
        if layer not in tiny.ACROSS:
            normed = _rms(x, of["input_layernorm.weight"])
            x = x + _attention(of, "self_attn.", normed, normed, (turns, turns), causal, head)
            x = x + _mlp(of, _rms(x, of["post_attention_layernorm.weight"]))
        elif slots is not None:
            keys = _turns(torch.from_numpy(places.vision), head)
            normed = _rms(x, of["input_layernorm.weight"])
            crossed = _attention(of, "cross_attn.", normed, slots, (turns, keys), sees, head)
            x = x + of["cross_attn_attn_gate"].tanh() * masked * crossed
            x = x + of["cross_attn_mlp_gate"].tanh() * masked * _mlp(of, _rms(x, of["post_attention_layernorm.weight"]))
    return _rms(x, weights["model.language_model.norm.weight"]) @ weights["lm_head.weight"].T


def _layer(number: int) -> str:
    return f"model.language_model.layers.{number}."


def _attention(
    of: dict[str, Any], at: str, asking: Any, asked: Any, turns: tuple[Any, Any], sees: Any, head: int
) -> Any:
    from torch.nn.functional import scaled_dot_product_attention

    def heads(name: str, states: Any) -> Any:
        return (states @ of[f"{at}{name}_proj.weight"].T).view(len(states), -1, head)

    queries = _rotated(_rms(heads("q", asking), of[f"{at}q_norm.weight"]), turns[0])
    keys = _rotated(_rms(heads("k", asked), of[f"{at}k_norm.weight"]), turns[1])
    values, groups = heads("v", asked), tiny.HEADS // tiny.KEY_VALUE_HEADS
    keys, values = (each.repeat_interleave(groups, dim=1).movedim(0, 1) for each in (keys, values))
    found = scaled_dot_product_attention(queries.movedim(0, 1), keys, values, attn_mask=sees).nan_to_num()
    return found.movedim(0, 1).flatten(1) @ of[f"{at}o_proj.weight"].T


def _mlp(of: dict[str, Any], x: Any) -> Any:
    from torch.nn.functional import silu

    gate, up, down = (of[f"mlp.{name}_proj.weight"].T for name in ("gate", "up", "down"))
    return (silu(x @ gate) * (x @ up)) @ down


def _rms(x: Any, weight: Any) -> Any:
    return x * (x.square().mean(-1, keepdim=True) + EPS).rsqrt() * weight


def _turns(positions: Any, head: int) -> Any:
    """Angles [tokens, head / 2] of positions [3, tokens]: time, height and width take turns along the channels."""
    import torch

    angles = positions[..., None].float() / 1e6 ** (torch.arange(0, head, 2) / head)
    axis = torch.zeros(head // 2, dtype=torch.long)
    third = head // 2 // 3
    axis[1 : 3 * third : 3], axis[2 : 3 * third : 3] = 1, 2
    return angles.gather(0, axis.expand(1, *angles.shape[1:]))[0]


def _rotated(x: Any, angles: Any) -> Any:
    """`x` [tokens, heads, channels]; the first half of the channels turns with the second."""
    import torch

    first, second = x.chunk(2, dim=-1)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _tower(weights: dict[str, Any], patches: Any, grids: Sequence[Grid]) -> Any:
    """Vision tokens [tokens, width] of all frames; a patch sees those of its frame."""
    import torch
    from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention, silu

    def part(name: str, x: Any) -> Any:
        return linear(x, weights[f"model.visual.{name}.weight"].flatten(1), weights[f"model.visual.{name}.bias"])

    def norm(name: str, x: Any) -> Any:
        of = (weights[f"model.visual.{name}.{what}"] for what in ("weight", "bias"))
        return layer_norm(x, x.shape[-1:], *of, EPS)

    table = weights["model.visual.pos_embed.weight"].view(tiny.TOWER_SIDE, tiny.TOWER_SIDE, -1)
    frames, begin = [], 0
    for count, rows, columns in grids:
        for _ in range(count):
            x = part("patch_embed.proj", patches[begin : begin + rows * columns]) + _in_blocks(
                _spread(table, rows, columns)
            )
            begin += rows * columns
            turns = _in_blocks(_tower_turns(rows, columns))
            deep = []
            for layer in range(tiny.TOWER_LAYERS):
                at = f"blocks.{layer}."
                normed = part(f"{at}attn.qkv", norm(f"{at}norm1", x)).view(len(x), 3, tiny.TOWER_HEADS, -1)
                queries, keys = (_rotated(normed[:, n], turns) for n in (0, 1))
                found = scaled_dot_product_attention(*(y.movedim(0, 1) for y in (queries, keys, normed[:, 2])))
                x = x + part(f"{at}attn.proj", found.movedim(0, 1).flatten(1))
                x = x + part(f"{at}mlp.linear_fc2", silu(part(f"{at}mlp.linear_fc1", norm(f"{at}norm2", x))))
                deep += [x] if layer in tiny.DEEP else []
            joined = torch.cat([norm(f"merger.norms.{n}", y) for n, y in enumerate([x, *deep])], dim=-1)
            merged = joined.view(len(x) // tiny.MERGE**2, -1)
            frames.append(part("merger.linear_fc2", gelu(part("merger.linear_fc1", merged))))
    return torch.cat(frames)


def _spread(table: Any, rows: int, columns: int) -> Any:
    """The table of positions [side, side, width], stretched linearly to [rows, columns, width], corners on corners."""
    from torch.nn.functional import interpolate

    stretched = interpolate(table.movedim(-1, 0)[None], (rows, columns), mode="bilinear", align_corners=True)
    return stretched[0].movedim(0, -1)


def _tower_turns(rows: int, columns: int) -> Any:
    """Angles [rows, columns, channels / 2]: the first half by row, the second by column."""
    import torch

    quarter = tiny.TOWER_WIDTH // tiny.TOWER_HEADS // 4
    speeds = 1e4 ** -(torch.arange(quarter) / quarter)
    down = (torch.arange(rows)[:, None] * speeds)[:, None].expand(-1, columns, -1)
    across = (torch.arange(columns)[:, None] * speeds)[None].expand(rows, -1, -1)
    return torch.cat([down, across], dim=-1)


def _in_blocks(grid: Any) -> Any:
    """Patches [rows, columns, ...] in the order of the processor: block by block."""
    rows, columns, *rest = grid.shape
    merge = tiny.MERGE
    blocks = grid.reshape(rows // merge, merge, columns // merge, merge, *rest)
    return blocks.transpose(1, 2).reshape(rows * columns, *rest)
