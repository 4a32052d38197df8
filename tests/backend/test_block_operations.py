"""Every block operation against the reference kernel, on the rows of tests/cases."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import irexec
from irexec import opset
from irexec.backend import registry
from irexec.backend.chain import Chain, Instruction
from irexec.backend.constants import ConstantSource
from irexec.backend.kernel import Task
from irexec.backend.registry import BlockOperation, find_block_operation, is_element_wise
from irexec.backend.scratch import Scratch
from irexec.ir.facts import Fact
from irexec.testing import Case
from irexec.testing.kernels import candidates
from irexec.testing.laws import assert_same, attributes_of, infer, kernel
from irexec.testing.rows import exact_facts
from tests.support.cases import families
from tests.support.run_kernel import run_kernel

_ROWS = [row for rows in families().values() for row in rows if isinstance(row, Case)]


def _task(row: Case, constants: bool) -> Task:
    """The row's operation, with the inputs from 1 on constant if asked for."""
    facts = tuple(Fact(x.element, x.array.shape) for x in row.inputs)
    sources = tuple(
        ConstantSource.of(x.array, x.element) if constants and i else None for i, x in enumerate(row.inputs)
    )
    outputs = infer(row, exact_facts(row))
    return Task(
        row.definition, row.definition.arguments(attributes_of(row)), facts, sources, outputs, (True,) * len(outputs)
    )


def _found() -> Iterator[tuple[Case, bool]]:
    for row in _ROWS:
        if is_element_wise(row.definition):
            for constants in (False, True):
                if find_block_operation(_task(row, constants)) is not None:
                    yield row, constants


_FOUND = list(_found())


def _chain(operation: BlockOperation, dtypes: list[np.dtype], result: np.dtype) -> Chain:
    count = len(operation.reads)
    instruction = Instruction(
        "it", operation.function, tuple(range(count)), result, operation.in_place, operation.temporaries
    )
    return Chain(count, dtypes[0], (instruction,))


@pytest.mark.parametrize(
    ("row", "constants"), _FOUND, ids=[f"{row.id}{' constant' if constants else ''}" for row, constants in _FOUND]
)
def test_a_block_operation_gives_what_the_reference_kernel_gives(row: Case, constants: bool) -> None:
    task = _task(row, constants)
    operation = find_block_operation(task)
    assert operation is not None
    (expected,) = kernel(row, [x.array for x in row.inputs])
    arguments = []
    for i, shape in zip(operation.reads, operation.shapes or (None,) * len(operation.reads), strict=True):
        array = row.inputs[i].array
        arguments.append(array if shape is None else array.reshape(shape))
    chain = _chain(operation, [a.dtype for a in arguments], expected.dtype)
    with np.errstate(all="ignore"):
        for out, given, shared in _forms(arguments, expected):
            chain.run(Scratch.of_size(chain.workspace(out.size)), out, given, shared)
            result = np.ascontiguousarray(out).reshape(expected.shape)
            assert_same([result], [expected], row)
            if _is_exact(row):
                np.testing.assert_array_equal(result, expected)


def _is_exact(row: Case) -> bool:
    """Whether the operation is one that has nothing to approximate."""
    return row.definition.tolerance == 1e-6 and not row.definition.widen


def _forms(arguments: list[np.ndarray], expected: np.ndarray) -> Iterator[tuple[np.ndarray, list[np.ndarray], int]]:
    """The output, the arguments, the index of the argument that is the output's memory."""
    given = [a.copy() for a in arguments]
    for a in given:
        a.flags.writeable = False
    yield _garbage(expected), given, -1
    yield _strided(_garbage(expected)), [_strided(a) for a in given], -1
    full = [np.broadcast_to(a, expected.shape) for a in given]
    yield _garbage(expected), full, -1
    # Rows of a block are axes that were merged, so that every argument has one element or all.
    yield _garbage(expected.reshape(-1)), [a.reshape(-1) for a in full], -1
    for i, a in enumerate(arguments):
        if a.shape == expected.shape and a.dtype == expected.dtype:
            own = a.copy()
            yield own, [own if i == j else other for j, other in enumerate(given)], i


def _garbage(like: np.ndarray) -> np.ndarray:
    return np.full(like.shape, np.nan if like.dtype.kind == "f" else 77, like.dtype)


def _strided(array: np.ndarray) -> np.ndarray:
    wide = np.full([*array.shape[:-1], 2 * array.shape[-1] + 3] if array.ndim else [], 0, array.dtype)
    inside = (..., slice(1, 2 * array.shape[-1] + 1, 2)) if array.ndim else ()
    wide[inside] = array
    return wide[inside] if array.ndim else wide


_EXACT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "swish": lambda x: x / (1 + np.exp(-x)),
    "hswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "gelu": lambda x: x / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}
_ATTRIBUTES = {"elu": {"alpha": 1.0}, "gelu": {"approximation_mode": "tanh"}}


@pytest.mark.parametrize("name", _EXACT)
def test_an_activation_is_as_exact_where_it_is_small(name: str) -> None:
    """A formula that cancels below zero is off by a multiple of the value, and within any absolute tolerance."""
    x = np.linspace(-5 if name == "gelu" else -30, 30, 4001, dtype=np.float32)
    data = opset.parameter(x.shape, "f32", "x")
    made = getattr(opset, name)(data, **_ATTRIBUTES.get(name, {}))
    model = irexec.Model([opset.result(made)], [data])
    (result,) = irexec.compile_model(model)({"x": x}).values()
    np.testing.assert_allclose(result, _EXACT[name](x.astype(np.float64)), rtol=4e-6, atol=1e-30)


def test_every_block_operation_has_a_row() -> None:
    registry.loader.load()
    # Those of the compiler, on levels, have tests of their own.
    own = {("Quantize", "irexec"), ("Dequantize", "irexec"), ("AddLevels", "irexec")}
    assert {(row.type, row.since) for row, _ in _FOUND} == set(registry._BLOCK_OPERATIONS) - own


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_of_element_wise_operations(threads: int) -> None:
    """As the runtime asks for them where shapes are known only then; in types that NumPy lacks too."""
    elements = set()
    for row in _ROWS:
        if not is_element_wise(row.definition):
            continue
        task = dataclasses.replace(_task(row, True), output_orders=(None,), threads=threads)
        for candidate in candidates(task):
            (result,) = run_kernel(candidate, task, [x.array for x in row.inputs])
            assert_same([result], kernel(row, [x.array for x in row.inputs]), row)
            elements |= {x.element.name for x in row.inputs}
    assert {"f32", "f16", "bf16", "f64", "i32", "i64", "u8", "boolean"} <= elements
