"""Rows of the random numbers."""

from __future__ import annotations

import itertools

import numpy as np

from irexec.testing import Row, random, typed
from tests.cases import Operation

_LIMITS = {
    "i32": (-5, 90), "i64": (-5, 90), "f16": (-1.5, 2.25), "bf16": (-1.5, 2.25), "f32": (-1.5, 2.25),
    "f64": (-1.5, 2.25),
}  # fmt: skip


random_uniform = Operation("RandomUniform", 8, output_type="f32")


def _uniform(
    kind: str, shape: list[int], id: str, low: float | None = None, high: float | None = None, **attributes: object
) -> Row:
    limits = _LIMITS[kind] if low is None else (low, high)
    gives = attributes.pop("gives", None)
    tolerance = attributes.pop("tolerance", None)
    return random_uniform(
        shape,
        *(typed(kind, limit) for limit in limits),
        output_type=kind,
        id=id,
        gives=gives,
        tolerance=tolerance,
        **attributes,
    )


_SEEDED = [
    _uniform(kind, [2, 3, 4], f"{kind} {alignment}", global_seed=150, op_seed=10, alignment=alignment)
    for kind, alignment in itertools.product(_LIMITS, ("TENSORFLOW", "PYTORCH"))
    if kind not in ("f16", "f64")
]

_UNIFORM: list[Row] = [
    *_SEEDED,
    # The plugin computes f16 as f32: what the nodes of its own graph evaluate to.
    _uniform("f16", [8], "f16", global_seed=150, op_seed=10, gives=typed("f16", [0.7676, 1.525, 1.621, -0.06055, -1.364, -1.188, 0.539, 1.627])),
    _uniform(
        "f16",
        [8],
        "f16 PyTorch",
        global_seed=150,
        op_seed=10,
        alignment="PYTORCH",
        gives=typed("f16", [0.7925, -0.6904, 1.304, -1.454, -0.592, -0.9395, 1.965, -0.1011]),
    ),
    # The examples of the specification; the plugin computes f64 as f32.
    _uniform(
        "f64",
        [2, 2],
        "example in f64",
        2,
        10,
        global_seed=80,
        op_seed=100,
        tolerance=1e-8,
        gives=typed("f64", [[5.65927959, 4.23122376], [2.67008206, 2.36423758]]),
    ),
    _uniform("i32", [2, 3], "example in i32", 50, 100, global_seed=80, op_seed=100, gives=typed("i32", [[65, 70, 56], [59, 82, 92]])),
    _uniform(
        "f32",
        [3, 3],
        "example in f32",
        0,
        1,
        global_seed=150,
        op_seed=10,
        gives=typed(
            "f32",
            [
                [0.7011236, 0.30539632, 0.93931055],
                [0.9456035, 0.11694777, 0.50770056],
                [0.5197197, 0.22727466, 0.991374],
            ],
        ),
    ),
    # What torch.rand(2, 2, dtype=torch.float64) * 8 + 2 gives after torch.manual_seed(80).
    _uniform(
        "f64",
        [2, 2],
        "PyTorch in f64",
        2,
        10,
        global_seed=80,
        alignment="PYTORCH",
        tolerance=1e-8,
        gives=typed("f64", [[9.067076401353173, 5.073877446908415], [7.533241863666989, 4.710951987980897]]),
    ),
    _uniform("f32", [5], "one seed", global_seed=7),
    _uniform("f32", [5], "the other seed", op_seed=7),
    _uniform("f32", [7], "large seeds", global_seed=2**40 + 3, op_seed=2**35 + 1),
    # OpenVINO's plugin overflows: what the nodes of its own graph evaluate to.
    _uniform("i32", [4], "all of i32", -(2**31), 2**31 - 1, global_seed=1, op_seed=2, gives=typed("i32", [1731462351, 216909267, -1090054346, -1978991139])),
    _uniform("i64", [3], "wide i64", -(2**40), 2**62, global_seed=1, op_seed=2, gives=[931614913308394703, 723668717321787190, 1946870410200269171]),
    _uniform(
        "i64",
        [3],
        "wide i64 PyTorch",
        -(2**40),
        2**62,
        global_seed=1,
        op_seed=2,
        alignment="PYTORCH",
        gives=[3081009865108717803, 4064266172537508936, 2108859557397385],
    ),
    _uniform("f32", [700], "beyond one state", global_seed=3, alignment="PYTORCH"),
    _uniform("f32", [3, 0, 2], "empty", global_seed=3, gives=np.zeros((3, 0, 2), np.float32)),
    _uniform("f32", [2, 3], "no seed", gives=np.zeros((2, 3), np.float32)),
    random_uniform([3], [0.0], [1.0], global_seed=5, id="limits in vectors"),
    random_uniform(typed("i32", [2, 3]), 0.0, 1.0, global_seed=5, op_seed=0, id="i32 shape"),
    random_uniform(typed("i64", np.zeros(0)), 0.0, 1.0, global_seed=5, op_seed=0, gives=typed("f32", 0.18286478519439697), id="scalar"),
    random_uniform.facts("i64[3]", "f32[]", "f32[]", global_seed=1, op_seed=1, id="shape unknown"),
    random_uniform.facts("i64[?]", "f32[]", "f32[]", global_seed=1, op_seed=1, id="rank unknown"),
    random_uniform.facts([2, 3], "i64[1]", "i64[]", output_type="i64", global_seed=1, op_seed=1, id="shape known"),
    random_uniform.refuses([2], 1.0, 1.0, global_seed=1, op_seed=1, says="is not less than", id="no range"),
    random_uniform.refuses([2], 0.0, 1.0, output_type="i32", global_seed=1, op_seed=1, says="expected output_type i32", id="type of limits"),
    random_uniform.refuses([-2], 0.0, 1.0, global_seed=1, op_seed=1, says="a size of shape is -2", id="negative size"),
    random_uniform.refuses(2.0, 0.0, 1.0, global_seed=1, op_seed=1, says="shape has element type f32, expected an integer type", id="shape of floats"),
]  # fmt: skip


multinomial = Operation("Multinomial", 13)


def _drawn(id: str, probs: object, many: object, gives: object = None, **attributes: object) -> Row:
    given = {
        "convert_type": "i64", "with_replacement": True, "log_probs": False, "global_seed": 80, "op_seed": 100,
    } | attributes  # fmt: skip
    return multinomial(probs, many, gives=gives, id=id, **given)


# RandomUniform's example in the specification: with these seeds the f64 numbers are 0.457, 0.279, 0.084, 0.046.
_MULTINOMIAL: list[Row] = [
    _drawn("by the sum", [[0.1, 0.3, 0.6]], 4, gives=[[2, 1, 0, 0]]),
    _drawn("not normal", [[2.0, 6.0, 12.0]], 4, gives=[[2, 1, 0, 0]]),
    _drawn("two batches", [[0.25, 0.75], [0.06, 0.94]], 2, gives=[[1, 1], [1, 0]]),
    _drawn("logarithms", np.log(np.float32([[0.1, 0.3, 0.6]])), 4, gives=[[2, 1, 0, 0]], log_probs=True),
    _drawn("i32", [[0.1, 0.3, 0.6]], 4, gives=typed("i32", [[2, 1, 0, 0]]), convert_type="i32"),
    _drawn("f16", typed("f16", [[0.1, 0.3, 0.6]]), [4], gives=[[2, 1, 0, 0]]),
    _drawn("bf16", typed("bf16", [[0.1, 0.3, 0.6]]), typed("i32", 4), gives=[[2, 1, 0, 0]]),
    # 0.457 draws class 1; of 1/3 and 2/3 that remain 0.279 draws 0; then there is class 2 alone.
    _drawn("without replacement", [[0.2, 0.4, 0.4]], 3, gives=[[1, 0, 2]], with_replacement=False),
    _drawn("certain", [[0.0, 1.0, 0.0], [0.0, 0.0, 3.0]], 5, gives=[[1] * 5, [2] * 5]),
    _drawn("certain in order", [[0.0, 0.0, 1.0]], 1, gives=[[2]], with_replacement=False),
    _drawn("one row", [0.1, 0.3, 0.6], 4, gives=[2, 1, 0, 0]),
    _drawn("no seed", [[0.0, 1.0]], 3, gives=[[1, 1, 1]], global_seed=0, op_seed=0),
    multinomial.facts("f32[?,4]", "i64[]", convert_type="i32", with_replacement=True, log_probs=False, gives="i32[?,?]", id="unknown"),
    multinomial.facts("f32[2..3,4]", 5, convert_type="i64", with_replacement=True, log_probs=False, gives="i64[2..3,5]", id="bounded"),
    multinomial.facts("f32[...]", 5, convert_type="i64", with_replacement=True, log_probs=False, gives="i64[...]", id="rank unknown"),
    multinomial.refuses(random("f32", 2, 3), 4, convert_type="i64", with_replacement=False, log_probs=True, says="more than the 3 classes", id="too many"),
    multinomial.refuses(random("f32", 2, 3), -1, convert_type="i64", with_replacement=True, log_probs=True, says="num_samples is -1", id="negative"),
    multinomial.refuses(random("f32", 2, 3, 4), 1, convert_type="i64", with_replacement=True, log_probs=True, says="rank 3", id="rank"),
    multinomial.refuses(random("i32", 2, 3), 1, convert_type="i64", with_replacement=True, log_probs=True, says="floating-point", id="integers"),
]  # fmt: skip

ROWS: list[Row] = [*_UNIFORM, *_MULTINOMIAL]
ROWS += [_drawn("no rows", np.zeros((0, 3), np.float32), 4, gives=np.zeros((0, 4), np.int64))]
ROWS += [
    random_uniform.facts("i64[2]", "f32[]", "f32[]", global_seed=1, op_seed=1, id="sizes unknown"),
    random_uniform.refuses(
        [-1, -1], 0.0, 1.0, global_seed=1, op_seed=1, says="a size of shape is -1", id="two sizes of -1"
    ),
]
