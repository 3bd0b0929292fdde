"""The process of one engine of a group: requests in, replies out, until its parent says stop or is gone.

Started as `python -m vidpipe.engine.member_process DESCRIPTOR`, where the descriptor is one
end of a socket pair.
"""

from __future__ import annotations

import ctypes
import faulthandler
import select
import signal
import socket
import sys
import traceback

from vidpipe.engine.interface import Engine
from vidpipe.engine.registry import single_engine
from vidpipe.errors import EngineError
from vidpipe.video.channel import ChannelClosedError, receive, send

_PR_SET_PDEATHSIG = 1
_LOOK_S = 1.0


def main() -> None:
    """Serve one parent."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM):  # the parent's to handle; it says stop
        signal.signal(number, signal.SIG_IGN)
    faulthandler.register(signal.SIGUSR1)  # stacks of an engine that does not end
    channel = socket.socket(fileno=int(sys.argv[1]))
    try:
        _, spec, graphs = receive(channel)
        engine = single_engine(*spec)
        engine.start(graphs)
        send(channel, ("ready", engine.batch_rows, engine.kv_tokens))
        _serve(channel, engine)
        engine.stop()
    except (ChannelClosedError, BrokenPipeError, ConnectionResetError):
        return
    except EngineError as error:
        send(channel, ("dead", str(error)))
    except Exception as error:  # whatever it is, the parent must hear of it
        traceback.print_exc()
        send(channel, ("dead", f"{type(error).__name__}: {error}"))


def _serve(channel: socket.socket, engine: Engine) -> None:
    in_flight, steps = 0, engine.steps
    while True:
        while select.select([channel], [], [], 0 if in_flight else _LOOK_S)[0]:
            kind, *values = receive(channel)
            if kind == "stop":
                return
            if kind == "report":
                send(channel, ("report", engine.encoder_report()))
                continue
            engine.submit(values[0])
            in_flight += 1
        replies = engine.poll()
        in_flight -= len(replies)
        if replies or engine.steps != steps:
            steps = engine.steps
            send(channel, ("replies", replies))


if __name__ == "__main__":
    main()
