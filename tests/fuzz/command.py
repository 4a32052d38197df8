"""A command line that is run in this process, and what must hold of any: no internal error, no traceback, nothing odd on the terminal."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Sequence
from typing import Any
from unittest import mock

from irexec.cli import main
from tests.fuzz.findings import NOWHERE, Observer

# C0 but for line breaks and tabs, DEL, C1; for people also what breaks lines or changes the direction of text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_MISLEADING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_CODES = {0, 1, 2, 3, 4}


def run_command(observer: Observer, words: Sequence[str], given: bytes = b"") -> int | None:
    """Run ``irexec WORDS`` with these bytes on standard input; returns the exit code."""
    streams = {"stdout": _stream(), "stderr": _stream()}
    failed = main._failed

    def keep(error: BaseException, message: str, code: int, debug: bool, as_json: bool) -> int:
        if code == main.INTERNAL:
            observer.exception(error)
        return failed(error, message, code, debug, as_json)

    def run() -> int:
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(main, "_failed", keep))
            stack.enter_context(mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(given))))
            stack.enter_context(contextlib.redirect_stdout(streams["stdout"]))
            stack.enter_context(contextlib.redirect_stderr(streams["stderr"]))
            return main.run(list(words))

    code: int | None = observer.step(f"irexec {words[0] if words else ''}".strip(), run, allowed=())
    for name, stream in streams.items():
        _check_output(observer, words, name, stream)
    if code is not None and code not in _CODES and code != main.INTERNAL:
        observer.found("output", "exit code", NOWHERE, str(code))
    return code


def _stream() -> Any:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape", newline="", write_through=True)


def _check_output(observer: Observer, words: Sequence[str], name: str, stream: Any) -> None:
    stream.flush()
    text = stream.buffer.getvalue().decode("utf-8", "surrogateescape")
    is_json = name == "stdout" and ("--json" in words or "json" in words or "--format=json" in words)
    if found := (_CONTROL if is_json else _MISLEADING).search(text):
        observer.found(
            "output", f"control character on {name}", NOWHERE, repr(text[max(0, found.start() - 60) : found.end() + 60])
        )
    if "Traceback (most recent call last)" in text and "--debug" not in words:
        observer.found("output", f"traceback on {name}", NOWHERE, text[-300:])
