"""Rows of Inverse."""

from __future__ import annotations

import numpy as np

from irexec.testing import Row, case, facts_case, random, refuses, typed

_FOUR = typed("f32", random("f32", 3, 4, 4).array + 3 * np.eye(4, dtype=np.float32))

ROWS: list[Row] = [
    case("Inverse", 14, [[4.0, 7.0], [2.0, 6.0]], id="one matrix"),
    case("Inverse", 14, _FOUR, id="batch"),
    case("Inverse", 14, _FOUR, adjoint=True, id="adjoint"),
    case("Inverse", 14, random("f32", 2, 2, 3, 3), adjoint=False, id="two axes of batches"),
    case("Inverse", 14, [[0.0, 1.0], [1.0, 0.0]], adjoint=True, id="pivots"),
    case("Inverse", 14, [[5.0]], id="a number"),
    case("Inverse", 14, [[[1.0, 2.0], [2.0, 4.0]], [[2.0, 0.0], [0.0, 4.0]]], id="singular"),
    case("Inverse", 14, np.zeros((2, 2), np.float32), adjoint=True, id="zeros"),
    case("Inverse", 14, typed("f16", _FOUR.array), id="f16"),
    case("Inverse", 14, typed("bf16", _FOUR.array), id="bf16"),
    case("Inverse", 14, np.zeros((2, 0, 0), np.float32), gives=np.zeros((2, 0, 0), np.float32), id="empty"),
    facts_case("Inverse", 14, "f32[?,2..5,3]", gives="f32[?,3,3]", id="dynamic"),
    facts_case("Inverse", 14, "f32[...]", adjoint=True, id="rank unknown"),
    refuses("Inverse", 14, random("f32", 3, 4), says="data [3,4] are not square matrices", id="not square"),
    refuses("Inverse", 14, random("f32", 3), says="rank 1", id="rank"),
    refuses("Inverse", 14, random("i32", 3, 3), says="floating-point", id="integers"),
]
ROWS += [
    # By elimination: NaN spreads to where it takes part, here everywhere.
    case("Inverse", 14, np.full((2, 2), np.nan, np.float32), gives=np.full((2, 2), np.nan, np.float32), id="NaN")
]
ROWS += [
    case("Inverse", 14, [[1.0, 2.0], [2.0, 4.0000005]], id="nearly singular"),
    case("Inverse", 14, [[np.inf, 0.0], [0.0, 1.0]], id="infinity"),
]
