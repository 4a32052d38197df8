"""Every fast kernel of an operation against its reference kernel: with and without a chain, for all orders in memory
and numbers of threads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from irexec.analysis.evaluate import as_tuple
from irexec.backend.calls import NativeKernel
from irexec.backend.chain import Chain, Formula, Instruction
from irexec.backend.constants import ConstantSource, ConstantStore
from irexec.backend.kernel import Kernel, KernelContext, Order, Task
from irexec.backend.registry import offers
from irexec.backend.scratch import Scratch
from irexec.dtypes.elements import element_of
from irexec.ir.facts import Fact
from irexec.schema.registry import resolve


def candidates(task: Task) -> list[Kernel]:
    """All fast kernels that can compute a task, constructed."""
    return [candidate.construct() for candidate in offers(task)]


def task_of(
    type: str,
    version: str,
    inputs: Sequence[np.ndarray | None],
    attributes: dict[str, Any] | None = None,
    *,
    constants: Collection[int] = (),
    chain: Chain | None = None,
    operands: Sequence[np.ndarray] = (),
    threads: int = 1,
    native: bool = False,
) -> Task:
    """The task of one operation on these arrays; ``constants`` are the indexes of the inputs that are constants, and
    ``native`` tells whether C kernels may compute it."""
    definition = resolve(type, version)
    arguments = definition.arguments(attributes or {})
    facts = tuple(Fact(None, None) if x is None else Fact(element_of(x.dtype), x.shape) for x in inputs)
    known = [Fact(None, None) if x is None else Fact.of(x) for x in inputs]
    outputs = tuple(as_tuple(definition.infer(known, arguments)))
    sources = tuple(
        ConstantSource.of(x, element_of(x.dtype)) if i in constants and x is not None else None
        for i, x in enumerate(inputs)
    )
    return Task(
        definition, arguments, facts, sources, outputs, (True,) * len(outputs), chain,
        tuple(Fact(element_of(x.dtype), x.shape) for x in operands),
        (None,) * (len(facts) + len(operands)), (None,) * len(outputs), threads, native=native,
    )  # fmt: skip


Arrays = Sequence[np.ndarray | None]


def run_recorded(kernel: Kernel, threads: int, inputs: Arrays, outputs: Arrays) -> None:
    """Run a packed kernel as a plan on an arena does: calls that were recorded on other values are repeated on the
    inputs."""
    context = KernelContext.of(kernel, threads, fixed=True)
    arrays = [None if x is None else x.copy(order="K") for x in inputs]
    for number in range(4):
        for array, values in zip(arrays, inputs, strict=True):
            if array is not None and values is not None:
                array[...] = values if number else values.reshape(-1)[::-1].reshape(values.shape)
        for output in outputs:
            if output is not None:
                output[...] = np.nan if output.dtype.kind == "f" else 77
        context.run(kernel, arrays, outputs)


def in_order(x: np.ndarray, order: Order) -> np.ndarray:
    """The array with the same elements, whose axes lie in memory in that order."""
    return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))


def strided(x: np.ndarray) -> np.ndarray:
    """The array with the same elements, each second one of a larger array along every axis."""
    spread = np.full([2 * size for size in x.shape], 77, x.dtype)
    inside: tuple[Any, ...] = (*(slice(None, None, 2) for _ in x.shape), ...)
    view = spread[inside]
    view[...] = x
    return view


def mirrored(x: np.ndarray) -> np.ndarray:
    """The array with the same elements, which lie in memory backwards along every axis."""
    backwards: tuple[Any, ...] = (*(slice(None, None, -1) for _ in x.shape), ...)
    return x[backwards].copy()[backwards]


def repeated(x: np.ndarray, axis: int) -> np.ndarray:
    """An array of the same shape whose elements along an axis are the same one in memory."""
    return np.broadcast_to(x.take([0], axis), x.shape)


def unaligned(x: np.ndarray) -> np.ndarray:
    """The array with the same elements, at addresses and strides that are not multiples of their size."""
    fields = np.zeros(x.shape, np.dtype([("before", np.uint8), ("value", x.dtype)]))
    fields["value"] = x
    return fields["value"]


def following_chain(dtype: np.dtype, low: float, high: float) -> Chain:
    """(x + a) clamped to a range, times 0.5, + b: the second operand is added last."""

    def add(scratch: Scratch, out: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        np.add(x, y, out=out)

    def clamp(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
        np.clip(x, x.dtype.type(low), x.dtype.type(high), out=out)

    def halve(scratch: Scratch, out: np.ndarray, x: np.ndarray) -> None:
        np.multiply(x, x.dtype.type(0.5), out=out)

    instructions = (
        Instruction("Add", add, (0, 1), dtype, formula=Formula("Add")),
        Instruction("Clamp", clamp, (3,), dtype, formula=Formula("Clamp", low, high)),
        Instruction("Multiply", halve, (4,), dtype, formula=Formula("MultiplyP", 0.5)),
        Instruction("Add", add, (5, 2), dtype, formula=Formula("Add")),
    )
    return Chain(3, dtype, instructions)


def check_kernels(
    type: str,
    version: str,
    inputs: Arrays,
    attributes: dict[str, Any] | None = None,
    *,
    constants: Collection[int] = (),
    only: bool = True,
    wanted: tuple[bool, ...] | None = None,
) -> list[Kernel]:
    """Compare all candidates with the reference kernel, and return them.

    Args:
        type, version, inputs, attributes, constants: as for ``task_of``.
        only: whether there has to be a candidate.
        wanted: for each output whether it is read; all of them unless given.
    """
    task = task_of(type, version, inputs, attributes, constants=constants, native=True)
    if wanted is not None:
        task = dataclasses.replace(task, wanted=wanted)
    with np.errstate(all="ignore"):
        expected = as_tuple(task.definition(*inputs, **task.attributes))
    found = []
    limits = _limits(expected[0])
    for variant, operands in _variants(task, expected, limits):
        kernels = candidates(variant)
        assert kernels or not only
        for kernel in kernels:
            assert kernel.runs_chain or variant.chain is None or isinstance(kernel, NativeKernel)
            _check(
                kernel, variant, inputs, operands, _chained(expected, operands, limits if kernel.runs_chain else None)
            )
        found += kernels
    return found


def _variants(
    task: Task, expected: Sequence[np.ndarray], limits: tuple[float, float]
) -> Iterator[tuple[Task, list[np.ndarray]]]:
    """The task as it is, with two threads and a chain, with a tensor added before one for each channel, and this with
    reversed orders in memory; kernels of plug-ins run no chain, and write C order."""
    result = expected[0]
    yield task, []
    if task.definition.plugin:
        yield dataclasses.replace(task, threads=2), []
        orders = tuple(_reversed(fact.shape) for fact in task.inputs)
        yield dataclasses.replace(task, input_orders=orders), []
    if result.dtype.kind != "f" or task.definition.plugin:
        return
    shape = [size if axis == 1 else 1 for axis, size in enumerate(result.shape)]
    rng = np.random.default_rng(1)
    operands = [rng.standard_normal(s).astype(result.dtype) for s in (shape, result.shape)]
    chained = task_of_chain(task, operands, limits)
    yield dataclasses.replace(chained, threads=2), operands
    operands = operands[::-1]
    chained = task_of_chain(task, operands, limits)
    yield chained, operands
    given = tuple(_reversed(fact.shape) for fact in (*task.inputs, *chained.operands))
    written = tuple(_reversed(fact.shape) for fact in task.outputs)
    yield dataclasses.replace(chained, input_orders=given, output_orders=written), operands


def task_of_chain(task: Task, operands: Sequence[np.ndarray], limits: tuple[float, float]) -> Task:
    """The task followed by ``following_chain``."""
    facts = tuple(task_of("Relu", "opset1", [x]).inputs[0] for x in operands)
    return dataclasses.replace(
        task, chain=following_chain(operands[0].dtype, *limits), operands=facts,
        input_orders=task.input_orders + (None,) * len(operands),
    )  # fmt: skip


def _reversed(shape: Any) -> Order | None:
    """Channels last for images, else the last two axes exchanged."""
    rank = 0 if shape is None else len(shape)
    if rank < 2:
        return None
    return (0, *range(2, rank), 1) if rank > 2 else (1, 0)


def _limits(result: np.ndarray) -> tuple[float, float]:
    """A range that some values of a result are below, and some above."""
    if result.dtype.kind != "f" or not np.isfinite(result).any():
        return -1.0, 1.0
    low, high = np.quantile(result[np.isfinite(result)], [0.2, 0.8])
    return float(low), float(high)


def _chained(
    expected: Sequence[np.ndarray], operands: Sequence[np.ndarray], limits: tuple[float, float] | None
) -> list[np.ndarray]:
    if not operands or limits is None:
        return list(expected)
    type = expected[0].dtype.type
    clamped = np.clip(expected[0] + operands[0], type(limits[0]), type(limits[1]))
    return [clamped * type(0.5) + operands[1], *expected[1:]]


def _check(kernel: Kernel, task: Task, inputs: Arrays, operands: Arrays, expected: Sequence[np.ndarray]) -> None:
    """The result for inputs as the task says they lie in memory, and for strided, mirrored and unaligned ones."""
    kernel.pack(ConstantStore())
    context = KernelContext.of(kernel, task.threads)
    given = [*inputs, *operands]
    ordered = [
        x if x is None or order is None else in_order(x, order)
        for x, order in zip(given, task.input_orders, strict=True)
    ]
    spread, backwards = ([x if x is None else lay(x) for x in given] for lay in (strided, mirrored))
    for arrays in (ordered, spread, backwards, [x if x is None or x.dtype.hasobject else unaligned(x) for x in given]):
        _run(kernel, task, context, arrays, expected)
    if 0 not in kernel.overwrites:
        _check_repeated(kernel, task, context, ordered)


def _check_repeated(kernel: Kernel, task: Task, context: KernelContext, arrays: Arrays) -> None:
    """The result for data that a Broadcast repeats along its channels or its last axis: that for a copy of the data."""
    x = arrays[0]
    if x is None or x.ndim < 2 or not x.size or task.constants[0] is not None:
        return
    if x.dtype.kind == "f":
        # A sum of one value many times would round in the same direction at each step.
        x = np.rint(x)
    for axis in {1, x.ndim - 1}:
        view = repeated(x, axis)
        copy = np.empty_like(x)
        copy[...] = view
        expected = result_of(kernel, task, context, [copy, *arrays[1:]])
        _run(kernel, task, context, [view, *arrays[1:]], [y if y is None else y.copy() for y in expected])


def result_of(kernel: Kernel, task: Task, context: KernelContext, arrays: Arrays) -> list[np.ndarray | None]:
    """The outputs of a kernel, written into arrays that were filled with NaN or 77; None for one that is not read."""
    read = read_by(kernel, task, arrays)
    described = zip(task.outputs, task.output_orders, task.wanted, strict=True)
    outputs = [_output(fact, order) if is_read else None for fact, order, is_read in described]
    with np.errstate(all="ignore"):
        kernel.run(read, outputs, context)
    return outputs


def read_by(kernel: Kernel, task: Task, arrays: Arrays) -> list[np.ndarray | None]:
    """The inputs and operands, without the inputs that the kernel does not read."""
    own = len(task.inputs)
    return [x if kernel.reads is None or i in kernel.reads or i >= own else None for i, x in enumerate(arrays)]


def _run(kernel: Kernel, task: Task, context: KernelContext, arrays: Arrays, expected: Arrays) -> None:
    before = [None if x is None else x.copy() for x in arrays]
    outputs = result_of(kernel, task, context, arrays)
    _compare(outputs, expected, task, kernel)
    if kernel.records:
        with np.errstate(all="ignore"):
            run_recorded(kernel, task.threads, read_by(kernel, task, before), outputs)
        _compare(outputs, expected, task, kernel)
    for i, (x, y) in enumerate(zip(arrays, before, strict=True)):
        assert (
            x is None or y is None or i in kernel.overwrites or np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
        ), "an input was changed"


def _output(fact: Any, order: Order | None) -> np.ndarray:
    dtype = np.dtype(fact.element.carrier)
    shape = fact.shape if order is None else [fact.shape[axis] for axis in order]
    output = np.full(shape, np.nan if dtype.kind == "f" else 77, dtype)
    return output if order is None else output.transpose(np.argsort(order))


def _compare(outputs: Arrays, expected: Arrays, task: Task, kernel: Kernel) -> None:
    message = f"{kernel.algorithm}, {task.definition.type} of {[fact.shape for fact in task.inputs]}, {task.attributes}"
    for result, values in zip(outputs, expected, strict=True):
        if result is None or values is None:
            continue
        values = np.asarray(values)
        assert result.dtype == values.dtype and result.shape == values.shape
        if result.dtype.kind != "f":
            np.testing.assert_array_equal(result, values, err_msg=message)
            continue
        finite = values[np.isfinite(values)].astype(np.float64)
        tolerance = max(task.definition.tolerance, 2e-3 if result.dtype == np.float16 else 2e-6)
        floor = tolerance * max(1.0, float(np.abs(finite).max(initial=0)))
        np.testing.assert_allclose(
            result.astype(np.float64), values.astype(np.float64), rtol=tolerance, atol=floor, err_msg=message
        )
