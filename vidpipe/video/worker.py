"""A child of the pool: does one job after another until its parent is gone.

Started as `python -m vidpipe.video.worker DESCRIPTOR KEPT_BYTES NICENESS`: one end of a socket pair, and what
`ClipPool` says of the others.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import socket
import sys
import traceback

import cv2

from vidpipe.errors import VidpipeError
from vidpipe.video.allocator import trim
from vidpipe.video.channel import ChannelClosedError, JobFailedError, receive, send
from vidpipe.video.decode import decode_frames

READY = "ready"
_PR_SET_PDEATHSIG = 1
WARM = decode_frames
"""Imported before the first job, so that a job's time limit does not pay for imports."""


def main() -> None:
    """Serve jobs `(function, args, kwargs)` with `(True, result)` or `(False, exception)`."""
    # A hung decoder would never see that its parent died; the kernel does.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    cv2.setNumThreads(1)  # N children already use N cores
    descriptor, kept_bytes, niceness = map(int, sys.argv[1:])
    os.nice(niceness)
    channel = socket.socket(fileno=descriptor)
    gc.freeze()  # what imports made is never garbage: collecting after each job takes 1 ms, not 20
    with channel, contextlib.suppress(ChannelClosedError, BrokenPipeError, ConnectionResetError):
        send(channel, READY)
        while True:
            reply: tuple[bool, object]
            args = kwargs = None
            try:
                function, args, kwargs = receive(channel)
                reply = (True, function(*args, **kwargs))
            except ChannelClosedError:
                raise
            except VidpipeError as error:
                reply = (False, error)
            except Exception:  # whatever it is, the parent must hear of it
                reply = (False, JobFailedError(traceback.format_exc()))
            send(channel, reply)
            # Frames would stay until the next job is done, PyAV's objects, which refer to each other
            # in circles, for hundreds of jobs.
            del reply, args, kwargs
            gc.collect()
            trim(kept_bytes)


if __name__ == "__main__":
    main()
