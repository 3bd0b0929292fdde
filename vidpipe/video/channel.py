"""Messages between the pool and its children: a pickle over a socket, arrays in shared memory.

The arrays of a message lie in a memory file that has no name, so that nothing of
it can stay behind: the kernel frees it with the last process that holds it,
however that ends. Only its descriptor travels. Torch tensors travel as arrays, without
torch being imported where it is not used.
"""

from __future__ import annotations

import array
import ctypes
import errno
import io
import mmap
import os
import pickle
import socket
import struct
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

_HEADER = struct.Struct("<QQ")  # bytes of pickle, bytes of arrays
_ALIGNMENT = 64


class ChannelClosedError(Exception):
    """The other side is gone."""


class JobFailedError(Exception):
    """A job raised something that is no fault of its file; carries the child's traceback as text."""


def send(channel: socket.socket, message: object) -> None:
    """Send `message`, anything that can be pickled; OSError when there is no memory for its arrays."""
    buffers: list[pickle.PickleBuffer] = []
    body = dumps(message, buffers.append)
    views = [buffer.raw() for buffer in buffers]
    offsets, size = _lay_out([view.nbytes for view in views])
    content = pickle.dumps((offsets, [view.nbytes for view in views], body))
    header = _HEADER.pack(len(content), size)
    if not size:
        channel.sendall(header + content)
        return
    memory = os.memfd_create("vidpipe-frames")
    try:
        for view, offset in zip(views, offsets, strict=True):
            _write(memory, view, offset)
        os.ftruncate(memory, size)
        socket.send_fds(channel, [header], [memory])
    finally:
        os.close(memory)
    channel.sendall(content)


def dumps(message: object, keep_buffer: Callable[[pickle.PickleBuffer], Any]) -> bytes:
    """A pickle of `message` without the memory of its arrays and tensors, which `keep_buffer` gets in order."""
    file = io.BytesIO()
    _Pickler(file, protocol=5, buffer_callback=keep_buffer).dump(message)
    return file.getvalue()


class _Pickler(pickle.Pickler):
    """Hands the memory of CPU tensors over as that of arrays is: torch's own pickling copies it into the pickle."""

    def reducer_override(self, obj: Any) -> Any:
        torch = sys.modules.get("torch")
        # Another thread may be in the middle of importing it.
        tensor = getattr(torch, "Tensor", None)
        if (
            torch is None
            or tensor is None
            or type(obj) is not tensor
            or obj.layout != torch.strided
            or obj.is_quantized
        ):
            return NotImplemented
        whole = obj.detach().cpu().contiguous()
        # As bytes: numpy has no bfloat16. A tensor without dimensions cannot be viewed as another type.
        flat = whole.reshape(-1).view(torch.uint8) if whole.numel() else torch.empty(0, dtype=torch.uint8)
        return _tensor, (flat.numpy(), str(whole.dtype).removeprefix("torch."), tuple(whole.shape))


def _tensor(flat: np.ndarray[Any, Any], dtype: str, shape: tuple[int, ...]) -> Any:
    import torch

    return torch.from_numpy(flat).view(getattr(torch, dtype)).reshape(shape)


def receive(channel: socket.socket) -> Any:
    """Receive one message; its arrays are views of shared memory that live as long as they are used.

    ChannelClosedError when the other side closed or died.
    """
    header, descriptors = _receive_header(channel)
    try:
        length, size = _HEADER.unpack(header)
        offsets, sizes, body = pickle.loads(_receive_exactly(channel, length))
        # Arrays without elements need no memory, and are arrays still.
        if size and not descriptors:  # the kernel leaves out what it has no number for
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        memory = _mapped(descriptors[0], size) if size else memoryview(b"")
        views = [memory[offset : offset + nbytes] for offset, nbytes in zip(offsets, sizes, strict=True)]
        return pickle.loads(body, buffers=views)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _mapped(descriptor: int, size: int) -> memoryview:
    """A file's memory, [size] bytes, mapped as long as it is used.

    Not by Python's own `mmap`, which keeps a descriptor for each (3.13 can leave that): a process has 1024 of them by
    default, fewer than an engine may take clips.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    address = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, descriptor, 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    block = (ctypes.c_ubyte * size).from_address(address)
    weakref.finalize(block, libc.munmap, address, size).atexit = False
    return memoryview(block).cast("B")


def _lay_out(sizes: list[int]) -> tuple[list[int], int]:
    offsets: list[int] = []
    end = 0
    for nbytes in sizes:
        offsets.append(end)
        end += -(-nbytes // _ALIGNMENT) * _ALIGNMENT
    return offsets, end


def _write(memory: int, view: memoryview, offset: int) -> None:
    # By writing, not through a mapping: a full memory is then an OSError and no bus error.
    while view:
        written = os.pwrite(memory, view, offset)
        view, offset = view[written:], offset + written


def _receive_header(channel: socket.socket) -> tuple[bytes, list[int]]:
    descriptors = array.array("i")
    try:
        header, ancillary, _, _ = channel.recvmsg(_HEADER.size, socket.CMSG_LEN(descriptors.itemsize))
    except OSError:
        raise ChannelClosedError from None
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data)
    return header + _receive_exactly(channel, _HEADER.size - len(header)), list(descriptors)


def _receive_exactly(channel: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        try:
            part = channel.recv(min(length - len(parts), 1 << 20))
        except OSError:
            raise ChannelClosedError from None
        if not part:
            raise ChannelClosedError
        parts += part
    return bytes(parts)
