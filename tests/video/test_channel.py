"""Messages between the pool and its children."""

from __future__ import annotations

import gc
import pickle
import socket
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

from vidpipe.video.channel import dumps, receive, send


def test_arrays_that_are_kept_hold_no_descriptors_and_their_memory_goes_with_them() -> None:
    def mapped() -> int:
        return Path("/proc/self/maps").read_text().count("vidpipe-frames")

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = descriptors(), mapped()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        kept = []
        for number in range(40):
            send(ours, np.full(5000, number, np.uint8))
            kept.append(receive(theirs))
        assert descriptors() == before[0] + 2, "the two ends of the channel"
        assert mapped() == before[1] + 40
        kept[7][:] += 1
        assert [int(array.min()) for array in kept] == [8 if n == 7 else n for n in range(40)]
        view = kept[3][10:20]
        del kept
        gc.collect()
        assert mapped() == before[1] + 1 and view.tolist() == [3] * 10, "as long as anything uses it"
    del view
    gc.collect()
    assert mapped() == before[1]


def test_a_descriptor_that_the_kernel_left_out_is_told_as_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        monkeypatch.setattr(socket, "send_fds", lambda channel, parts, descriptors: channel.sendall(*parts))
        send(ours, np.zeros(5000, np.uint8))
        with pytest.raises(OSError, match="Too many open files"):
            receive(theirs)


def test_tensors_travel_without_a_copy_in_the_pickle() -> None:
    torch = pytest.importorskip("torch")
    sent = {
        "wide": torch.arange(1 << 16, dtype=torch.float32).reshape(256, 256).to(torch.bfloat16),
        "flags": torch.tensor([True, False]),
        "scalar": torch.tensor(7),
        "none": torch.empty((0, 3)),
        "turned": torch.arange(6).reshape(2, 3).T,
    }
    sent["again"] = sent["wide"]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(target=send, args=(ours, sent))
        sender.start()
        got = receive(theirs)
        sender.join()
    for name, tensor in sent.items():
        assert got[name].dtype == tensor.dtype and torch.equal(got[name], tensor), name
    assert got["again"] is got["wide"]
    got["wide"][0, 0] = 1  # writable, as torch wants its memory
    buffers: list[pickle.PickleBuffer] = []
    assert len(dumps(sent, buffers.append)) < 4096 and len(buffers) >= 4


def test_torch_may_be_half_imported_by_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    assert pickle.loads(dumps(Path("clip"), lambda buffer: None)) == Path("clip")


def test_arrays_without_elements_arrive(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for message in ([np.empty((0, 3), np.uint8)], [np.empty(0, np.float32), np.arange(3)]):
            send(ours, message)
            for sent, received in zip(message, receive(theirs), strict=True):
                assert received.dtype == sent.dtype and np.array_equal(received, sent)
