"""One engine of a group, seen from the group's process."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from vidpipe.video.channel import ChannelClosedError, receive, send

Message = tuple[Any, ...]
"""`("ready", batch_rows, kv_tokens)`, `("replies", [...])`, `("report", {...})` or `("dead", why)`."""
STACKS_S = 1.0


class Member:
    """A child process that runs one engine, and the thread that listens to it.

    Args:
        number: Its place in the group, from 0.
        environment: Variables that make it use its own devices and ports.
        inbox: Gets what the child says.
    """

    def __init__(
        self, number: int, environment: Mapping[str, str], inbox: queue.SimpleQueue[tuple[Member, Message]]
    ) -> None:
        self.number = number
        self.ready = self.progressed = False
        self.alive = True
        self.batch_rows = 0
        self.in_flight: set[str] = set()
        self._inbox = inbox
        self._channel, theirs = socket.socketpair()
        command = [sys.executable, "-P", "-m", "vidpipe.engine.member_process", str(theirs.fileno())]
        paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with theirs:
            # A process group of its own: Ctrl-C in a terminal is ours to handle.
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], process_group=0, env={**os.environ, **paths, **environment}
            )
        self._thread = threading.Thread(target=self._listen, name=f"engine-{number}", daemon=True)
        self._thread.start()

    def send(self, kind: str, *values: object) -> None:
        """Tell the child something; OSError when it is gone."""
        send(self._channel, (kind, *values))

    def ask_to_stop(self) -> None:
        """Ask the child to end."""
        try:
            self.send("stop")
        except OSError:
            return

    def close(self, deadline_s: float) -> None:
        """Wait for the end until `deadline_s` of `time.monotonic`; then show the child's stacks, and kill it."""
        try:
            self._process.wait(max(0.0, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGUSR1)  # see `member_process`: to its standard error
            time.sleep(STACKS_S)
            self._process.kill()
            self._process.wait()
        self._thread.join()
        self._channel.close()

    def _listen(self) -> None:
        try:
            while True:
                self._inbox.put((self, receive(self._channel)))
        except ChannelClosedError:
            code = self._process.wait()
            how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
            self._inbox.put((self, ("dead", f"its process ended with {how}")))
