"""A headless Chromium over its debugging pipe, with nothing but the standard library; tests that need it skip where it is not installed."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
)  # fmt: skip
_KEYS = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
_PATIENCE = 60.0
"""Seconds until a browser that does not answer fails the test."""


def chromium() -> str | None:
    """The path of Chromium or Chrome; None where neither is installed. IREXEC_CHROMIUM names another one."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return os.environ.get("IREXEC_CHROMIUM") or next((path for name in names if (path := shutil.which(name))), None)


class BrowserError(AssertionError):
    """The browser does not answer, or a script raised."""


class Page:
    """A tab.

    Attributes:
        problems: errors and warnings of the console, exceptions, and requests for anything but the page itself.
    """

    def __init__(self, reader: int, writer: int, is_offline: bool) -> None:
        self._reader, self._writer, self._buffer, self._number = reader, writer, b"", 0
        self._own = ("file:", "data:", "blob:", "about:") if is_offline else ("",)
        self.problems: list[str] = []
        self._events: list[str] = []
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    _session: str | None = None

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the DevTools protocol to this tab, and its result."""
        return self._send(method, **parameters)

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return answer["result"]

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            if not select([self._reader], [], [], max(0.0, end - time.monotonic()))[0]:
                raise BrowserError("the browser does not answer")
            part = os.read(self._reader, 1 << 20)
            if not part:
                raise BrowserError("the browser has ended")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        if "method" in message:
            self._event(message["method"], message["params"])
        return message

    def _event(self, method: str, given: dict[str, Any]) -> None:
        self._events.append(method)
        if method == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.problems.append(f"exception: {details.get('exception', {}).get('description') or details['text']}")
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.problems.append(f"console: {[one.get('value', one.get('description')) for one in given['args']]}")
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"log: {given['entry']['text']}")
        elif method == "Network.requestWillBeSent" and not given["request"]["url"].startswith(self._own):
            self.problems.append(f"request: {given['request']['url']}")

    def show(self, width: int, height: int, *, scale: float = 1, is_phone: bool = False, is_dark: bool = False) -> None:
        """Set the size of the window, and the colours that the reader prefers."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=is_phone
        )
        self.send("Emulation.setTouchEmulationEnabled", enabled=is_phone)
        features = [{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def open(self, page: Path | str, width: int = 1200, height: int = 800, **window: Any) -> None:
        """Show a file, or the page of an address, in a window of that size and wait until it is loaded."""
        self.show(width, height, **window)
        self._events.clear()
        self.send("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        while "Page.loadEventFired" not in self._events:
            self._read()
        self.settle()

    def settle(self) -> None:
        """Wait until what is to be drawn is drawn."""
        self.run(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => done(1)))))"
        )

    def run(self, expression: str) -> Any:
        """The value of an expression in the page; of a promise what it gives."""
        found = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise BrowserError(found["exceptionDetails"]["exception"].get("description", "an exception"))
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = 120) -> None:
        """Wait until an expression is true.

        Raises:
            TimeoutError: it is not in time.
        """
        end = time.monotonic() + seconds
        while not self.run(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"{expression}: not true after {seconds:g} s; {self.problems}")
            time.sleep(0.1)

    def files(self, selector: str, paths: list[Path]) -> None:
        """Choose files in a field."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(path) for path in paths])

    def click(self, x: float, y: float, count: int = 1) -> None:
        """Click with the mouse; ``count`` 2 is a double click."""
        for number in range(1, count + 1):
            for type in ("mousePressed", "mouseReleased"):
                self.send("Input.dispatchMouseEvent", type=type, x=x, y=y, button="left", clickCount=number)
        self.settle()

    def drag(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """Drag with the mouse."""
        self.send("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
        for part in range(1, 6):
            at = {"x": x + (to_x - x) * part / 5, "y": y + (to_y - y) * part / 5}
            self.send("Input.dispatchMouseEvent", type="mouseMoved", button="left", buttons=1, **at)
        self.send("Input.dispatchMouseEvent", type="mouseReleased", x=to_x, y=to_y, button="left", clickCount=1)
        self.settle()

    def touch(self, *fingers: list[tuple[float, float]]) -> None:
        """Move fingers, each along its points."""
        for step, points in enumerate(zip(*fingers, strict=True)):
            touches = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
            self.send("Input.dispatchTouchEvent", type="touchMove" if step else "touchStart", touchPoints=touches)
        self.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.settle()

    def key(self, name: str, modifiers: int = 0) -> None:
        """Press a key by its name in DOM: "Enter", "ArrowDown", "a"; modifiers as the protocol counts them (8 is Shift)."""
        text = {"Enter": "\r"}.get(name, name if len(name) == 1 else "")
        event = {"key": name, "code": name, "modifiers": modifiers, "windowsVirtualKeyCode": _KEYS.get(name, 0)}
        self.send("Input.dispatchKeyEvent", type="keyDown", **event, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **event)
        self.settle()

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self.send("Input.insertText", text=text)
        self.settle()

    def screenshot(self, path: Path) -> None:
        """Write what is seen to a .png."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])


@contextmanager
def browser(is_offline: bool = True) -> Iterator[Page]:
    """A browser with one tab, which ends with the block; offline a request for anything but files is a problem."""
    path = chromium()
    assert path is not None
    (to_browser, write), (read, from_browser) = _pipe(), _pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        words = [path, *_FLAGS, f"--user-data-dir={folder}", "about:blank"]
        nowhere = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
        # The browser has the pipes as its files 3 and 4.
        pipes = [(os.POSIX_SPAWN_DUP2, to_browser, 3), (os.POSIX_SPAWN_DUP2, from_browser, 4)]
        process = os.posix_spawn(path, words, os.environ, file_actions=[*nowhere, *pipes])
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Page(read, write, is_offline)
        finally:
            os.close(write)
            os.close(read)
            _end(process)


def _pipe() -> tuple[int, int]:
    """The ends of a pipe, with numbers above those that the browser is given them as."""
    low = os.pipe()
    ends = fcntl.fcntl(low[0], fcntl.F_DUPFD_CLOEXEC, 10), fcntl.fcntl(low[1], fcntl.F_DUPFD_CLOEXEC, 10)
    for end in low:
        os.close(end)
    return ends


def _end(process: int) -> None:
    """End a process that was asked to, by the end of its pipe, and wait for it."""
    end = time.monotonic() + 20
    while os.waitpid(process, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
