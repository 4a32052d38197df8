"""Registering block operations: which element types their functions take, f16 by way of f32, pdpd broadcasting.

A block operation whose shapes are only known when it runs is in no chain: a kernel of its own computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from irexec.backend.chain import BlockFunction, Chain, Instruction
from irexec.backend.constants import ConstantSource
from irexec.backend.elementwise_chain import ChainKernel, chain_cost
from irexec.backend.kernel import Candidate, KernelContext, Order, Task
from irexec.backend.registry import BlockOperation, MakeBlock, block_operation, kernels
from irexec.backend.scratch import Scratch
from irexec.dtypes.elements import F16, F32, Element, round_to
from irexec.ir.facts import Fact
from irexec.schema.shape_rules import alignment, pdpd_start


def block_function(type: str, since: int | str, kinds: str = "f") -> Callable[[MakeBlock], MakeBlock]:
    """Decorator: the function makes the block operation of a version of ``type``.

    Where the operation is computed in f32 for f16 (``widen``), the function is asked for f32.

    Args:
        kinds: NumPy's letters for the kinds of types that input 0 may have.
    """

    def register(make: MakeBlock) -> MakeBlock:
        @block_operation(type, since)
        def operation(task: Task) -> BlockOperation | None:
            if not _has_native_types(task) or task.kind not in kinds:
                return None
            widens = task.definition.widen and any(fact.element is F16 for fact in task.inputs)
            made = _widened(task, make) if widens else make(task)
            return made and _with_needed_shapes(made, task)

        @kernels(type, since)
        def candidates(task: Task) -> Iterator[Candidate]:
            element, carried = task.outputs[0].element, in_carriers(task)
            made = operation(carried)
            if made is not None and element is not None:
                yield block_candidate(carried, made, element)

        return make

    return register


def block_formula(
    type: str, since: int | str, kinds: str = "f", *, integers: MakeBlock | None = None, **flags: Any
) -> Callable[[BlockFunction], BlockFunction]:
    """Decorator: the function computes blocks of a version of ``type``.

    Args:
        integers: makes the operation for input 0 of integers; None for the same function.
        flags: the other attributes of BlockOperation.
    """

    def register(function: BlockFunction) -> BlockFunction:
        operation = BlockOperation(function, **flags)

        @block_function(type, since, kinds)
        def make(task: Task) -> BlockOperation | None:
            return integers(task) if integers and task.kind != "f" else operation

        return function

    return register


def _with_needed_shapes(operation: BlockOperation, task: Task) -> BlockOperation:
    """The operation without the shapes that do not change NumPy's broadcasting."""
    rank = len(task.output_shape())
    shapes = operation.shapes or (None,) * len(operation.reads)
    needed = [
        None if shape is not None and _broadcasts_alike(task.shape(i), shape, rank) else shape
        for i, shape in zip(operation.reads, shapes, strict=True)
    ]
    return replace(operation, shapes=tuple(needed))


def _broadcasts_alike(own: tuple[int, ...], wanted: tuple[int, ...], rank: int) -> bool:
    ranked, aligned = ((1,) * (rank - len(shape)) + shape for shape in (own, wanted))
    return len(own) <= rank and ranked == aligned


def _has_native_types(task: Task) -> bool:
    elements = [fact.element for fact in (*task.inputs, *task.outputs) if fact.element is not None]
    return task.inputs[0].element is not None and all(one.native and one.kind != "string" for one in elements)


def _widened(task: Task, make: MakeBlock) -> BlockOperation | None:
    """The operation computed in f32 on f16 inputs, with an f16 result; None where only some inputs are f16."""
    if any(fact.element is not None and fact.element.is_float and fact.element is not F16 for fact in task.inputs):
        return None
    made = make(_in_f32(task, lambda element: element is F16))
    return made and replace(
        made,
        function=_through_f32(made.function),
        in_place=True,
        temporaries=made.temporaries + 1 + len(made.reads),
        passes=made.passes + 40,
    )


def _in_f32(task: Task, is_replaced: Callable[[Element | None], bool]) -> Task:
    """The task with f32 for some element types."""

    def fact(own: Fact) -> Fact:
        return Fact(F32, own.shape) if is_replaced(own.element) else own

    def constant(source: ConstantSource | None) -> ConstantSource | None:
        if source is None or not is_replaced(source.element):
            return source
        return ConstantSource(F32, source.shape, lambda: source.array().astype(np.float32, copy=False))

    facts, outputs = tuple(map(fact, task.inputs)), tuple(map(fact, task.outputs))
    return replace(task, inputs=facts, outputs=outputs, constants=tuple(map(constant, task.constants)))


def _through_f32(function: BlockFunction) -> BlockFunction:
    def widened(scratch: Scratch, out: np.ndarray, *arguments: np.ndarray) -> None:
        result = scratch.take(out.shape, np.dtype(np.float32))
        function(scratch, result, *(_converted(scratch, argument) for argument in arguments))
        np.copyto(out, result, casting="same_kind")

    return widened


def _converted(scratch: Scratch, argument: np.ndarray) -> np.ndarray:
    wide = scratch.take(argument.shape, np.dtype(np.float32))
    np.copyto(wide, argument)
    return wide


def aligned_shapes(task: Task, inputs: Sequence[int]) -> tuple[tuple[int, ...] | None, ...]:
    """The shape of each of these inputs with which NumPy broadcasts as ``auto_broadcast`` states.

    With pdpd the first axis of an input is aligned with an axis of input 0.
    """
    mode, axis = alignment(task.attributes)
    if mode != "pdpd":
        return (None,) * len(inputs)
    rank = len(task.shape(0))
    return tuple(None if i == 0 or not task.shape(i) else _from_axis(task.shape(i), rank, axis) for i in inputs)


def _from_axis(shape: tuple[int, ...], rank: int, axis: int | None) -> tuple[int, ...]:
    """``shape`` with axes of size 1 at its end, so that it ends at the last axis of an input of this rank."""
    count = rank - pdpd_start(rank, len(shape), axis)
    return shape[:count] + (1,) * (count - len(shape))


def scalar_constant(task: Task, index: int) -> np.floating | None:
    """The value of a constant floating-point input of one element; None if it is not one."""
    source = task.constants[index] if index < len(task.constants) else None
    if source is None or not source.element.is_float or any(size != 1 for size in source.shape):
        return None
    value: np.floating = source.array().reshape(-1)[0]
    return value


def from_reference(task: Task) -> BlockOperation | None:
    """The reference kernel on blocks; for one whose result depends only on the elements, never on shapes."""
    if not all(task.has_input(i) for i in range(len(task.inputs))) or len(task.outputs) != 1:
        return None
    inputs = tuple(range(len(task.inputs)))
    attributes = dict(task.attributes)
    shapes = aligned_shapes(task, inputs)
    if attributes.get("auto_broadcast") == "pdpd":
        attributes["auto_broadcast"] = "numpy"

    def function(scratch: Scratch, out: np.ndarray, *arguments: np.ndarray) -> None:
        np.copyto(out, task.definition(*arguments, **attributes), casting="unsafe")

    return BlockOperation(function, inputs, shapes, passes=20)


def block_candidate(task: Task, operation: BlockOperation, element: Element) -> Candidate:
    """The operation as a chain of its own, with its estimate; arguments are those of BlockKernel."""
    facts = [
        Fact(task.inputs[i].element, task.shape(i) if shape is None else shape)
        for i, shape in zip(operation.reads, operation.shapes, strict=True)
    ]
    result = task.outputs[0]
    dtypes = [np.dtype(fact.element.carrier) for fact in (*facts, result) if fact.element is not None]
    instruction = Instruction(
        task.definition.type, operation.function, tuple(range(len(facts))), dtypes[-1],
        operation.in_place, operation.temporaries, operation.passes,
    )  # fmt: skip
    orders = [
        None if shape is not None or i >= len(task.input_orders) else task.input_orders[i]
        for i, shape in zip(operation.reads, operation.shapes, strict=True)
    ]
    chain, order = Chain(len(facts), dtypes[0], (instruction,)), task.output_orders[0] if task.output_orders else None
    make = partial(BlockKernel, chain, facts, result, task.threads, orders, order, operation, element)
    return Candidate(chain_cost(chain, facts, result, orders, order), make, runs_chain=False)


class BlockKernel(ChainKernel):
    """A chain of one operation.

    Args:
        chain, inputs, output, threads, input_orders, output_order: see ChainKernel.
        element: the type to which results are rounded.
    """

    def __init__(
        self,
        chain: Chain,
        inputs: Sequence[Fact],
        output: Fact,
        threads: int,
        input_orders: Sequence[Order | None],
        output_order: Order | None,
        operation: BlockOperation,
        element: Element,
    ) -> None:
        super().__init__(chain, inputs, output, threads, input_orders, output_order)
        self.algorithm, self.reads = "element-wise", operation.reads
        self._shapes, self._element = operation.shapes, element
        self.records = element.native
        self.overwrites = tuple(operation.reads[i] for i in self.shared if operation.shapes[i] is None)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        own = [inputs[i] for i in self.reads or ()]
        given = [x if shape is None else x.reshape(shape) for x, shape in zip(own, self._shapes, strict=True)]
        super().run(context.views(own, given), outputs, context)
        if not self._element.native:
            np.copyto(outputs[0], round_to(self._element, outputs[0]))


def in_carriers(task: Task) -> Task:
    """The task with f32 for floating-point types that NumPy lacks, which travel in it."""
    return _in_f32(task, lambda element: element is not None and element.is_float and not element.native)
