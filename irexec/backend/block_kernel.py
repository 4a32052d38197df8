"""A kernel of one element-wise operation that is in no chain, because its shapes are only known when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from irexec.backend.chain import Chain, Instruction
from irexec.backend.constants import ConstantSource
from irexec.backend.elementwise_chain import ChainKernel, chain_cost
from irexec.backend.kernel import Candidate, KernelContext, Order, Task
from irexec.backend.registry import BlockOperation
from irexec.dtypes.elements import F32, Element
from irexec.dtypes.packing import round_to
from irexec.ir.facts import Fact


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
        """See Kernel.run."""
        own = [inputs[i] for i in self.reads or ()]
        given = [x if shape is None else x.reshape(shape) for x, shape in zip(own, self._shapes, strict=True)]
        super().run(context.views(own, given), outputs, context)
        if not self._element.native:
            np.copyto(outputs[0], round_to(self._element, outputs[0]))


def in_carriers(task: Task) -> Task:
    """The task with f32 for floating-point types that NumPy lacks, which travel in it."""
    facts, outputs = tuple(map(_carried, task.inputs)), tuple(map(_carried, task.outputs))
    constants = tuple(None if source is None else _carried_constant(source) for source in task.constants)
    return replace(task, inputs=facts, outputs=outputs, constants=constants)


def _is_carried(element: Element | None) -> bool:
    return element is not None and element.is_float and not element.native


def _carried(fact: Fact) -> Fact:
    return Fact(F32, fact.shape) if _is_carried(fact.element) else fact


def _carried_constant(source: ConstantSource) -> ConstantSource:
    return ConstantSource(F32, source.shape, source.array) if _is_carried(source.element) else source
