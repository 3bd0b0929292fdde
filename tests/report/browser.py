"""Debian's chromium without a window, spoken to over its debugging pipe: no driver, no package, no port.

Protocol: https://chromedevtools.github.io/devtools-protocol/ (messages are JSON, each ended by a NUL byte;
the browser reads descriptor 3 and writes descriptor 4).
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

ANSWER_S = 30.0
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip


def chromium() -> str | None:
    """Path of the browser; None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One browser with one tab. `events` holds everything that the page logged, raised or asked the network for."""

    def __init__(self) -> None:
        program = chromium()
        assert program is not None
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # The browser's two descriptors must be 3 and 4; ours must not stand in their way while bash puts them there.
        theirs = [fcntl.fcntl(number, fcntl.F_DUPFD, 10) for number in (to_read, to_write)]
        arguments = [program, *FLAGS, f"--user-data-dir={self._folder.name}", "about:blank"]
        command = ["bash", "-c", f'exec "$@" 3<&{theirs[0]} 4>&{theirs[1]}', "bash", *arguments]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, pass_fds=theirs, stdout=quiet, stderr=quiet)
        for number in (to_read, to_write, *theirs):
            os.close(number)
        self._waiting = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)
        self._folder.cleanup()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol; returns its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + ANSWER_S
        while b"\0" not in self._waiting:
            if not select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            if not (more := os.read(self._read, 1 << 20)):
                raise RuntimeError("the browser has gone")
            self._waiting += more
        message, _, self._waiting = self._waiting.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def open(
        self, page: Path, width: int = 1280, height: int = 900, *, dark: bool = False, phone: bool = False
    ) -> None:
        """Load a file and wait until it is there."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        deadline = time.monotonic() + ANSWER_S
        while self.value("document.readyState") != "complete" or self.value("location.protocol") != "file:":
            assert time.monotonic() < deadline, "the page does not load"
            time.sleep(0.02)

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"].get("description"))
        return found["result"].get("value")

    def press(self, key: str, *, times: int = 1, shift: bool = False) -> None:
        """Press a key; `text` of Enter makes it act on buttons."""
        texts = {"Enter": "\r", " ": " "}
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37}
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                extra = {"text": texts[key]} if key in texts and kind == "keyDown" else {}
                self.call(
                    "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=codes.get(key, 0),
                    modifiers=8 if shift else 0, **extra,
                )  # fmt: skip

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def problems(self) -> list[str]:
        """What the page logged, raised, or asked any network for since it was opened."""
        self.value("1")  # whatever came before is in by then
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(f"exception {params['exceptionDetails']}")
            elif method == "Log.entryAdded":
                found.append(f"log {params['entry']['text']}")
            elif method == "Runtime.consoleAPICalled":
                found.append(f"console {params['args']}")
            elif method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith("data:") and params.get("type") != "Document":
                    found.append(f"request {url[:200]}")
            elif method in ("Page.javascriptDialogOpening", "Page.frameRequestedNavigation"):
                found.append(method)
        return found

    def picture(self, *, whole: bool = False) -> bytes:
        """A PNG of what is visible, or of the whole page."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(found["data"])
