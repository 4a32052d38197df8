"""Text for people, whatever a file holds."""

from __future__ import annotations

import pickle
import time
import unicodedata

import pytest

from irexec.errors import IrexecError, ModelError, NodeError
from irexec.ir.findings import in_model
from irexec.messages import counted, cut, listed, sentence, visible

# What a terminal obeys, or what hides or reorders the text around it: control characters, separators and marks of direction.
OBEYED = [
    *map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
]  # fmt: skip


def test_what_a_terminal_obeys_is_escaped() -> None:
    for character in OBEYED:
        shown = visible(f"a{character}b")
        assert shown.startswith("a\\") and shown.endswith("b")
        assert all(unicodedata.category(c) not in ("Cc", "Cf", "Zl", "Zp") for c in shown)
    assert visible("\x1b[31m \x9b \u202e \udcff") == "\\x1b[31m \\x9b \\u202e \\udcff"
    assert visible("déjà 模型 😀 [red] \\x1b") == "déjà 模型 😀 [red] \\x1b"


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [("abcdefghijkl", 12, "abcdefghijkl"), ("abcdefghijklm", 9, "abc...klm"), ("", 3, "")],
)
def test_cut_in_the_middle(text: str, limit: int, expected: str) -> None:
    assert cut(text, limit) == expected


@pytest.mark.parametrize(
    ("count", "expected"), [(0, "0 layers"), (1, "1 layer"), (2, "2 layers"), (2000, "2,000 layers")]
)
def test_counted(count: int, expected: str) -> None:
    assert counted(count, "layer") == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a, b"),
        (["a", "b", "c"], "a, b and 1 more"),
        (["a"] * 1002, "a, a and 1,000 more"),
    ],
)
def test_listed(texts: list[str], expected: str) -> None:
    assert listed(texts, 2) == expected


def test_a_message_is_one_line() -> None:
    assert sentence("first\n   second\r\n\n\tthird") == "first second third"
    assert str(ModelError("Char 0x0\nout of range")) == "Char 0x0 out of range"
    error = NodeError("layer a\nb: is wrong\x1b", reason="is wrong\x1b")
    assert (str(error), error.reason) == ("layer a b: is wrong\\x1b", "is wrong\\x1b")
    assert in_model("IR101", "a\u202eb\nc").message == "a\\u202eb c"
    assert str(pickle.loads(pickle.dumps(error.__class__("x\x1b")))) == "x\\x1b"


@pytest.mark.parametrize(
    "name", ["n" * 10_000_000, "n m" * 3_000_000, " " * 10_000_000, "\x1b" * 10_000_000, "a\n" * 5_000_000]
)
def test_long_names_are_cut_and_the_rest_of_the_message_stays(name: str) -> None:
    start = time.process_time()
    text = str(IrexecError(f"layer '{name}' (Relu): axis 5 is out of range"))
    assert time.process_time() - start < 1
    assert text.startswith("layer '") and text.endswith("(Relu): axis 5 is out of range")
    assert len(text) <= 2_000
    assert sentence(text) == text


def test_of_several_long_names_each_is_cut() -> None:
    text = str(IrexecError(f"{'a' * 5000!r} is not {'b' * 5000!r}: give another"))
    assert len(text) == 300 + len(" is not ") + 300 + len(" give another")
    assert " is not 'bbb" in text
