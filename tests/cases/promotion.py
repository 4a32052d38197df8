"""Rows of ConvertPromoteTypes; each kind of rule, and each pair of types that has one of its own."""

from __future__ import annotations

import itertools

import numpy as np

from irexec.dtypes.elements import ELEMENTS
from irexec.testing import Row, typed
from tests.cases import Operation

_PROMOTED = [e.name for e in ELEMENTS if e.name not in ("string", "nf4", "u2", "u3", "u6", "f8e8m0", "f4e2m1")]


convert_promote_types = Operation("ConvertPromoteTypes", 14)


def _row(first: str, second: str, to: str, *, scalar: bool = False, **flags: object) -> Row:
    """0 and 1 are the same numbers in every type; which type it becomes is in the rows of facts, as OpenVINO says it."""
    a, b = (1 if scalar else [0, 1, 1]), [[1, 0]]
    text = " ".join(flags)
    return convert_promote_types(
        typed(first, a), typed(second, b), gives=(typed(to, a), typed(to, b)), id=f"{first} {second} {text}", **flags
    )


ROWS: list[Row] = [
    *(
        convert_promote_types.facts(f"{a}[?]", f"{b}[2]", promote_unsafe=True, id=f"unsafe {a} {b}")
        for a, b in itertools.combinations_with_replacement(_PROMOTED, 2)
    ),
    convert_promote_types.facts("u64[2]", "i8[2]", promote_unsafe=True, u64_integer_promotion_target="i64", id="target of u64"),
    *(
        convert_promote_types.facts(f"{a}[2]", f"{b}[2]", id=f"safe {a} {b}")
        for a, b in [("boolean", "i32"), ("i8", "i32"), ("u8", "i16"), ("i16", "f32"), ("f16", "f64"), ("u4", "u8")]
    ),
    *(
        convert_promote_types.facts(
            f"{a}[]", f"{b}[2]", pytorch_scalar_promotion=True, promote_unsafe=unsafe, id=f"scalar {a} {b} {unsafe}"
        )
        for unsafe, a, b in [
            (True, "i64", "i8"), (True, "f32", "f16"), (False, "i8", "i32"), (False, "u8", "i32"),
            (False, "i8", "f32"),
        ]
    ),
    _row("boolean", "f32", "f32"),
    _row("u8", "i16", "i16"),
    _row("f16", "bf16", "f32", promote_unsafe=True),
    _row("f8e4m3", "f8e5m2", "f16", promote_unsafe=True),
    _row("f8e4m3", "f16", "f16"),
    _row("u4", "i4", "i8", promote_unsafe=True),
    _row("u1", "i4", "i4"),
    _row("u64", "i8", "f32", promote_unsafe=True),
    _row("i64", "f16", "f16", promote_unsafe=True),
    _row("i64", "i8", "i8", scalar=True, pytorch_scalar_promotion=True, promote_unsafe=True),
    _row("i32", "i32", "i32"),
    convert_promote_types([1.5, -2.75], typed("i64", [2**40 + 1]), gives=([1.5, -2.75], typed("f32", [2.0**40])), promote_unsafe=True, id="rounded"),
    convert_promote_types.facts("f16[?,2..5]", "f32[...]", id="dynamic"),
    convert_promote_types.facts("u8[]", "i32[?]", pytorch_scalar_promotion=True, id="a scalar and a vector"),
    convert_promote_types.facts("u8[...]", "i32[?]", pytorch_scalar_promotion=True, gives=("i32[...]", "i32[?]"), id="either way"),
    convert_promote_types.facts("i64[...]", "i32[2]", pytorch_scalar_promotion=True, gives=("i64[...]", "i64[2]"), id="no scalar"),
    convert_promote_types.refuses("i32[2]", "f32[2]", says="cannot safely be promoted", id="integer and float"),
    convert_promote_types.refuses("u32[2]", "i32[2]", says="cannot safely be promoted", id="unsigned and signed"),
    convert_promote_types.refuses("bf16[2]", "f16[2]", says="no common type", id="two of 16 bits"),
    convert_promote_types.refuses(
        "string[2]",
        "f16[2]",
        says="input_0 has element type string, expected a type that can be promoted (not string, u2, u3, u6, nf4, f8e8m0 or f4e2m1)",
        id="text",
    ),
    convert_promote_types.refuses("i64[]", "i8[2]", pytorch_scalar_promotion=True, says="scalar of i64", id="scalar too wide"),
]  # fmt: skip
ROWS += [
    convert_promote_types(
        typed("f16", np.zeros((0, 2))),
        typed("f32", [1]),
        gives=(typed("f32", np.zeros((0, 2))), typed("f32", [1])),
        id="empty",
    ),
    convert_promote_types(
        typed("f16", [np.nan, np.inf, -np.inf]),
        typed("f32", [1]),
        gives=(typed("f32", [np.nan, np.inf, -np.inf]), typed("f32", [1])),
        id="NaN and infinities",
    ),
]
