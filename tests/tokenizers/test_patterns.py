"""Patterns of PCRE2 and operations of SentencePiece."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import opset
from irexec.errors import NodeError, OpError, UnsupportedError
from irexec.tokenizers.patterns import compile_pattern, expand
from irexec.tokenizers.strings import fingerprint
from irexec.tokenizers.unicode_forms import form_rules, of_property, precompiled
from tests.cases.tokenizers import SP, WITHOUT_ENDS


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (r"\p{Lu}+", "aÀÉb", ["ÀÉ"]),
        (r"\P{L}", "a1é", ["1"]),
        (r"[^\p{L}\s]+", "a ?!\x1c", ["?!\x1c"]),
        (r"\s+", "a\u180e\x85\x1cb", ["\u180e\x85"]),
        (r"[[:alpha:]_]+", "é_1", ["é_"]),
        (r"[\x{4E00}-\x{9FFF}]", "a一", ["一"]),
        (r"[]a-]+", "]-ab", ["]-a"]),
        (r"a++b|\x41", "aabA", ["aab", "A"]),
        (r"(?i:'S)", "'s'ſ", ["'s", "'ſ"]),
        (r"(?i)ab", "AB", ["AB"]),
        (r"\bé\b", "é éa", ["é"]),
        (r"\Aa|a\z", "a a a", ["a", "a"]),
        (r"\d+\h\R", "١٢ \r\n", ["١٢ \r\n"]),
        (r"(?<name>a)\1", "aab", ["aa"]),
        (r"[\p{Han}]", "a々漢", ["々", "漢"]),
        (r"\p{L}", "\ua7dc", ["\ua7dc"]),
    ],
)
def test_matches(pattern: str, text: str, matches: list[str]) -> None:
    assert [text[slice(*match.span())] for match in compile_pattern(pattern.encode()).matches(text)] == matches


def test_groups_of_a_branch_reset_share_their_number() -> None:
    pattern = compile_pattern(rb"(?|(a)(b)|(c))(d)")
    for text, groups in (("abd", ["a", "b", "d"]), ("cd", ["c", None, "d"])):
        (match,) = pattern.matches(text)
        spans = [pattern.span(match, number) for number in (1, 2, 3)]
        assert [None if span is None else text[slice(*span)] for span in spans] == groups
    match = re.match("x", "x")
    assert match is not None
    assert expand(compile_pattern(b"x"), match, "$1") is None


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        (rb"\p{Greek}", "'Greek' of a pattern is not supported"),
        (rb"a(?i)b", "flags in the middle"),
        (rb"(*VERB)a", "kind of group"),
        (rb"\Qa", "escape \\Q"),
        (rb"(a", "not closed"),
        (rb"a)", "not opened"),
        (rb"[a", "not closed"),
        (b"\xff", "not UTF-8"),
        (rb"(?<=a+)b", "not valid"),
    ],
)
def test_refusals(pattern: bytes, says: str) -> None:
    with pytest.raises(OpError, match=re.escape(says)):
        compile_pattern(pattern)


def test_categories_are_those_of_unicode_17() -> None:
    # Of Unicode 16 and 17: a letter, and a sign that became a letter of lower case before and is another letter now.
    assert any(first <= 0x10D50 <= last for first, last in of_property("Lu"))
    assert any(first <= 0x295 <= last for first, last in of_property("Lo"))


def test_forms_are_those_of_unicode_14() -> None:
    assert form_rules("nfd", False).match("\u1e0a", 0) == ("D\u0307", 1)
    assert form_rules("nfd", True).match("\ua7dc", 0) is None
    assert form_rules("nfc", False).match("e\u0301", 0) == ("é", 2)
    with pytest.raises(OpError, match="'nfx' with case_fold=False is not supported"):
        form_rules("nfx", False)


@pytest.mark.parametrize("blob", [b"", b"\0\0\0\0", b"\3\0\0\0abcd", b"\xff\xff\xff\xff1234"])
def test_a_charsmap_that_is_not_valid(blob: bytes) -> None:
    with pytest.raises(OpError, match="the charsmap is not valid"):
        precompiled(blob)


def test_a_double_array_by_hand() -> None:
    # The root leads to "a" (97) by the offset 1, and "a" to its value, the offset 0 of the texts, by the offset 2.
    units = np.zeros(256, "<u4")
    units[0] = 1 << 10
    units[1 ^ 97] = 97 | 1 << 8 | 2 << 10
    units[1 ^ 97 ^ 2] = 1 << 31
    rules = precompiled((1024).to_bytes(4, "little") + units.tobytes() + b"xy\0")
    assert rules.match("ba", 1) == ("xy", 1)
    assert rules.match("ba", 0) is None


def test_fingerprints() -> None:
    # Of an empty text: the constant that the definition has for it.
    assert fingerprint(b"") == 0x9AE16A3B2F90404F


# Operations of SentencePiece: refusals of a run, with the library and without it.


def _tokens(model: np.ndarray, **attributes: Any) -> np.ndarray:
    text = opset.parameter([-1], "string", "text")
    made = opset.extension("extension").sentencepiece_tokenizer(opset.constant(model), text, **attributes)
    compiled = irexec.compile_model(irexec.Model(list(made), [text]))
    return list(compiled([np.array(["ab"], object)]).values())[1]


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(
        UnsupportedError, match=r"needs sentencepiece.*pip install 'irexec\[tokenizers-sentencepiece\]'"
    ):
        _tokens(SP.array)


def test_random_tokens_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="nbest_size is -1"):
        _tokens(SP.array, nbest_size=-1)


@pytest.mark.parametrize(
    ("model", "attributes", "says"),
    [
        (np.array([9, 9], np.uint8), {}, "the first input is not a model of SentencePiece"),
        (np.array([], np.uint8), {}, "the first input is not a model of SentencePiece"),
        (WITHOUT_ENDS.array, {"add_bos": True}, "the model has no token for the begin of a sequence"),
        (WITHOUT_ENDS.array, {"add_eos": True}, "the model has no token for the end of a sequence"),
    ],
)
def test_models_that_are_refused(model: np.ndarray, attributes: dict[str, Any], says: str) -> None:
    pytest.importorskip("sentencepiece")
    with pytest.raises(NodeError, match=says):
        _tokens(model, **attributes)


def test_negative_token_ids_are_refused() -> None:
    pytest.importorskip("sentencepiece")
    ids = opset.parameter([1, 2], "i32", "ids")
    made = opset.extension("extension").sentencepiece_detokenizer(opset.constant(SP.array), ids)
    compiled = irexec.compile_model(irexec.Model(list(made), [ids]))
    with pytest.raises(NodeError, match="negative token id: -3"):
        compiled([np.array([[4, -3]], np.int32)])
