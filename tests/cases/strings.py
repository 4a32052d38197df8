"""Rows of tensors of text."""

import numpy as np

from irexec.testing import typed
from tests.cases import Operation

LETTERS = np.frombuffer(b"abcde", np.uint8).copy()
# Five bytes of UTF-8 in two characters.
WIDE = np.frombuffer("é€".encode(), np.uint8).copy()
string_tensor_pack = Operation("StringTensorPack", 15)
string_tensor_unpack = Operation("StringTensorUnpack", 15)
ROWS = [
    string_tensor_pack(typed("i32", [0, 2, 2]), typed("i32", [2, 2, 5]), LETTERS, gives=typed("string", ["ab", "", "cde"]), id="i32"),
    string_tensor_pack([[0, 4], [1, 0]], [[3, 5], [2, 0]], LETTERS, gives=typed("string", [["abc", "e"], ["b", ""]]), id="i64, matrix, overlapping"),
    string_tensor_pack(typed("i32", [0, 2]), typed("i32", [2, 5]), WIDE, gives=typed("string", ["é", "€"]), id="more than ASCII"),
    string_tensor_pack.facts("i32[?,3]", "i32[2,?]", "u8[?]", id="dynamic"),
    string_tensor_pack.refuses("i32[2]", "i32[3]", "u8[5]", says="differ", id="other lengths"),
    string_tensor_pack.refuses("i32[2]", "i32[2]", "i8[5]", says="expected u8", id="symbols of i8"),
    string_tensor_pack.refuses([0, 6], "i64[2]", "u8[5]", says="begins has 6, symbols has 5 bytes", id="a begin behind the end"),
    string_tensor_pack.refuses("i64[2]", [0, 6], "u8[1..5]", says="ends has 6, symbols has 5 bytes", id="an end behind the end"),
    string_tensor_pack.refuses([-1, 0], "i64[2]", "u8[?]", says="begins has -1, expected offsets of 0 and more", id="a negative begin"),
    string_tensor_unpack(
        typed("string", [["ab", ""], ["é", "c"]]),
        gives=(
            typed("i32", [[0, 2], [2, 4]]),
            typed("i32", [[2, 2], [4, 5]]),
            np.frombuffer("abéc".encode(), np.uint8).copy(),
        ),
        id="matrix",
    ),
    string_tensor_unpack(typed("string", ["one", ""]), gives=(typed("i32", [0, 3]), typed("i32", [3, 3]), np.frombuffer(b"one", np.uint8).copy()), id="vector"),
    string_tensor_unpack.facts("string[?,3]", id="dynamic"),
    string_tensor_unpack.facts("string[?,0]", id="no texts"),
    string_tensor_unpack.refuses("u8[3]", says="expected string", id="bytes"),
]  # fmt: skip
ROWS += [
    string_tensor_pack(typed("i32", np.zeros((0, 2))), typed("i32", np.zeros((0, 2))), LETTERS, gives=typed("string", np.zeros((0, 2))), id="no texts"),
    string_tensor_pack(typed("i32", [0, 0]), typed("i32", [0, 0]), np.zeros(0, np.uint8), gives=typed("string", ["", ""]), id="no letters"),
    string_tensor_unpack(typed("string", np.zeros((2, 0))),
        gives=(np.zeros((2, 0), np.int32), np.zeros((2, 0), np.int32), np.zeros(0, np.uint8)), id="rows of no texts",
    ),
    string_tensor_pack(typed("i32", 1), typed("i32", 3), LETTERS, gives=typed("string", "bc"), id="scalar"),
    string_tensor_unpack(typed("string", "hé"), gives=(typed("i32", 0), typed("i32", 3), np.frombuffer("hé".encode(), np.uint8).copy()), id="scalar"),
    # Out of order is allowed, beyond the letters is not.
    string_tensor_pack(typed("i64", [3, 0]), typed("i64", [5, 3]), LETTERS, gives=typed("string", ["de", "abc"]), id="out of order"),
]  # fmt: skip
