"""Patterns that backtrack and damaged models: a run ends in time with an error, whatever the texts are."""

from __future__ import annotations

import dataclasses
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import opset
from irexec.errors import NodeError, OpError, RunTimeoutError
from irexec.tokenizers import isolated, patterns
from irexec.tokenizers.patterns import compile_pattern, longest_texts
from tests.cases.tokenizers import SP
from tests.support.paths import ROOT

_T: Any = opset.extension("extension")
_BACKTRACKS = "a" * 41 + "!"
_FOR_EVER = [
    "(a+)+$", "(a|a)*b", "(.*)*x", "((a{0,1000}){0,1000}){0,1000}b", "(?:a?){40}a{40}b", "a*a*a*a*a*a*a*a*a*a*b",
]  # fmt: skip


def _split(pattern: bytes, by: str = "regex_split") -> irexec.CompiledModel:
    """A model that splits or replaces its string by a pattern."""
    text = opset.parameter([1], "string", "text")
    strings = _T.string_tensor_unpack(text)
    made, raw = opset.constant(np.frombuffer(pattern, np.uint8).copy()), np.frombuffer(b"x", np.uint8).copy()
    rows = opset.constant(np.array([0], np.int32)), opset.constant(np.array([1], np.int32))
    if by == "regex_split":
        results = _T.regex_split(*rows, *strings, made, behaviour="isolate", invert=False)
    elif by == "special_tokens_split":
        results = _T.special_tokens_split(*rows, *strings, made)
    else:
        results = _T.regex_normalization(*strings, made, opset.constant(raw))
    return irexec.compile_model(irexec.Model(list(results), [text]))


@pytest.mark.parametrize("pattern", _FOR_EVER)
@pytest.mark.parametrize("by", ["regex_split", "regex_normalization", "special_tokens_split"])
@pytest.mark.sampled(6)
def test_a_pattern_that_backtracks_honours_the_timeout(pattern: str, by: str) -> None:
    compiled, start = _split(pattern.encode(), by), time.monotonic()
    with pytest.raises(RunTimeoutError, match=r"longer than 0\.3 s"):
        compiled.run([np.array([_BACKTRACKS], object)], timeout=0.3)
    assert time.monotonic() - start < 20


def test_a_pattern_that_takes_long_to_compile_honours_the_timeout() -> None:
    compiled = _split(rb"\p{L}" * 2000)
    with pytest.raises(RunTimeoutError):
        compiled.run([np.array(["a"], object)], timeout=0.1)


def test_without_a_timeout_a_search_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 0.3)
    with pytest.raises(NodeError, match=r"the pattern '\(a\+\)\+\$' takes too long, and was stopped"):
        _split(b"(a+)+$")([np.array([_BACKTRACKS], object)])


@pytest.mark.slow
def test_other_threads_search_while_one_backtracks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "SECONDS", 3)

    def backtrack() -> None:
        with pytest.raises(NodeError):
            _split(b"(a+)+$")([np.array([_BACKTRACKS], object)])

    thread = threading.Thread(target=backtrack)
    thread.start()
    # (a|b)+ has several ways, and is searched elsewhere too.
    for _ in range(20):
        assert [match.span() for match in compile_pattern(b"(a|b)+").matches("xxab" * 20)][:2] == [(2, 4), (6, 8)]
    assert thread.is_alive()
    thread.join()


@pytest.mark.parametrize(
    ("pattern", "bounded"),
    [
        *((pattern, False) for pattern in _FOR_EVER),
        (r"'s|'t| ?\w+|\s+(?!\S)|\s+", True),
        (r"(<s>|</s>)", True),
        (r"(?>a+)+b", True),
        (r"(?:ab)*c(?=d*)", True),
        (r"(a)\1{2,3}", True),
    ],
)
def test_texts_are_searched_here_where_the_time_is_bounded(pattern: str, bounded: bool) -> None:
    ascii_length, any_length = longest_texts(pattern)
    assert any_length <= ascii_length
    assert (ascii_length > 100) == bounded


@pytest.mark.parametrize("pattern", [r"(a)|(b)(c)?", r"(?|(a)|(b))", r"\w+", "", r"x*"])
@pytest.mark.parametrize("maximum", [None, 1])
def test_matches_of_another_process_are_the_same(pattern: str, maximum: int | None) -> None:
    here = compile_pattern(pattern.encode())
    elsewhere = dataclasses.replace(here, expression=None)
    for text in ("", "abcxé漢 a", "bbc\udc80a"):
        spans = [
            [[one.span(match, group) for group in range(len(one.groups))] for match in one.matches(text, maximum)]
            for one in (here, elsewhere)
        ]
        assert spans[0] == spans[1]


def _damaged_charsmap() -> np.ndarray:
    """A model whose charsmap is a trie with an offset outside of its array."""
    trie = struct.pack("<I", (0x1FFFFF << 10) | (1 << 9)) * 256
    charsmap = struct.pack("<I", len(trie)) + trie + b"a\0"

    def field(number: int, data: bytes) -> bytes:
        size = len(data)
        return bytes([8 * number + 2, size & 127 | 128, size >> 7]) + data

    return np.concatenate([SP.array, np.frombuffer(field(3, field(2, charsmap)), np.uint8)])


def test_a_model_that_ends_the_library_is_an_error() -> None:
    pytest.importorskip("sentencepiece")
    text = opset.parameter([-1], "string", "text")
    evil, good = (
        irexec.compile_model(irexec.Model(list(_T.sentencepiece_tokenizer(opset.constant(model), text)), [text]))
        for model in (_damaged_charsmap(), SP.array)
    )
    for _ in range(2):
        with pytest.raises(NodeError, match=r"the first input ends the process that reads it \(SIG|exit code"):
            evil([np.array(["hello fox"], object)])
        assert list(good([np.array(["ab a"], object)]).values())[1].tolist() == [3, 6, 3, 4]


def test_a_process_that_was_killed_is_replaced() -> None:
    pattern = dataclasses.replace(compile_pattern(b"a"), expression=None)
    assert len(list(pattern.matches("aa"))) == 2
    for worker in isolated._idle:
        assert worker._process is not None
        worker._process.kill()
        worker._process.wait()
    while isolated._idle:
        with pytest.raises(OpError, match="ends the process"):
            list(pattern.matches("aa"))
    assert len(list(pattern.matches("aa"))) == 2


_STUCK = """
from irexec.tokenizers.patterns import compile_pattern
print("begins", flush=True)
list(compile_pattern(b"(a+)+$").matches("a" * 41 + "!"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.slow
def test_the_process_ends_with_one_that_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", _STUCK], cwd=ROOT, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    with parent.stdout:
        parent.stdout.readline()
    children: list[str] = []
    while not children:
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    end = time.monotonic() + 30
    while any(_is_running(child) for child in children) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(_is_running(child) for child in children)


def _is_running(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
