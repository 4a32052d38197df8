"""Rows of matrix products."""

import numpy as np

from tests.support.cases import case, facts_case, random, refuses

R = random
ROWS = [
    case("MatMul", 1, R("f32", 3, 4), R("f32", 4, 5, seed=1), id="matrices"),
    case("MatMul", 1, R("f32", 4, 3), R("f32", 4, 5, seed=1), transpose_a="true", id="left turned"),
    case("MatMul", 1, R("f32", 3, 4), R("f32", 5, 4, seed=1), transpose_b="true", id="right turned"),
    case("MatMul", 1, R("f32", 4, 3), R("f32", 5, 4, seed=1), transpose_a="true", transpose_b="true", id="both turned"),
    case("MatMul", 1, R("f32", 2, 1, 3, 4), R("f32", 5, 4, 2, seed=1), id="batches stretch"),
    case("MatMul", 1, R("f32", 2, 3, 4), R("f32", 4, 6, seed=1), id="one matrix on the right"),
    case("MatMul", 1, R("f32", 4), R("f32", 4, 5, seed=1), id="vector on the left"),
    case("MatMul", 1, R("f32", 3, 4), R("f32", 4, seed=1), id="vector on the right"),
    case("MatMul", 1, R("f32", 4), R("f32", 4, seed=1), id="two vectors"),
    case("MatMul", 1, R("f32", 2, 3, 4), R("f32", 4, seed=1), id="batch by a vector"),
    case("MatMul", 1, R("f32", 4), R("f32", 2, 4, 3, seed=1), transpose_a="true", id="vector by a batch, flag ignored"),
    case("MatMul", 1, R("f16", 3, 4), R("f16", 4, 5, seed=1), id="f16"),
    case("MatMul", 1, R("bf16", 3, 4), R("bf16", 4, 5, seed=1), id="bf16"),
    case("MatMul", 1, R("i32", 3, 4, low=-9, high=9), R("i32", 4, 5, low=-9, high=9, seed=1), id="i32"),
    case("MatMul", 1, R("f32", 0, 4), R("f32", 4, 5, seed=1), gives=np.zeros((0, 5), np.float32), id="no rows"),
    case("MatMul", 1, R("f32", 3, 0), R("f32", 0, 5), gives=np.zeros((3, 5), np.float32), id="nothing to sum"),
    facts_case("MatMul", 1, "f32[?,3,4]", "f32[1..3,4,?]", id="bounded"),
    facts_case("MatMul", 1, "f32[...]", "f32[4,5]", id="rank unknown"),
    facts_case("MatMul", 1, "f32[?,?]", "f32[8,?]", transpose_b="true", id="dynamic, turned"),
    facts_case("MatMul", 1, "f32[4]", "f32[2..3,4,?]", id="vector by a bounded batch"),
    refuses("MatMul", 1, "f32[3,4]", "f32[5,6]", says="the inner sizes of [3,4] and [5,6] are 4 and 5", id="inner sizes"),
    refuses("MatMul", 1, "f32[]", "f32[5,6]", says="scalar", id="scalar"),
    refuses("MatMul", 1, "f32[2,3,4]", "f32[3,4,5]", says="cannot be broadcast", id="batches that differ"),
]
