"""A plugin of SGLang's that stands in for flashinfer's attention on the CPU: the kernel, not the logic around it.

Moss-VL needs flashinfer's prefill for its mask, and flashinfer needs CUDA. SGLang's own attention in plain torch knows
cross-attention, but no mask; here it gets one. SGLang finds the plugin by an entry point (`write_plugin`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

NAME = "vidpipe_tests_cpu_kernels"


def write_plugin(folder: Path) -> None:
    """Write into `folder`, which is to stand on `PYTHONPATH`, what tells SGLang of the plugin."""
    for name, version in ((NAME, "0"), ("flashinfer_python", "0.7.2")):  # SGLang asks for the version of both
        about = folder / f"{name}-{version}.dist-info"
        about.mkdir(parents=True)
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (about / "METADATA").write_text(text, encoding="utf-8")
    entry_point = f"[sglang.srt.plugins]\n{NAME} = {__name__}:register\n"
    (folder / f"{NAME}-0.dist-info" / "entry_points.txt").write_text(entry_point, encoding="utf-8")


def register() -> None:
    """Called by SGLang in each of its processes."""
    from sglang.srt.layers.attention import attention_registry

    attention_registry.ATTENTION_BACKENDS["flashinfer"] = _masked_attention


def _masked_attention(runner: Any) -> Any:
    from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend
    from torch.nn.functional import scaled_dot_product_attention

    class MaskedAttention(TorchNativeAttnBackend):
        """Cross-attention of a prefill under the model's mask; everything else as it is."""

        def forward_extend(self, q: Any, k: Any, v: Any, layer: Any, forward_batch: Any, **options: Any) -> Any:
            """See `AttentionBackend.forward_extend`."""
            mask = getattr(forward_batch, "cross_attention_custom_mask", None)
            if not layer.is_cross_attention or mask is None:
                return super().forward_extend(q, k, v, layer, forward_batch, **options)
            if k is not None:
                pool, where = self.token_to_kv_pool, forward_batch.encoder_out_cache_loc
                pool.set_kv_buffer(layer, _location(where), k, v)
            return self._cross_attention(q, layer, forward_batch, mask.bool())

        def _cross_attention(self, q: Any, layer: Any, forward_batch: Any, mask: Any) -> Any:
            heads, repeat = layer.tp_q_head_num, layer.tp_q_head_num // layer.tp_k_head_num
            queries, out = q.view(-1, heads, layer.qk_head_dim), q.new_zeros(q.shape[0], heads, layer.v_head_dim)
            keys = self.token_to_kv_pool.get_key_buffer(layer.layer_id)
            values = self.token_to_kv_pool.get_value_buffer(layer.layer_id)
            row, bit = 0, 0
            for number, count in enumerate(forward_batch.extend_seq_lens.tolist()):
                slots = int(forward_batch.encoder_lens[number])
                if slots:
                    seen = mask[bit : bit + count * slots].view(1, count, slots)
                    places = self.req_to_token_pool.req_to_token[forward_batch.req_pool_indices[number], :slots]
                    key, value = (
                        cache[places].to(q.dtype).repeat_interleave(repeat, dim=1).movedim(0, 1)
                        for cache in (keys, values)
                    )
                    asked = queries[row : row + count].movedim(0, 1)
                    found = scaled_dot_product_attention(asked, key, value, attn_mask=seen, scale=layer.scaling)
                    out[row : row + count] = found.nan_to_num().movedim(0, 1)
                    bit += count * slots
                row += count
            return out.view(q.shape[0], -1)

    def _location(where: Any) -> Any:
        from sglang.srt.mem_cache.memory_pool import KVWriteLoc

        return KVWriteLoc(where, None)

    return MaskedAttention(runner)
