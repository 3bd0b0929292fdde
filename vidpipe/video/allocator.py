"""The memory that a child of the pool keeps from one job to the next.

A clip's frames are hundreds of megabytes, allocated in one piece. glibc gives such pieces back to the kernel at once,
which fills each of their pages with zeros again for the next clip: a seventh of a worker's time.
"""

from __future__ import annotations

import ctypes

VARIABLE = "GLIBC_TUNABLES"
"""Read by glibc when a process starts (its manual, "Memory Allocation Tunables"), which passes over what it does not
know."""
_NAMES = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _Mallinfo2(ctypes.Structure):
    """glibc's `struct mallinfo2`, mallinfo(3)."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _NAMES)


def tunables(kept_bytes: int) -> str:
    """Value of `VARIABLE` for a child that keeps so much: no mapping of its own for a large piece, huge pages."""
    settings = {"mmap_max": 0, "trim_threshold": kept_bytes, "hugetlb": 1}
    return ":".join(f"glibc.malloc.{name}={value}" for name, value in settings.items())


def trim(kept_bytes: int) -> None:
    """Give what is free back to the kernel, if it is more than `kept_bytes`. Does nothing without glibc."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        return
    if hasattr(libc, "mallinfo2"):  # from glibc 2.33 on
        libc.mallinfo2.restype = _Mallinfo2
        if libc.mallinfo2().fordblks <= kept_bytes:
            return
    libc.malloc_trim(0)
