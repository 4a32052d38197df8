"""Values that programs seldom expect."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.dtypes.elements import Element

INTEGERS = [
    0, 1, -1, 2, 3, -2, 7, 8, 63, 64, 127, 255, 256, 1000, 4095, 65536, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**53 + 1, 2**62,
    2**63 - 1, 2**63, -(2**63), 2**64 - 1, 10**19, 10**30,
]  # fmt: skip
FLOATS = [
    0.0, -0.0, 0.5, 1.0, -1.5, 1.2, 1.7, 1e-45, 1e-40, 1e-5, 65504.0, 1e6, 2.0**31, 2.0**63, 3.4e38, 1e308,
    float("nan"), float("inf"), float("-inf"),
]  # fmt: skip
ELEMENTS = [
    "f32", "f64", "f16", "bf16", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "nf4", "i4", "i8", "i16", "i32", "i64", "u1", "u2", "u3", "u4", "u6",
    "u8", "u16", "u32", "u64", "boolean", "string",
]  # fmt: skip
SHAPES = [
    (), (0,), (1,), (2,), (3,), (5,), (7, 1), (1, 1), (2, 2), (2, 0), (1, 2, 3), (3, 2, 2), (1, 1, 1, 1), (2, 3, 4, 5), (1, 0, 3, 3), (1, 1, 2, 2, 2),
    (1, 1, 1, 1, 1, 1, 1),
]  # fmt: skip
# Of which several in one model make tensors that are empty, though their other sizes are too large for any array.
SIZES = [0, 0, 0, 1, 1, 1, 2, 3, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1]
SHAPE_TEXTS = [
    "", "0", "1", "3", "-1", "?", "...", "?,?", "?,?,?,?", "1..4", "2..", "..3", "0..0,1", "1,3,?,?", "2,3,4", "-1,-1", "5..2", "1,,2", "x", "1, 2",
    "9223372036854775807", "9223372036854775808", "4294967296,4294967296,4294967296", "1000000,1000000", "0,9223372036854775807", "1..9223372036854775807",
    "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
]  # fmt: skip
# Escape sequences, characters that change the direction of text, and what only Python writes.
TEXTS = [
    "", " ", "ab", "true", "x" * 300, "\x1b[31mred", "\x1b]0;title\x07", "\u009b31m", "\u202eright", "a\nb", "a\tb", "[red]x[/]", ":smile:", "../../x", "/abs",
    "é", "\U0001f600", "\ufeff", "a,b", "a:0", '"', "'", "\\", "%s", "{}", "-", "--json", "=", "\x7f", "\r",
]  # fmt: skip
NUMBER_TEXTS = [
    *map(str, INTEGERS), "1e5", "0.5", "nan", "inf", "-inf", "1e400", "0x10", "1_000", "+1", " 1 ", "٣", "1.0",
    "true", "-0", "1e-400",
]  # fmt: skip
WORDS = [
    "numpy", "none", "pdpd", "explicit", "valid", "same_upper", "same_lower", "floor", "ceil", "linear", "nearest", "cubic", "linear_onnx", "avg", "max",
    "sizes", "scales", "index", "mask", "opset1", "opset8", "opset17", "opset99", "f32", "i64", "FP16", "I64", "BOOL", "STRING", "dynamic", "undefined",
]  # fmt: skip


def word(rng: random.Random) -> str:
    """The text of an attribute."""
    choice = rng.random()
    if choice < 0.45:
        return rng.choice(NUMBER_TEXTS)
    if choice < 0.6:
        return ",".join(rng.choice(NUMBER_TEXTS) for _ in range(rng.randint(0, 4)))
    if choice < 0.75:
        return rng.choice(WORDS)
    if choice < 0.88:
        return rng.choice(SHAPE_TEXTS)
    return rng.choice(ELEMENTS) if choice < 0.94 else rng.choice(TEXTS)


def value(rng: random.Random, element: Element, *, likely: float = 0.7) -> Any:
    """One value of an element type in Python: mostly small, sometimes odd."""
    if element.kind == "string":
        return rng.choice(TEXTS) if rng.random() > likely else rng.choice(["a", "b", "ab"])
    if element.kind == "boolean":
        return rng.random() < 0.5
    if element.is_float:
        return rng.uniform(-2, 2) if rng.random() < likely else rng.choice(FLOATS)
    limits = np.iinfo(element.carrier)
    number = rng.randint(0, 3) if rng.random() < likely else rng.choice(INTEGERS)
    return min(max(number, int(limits.min)), int(limits.max))


def array(element: Element, values: Sequence[Any], shape: Sequence[int]) -> np.ndarray:
    """Values in the carrier of their type; those beyond its range are the nearest that it has."""
    from irexec.dtypes.elements import round_to

    if element.kind == "string":
        found = np.empty(len(values), object)
        found[:] = [str(one) for one in values]
        return found.reshape(shape)
    if element.is_integer:
        limits = np.iinfo(element.carrier)
        values = [0 if one != one else int(min(max(one, int(limits.min)), int(limits.max))) for one in values]
    with np.errstate(all="ignore"):
        found = np.array(values, element.carrier).reshape(shape)
        return found if element.native else round_to(element, found)
