"""Rows of tensors of text."""

import numpy as np

from tests.support.cases import case, facts_case, refuses, typed

LETTERS = np.frombuffer(b"abcde", np.uint8).copy()
# Five bytes of UTF-8 in two characters.
WIDE = np.frombuffer("é€".encode(), np.uint8).copy()
ROWS = [
    case(
        "StringTensorPack",
        15,
        typed("i32", [0, 2, 2]),
        typed("i32", [2, 2, 5]),
        LETTERS,
        gives=typed("string", ["ab", "", "cde"]),
        id="i32",
    ),
    case(
        "StringTensorPack",
        15,
        [[0, 4], [1, 0]],
        [[3, 5], [2, 0]],
        LETTERS,
        gives=typed("string", [["abc", "e"], ["b", ""]]),
        id="i64, matrix, overlapping",
    ),
    case("StringTensorPack", 15, typed("i32", [0, 2]), typed("i32", [2, 5]), WIDE, gives=typed("string", ["é", "€"]), id="more than ASCII"),
    facts_case("StringTensorPack", 15, "i32[?,3]", "i32[2,?]", "u8[?]", id="dynamic"),
    refuses("StringTensorPack", 15, "i32[2]", "i32[3]", "u8[5]", says="differ", id="other lengths"),
    refuses("StringTensorPack", 15, "i32[2]", "i32[2]", "i8[5]", says="expected u8", id="symbols of i8"),
    case(
        "StringTensorUnpack",
        15,
        typed("string", [["ab", ""], ["é", "c"]]),
        gives=(typed("i32", [[0, 2], [2, 4]]), typed("i32", [[2, 2], [4, 5]]), np.frombuffer("abéc".encode(), np.uint8).copy()),
        id="matrix",
    ),
    case(
        "StringTensorUnpack",
        15,
        typed("string", ["one", ""]),
        gives=(typed("i32", [0, 3]), typed("i32", [3, 3]), np.frombuffer(b"one", np.uint8).copy()),
        id="vector",
    ),
    facts_case("StringTensorUnpack", 15, "string[?,3]", id="dynamic"),
    facts_case("StringTensorUnpack", 15, "string[?,0]", id="no texts"),
    refuses("StringTensorUnpack", 15, "u8[3]", says="expected string", id="bytes"),
]
