"""Headless Chromium over its debugging pipe: open a page, run JavaScript in it, type keys, take screenshots."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")


class Browser:
    """One page of Chromium.

    Attributes:
        console: errors of the page and of its workers.
        downloads: the folder of saved files.
    """

    def __init__(self, profile: Path, width: int = 1280, height: int = 900) -> None:
        their_read, our_write = os.pipe()
        our_read, their_write = os.pipe()
        flags = (
            f"--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --remote-debugging-pipe "
            f"--user-data-dir={profile} --window-size={width},{height} --no-first-run --mute-audio about:blank"
        )
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {CHROMIUM} {flags} 3<&{their_read} 4>&{their_write}"],
            pass_fds=(their_read, their_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(their_read)
        os.close(their_write)
        self._out, self._in = os.fdopen(our_write, "wb", 0), os.fdopen(our_read, "rb", 0)
        self._rest, self._last = b"", 0
        self.console: list[str] = []
        self.downloads = profile
        self._session: str | None = None
        pages = [one for one in self.send("Target.getTargets")["targetInfos"] if one["type"] == "page"]
        target = pages[0]["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = self._in.read(1 << 20)
            if not piece:
                raise OSError("Chromium has ended")
            self._rest += piece
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def send(self, method: str, **parameters: Any) -> Any:
        """Call a method of the DevTools protocol; returns its result."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("method") == "Runtime.exceptionThrown":
                self.console.append(json.dumps(answer["params"]["exceptionDetails"])[:500])
            elif answer.get("method") == "Log.entryAdded" and answer["params"]["entry"]["level"] == "error":
                self.console.append(answer["params"]["entry"]["text"])
            elif answer.get("id") == self._last:
                if "error" in answer:
                    raise OSError(f"{method}: {answer['error']}")
                return answer["result"]

    def show(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the window, and the colours that the reader prefers."""
        mobile = width < 600
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def open(self, url: str) -> None:
        """Go to a page."""
        self.send("Page.navigate", url=url)

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is awaited."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise OSError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = 120) -> Any:
        """Wait until an expression is true; returns its value.

        Raises:
            TimeoutError: it is not in time.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run(expression)
            if value:
                return value
            time.sleep(0.1)
        raise TimeoutError(f"{expression}: not true after {seconds:g} s; errors {self.console}")

    def files(self, selector: str, paths: list[Path]) -> None:
        """Choose files in a field."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(path) for path in paths])

    def key(self, name: str) -> None:
        """Press a key such as ArrowRight."""
        code = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "End": 35, "Home": 36}[name]
        for kind in ("keyDown", "keyUp"):
            more = {"text": "\r"} if name == "Enter" and kind == "keyDown" else {}
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **more)

    def click(self, x: float, y: float) -> None:
        """Click at a position of the window."""
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write a .png of the window, or of the whole page."""
        found = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def close(self) -> None:
        """End Chromium."""
        try:
            self._session = None
            self.send("Browser.close")
        except OSError:
            self._process.kill()
        self._process.wait(30)
        self._out.close()
        self._in.close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is printed."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
