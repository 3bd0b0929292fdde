"""Copies between the host and the device that do not wait, or wait once for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch


def to_device(arrays: Sequence[np.typing.NDArray[Any]], device: Any) -> list[Any]:
    """The arrays on the device, by one copy that the host does not wait for.

    Args:
        arrays: Of any dtypes; those with larger elements before those with smaller ones, so that each is aligned.
        device: A `torch.device`.
    """
    packed = torch.from_numpy(np.concatenate([np.ascontiguousarray(one).reshape(-1).view(np.uint8) for one in arrays]))
    if device.type == "cuda":
        packed = packed.pin_memory()  # from other memory the host would wait
    parts = packed.to(device, non_blocking=True).split([array.nbytes for array in arrays])
    dtypes = [torch.from_numpy(array[:0]).dtype for array in arrays]
    return [part.view(dtype).view(array.shape) for part, dtype, array in zip(parts, dtypes, arrays, strict=True)]


def to_host(tensors: Sequence[Any]) -> list[np.typing.NDArray[Any]]:
    """Copies of the tensors as arrays; waits for their device once, not for each."""
    copies = [tensor.to("cpu", non_blocking=True, copy=True) for tensor in tensors]
    for device in {tensor.device for tensor in tensors if tensor.is_cuda}:
        torch.cuda.current_stream(device).synchronize()
    return [copy.numpy() for copy in copies]
