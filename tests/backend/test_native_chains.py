"""Each function of the C interpreter of chains, as a chain of one operation; what is expected is computed in f64."""

from __future__ import annotations

import math
import re
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import opset
from irexec.backend.calls import NativeKernel
from irexec.backend.chain import Chain, Formula, Instruction
from irexec.backend.elementwise_chain import chain_candidates
from irexec.backend.kernel import KernelContext, KernelOptions
from irexec.backend.native.chains import CODES, Program, program_of
from irexec.backend.registry import find_block_operation
from irexec.ir.facts import Fact
from irexec.native.library import library
from irexec.native.sources import SOURCE
from irexec.testing.kernels import task_of
from tests.support.exact_levels import fake_quantize

built = pytest.mark.skipif(library() is None, reason="the C kernels were not built")

SHAPE = (2, 3, 1037)
"""Two tiles and a part of a third along the last axis."""
SPECIAL = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 4, 1e-45, 3e38, -3e-38, 2, 9])
"""More than one vector, with an incomplete one."""


def test_codes_are_numbered_as_in_c() -> None:
    (found,) = re.findall(r"enum \{\s*(LOAD.*?)\}", (SOURCE / "chain.c").read_text("utf-8"), re.DOTALL)
    names = [name.strip().removesuffix("_OF").replace("_", "").lower() for name in found.split(",")]
    assert names == [code.lower() for code in CODES]


def run(type: str, version: str, inputs: list[np.ndarray], **attributes: Any) -> np.ndarray:
    """The operation in C; inputs of one element, and ranges, are constants."""
    constants = [i for i, x in enumerate(inputs) if x.size == 1 or (type == "FakeQuantize" and i)]
    task = task_of(type, version, inputs, attributes, constants=constants, native=True)
    made = find_block_operation(task)
    assert made is not None and isinstance(made.formula, Formula)
    sources = made.reads
    dtype = np.dtype(np.float32)
    instruction = Instruction(type, made.function, tuple(range(len(sources))), dtype, formula=made.formula)
    read = [inputs[i] for i in sources]
    facts = [Fact.of(x) for x in read]
    chain = Chain(len(read), dtype, (instruction,))
    offered = chain_candidates(chain, facts, task.outputs[0], (None,) * len(read), None, KernelOptions(native=True))
    (kernel,) = (kernel for kernel in (one.construct() for one in offered) if isinstance(kernel, NativeKernel))
    out = np.full(task.output_shape(), 77, np.float32)
    kernel.run(read, [out], KernelContext.of(kernel, 1))
    return out


def _values(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-6, 6, shape).astype(np.float32)


BINARY: dict[str, Callable[..., np.ndarray]] = {
    "Add": np.add, "Subtract": np.subtract, "Multiply": np.multiply, "Divide": np.divide, "Maximum": np.maximum,
    "Minimum": np.minimum, "SquaredDifference": lambda a, b: (a - b) ** 2,
    "PRelu": lambda a, b: np.where(a < 0, a * b, a),
}  # fmt: skip


@built
@pytest.mark.parametrize("second", [SHAPE, (3, 1037), (1037,), (3, 1), (2, 1, 1), (2, 3, 1), (2, 1, 1037)], ids=str)
@pytest.mark.parametrize("type", BINARY)
def test_functions_of_two_tensors(type: str, second: tuple[int, ...]) -> None:
    a, b = _values(*SHAPE), _values(*second)
    attributes = {} if type == "PRelu" else {"auto_broadcast": "numpy"}
    if type == "PRelu":
        b = b.reshape((1,) * (3 - b.ndim) + b.shape)
    expected = BINARY[type](a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(run(type, "opset1", [a, b], **attributes), expected, rtol=1e-6, atol=1e-6)
    if type not in ("PRelu",):
        expected = BINARY[type](b.astype(np.float64), a.astype(np.float64))
        np.testing.assert_allclose(run(type, "opset1", [b, a], **attributes), expected, rtol=1e-6, atol=1e-6)


def _erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf)(x)


def _gelu(x: np.ndarray) -> np.ndarray:
    return x * np.vectorize(math.erfc)(-x / math.sqrt(2)) / 2


UNARY: list[tuple[str, str, dict[str, Any], Callable[[np.ndarray], np.ndarray]]] = [
    ("Relu", "opset1", {}, lambda x: np.maximum(x, 0)),
    ("Clamp", "opset1", {"min": -1.5, "max": 2.5}, lambda x: np.clip(x, -1.5, 2.5)),
    ("Sigmoid", "opset1", {}, lambda x: 1 / (1 + np.exp(-x))),
    ("Swish", "opset4", {}, lambda x: x / (1 + np.exp(-x))),
    ("HSigmoid", "opset5", {}, lambda x: np.clip(x + 3, 0, 6) / 6),
    ("HSwish", "opset4", {}, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    ("Tanh", "opset1", {}, np.tanh),
    ("Exp", "opset1", {}, np.exp),
    ("Log", "opset1", {}, np.log),
    ("Sqrt", "opset1", {}, np.sqrt),
    ("Abs", "opset1", {}, np.abs),
    ("Negative", "opset1", {}, np.negative),
    ("Erf", "opset1", {}, _erf),
    ("Gelu", "opset7", {"approximation_mode": "erf"}, _gelu),
    ("Gelu", "opset7", {"approximation_mode": "tanh"}, lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    ("Elu", "opset1", {"alpha": 0.7}, lambda x: np.where(x < 0, 0.7 * np.expm1(x), x)),
    ("Mish", "opset4", {}, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    ("SoftPlus", "opset4", {}, lambda x: np.log1p(np.exp(x))),
    ("SoftSign", "opset9", {}, lambda x: x / (1 + np.abs(x))),
    ("Floor", "opset1", {}, np.floor),
    ("Ceiling", "opset1", {}, np.ceil),
    ("Round", "opset5", {"mode": "half_to_even"}, np.rint),
]  # fmt: skip


@built
@pytest.mark.parametrize(("type", "version", "attributes", "function"), UNARY, ids=[row[0] for row in UNARY])
def test_functions_of_one_tensor(
    type: str, version: str, attributes: dict[str, Any], function: Callable[[np.ndarray], np.ndarray]
) -> None:
    x = _values(*SHAPE)
    x[0, 0, :21] = np.arange(-5, 5.5, 0.5)
    if type in ("Log", "Sqrt"):
        x = np.abs(x) + np.float32(1e-3)
    expected = function(x.astype(np.float64))
    np.testing.assert_allclose(run(type, version, [x], **attributes), expected, rtol=2e-6, atol=1e-7)


@built
@pytest.mark.parametrize("exponent", [2.0, 3.0, 1.0, -1.0, 0.5, -0.5])
def test_powers_are_those_of_numpy(exponent: float) -> None:
    x = np.concatenate([SPECIAL, np.random.default_rng(0).standard_normal(600, np.float32) ** 2])
    out = run("Power", "opset1", [x, np.full((), exponent, np.float32)])
    with np.errstate(all="ignore"):
        # With one exponent for all elements NumPy computes a square root, which differs at -0 and minus infinity.
        expected = np.power(x, np.full_like(x, exponent))
    np.testing.assert_allclose(out, expected, rtol=4e-7)
    zeros = expected == 0
    assert np.array_equal(np.signbit(out[zeros]), np.signbit(expected[zeros]))


@pytest.mark.sampled(2)
@built
@pytest.mark.parametrize("ranges", [(), (2, 1, 1), (3, 1), (1037,), (2, 3, 1)], ids=str)
def test_levels_are_exact_whatever_the_ranges_vary_along(ranges: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(ranges))
    high = rng.uniform(1, 5, ranges).astype(np.float32)
    low = (-high * np.float32(128 / 127)).astype(np.float32)
    # Values of the levels and between two, where half an ulp decides.
    index = rng.integers(0, 511, SHAPE) / 2
    x = (low + index * (high.astype(float) - low) / 255).astype(np.float32)
    x[0, 0, : SPECIAL.size] = SPECIAL
    x[0, 0, 4] = 0  # what is expected has no NaN
    bounds = [low, high, low, high] if ranges else [np.reshape(b, ()) for b in (low, high, low * 3, high * 3)]
    expected = fake_quantize(np.clip(x, -6e4, 6e4), *bounds, levels=256)
    np.testing.assert_array_equal(run("FakeQuantize", "opset1", [x, *bounds], levels=256), expected)


@built
@pytest.mark.parametrize("columns", [1, 3, 24, 72, 120, 333, 520])
def test_rows_of_a_tile_follow_each_other(columns: int) -> None:
    """Whatever the number of columns is: whole vectors, several rows to a vector, and the rest of a row."""
    rng = np.random.default_rng(columns)
    x = rng.normal(size=(37, columns)).astype(np.float32)
    for shape in ((columns,), (37, 1), (37, columns), (1,)):
        y = rng.normal(size=shape).astype(np.float32)
        np.testing.assert_array_equal(run("Multiply", "opset1", [x, y]), x * y)
        high = rng.uniform(1, 3, shape if shape != (37, columns) else ()).astype(np.float32)
        bounds = [-high, high, -high, high]
        np.testing.assert_array_equal(
            run("FakeQuantize", "opset1", [x, *bounds], levels=255), fake_quantize(x, *bounds, levels=255)
        )


@built
@pytest.mark.parametrize("along", ["", "rows", "columns"])
@pytest.mark.parametrize("columns", [3, 24, 72, 120, 333, 520])
def test_a_chain_ends_in_levels(columns: int, along: str) -> None:
    """A product by the identity shows the levels."""
    rng, b = np.random.default_rng(columns), irexec.Builder("m")
    x, factors = b.parameter("f32", (1, 37, columns), "x"), b.parameter("f32", (1, 1, columns), "factors")
    high = rng.uniform(1, 3, {"": (), "rows": (37, 1), "columns": (columns,)}[along]).astype(np.float32)
    low = -high if along != "columns" else np.float32(0) * high
    levels = b.emit("FakeQuantize", b.emit("Multiply", x, factors), low, high, low, high, levels=255)
    identity = b.emit("Convert", b.constant(np.eye(columns, dtype=np.int8)), destination_type="f32")
    b.result(b.emit("MatMul", levels, b.emit("Multiply", identity, np.float32(1))))
    compiled = irexec.compile_model(b.model())
    data, scale = (rng.normal(size=shape).astype(np.float32) for shape in ((1, 37, columns), (1, 1, columns)))
    expected = fake_quantize(data * scale, low, high, low, high, levels=255)
    assert along or "Multiply+Quantize" in str(compiled.plan)
    np.testing.assert_allclose(compiled([data, scale])[0], expected, rtol=1e-6, atol=1e-7)
    data[0, 36, columns - 1] = np.nan
    assert np.isnan(compiled([data, scale])[0]).any(-1).tolist() == [[False] * 36 + [True]]


@built
def test_no_level_is_nearest_to_nan() -> None:
    x = np.full((2, 33), np.nan, np.float32)
    bounds = [np.float32(b).reshape(()) for b in (-1, 1, -1, 1)]
    assert np.isnan(run("FakeQuantize", "opset1", [x, *bounds], levels=5)).all()


def _program(*formulas: Formula) -> Program:
    """The program of functions one after the other: those of two tensors read one operand each."""
    operands = sum(formula.name == "Add" for formula in formulas)
    instructions, read = [], 1
    for i, formula in enumerate(formulas):
        tile = 0 if i == 0 else operands + i
        sources = (tile, read) if formula.name == "Add" else (tile,)
        read += len(sources) - 1
        instructions.append(Instruction(formula.name, np.add, sources, np.dtype(np.float32), formula=formula))
    chain = Chain(1 + operands, np.dtype(np.float32), tuple(instructions))
    made = program_of(chain, frozenset({0}), takes_bias=True, takes_addend=True)
    assert made is not None
    return made


def test_products_begin_with_bias_and_addend_and_end_with_limits() -> None:
    add, limit = Formula("Add"), Formula("Clamp", 0.0, 6.0)
    assert _program(add, add, limit) == Program(bias=0, addend=1, low=0.0, high=6.0, lines=())


def test_what_follows_limits_is_not_an_addend() -> None:
    program = _program(Formula("Add"), Formula("Clamp", 0.0, 6.0), Formula("Add"))
    assert (program.bias, program.addend) == (0, None)
    assert [line.code for line in program.lines] == ["Load", "Add"]


def test_a_second_addend_is_left_to_the_chain() -> None:
    program = _program(Formula("Add"), Formula("Add"), Formula("Add"))
    assert (program.bias, program.addend) == (0, 1)
    assert [line.code for line in program.lines] == ["Load", "Add"]


@built
@pytest.mark.parametrize("columns", [48, 37])
@pytest.mark.parametrize("rows", [1, 40])
def test_an_operand_is_read_by_one_instruction_or_two(rows: int, columns: int) -> None:
    """An operand of one sum or product is read where it lies, if its columns fill vectors."""
    x, w, r = _values(40, 16), _values(16, columns), _values(rows, columns)
    given, operand = opset.parameter(x.shape, "f32", "x"), opset.constant(r)
    product = opset.matmul(given, opset.constant(w), transpose_a=False, transpose_b=False)
    model = irexec.Model([opset.add(opset.multiply(product, operand), operand)], [given])
    np.testing.assert_allclose(irexec.infer(model, x)[0], (x.astype(np.float64) @ w) * r + r, rtol=1e-5, atol=1e-3)
    model = irexec.Model([opset.subtract(opset.multiply(product, operand), opset.constant(r[:, ::-1]))], [given])
    exact = (x.astype(np.float64) @ w) * r - r[:, ::-1]
    np.testing.assert_allclose(irexec.infer(model, x)[0], exact, rtol=1e-5, atol=1e-3)


@built
@pytest.mark.parametrize("size", [7, 600])
def test_a_chain_reads_the_input_of_each_run_where_it_lies(size: int) -> None:
    """Or a copy of one that is not contiguous; larger than what is copied to the arena, or smaller."""
    b = irexec.Builder("m")
    x = b.parameter("f32", (2, size, size), "x")
    b.result(b.emit("Tanh", b.emit("Multiply", x, np.float32(2))))
    b.result(x)
    compiled = irexec.compile_model(b.model())
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(2, size, 2 * size)).astype(np.float32)
    unaligned = np.frombuffer(b"x" + wide[:, :, :size].tobytes(), np.uint8)[1:].view(np.float32).reshape(2, size, size)
    given = [
        wide[:, :, :size],
        np.ascontiguousarray(wide[:, :, size:]),
        wide[:, :, ::2],
        wide[::-1, ::-1, :size],
        wide[:, :, :size].transpose(0, 2, 1),
        np.broadcast_to(wide[0, 0, :size], (2, size, size)),
        unaligned,
        np.asfortranarray(wide[:, :, :size]),
    ]
    for data in (*given, *reversed(given)):
        result, same = compiled(data).values()
        np.testing.assert_allclose(result, np.tanh(data * 2), rtol=1e-6, atol=1e-7)
        np.testing.assert_array_equal(same, data)
        assert not np.shares_memory(same, data)
    kept = np.ones((2, size, size), np.float32)
    watched = weakref.ref(kept)
    compiled(kept)
    del kept
    assert watched() is None, "the caller's array is released after the run"
