"""A native kernel followed by the task's chain on its whole output, as calls of one binding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irexec.backend.calls import Binding, NativeKernel
from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import Task
from irexec.backend.native import elementwise
from irexec.ir.facts import Fact


class Followed(NativeKernel):
    """A kernel without a chain of its own, then the chain in place."""

    def __init__(self, kernel: NativeKernel, task: Task) -> None:
        assert task.chain is not None, "the task has a chain"
        facts, output, orders = _tensors(task)
        axes = elementwise.axes_of(facts, output, orders, task.output_orders[0])
        assert axes is not None, "can_follow was asked"
        self.kernel, self.own = kernel, len(task.inputs)
        self.order = task.output_orders[0] or tuple(range(len(output.static_shape)))
        self.chain = elementwise.NativeElementwise(task.chain, facts, output, axes, ())
        self.algorithm, self.reads = kernel.algorithm, kernel.reads
        self.shared_workspace, self.workspace = kernel.shared_workspace, kernel.workspace

    def pack(self, store: ConstantStore) -> None:
        self.kernel.pack(store)

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        """See NativeKernel.bind."""
        out = outputs[0]
        if not out.transpose(self.order).flags.c_contiguous:
            out = binding.result(out, self.order)
        others = len(binding.copies), len(binding.results)
        self.kernel.bind(inputs[: self.own], [out, *outputs[1:]], binding)
        unchanged = others == (len(binding.copies), len(binding.results))
        assert unchanged, "the kernel writes an array that is contiguous in its order"
        self.chain.bind([out, *inputs[self.own :]], [out], binding)


def followed(kernel: NativeKernel, task: Task) -> NativeKernel:
    """The kernel with the task's chain, if there is one."""
    return kernel if task.chain is None else Followed(kernel, task)


def can_follow(task: Task) -> bool:
    """Whether C can compute the task's chain, if there is one, on the whole output."""
    if task.chain is None:
        return True
    facts, output, orders = _tensors(task)
    if elementwise.axes_of(facts, output, orders, task.output_orders[0]) is None:
        return False
    return elementwise.cost(task.chain, facts, output) is not None


def _tensors(task: Task) -> tuple[list[Fact], Fact, list[Any]]:
    """The inputs of the chain, its output, and the orders of the inputs."""
    output, order = task.outputs[0], task.output_orders[0]
    own = len(task.inputs)
    orders = [order, *(task.input_orders[own:] or [None] * len(task.operands))]
    return [output, *task.operands], output, orders
