"""Rows of matrix products."""

import numpy as np

from irexec.testing import random, typed
from tests.cases import Operation
from tests.support.cases import odd

R = random
mat_mul = Operation("MatMul", 1)
ROWS = [
    mat_mul(R("f32", 3, 4), R("f32", 4, 5, seed=1), id="matrices"),
    mat_mul(R("f32", 4, 3), R("f32", 4, 5, seed=1), transpose_a="true", id="left transposed"),
    mat_mul(R("f32", 3, 4), R("f32", 5, 4, seed=1), transpose_b="true", id="right transposed"),
    mat_mul(R("f32", 4, 3), R("f32", 5, 4, seed=1), transpose_a="true", transpose_b="true", id="both transposed"),
    mat_mul(R("f32", 2, 1, 3, 4), R("f32", 5, 4, 2, seed=1), id="batches stretch"),
    mat_mul(R("f32", 2, 3, 4), R("f32", 4, 6, seed=1), id="one matrix on the right"),
    mat_mul(R("f32", 4), R("f32", 4, 5, seed=1), id="vector on the left"),
    mat_mul(R("f32", 3, 4), R("f32", 4, seed=1), id="vector on the right"),
    mat_mul(R("f32", 4, 3), R("f32", 4, seed=1), transpose_a="true", id="left transposed, by a vector"),
    mat_mul(R("f32", 2, 4, 3), R("f32", 4, seed=1), transpose_a="true", id="batch transposed, by a vector"),
    mat_mul(R("f32", 4), R("f32", 4, seed=1), id="two vectors"),
    mat_mul(R("f32", 2, 3, 4), R("f32", 4, seed=1), id="batch by a vector"),
    mat_mul(R("f32", 4), R("f32", 2, 4, 3, seed=1), transpose_a="true", id="vector by a batch, flag ignored"),
    mat_mul(R("f16", 3, 4), R("f16", 4, 5, seed=1), id="f16"),
    mat_mul(R("bf16", 3, 4), R("bf16", 4, 5, seed=1), id="bf16"),
    mat_mul(R("i32", 3, 4, low=-9, high=9), R("i32", 4, 5, low=-9, high=9, seed=1), id="i32"),
    mat_mul(R("f32", 0, 4), R("f32", 4, 5, seed=1), gives=np.zeros((0, 5), np.float32), id="no rows"),
    mat_mul(R("f32", 3, 0), R("f32", 0, 5), gives=np.zeros((3, 5), np.float32), id="nothing to sum"),
    mat_mul.facts("f32[?,3,4]", "f32[1..3,4,?]", id="bounded"),
    mat_mul.facts("f32[...]", "f32[4,5]", id="rank unknown"),
    mat_mul.facts("f32[?,?]", "f32[8,?]", transpose_b="true", id="dynamic, transposed"),
    mat_mul.facts("f32[4]", "f32[2..3,4,?]", id="vector by a bounded batch"),
    mat_mul.refuses("f32[3,4]", "f32[5,6]", says="the inner sizes of [3,4] and [5,6] are 4 and 5", id="inner sizes"),
    mat_mul.refuses("f32[]", "f32[5,6]", says="a has rank 0, expected 1 or more", id="scalar"),
    mat_mul.refuses("f32[2,3,4]", "f32[3,4,5]", says="cannot be broadcast", id="batches that differ"),
]


def _grouped(rows: list[int], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """By the definition, a row at a time; the last axis of each matrix is summed over."""
    group = np.searchsorted(rows, np.arange(len(a)), side="right")
    return np.array(
        [b[g] @ row if g < len(b) else np.zeros(b.shape[1]) for g, row in zip(group, a, strict=True)], a.dtype
    )


# OpenVINO 2026.4 infers the shapes of GroupedMatMul and has no kernel for it: by the definition.
_T, _E = random("f32", 10, 4).array, random("f32", 3, 5, 4).array
_B, _W = random("f32", 3, 2, 4).array, random("f32", 10, 6).array
grouped_mat_mul = Operation("GroupedMatMul", 17)
ROWS += [
    grouped_mat_mul(_T, _E, [3, 8, 10], gives=_grouped([3, 8, 10], _T, _E), id="tokens"),
    grouped_mat_mul(
        _T, _E, typed("i32", [0, 8, 8]), gives=_grouped([0, 8, 8], _T, _E), id="empty groups, tokens left over"
    ),
    grouped_mat_mul(_B, _E, gives=np.stack([a @ b.T for a, b in zip(_B, _E, strict=True)]), id="batched"),
    grouped_mat_mul(
        _T.T.copy(),
        _W,
        [4, 4, 10],
        gives=np.stack([_T[a:b].T @ _W[a:b] for a, b in ((0, 4), (4, 4), (4, 10))]),
        id="gradient",
    ),
    grouped_mat_mul(
        typed("f16", _B),
        typed("f16", _E),
        gives=np.stack([a @ b.T for a, b in zip(_B, _E, strict=True)]).astype(np.float16),
        id="f16",
    ),
    grouped_mat_mul(
        typed("bf16", _B),
        typed("bf16", _E),
        gives=typed(
            "bf16", np.stack([a @ b.T for a, b in zip(typed("bf16", _B).array, typed("bf16", _E).array, strict=True)])
        ),
        id="bf16",
    ),
    grouped_mat_mul(
        typed("i32", [[1, 2], [3, 4], [5, 6]]),
        typed("i32", [[[1, 1]], [[2, -1]]]),
        [1, 3],
        gives=typed("i32", [[3], [2], [4]]),
        id="i32",
    ),
    grouped_mat_mul.facts("f32[?,64]", "f32[3,128,64]", "i64[3]", id="dynamic tokens"),
    grouped_mat_mul.facts("f32[2..4,?,64]", "f32[?,128,64]", id="dynamic batches"),
    grouped_mat_mul.facts("f32[64,?]", "f32[?,128]", "i64[?]", gives="f32[?,64,128]", id="dynamic gradient"),
    grouped_mat_mul.facts("f32[...]", "f32[?,128,64]", gives="f32[...]", id="rank unknown"),
    grouped_mat_mul.refuses(_T, random("f32", 3, 5, 7), [3, 8, 10], says="inner sizes", id="inner"),
    grouped_mat_mul.facts("f32[?,?]", "f32[3,4,2]", "i64[3]", id="inner size unknown"),
    grouped_mat_mul.refuses(_T, _E, says="offsets are missing", id="no offsets"),
    grouped_mat_mul.refuses(_B, _E, [1, 2, 3], says="offsets are given", id="offsets"),
    grouped_mat_mul.refuses(_T, _E, [3, 2, 10], says="do not ascend", id="falling offsets"),
    grouped_mat_mul.refuses(_T, _E, [3, 8, 11], says="do not ascend within 0 to 10", id="offsets beyond"),
    grouped_mat_mul.refuses(_T, _E, [3, 10], says="3 matrices", id="groups"),
    grouped_mat_mul.refuses(_B, _W, says="cannot be multiplied with", id="ranks"),
]
ROWS += [
    *odd(ROWS),
    # Infinity times 0 is NaN, and so is the difference of two.
    mat_mul(
        np.float32([[np.inf, -np.inf], [np.inf, 0]]),
        np.float32([[1, 0], [1, 1]]),
        gives=np.float32([[np.nan, np.nan], [np.inf, np.nan]]),
        id="infinities",
    ),
    grouped_mat_mul(np.zeros((0, 4), np.float32), _E, [0, 0, 0], gives=np.zeros((0, 5), np.float32), id="no tokens"),
    grouped_mat_mul(
        np.float32([[np.nan, 1], [np.inf, 1]]),
        np.float32([[[1, 1]]]),
        [2],
        gives=np.float32([[np.nan], [np.inf]]),
        id="NaN and infinity",
    ),
]
ROWS += [mat_mul(typed("i32", [[2**30, 2]]), typed("i32", [[4], [1]]), id="i32 wraps")]
