"""Patterns and models of SentencePiece as a process of its own runs them.

It has the text of this file as its program, and imports nothing of irexec: it starts in some milliseconds. A request is
the name of a method of ``Service`` and its arguments, pickled. An answer is integers and bytes, which are read as such:
a damaged model may do anything to this process, and nothing to the other one.
"""

from __future__ import annotations

import array
import contextlib
import itertools
import os
import pickle
import re
import signal
import struct
import sys
import warnings
from collections.abc import Sequence
from typing import Any

HEADER = struct.Struct("<cqq")
"""Kind of the answer, number of its integers of 64 bits, number of its bytes."""
ANSWER, REFUSED, MISSING, NO_MEMORY = b"a", b"r", b"m", b"n"

_PARENT_SECONDS = 2

Answer = tuple[array.array, bytes]


class Missing(Exception):
    """A package cannot be imported."""


class Refused(Exception):
    """A pattern or model is not valid."""


class Service:
    """Methods for requests. Patterns and models are sent once, and have keys."""

    def __init__(self) -> None:
        self._kept: dict[int, Any] = {}

    def pattern(self, key: int, source: str) -> Answer:
        """Compile a pattern of Python."""
        try:
            self._kept[key] = re.compile(source)
        except (re.error, OverflowError, RecursionError) as error:
            raise Refused(f"is not valid: {error}") from None
        return array.array("q"), b""

    def find(self, key: int, string: str, maximum: int | None) -> Answer:
        """Begin and end of all groups of the first ``maximum`` matches, or of all."""
        spans = array.array("q")
        for match in itertools.islice(self._kept[key].finditer(string), maximum):
            for group in range(match.re.groups + 1):
                spans.extend(match.span(group))
        return spans, b""

    def model(self, key: int, proto: bytes) -> Answer:
        """Read a model; the ids of the begin and the end of a sequence, and the number of tokens."""
        try:
            with warnings.catch_warnings():
                # Types that SWIG makes have no module, of which Python warns when they are made.
                warnings.filterwarnings("ignore", "builtin type [Ss]wig", DeprecationWarning)
                import sentencepiece
        except ImportError as error:
            raise Missing(str(error)) from None
        try:
            # Without bytes the library makes a processor without a model.
            made = self._kept[key] = sentencepiece.SentencePieceProcessor(model_proto=proto or b"\0")
        except (RuntimeError, OSError) as error:
            raise Refused(f"is not a model of SentencePiece: {error}") from None
        return array.array("q", [made.bos_id(), made.eos_id(), made.get_piece_size()]), b""

    def encode(self, key: int, strings: Sequence[bytes]) -> Answer:
        """Number of tokens of each string, and then their ids."""
        found = [self._kept[key].encode(string) for string in strings]
        return array.array("q", [*map(len, found), *(token for ids in found for token in ids)]), b""

    def decode(self, key: int, rows: Sequence[Sequence[int]]) -> Answer:
        """The text of each row of ids: the lengths and the bytes."""
        return _texts([self._kept[key].decode(list(row)).encode() for row in rows])

    def pieces(self, key: int, ids: Sequence[int]) -> Answer:
        """The piece of each id: the lengths and the bytes."""
        return _texts([self._kept[key].id_to_piece(token).encode() for token in ids])

    def forget(self, key: int) -> Answer:
        """Forget a pattern or model."""
        self._kept.pop(key, None)
        return array.array("q"), b""


def _texts(texts: Sequence[bytes]) -> Answer:
    return array.array("q", map(len, texts)), b"".join(texts)


def answered(service: Service, name: str, arguments: Sequence[Any]) -> tuple[bytes, array.array, bytes]:
    """The kind of the answer, its integers and its bytes."""
    try:
        return ANSWER, *getattr(service, name)(*arguments)
    except Missing as error:
        kind, text = MISSING, str(error)
    except MemoryError:
        kind, text = NO_MEMORY, ""
    except Refused as error:
        kind, text = REFUSED, str(error)
    except Exception as error:
        # The library raises RuntimeError, IndexError and others for what it finds while it runs.
        kind, text = REFUSED, f"fails with {type(error).__name__}: {error}"
    return kind, array.array("q"), text.encode("utf-8", "replace")


def _end_with_parent(number: int, frame: object) -> None:
    if os.getppid() != _parent:
        os._exit(1)


_parent = os.getppid()


def main() -> None:
    """Answer requests from stdin until it is closed."""
    sys.path[:] = sys.argv[1:]
    # Ctrl-C reaches every process of a terminal, and the parent decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "setitimer"):
        # The end of stdin tells of a killed parent, but not during a search.
        signal.signal(signal.SIGALRM, _end_with_parent)
        signal.setitimer(signal.ITIMER_REAL, _PARENT_SECONDS, _PARENT_SECONDS)
    service, requests, answers = Service(), sys.stdin.buffer, sys.stdout.buffer
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            name, arguments = pickle.load(requests)
            kind, integers, data = answered(service, name, arguments)
            answers.writelines((HEADER.pack(kind, len(integers), len(data)), integers, data))
            answers.flush()


if __name__ == "__main__":
    main()
