"""One case: files and arguments, and the text in which it is kept.

The text begins with the target, the arguments as one line of JSON each, and comments; each file follows below its name::

    # AdaptiveAvgPool-8 has sizes that are fractions.
    target: xml
    optimize: true
    --- m.xml text
    <net name="n" version="11">...</net>
    --- m.bin hex
    0000003f 0000c03f 00*4096

A file is ``text`` where that gives the same bytes, with the last line break left out; a model in ONNX is ``onnx``, protobuf's own text,
where that gives the same bytes. Otherwise a file is ``hex``, where ``00*4096`` stands for a byte that is repeated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

_WIDTH = 32
_LONGEST_RUN = 12
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")


@dataclass(frozen=True)
class Case:
    """What a target runs.

    Attributes:
        target: the module of tests.fuzz.targets that runs it.
        files: contents by name, which are written into an empty folder.
        arguments: what else the target wants to know; JSON can express it.
    """

    target: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def replaced(self, *, files: Mapping[str, bytes] | None = None, **arguments: Any) -> Case:
        """The case with other files, or other values of some arguments."""
        return Case(self.target, self.files if files is None else files, {**self.arguments, **arguments})


def write_case(case: Case, comment: str = "") -> str:
    """The text of a case."""
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines.append(f"target: {case.target}")
    lines += [f"{name}: {json.dumps(value)}" for name, value in case.arguments.items()]
    for name, data in case.files.items():
        kind, body = _write_file(name, data)
        lines.append(f"--- {json.dumps(name)[1:-1]} {kind}")
        lines += body
    return "\n".join(lines) + "\n"


def read_case(text: str) -> Case:
    """The case of a text; raises ValueError where it is not one."""
    head, *parts = re.split(r"^--- ", text, flags=re.MULTILINE)
    pairs = [line.partition(": ")[::2] for line in head.splitlines() if line.strip() and not line.startswith("#")]
    arguments = dict(pairs)
    if "target" not in arguments:
        raise ValueError("the text of a case names its target")
    target = arguments.pop("target")
    files = dict(_read_file(part) for part in parts)
    return Case(target, files, {name: json.loads(value) for name, value in arguments.items()})


def _write_file(name: str, data: bytes) -> tuple[str, list[str]]:
    """How a file is kept, and its lines."""
    if (text := _as_text(data)) is not None:
        return "text", [text]
    if name.endswith(".onnx") and (text := _as_onnx(data)) is not None:
        return "onnx", [text]
    return "hex", list(_hex_lines(data))


def _as_onnx(data: bytes) -> str | None:
    """The text of a model in ONNX; None where it does not give the same bytes."""
    import onnx
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    try:
        text = text_format.MessageToString(onnx.ModelProto.FromString(data))
        return text.rstrip("\n") if text and _from_onnx(text) == data else None
    except (DecodeError, text_format.ParseError):
        return None


def _from_onnx(text: str) -> bytes:
    import onnx
    from google.protobuf import text_format

    return text_format.Parse(text, onnx.ModelProto()).SerializeToString(deterministic=True)


def _as_text(data: bytes) -> str | None:
    """The text that stands for the bytes; None where only their digits can."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if not text or _CONTROL.search(text) or re.search("^--- ", text, re.MULTILINE) else text


def _read_file(part: str) -> tuple[str, bytes]:
    header, _, body = part.partition("\n")
    name, _, kind = header.rpartition(" ")
    if kind not in _READ:
        raise ValueError(f"{header!r}: a file is {', '.join(_READ)}")
    return json.loads(f'"{name}"'), _READ[kind](body)


def _read_hex(word: str) -> bytes:
    digits, _, count = word.partition("*")
    return bytes.fromhex(digits) * int(count or 1)


_READ: dict[str, Callable[[str], bytes]] = {
    "text": lambda body: body.removesuffix("\n").encode(),
    "hex": lambda body: b"".join(map(_read_hex, body.split())),
    "onnx": lambda body: _from_onnx(body),
}


def _hex_lines(data: bytes) -> Iterator[str]:
    """Lines of digits; long runs of one byte are counted."""
    waiting = bytearray()
    for value, run in groupby(data):
        count = sum(1 for _ in run)
        if count <= _LONGEST_RUN:
            waiting += bytes([value]) * count
        else:
            yield from _digits(waiting)
            waiting.clear()
            yield f"{value:02x}*{count}"
    yield from _digits(waiting)


def _digits(data: bytearray) -> Iterator[str]:
    for start in range(0, len(data), _WIDTH):
        yield data[start : start + _WIDTH].hex(" ", 4)
