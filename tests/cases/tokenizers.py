"""Rows of OpenVINO's tokenizers: strings are begins, ends and bytes, a row of a ragged tensor is a list."""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.testing.rows import Typed, facts_case, refuses, typed
from irexec.testing.rows import case as any_case
from irexec.tokenizers.packed import pack

SINCE = "extension"
# The sizes of strings and tokens depend on the elements.
case = functools.partial(any_case, by_value=True)
TEXT = ("Hello, World", "", "İstanbul ẞÉé ﬁ½ 你好", " \t two  spaces\u00a0")
MARKS = ("e\u0301 o\u0323\u0308", "\u1112\u1161\u11ab 한 ｶﾞ", "Å ǆ Ⅷ ﷺ", "\u0915\u093c ﾡ\uffc2")


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def raw(text: str | bytes) -> Typed:
    """The bytes of a text."""
    return typed("u8", np.frombuffer(_bytes(text), np.uint8))


def strings(*texts: str | bytes, shape: Sequence[int] | None = None) -> tuple[Typed, ...]:
    """Begins, ends and chars."""
    begins, ends, chars = pack(list(map(_bytes, texts)), (len(texts),) if shape is None else shape)
    return typed("i32", begins), typed("i32", ends), typed("u8", chars)


def rows(*counts: int, shape: Sequence[int] | None = None) -> tuple[Typed, Typed]:
    """Begins and ends of rows of these lengths."""
    ends = np.cumsum(counts, dtype=np.int64).reshape((len(counts),) if shape is None else shape)
    return typed("i32", ends - np.reshape(counts, ends.shape)), typed("i32", ends)


def ragged(*texts: Sequence[str | bytes], shape: Sequence[int] | None = None) -> tuple[Typed, ...]:
    """Begins and ends of rows, and their strings."""
    return *rows(*map(len, texts), shape=shape), *strings(*(text for row in texts for text in row))


def flags(*values: bool) -> Typed:
    return typed("boolean", np.array(values, bool))


def i32(*values: int) -> Typed:
    return typed("i32", np.array(values, np.int32))


def number(value: int) -> Typed:
    return typed("i32", value)


WORDS = ragged(["Hello", ",", "wörld"], [], ["abab", "xyz"])
SQUARE = ragged(["Hello"], ["ab", "a"], [], ["wörld"], shape=(2, 2))
SCALAR = ragged(["Hello", "ab"], shape=())
NOTHING = ragged(shape=(0,))
OPEN = ("i32[?]", "i32[?]", "i32[?]", "i32[?]", "u8[?]")
UNKNOWN = ("?", "?", "?", "?", "?")
STRINGS, VOCABULARY = ("i32[?,3]", "i32[?,3]", "u8[?]"), ("i32[5]", "i32[5]", "u8[9]")


def _both(type: str, *inputs: Any, id: str = "", **attributes: Any) -> list[Any]:
    """Rows of an operation on ragged strings: in a vector, in a matrix, in a scalar and none."""
    places = {"vector": WORDS, "matrix": SQUARE, "scalar": SCALAR, "no rows": NOTHING}
    return [case(type, SINCE, *words, *inputs, id=f"{id}{name}", **attributes) for name, words in places.items()]


def _normalizations(type: str, *inputs: Any, skips: bool = True, id: str = "", **attributes: Any) -> list[Any]:
    """Rows of an operation on strings: in a vector, in a matrix, in a scalar, none, and with skips."""
    places = {
        "vector": strings(*TEXT),
        "matrix": strings(*TEXT, *MARKS[:2], shape=(2, 3)),
        "scalar": strings(TEXT[2], shape=()),
        "no strings": strings(shape=(0, 2)),
    }
    made = [case(type, SINCE, *texts, *inputs, id=f"{id}{name}", **attributes) for name, texts in places.items()]
    if skips:
        some = flags(True, False, False, True)
        made.append(case(type, SINCE, *strings(*TEXT), some, *inputs, id=f"{id}skips", **attributes))
    return made


ROWS: list[Any] = []

# Ragged tensors.
NUMBERS = typed("i32", [10, 11, 12, 13, 14, 15])
ROWS += [
    case("RaggedTensorPack", SINCE, *rows(2, 4), NUMBERS, id="numbers"),
    case("RaggedTensorPack", SINCE, *rows(1, 1, shape=(2, 1)), typed("u8", [[1, 2], [3, 4]]), id="matrix"),
    case("RaggedTensorPack", SINCE, *rows(0, shape=()), typed("i64", np.zeros((0,))), id="scalar, nothing"),
    facts_case("RaggedTensorPack", SINCE, "i32[?]", "i32[?]", "i64[?,2]", id="dynamic"),
    refuses("RaggedTensorPack", SINCE, "i64[2]", "i32[2]", "i32[3]", says="expected i32", id="begins of i64"),
]
ROWS += [
    case("RaggedToDense", SINCE, *rows(2, 0, 4), NUMBERS, number(3), number(-1), id="right"),
    case("RaggedToDense", SINCE, *rows(2, 0, 4), NUMBERS, number(3), number(-1), pad_right=False, id="left"),
    case(
        "RaggedToDense", SINCE, *rows(2, 1, shape=(2, 1)), typed("i64", [7, 8, 9]), i32(4), typed("i64", 0),
        typed("boolean", False), id="left by its input, matrix",
    ),
    case("RaggedToDense", SINCE, i32(0, 1, 2), i32(2, 3, 6), NUMBERS, number(3), number(0), m_pad_max_length=True, id="whole size"),
    case("RaggedToDense", SINCE, *rows(1, 2), typed("u8", [[1, 2], [3, 4], [5, 6]]), number(2), typed("u8", 9), id="data of two axes"),
    case("RaggedToDense", SINCE, *rows(2, shape=()), NUMBERS, number(3), number(0), id="scalar"),
    case("RaggedToDense", SINCE, *rows(2, 1), NUMBERS, number(0), number(0), id="size 0"),
    facts_case("RaggedToDense", SINCE, "i32[?,2]", "i32[3,?]", "i32[?]", "i32[]", "i32[]", id="dynamic"),
    refuses("RaggedToDense", SINCE, "i32[2]", "i32[2]", "i32[?]", "i32[]", "i64[]", says="differ", id="default of i64"),
    refuses("RaggedToDense", SINCE, "i32[2]", "i32[2]", "i32[?]", number(-1), "i32[]", says="size is -1", id="negative size"),
]  # fmt: skip
ROWS += [
    case("RaggedToSparse", SINCE, *rows(2, 0, 1), id="rows"),
    case("RaggedToSparse", SINCE, *rows(1, 2, 0, 1, shape=(2, 2)), id="matrix"),
    case("RaggedToSparse", SINCE, *rows(3, shape=()), id="scalar"),
    case("RaggedToSparse", SINCE, *rows(0, 0), id="nothing"),
    case("RaggedToSparse", SINCE, *rows(shape=(0,)), gives=typed("i32", np.zeros((0, 2))), id="no rows"),
    facts_case("RaggedToSparse", SINCE, "i32[?]", "i32[?]", id="dynamic"),
    refuses("RaggedToSparse", SINCE, "i32[2]", "i32[3]", says="differ", id="other lengths"),
]
ROWS += [
    case("RaggedToRagged", SINCE, i32(0, 0, 2, 2, 2, 4), number(6), id="gaps"),
    # OpenVINO leaves the last row as it was in memory.
    case(
        "RaggedToRagged",
        SINCE,
        i32(1, 1, 3, 5),
        i32(4),
        gives=(i32(0, 0, 2, 2), i32(0, 2, 2, 3)),
        id="ids beyond the size",
    ),
    case("RaggedToRagged", SINCE, i32(), number(2), id="no ids"),
    case("RaggedToRagged", SINCE, i32(0, 1), number(0), id="no rows"),
    facts_case("RaggedToRagged", SINCE, "i32[?]", number(3), id="known size"),
    facts_case("RaggedToRagged", SINCE, "i32[?]", "i32[]", id="dynamic"),
    refuses("RaggedToRagged", SINCE, "i32[?]", number(-2), says="size is -2", id="negative size"),
]
ROWS += [
    case("FuzeRagged", SINCE, *rows(2, 1, 3), *strings("a", "bc", "", "def", "g", "h")[:2], id="rows"),
    case("FuzeRagged", SINCE, *rows(1, 0, 1, 1, shape=(2, 2)), *strings("a", "bc", "d")[:2], id="matrix with an empty row"),
    case("FuzeRagged", SINCE, *rows(2, shape=()), *strings("a", "bc")[:2], id="scalar"),
    case("FuzeRagged", SINCE, *rows(shape=(0,)), *strings()[:2], id="nothing"),
    facts_case("FuzeRagged", SINCE, "i32[?]", "i32[3]", "i32[?]", "i32[?]", id="dynamic"),
    refuses("FuzeRagged", SINCE, "i32[2]", "i32[2]", "i32[2]", "i32[3]", says="differ", id="other lengths"),
]  # fmt: skip
BOS = (number(0), number(1), i32(101))
ROWS += [
    case("CombineSegments", SINCE, *BOS, *rows(2, 0, 1), i32(5, 6, 7), number(0), number(2), i32(8, 9), i32(0, 1, 2), id="special tokens"),
    case("CombineSegments", SINCE, *rows(2, 1, shape=(2, 1)), typed("i64", [5, 6, 7]), typed("i64", [3]), id="one tensor, matrix"),
    case("CombineSegments", SINCE, *rows(1, 2), i32(1, 2, 3), *rows(2, 0), i32(4, 5), typed("i64", [0, 1]), id="two tensors, ids of i64"),
    # OpenVINO does not run this: the shape that it infers has no rank.
    case("CombineSegments", SINCE, *BOS, *BOS, i32(0, 1), gives=(number(0), number(2), i32(101, 101), number(0), number(2), i32(0, 1)), id="scalars"),
    case("CombineSegments", SINCE, *rows(2, 1), i32(5, 6, 7), number(0), i32(1), i32(8), i32(0, 1), id="ends with an axis more than begins"),
    case("CombineSegments", SINCE, *rows(0, 0), i32(), i32(1), id="nothing"),
    case("CombineSegments", SINCE, *BOS, *rows(3), i32(5, 6, 7), i32(0, 1), id="one row"),
    facts_case("CombineSegments", SINCE, "i32[]", "i32[]", "i32[1]", "i32[?]", "i32[?]", "i32[?]", "i32[2]", id="dynamic"),
    refuses("CombineSegments", SINCE, "i32[2]", "i32[2]", "i32[?]", "i32[3]", "i32[3]", "i32[?]", "i32[2]", says="differ", id="other rows"),
    refuses("CombineSegments", SINCE, "i64[2]", "i32[2]", "i32[?]", "i32[1]", says="expected i32", id="begins of i64"),
    refuses("CombineSegments", SINCE, "i32[2]", "i32[2]", "i32[?]", says="expected three for each", id="without ids"),
]  # fmt: skip
ONE = (*rows(5, 2, 0), i32(*range(7)))
TWO = (*rows(9, 2, 6, 7), i32(*range(24)), *rows(2, 9, 7, 6), i32(*range(24)))
ROWS += [
    *(case("Truncate", SINCE, *ONE, number(3), raw(side), raw("longest_first"), id=side) for side in ("left", "right")),
    *(
        case("Truncate", SINCE, *TWO, number(size), raw(side), raw(mode), m_num_inputs=2, id=f"pairs, {side}, {mode}, {size}")
        for side in ("left", "right")
        for mode in ("only_first", "only_second", "longest_first")
        for size in (10, 7)
    ),
    case("Truncate", SINCE, *rows(2, 1, shape=(2, 1)), typed("i64", [1, 2, 3]), number(1), raw("right"), raw("only_first"), id="matrix of i64"),
    case("Truncate", SINCE, *rows(2, shape=()), i32(1, 2), number(1), raw("right"), raw("only_first"), id="scalar"),
    case("Truncate", SINCE, *rows(0), i32(), number(1), raw("left"), raw("only_first"), id="nothing"),
    facts_case("Truncate", SINCE, "i32[?]", "i32[?]", "i32[?]", "i32[]", "u8[?]", "u8[?]", id="dynamic"),
    refuses("Truncate", SINCE, "i32[2]", "i32[2]", "i32[?]", "i64[]", "u8[5]", "u8[?]", says="max_length has element type i64", id="length of i64"),
    refuses("Truncate", SINCE, "i32[2]", "i32[2]", "i32[?]", "u8[5]", "u8[?]", says="expected 6 or 9", id="too few inputs"),
]  # fmt: skip

# Strings.
ROWS += [
    case("EqualStr", SINCE, *strings("a", "b", ""), *strings("a", "c", ""), id="vectors"),
    case("EqualStr", SINCE, *strings("b"), *strings("a", "b", "bb", "b"), id="broadcast"),
    case("EqualStr", SINCE, *strings("a", "b", shape=(2, 1)), *strings("a", shape=()), id="matrix and scalar"),
    case("EqualStr", SINCE, *strings("é", shape=()), *strings("é", shape=()), id="scalars"),
    case("EqualStr", SINCE, *strings(), *strings("a", "b"), id="none"),
    facts_case("EqualStr", SINCE, *OPEN[2:], *OPEN[2:], id="dynamic"),
    refuses("EqualStr", SINCE, "i64[2]", "i32[2]", "u8[?]", *OPEN[2:], says="expected i32", id="begins of i64"),
]
LENGTHS = (0, 1, 3, 4, 7, 8, 16, 17, 32, 33, 64, 65, 127, 128, 129, 200)
ROWS += [
    case("StringToHashBucket", SINCE, *strings(*(bytes(range(33, 33 + 90)) * 3 for _ in "a")), num_buckets=1 << 40, id="one"),
    case("StringToHashBucket", SINCE, *strings(*((b"abcdefghijk" * 20)[:n] for n in LENGTHS)), num_buckets=(1 << 62), id="lengths"),
    case("StringToHashBucket", SINCE, *strings("a", "ü", "", "b", shape=(2, 2)), num_buckets=1000, id="matrix"),
    case("StringToHashBucket", SINCE, *strings("word", shape=()), num_buckets=7, id="scalar"),
    case("StringToHashBucket", SINCE, *strings(shape=(0, 2)), num_buckets=7, id="none"),
    facts_case("StringToHashBucket", SINCE, *STRINGS, num_buckets=5, id="dynamic"),
    refuses("StringToHashBucket", SINCE, "i32[2]", "i32[3]", "u8[?]", num_buckets=5, says="differ", id="other lengths"),
]  # fmt: skip
ROWS += [
    case("VocabEncoder", SINCE, *strings("b", "x", "", "a"), *strings("a", "b", "c", "a"), i32(5, 6, 7, 8), number(-1), id="i32, the first of equal keys"),
    case("VocabEncoder", SINCE, *strings("ü", shape=(1,)), *strings("ü"), typed("i64", [1 << 40]), typed("i64", 0), gives=typed("i64", [1 << 40]), id="i64, which the CPU plugin cuts to i32"),
    case("VocabEncoder", SINCE, *strings(), *strings("a"), i32(5), number(0), id="none"),
    facts_case("VocabEncoder", SINCE, "i32[?]", "i32[4]", "u8[?]", *VOCABULARY, "i64[5]", "i64[]", id="dynamic"),
    refuses("VocabEncoder", SINCE, *OPEN[2:], *VOCABULARY, "i32[4]", "i32[]", says="differ", id="fewer values"),
]  # fmt: skip
TOKENS = strings("<s>", "he", "llo", b"\xc3", b"\xa9", "")
ROWS += [
    case("VocabDecoder", SINCE, typed("i32", [[0, 1, 2], [3, 4, 9]]), *TOKENS, i32(0, 17, -2), id="skipped by an input"),
    case("VocabDecoder", SINCE, typed("i32", [[0, 1, 2], [3, -1, 5]]), *TOKENS, skip_tokens=(0, 2), id="skipped by the attribute"),
    case("VocabDecoder", SINCE, typed("i32", np.zeros((2, 0))), *TOKENS, i32(), id="rows of no ids"),
    case("VocabDecoder", SINCE, typed("i32", np.zeros((0, 2))), *TOKENS, id="no rows"),
    facts_case("VocabDecoder", SINCE, "i32[?,2]", *VOCABULARY, "i32[?]", id="dynamic"),
    refuses("VocabDecoder", SINCE, "i32[2]", *VOCABULARY, says="rank 1, expected 2", id="ids of one axis"),
]  # fmt: skip

# Bytes and characters.
EVERY = bytes(range(256))
ROWS += [
    case("BytesToChars", SINCE, *ragged(["a b", EVERY], ["é"]), id="every byte"),
    case("BytesToChars", SINCE, *ragged([" a", " b"], [" c"]), flags(False, True, False), id="skips"),
    case("BytesToChars", SINCE, *SQUARE, id="matrix"),
    case("BytesToChars", SINCE, *SCALAR, id="scalar"),
    case("BytesToChars", SINCE, *NOTHING, id="nothing"),
    facts_case("BytesToChars", SINCE, *OPEN, "boolean[?]", id="dynamic"),
    refuses("BytesToChars", SINCE, *OPEN[:3], "i64[?]", "u8[?]", says="expected i32", id="ends of i64"),
    case("CharsToBytes", SINCE, *ragged(["Ġa", "ÃĤ"], ["Ċ", "!", "~Ń"], []), id="rows"),
    case("CharsToBytes", SINCE, *ragged(["Ġa"], ["b"], shape=(2, 1)), id="matrix"),
    case("CharsToBytes", SINCE, *ragged(["Ġa"], shape=()), id="scalar"),
    case("CharsToBytes", SINCE, *NOTHING, id="nothing"),
    facts_case("CharsToBytes", SINCE, *OPEN, id="dynamic"),
    refuses("CharsToBytes", SINCE, *OPEN[:4], "i8[?]", says="expected u8", id="chars of i8"),
    case("ByteFallback", SINCE, *strings("<0x0A>", "a", "<0xFF>", "<0xff>", "<mask>", "<<0x0A>", "<0x0>", "<0x00>>", "", "é<0x41>"), id="tokens"),
    case("ByteFallback", SINCE, *strings("<0x41>", "b", shape=(2, 1)), id="matrix"),
    case("ByteFallback", SINCE, *strings("<0x41>", shape=()), id="scalar"),
    case("ByteFallback", SINCE, *strings(shape=(0,)), id="nothing"),
    facts_case("ByteFallback", SINCE, *STRINGS, id="dynamic"),
    refuses("ByteFallback", SINCE, "i32[2]", "i32[3]", "u8[?]", says="differ", id="other lengths"),
]  # fmt: skip
BROKEN = (
    b"ok \xc3\xa9", b"\xff", b"a\xc3", b"\xe4\xbd", b"\xe4\xbd\xa0\xa0", b"\xc0\x80", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf",
    b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xf0\x9f\x98", b"\xf0\x9f\x98\x80", b"\xe4a\xbd", b"\xc3\xc3\xa9", b"",
)  # fmt: skip
ROWS += [
    case("UTF8Validate", SINCE, *strings(*BROKEN), id="left out"),
    case("UTF8Validate", SINCE, *strings(*BROKEN), replace_mode=True, id="replaced"),
    facts_case("UTF8Validate", SINCE, *OPEN[2:], id="dynamic"),
    case("UTF8Validate", SINCE, *strings(shape=(0,)), id="nothing"),
    refuses("UTF8Validate", SINCE, "i32[2,3]", "i32[2,3]", "u8[?]", says="rank 2", id="matrix"),
]

# Normalization.
ROWS += [
    *_normalizations("RegexNormalization", raw(r"[\s\p{P}]+"), raw("_"), id="classes, "),
    case("RegexNormalization", SINCE, *strings(*TEXT), raw(r"(^)([^ ])"), raw("> $2"), global_replace=False, id="first"),
    case("RegexNormalization", SINCE, *strings(*TEXT), raw(r"(\w)(\W|$)"), raw(r"${1}$$\2"), id="groups, braces and dollars"),
    case("RegexNormalization", SINCE, *strings(*TEXT), raw(r"(l)|(o)"), raw("<$1>"), id="a group without a match"),
    case("RegexNormalization", SINCE, *strings("a b", "     "), raw(" "), raw("▁▁▁▁"), id="beyond OpenVINO's buffer"),
    case("RegexNormalization", SINCE, *strings("do n't . go", "it 's"), raw(r" ([\\.\\?\\!,])| ('[ms])| (') | ('[rv]e)| (n't)"), raw("$1"), id="rewritten pattern"),
    case("RegexNormalization", SINCE, *strings("abc", "\nabc", ""), raw("^$|b*"), raw("-"), id="empty matches"),
    case("RegexNormalization", SINCE, *strings("", "a\nb"), raw("(^)(.)"), raw("▁$2"), id="rewritten dot"),
    case("RegexNormalization", SINCE, *strings(b"\xff \xe4", b" \xf0\x9f"), raw(" "), raw("_"), id="not UTF-8"),
    facts_case("RegexNormalization", SINCE, *STRINGS, "boolean[?]", "u8[?]", "u8[?]", id="dynamic"),
    refuses("RegexNormalization", SINCE, *STRINGS, "i32[?]", "u8[?]", says="expected u8", id="pattern of i32"),
    refuses("RegexNormalization", SINCE, *STRINGS, "u8[?]", says="expected 5 or 6", id="without a replacement"),
]  # fmt: skip
for _form in ("nfc", "nfd", "nfkc", "nfkd"):
    ROWS += [
        case("CharsMapNormalization", SINCE, *strings(*TEXT, *MARKS), normalization_form=_form, case_fold=_fold, remove_extra_whitespaces=False, id=f"{_form}, {_fold}")
        for _fold in (False, True)
    ]  # fmt: skip
    ROWS.append(case("NormalizeUnicode", SINCE, *strings(*TEXT, *MARKS), normalization_form=_form.upper(), id=_form))
ROWS += [
    *_normalizations("CharsMapNormalization", normalization_form="nfkc", id="nfkc, "),
    case("CharsMapNormalization", SINCE, *strings(*TEXT), normalization_form="identity", case_fold=True, id="identity"),
    case("CharsMapNormalization", SINCE, *strings("a b", "  ", "", " x  y "), normalization_form="nfd", add_dummy_prefix=True, escape_whitespaces=True, nmt=True, id="prefix and escapes"),
    case("CharsMapNormalization", SINCE, *strings("a b", "  ", "", " x  y "), normalization_form="nfd", add_dummy_prefix=True, remove_extra_whitespaces=False, id="prefix"),
    facts_case("CharsMapNormalization", SINCE, *STRINGS, "boolean[?]", "u8[100]", id="dynamic, with a charsmap"),
    refuses("CharsMapNormalization", SINCE, *STRINGS, says="expected 4 or 5", id="without rules"),
    refuses("CharsMapNormalization", SINCE, *STRINGS, "i32[?]", normalization_form="nfc", says="expected boolean", id="skips of i32"),
    *_normalizations("NormalizeUnicode"),
    facts_case("NormalizeUnicode", SINCE, *STRINGS, id="dynamic"),
    refuses("NormalizeUnicode", SINCE, *STRINGS, "u8[?]", says="expected boolean", id="skips of u8"),
    *_normalizations("CaseFold"),
    case("CaseFold", SINCE, *strings(*TEXT), encoding="", id="ASCII"),
    case("CaseFold", SINCE, *strings(*TEXT), encoding="", lower=False, id="ASCII, upper"),
    facts_case("CaseFold", SINCE, *STRINGS, "boolean[?]", id="dynamic"),
    refuses("CaseFold", SINCE, *STRINGS, lower=False, says="only lower=true", id="upper case of Unicode"),
]  # fmt: skip

# Splits.
# Without skips OpenVINO reads as many of them as there are rows: of more strings it takes the rest from memory.
SENTENCES = ragged(["Hello,  wörld!"], ["a-b--c"], [], ["--"], ["-x"], [""])
for _behaviour in ("remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext"):
    for _invert in (False, True):
        ROWS += [
            case("RegexSplit", SINCE, *SENTENCES, raw(pattern), behaviour=_behaviour, invert=_invert, id=f"{_behaviour}, {_invert}, {pattern}")
            for pattern in (r"[\s\-]", r"\w+|[^\w\s]+")
        ]  # fmt: skip
GPT_2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
ROWS += [
    *(case("RegexSplit", SINCE, *SENTENCES, raw("-"), behaviour="isolate", max_splits=n, id=f"{n} splits") for n in (1, 2)),
    case("RegexSplit", SINCE, *ragged(["It's ３４ 你好!  ok"], ["x²½ \n\t y"], ["👍🏽 we'll"]), raw(GPT_2), behaviour="isolate", id="pattern of GPT-2"),
    case("RegexSplit", SINCE, *ragged(["a b", "c d"], ["e f"]), flags(True, False, False), raw(" "), id="skips"),
    case("RegexSplit", SINCE, *ragged(["a b"], ["c d"], ["e f"]), raw(" "), *strings("c d", "x"), id="strings that stay whole"),
    case("RegexSplit", SINCE, *ragged(["ab"], ["c"]), raw("x*"), id="empty matches"),
    case("RegexSplit", SINCE, *ragged(["", ""], []), raw("x"), gives=(i32(0, 0), i32(0, 0), i32(), i32(), raw("")), id="nothing"),
    case("RegexSplit", SINCE, *SQUARE, raw("l"), id="matrix"),
    case("RegexSplit", SINCE, *ragged(["Hello"], shape=()), raw("l"), id="scalar"),
    facts_case("RegexSplit", SINCE, *OPEN, "boolean[?]", "u8[?]", id="dynamic, with skips"),
    facts_case("RegexSplit", SINCE, *OPEN, "u8[?]", id="dynamic"),
    refuses("RegexSplit", SINCE, *OPEN, "i32[?]", says="the pattern has element type i32", id="pattern of i32"),
    refuses("RegexSplit", SINCE, *OPEN, "u8[?]", max_splits=0, says="max_splits is 0", id="no splits"),
    case("SpecialTokensSplit", SINCE, *ragged(["a<s>b <m> c", "<s>"], ["", "x"]), raw(r"(<s>|<pad>)|(?:\s*)(<m>)"), id="groups"),
    # OpenVINO does not run this: it looks for the pattern among the skips.
    case(
        "SpecialTokensSplit", SINCE, *ragged(["é<s>", "<s>b"], ["<s>"]), flags(False, True, False), raw("(<s>)"),
        gives=(i32(0, 3), i32(3, 4), i32(0, 2, 5, 9), i32(2, 5, 9, 12), raw("é<s><s>b<s>"), flags(False, True, True, True)), id="skips",
    ),
    case("SpecialTokensSplit", SINCE, *ragged(["é  <s>  x"], ["<t>"]), raw(r"\s*(<s>)\s*|<t>"), id="spaces, no group"),
    case("SpecialTokensSplit", SINCE, *SQUARE, raw("(l)"), id="matrix"),
    case("SpecialTokensSplit", SINCE, *SCALAR, raw("(l)"), id="scalar"),
    case("SpecialTokensSplit", SINCE, *NOTHING, raw("(l)"), id="nothing"),
    facts_case("SpecialTokensSplit", SINCE, *OPEN, "u8[?]", id="dynamic"),
    refuses("SpecialTokensSplit", SINCE, *OPEN, "boolean[?]", "u8[?]", "u8[?]", says="expected 6 or 7", id="too many inputs"),
]  # fmt: skip

# Token ids.
PIECES = strings("[UNK]", "He", "##llo", "##l", "a", "##b", "##ba", ",", "w", "##ö", "##rld", "")
ROWS += [
    *_both("WordpieceTokenizer", *PIECES, number(0)),
    case("WordpieceTokenizer", SINCE, *WORDS, *PIECES, typed("i64", 0), max_bytes_per_word=4, suffix_indicator="##", id="short words"),
    case("WordpieceTokenizer", SINCE, *ragged(["Hello", "abba"]), *PIECES, number(3), suffix_indicator="", id="no prefix"),
    facts_case("WordpieceTokenizer", SINCE, *OPEN, *VOCABULARY, "i32[]", id="dynamic"),
    refuses("WordpieceTokenizer", SINCE, *OPEN, "i32[5]", "i32[4]", "u8[9]", "i32[]", says="differ", id="other lengths"),
]  # fmt: skip
LETTERS = ("a", "b", "H", "e", "l", "o", ",", "w", b"\xc3", b"\xb6", "r", "d", "x", "<unk>", "<0x79>")
MADE = ("ab", "abab", "He", "ll", "Hell", "Hello", b"\xc3\xb6", "wö", "ba")
ALL = strings(*LETTERS, *MADE)
LEFT = strings("a", "ab", "H", "l", "He", "Hell", b"\xc3", "w", "b")
RIGHT = strings("b", "ab", "e", "l", "ll", "o", b"\xb6", "ö", "a")
ROWS += [
    *_both("BPETokenizer", *ALL, *LEFT, *RIGHT),
    case("BPETokenizer", SINCE, *WORDS, *ALL, *strings("a b", "ab ab", "l l"), unk_token="<unk>", fuse_unk=True, id="merges with spaces"),
    case("BPETokenizer", SINCE, *WORDS, *ALL, *LEFT, *RIGHT, byte_fallback=True, unk_token="<unk>", id="byte fallback"),
    case("BPETokenizer", SINCE, *ragged(["ab", "a"]), *strings("a", "b", "a<", "b</w>", "ab</w>", "a</w>", "</w>"), *strings("a", "a"), *strings("b</w>", "</w>"), end_suffix="</w>", cache_capacity=5, suffix_indicator="##", id="suffix"),
    case("BPETokenizer", SINCE, *ragged(["ab<x>", "zz"]), *ALL, *strings("a b"), *strings("<x>", "z", "a"), i32(77, 78, 79), id="added tokens"),
    case("BPETokenizer", SINCE, *ragged(["ab<x>", "zz"]), *ALL, *LEFT, *RIGHT, *strings("<x>", "z"), i32(77, 78), id="added tokens, pairs"),
    case("BPETokenizer", SINCE, *ragged(["aabaabaab", "bababa", "lllll"]), *ALL, *LEFT, *RIGHT, id="repeated"),
    facts_case("BPETokenizer", SINCE, *OPEN, *VOCABULARY, *VOCABULARY, id="dynamic"),
    refuses("BPETokenizer", SINCE, *OPEN, *VOCABULARY, *VOCABULARY[:2], says="expected 11, 14, 15 or 18", id="without chars"),
    refuses("BPETokenizer", SINCE, *OPEN, *VOCABULARY, "i32[2]", "i64[2]", "u8[?]", says="expected i32", id="merges of i64"),
]  # fmt: skip
UNIGRAM = strings("<unk>", "H", "e", "l", "o", "He", "llo", "a", "b", "ab", "aba", "ö", "w", "rld", ",")
SCORES = typed("f32", [0, -3, -3, -2.5, -3, -4, -6, -2, -2, -3, -5.5, -3, -4, -6, -1])
ROWS += [
    *_both("UnigramTokenizer", *UNIGRAM, SCORES),
    case("UnigramTokenizer", SINCE, *WORDS, *UNIGRAM, SCORES, byte_fallback=True, fuse_unk=True, min_score=-7.5, unk_token_id=2, id="attributes"),
    case("UnigramTokenizer", SINCE, *ragged(["xyz", "ab你好"], [b"a\xffb"]), *UNIGRAM, SCORES, id="unknown characters"),
    facts_case("UnigramTokenizer", SINCE, *OPEN, *VOCABULARY, "f32[5]", id="dynamic"),
    refuses("UnigramTokenizer", SINCE, *OPEN, *VOCABULARY, "f32[4]", says="differ", id="fewer scores"),
]  # fmt: skip
RWKV = strings("a", "ab", "aba", "b", "H", "e", "l", "ll", "o", ",", "w", b"\xc3\xb6", "r", "d", "x", "y", "z")
ROWS += [
    case("TrieTokenizer", SINCE, *ragged(["ababa"], ["wöll"], [""]), *RWKV, i32(*range(10, 27)), id="vector"),
    # OpenVINO's rows are right only in a vector, and where each row has one string.
    case("TrieTokenizer", SINCE, *ragged(["ab", "a"], [], shape=(2, 1)), *RWKV, i32(*range(10, 27)), gives=(typed("i32", [[0], [2]]), typed("i32", [[2], [2]]), i32(11, 10)), id="matrix"),
    case("TrieTokenizer", SINCE, *SCALAR, *RWKV, i32(*range(10, 27)), gives=(number(0), number(5), i32(14, 15, 17, 18, 11)), id="scalar"),
    case("TrieTokenizer", SINCE, *NOTHING, *RWKV, i32(*range(10, 27)), id="no rows"),
    facts_case("TrieTokenizer", SINCE, *OPEN, *VOCABULARY, "i32[5]", id="dynamic"),
    refuses("TrieTokenizer", SINCE, *OPEN, *VOCABULARY, "i32[4]", says="differ", id="fewer indices"),
]  # fmt: skip

# The string tensors of earlier converters.
PACKED = typed("u8", np.frombuffer(np.array([3, 0, 2, 2, 4], "<i4").tobytes() + "abé".encode(), np.uint8))
ROWS += [
    case("StringTensorPack", SINCE, *strings("ab", "", "é", "€", shape=(2, 2)), id="matrix"),
    case("StringTensorPack", SINCE, *strings("a", shape=()), mode="begins_ends", id="scalar"),
    case("StringTensorPack", SINCE, *strings(shape=(0,)), id="nothing"),
    facts_case("StringTensorPack", SINCE, *STRINGS, id="dynamic"),
    refuses("StringTensorPack", SINCE, "i32[2]", "i32[3]", "u8[5]", says="differ", id="other lengths"),
    case("StringTensorUnpack", SINCE, typed("string", [["ab", ""], ["é", "€"]]), id="matrix"),
    case("StringTensorUnpack", SINCE, typed("string", "a"), mode="begins_ends", id="scalar"),
    case("StringTensorUnpack", SINCE, typed("string", np.zeros((0, 2))), id="nothing"),
    facts_case("StringTensorUnpack", SINCE, "string[?,3]", id="dynamic"),
    # The first tokenizers have vocabularies as bytes.
    case(
        "StringTensorUnpack",
        SINCE,
        PACKED,
        gives=(i32(0, 2, 2), i32(2, 2, 4), typed("u8", [97, 98, 195, 169])),
        id="packed",
    ),
    case("StringTensorUnpack", SINCE, typed("u8", [0] * 8), gives=(i32(), i32(), typed("u8", [])), id="packed nothing"),
    facts_case("StringTensorUnpack", SINCE, "u8[?]", id="dynamic and packed"),
    refuses("StringTensorUnpack", SINCE, "u8[3,3]", says="expected a vector", id="rows of bytes"),
    refuses("StringTensorUnpack", SINCE, "i8[3]", says="expected string or u8", id="signed bytes"),
]


# Models of SentencePiece. A piece is its text, score and type: 1 normal, 2 unknown, 3 control.
PIECES_OF_SP = (("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3), ("▁", -1, 1), ("a", -2, 1), ("b", -2, 1), ("ab", -1, 1), ("<0x0A>", -9, 1), ("<abc0>", -9, 1))  # fmt: skip


def _sentencepiece(pieces: Sequence[tuple[str, float, int]]) -> Typed:
    """The bytes of a ModelProto: repeated field 1 has the pieces, each of them a text, a score and a type."""

    def field(number: int, data: bytes) -> bytes:
        return bytes([8 * number + 2, len(data)]) + data

    score, kind = b"\x15", b"\x18"
    messages = [field(1, piece.encode()) + score + struct.pack("<f", number) + kind + bytes([type]) for piece, number, type in pieces]  # fmt: skip
    return raw(b"".join(field(1, message) for message in messages))


SP = _sentencepiece(PIECES_OF_SP)
WITHOUT_ENDS = _sentencepiece([("<unk>", 0, 2), *PIECES_OF_SP[3:]])
LINES = typed("string", ["ab a", "", "xb"])
SPARSE = ("i64[?,2]", "i32[?]", "i64[2]")


def sparse(*rows: Sequence[int]) -> tuple[Typed, ...]:
    """Indices, values and shape."""
    indices = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    shape = [len(rows), max(map(len, rows), default=0)]
    return typed("i64", np.reshape(indices, (-1, 2))), i32(*(id for row in rows for id in row)), typed("i64", shape)


ROWS += [
    case("SentencepieceTokenizer", SINCE, SP, LINES, gives=sparse([3, 6, 3, 4], [], [3, 0, 5]), id="strings"),
    case("SentencepieceTokenizer", SINCE, SP, *strings("ab a", "", "xb"), add_bos=True, nbest_size=1, alpha=0.5, gives=sparse([1, 3, 6, 3, 4], [1], [1, 3, 0, 5]), id="bytes"),
    case("SentencepieceTokenizer", SINCE, SP, LINES, add_bos=True, add_eos=True, reverse=True, gives=sparse([2, 4, 3, 6, 3, 1], [2, 1], [2, 5, 0, 3, 1]), id="reverse"),
    case("SentencepieceTokenizer", SINCE, SP, typed("string", np.zeros((0,))), gives=sparse(), id="no strings"),
    case("SentencepieceTokenizer", SINCE, SP, typed("string", "a"), gives=sparse([3, 4]), id="scalar"),
    case("SentencepieceTokenizer", SINCE, SP, typed("string", ["a<*>b", "<*>", "", "aba ba"]), *strings("<*>", "ba"), i32(77, 78), add_bos=True, add_eos=True, gives=sparse([1, 3, 4, 77, 1, 3, 5, 2], [77, 2], [2], [1, 3, 4, 78, 1, 78, 2]), id="special tokens"),
    case("SentencepieceTokenizer", SINCE, SP, *strings("<*>a"), *strings("<*>"), i32(77), reverse=True, gives=sparse([4, 3, 77]), id="special tokens, reverse"),
    case("SentencepieceTokenizer", SINCE, WITHOUT_ENDS, LINES, gives=sparse([1, 4, 1, 2], [], [1, 0, 3]), id="no ends"),
    facts_case("SentencepieceTokenizer", SINCE, "u8[?]", "string[?]", gives=SPARSE, id="dynamic"),
    facts_case("SentencepieceTokenizer", SINCE, "u8[...]", "i32[...]", "i32[...]", "u8[...]", gives=SPARSE, id="unknown"),
    refuses("SentencepieceTokenizer", SINCE, "u8[9]", "string[2]", "i32[1]", says="expected 2, 4, 6 or 8", id="two more inputs"),
    refuses("SentencepieceTokenizer", SINCE, "u8[9]", "i32[2]", "i32[2]", "i32[2]", says="input 3 has element type i32, expected u8", id="chars of i32"),
    case("SentencepieceDetokenizer", SINCE, SP, typed("i32", [[1, 3, 6, 3, 4, 2], [99, 5, 0, 5, 3, 9]]), gives=strings("ab a", "b ⁇ b "), id="two rows"),
    case("SentencepieceDetokenizer", SINCE, SP, typed("i32", np.zeros((2, 0))), gives=strings("", ""), id="no tokens"),
    facts_case("SentencepieceDetokenizer", SINCE, "u8[?]", "i32[2,?]", gives=("i32[2]", "i32[2]", "u8[?]"), id="rows of any length"),
    facts_case("SentencepieceDetokenizer", SINCE, "u8[...]", "i32[...]", gives=("i32[?]", "i32[?]", "u8[?]"), id="unknown"),
    refuses("SentencepieceDetokenizer", SINCE, "u8[9]", "i32[2]", says="has rank 1", id="a vector"),
    case("SentencepieceStreamDetokenizer", SINCE, SP, typed("i32", [[1, 3, 6, 3, 4, 2, 7], [99, 5, 0, 5, 8, 9, 9]]), gives=strings("<s>▁ab▁a</s>\n", "b<unk>b<abc0>"), id="two rows"),
    case("SentencepieceStreamDetokenizer", SINCE, SP, typed("i32", np.zeros((0, 3))), gives=strings(), id="no rows"),
    facts_case("SentencepieceStreamDetokenizer", SINCE, "u8[?]", "i32[?,3]", gives=("i32[?]", "i32[?]", "u8[?]"), id="dynamic"),
    refuses("SentencepieceStreamDetokenizer", SINCE, "u8[9]", "i32[2,1,1]", says="has rank 3", id="three axes"),
]  # fmt: skip
