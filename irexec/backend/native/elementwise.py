"""Element-wise chains by the C library: alone, and on the whole output of another native kernel, in one binding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel
from irexec.backend.chain import Chain
from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import Order, Task
from irexec.backend.native.chains import LANES, Axes, NativeChain, is_of_floats, program_of, reads_levels
from irexec.ir.facts import Fact
from irexec.native.structures import structure

_TILE = 512
# Tiles of a block.
_TILES = 32
# Nanoseconds of a step, of a float that is read or written, and of a pass over one in the first-level cache.
_STEP, _MOVED, _PASS = 400, 0.08, 0.05

Elementwise = structure("elementwise.c", "elementwise")


class NativeElementwise(NativeKernel):
    """A chain on tensors of known shapes; see ``axes_of`` for the axes.

    Args:
        late: inputs that may be other arrays in each run, which are contiguous.
    """

    def __init__(
        self,
        chain: Chain,
        inputs: Sequence[Fact],
        output: Fact,
        axes: Axes,
        shared: tuple[int, ...] = (),
        late: tuple[int, ...] = (),
    ) -> None:
        self.shape, self.axes = output.static_shape, axes
        self.chain = NativeChain(chain, inputs, self.shape, axes, alone=True)
        self.overwrites, self.late = shared, late
        self.algorithm = "C, chain of element-wise operations"
        self.sizes = [math.prod(self.shape[axis] for axis in group) for group in axes]

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        out, (image, row, _) = binding.written(
            outputs[0], self.axes, innermost=self.axes[2][-1] if self.axes[2] else None
        )
        images, rows, columns = self.sizes
        width = min(columns, _TILE)
        # The rows of a tile are whole vectors together, where there is room for that.
        whole = LANES // math.gcd(LANES, width)
        height = _TILE // width // whole * whole or _TILE // width
        parameters = Elementwise(
            binding.address(out), image, row, None if out.dtype == np.float32 else binding.address(binding.unknown),
            self.chain.bind(inputs, binding), images, rows, columns, height, _TILES,
        )  # fmt: skip
        tiles = -(-columns // width) * -(-rows // height) * images
        binding.call("irx_elementwise", parameters, -(-tiles // _TILES))


def axes_of(
    inputs: Sequence[Fact], output: Fact, input_orders: Sequence[Order | None], output_order: Order | None
) -> Axes | None:
    """The axes of the output as images, rows and columns, each of which every tensor has as one run or repeats; None
    where it takes more than three. The last column axis is the innermost one of the output."""
    shape = output.static_shape
    rank = len(shape)
    order = [axis for axis in (output_order or range(rank)) if shape[axis] != 1]
    tensors = [_places(fact.static_shape, own, rank) for fact, own in zip(inputs, input_orders, strict=True)]
    groups: list[list[int]] = []
    for axis in order:
        if groups and all(_follow(places, groups[-1][-1], axis) for places in tensors):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    if len(groups) > 3:
        return None
    first, second, third = [()] * (3 - len(groups)) + [tuple(group) for group in groups]
    return first, second, third


def _places(shape: tuple[int, ...], order: Order | None, rank: int) -> dict[int, int]:
    """The place in memory of each axis of a tensor, axes numbered as those of the output."""
    shift = rank - len(shape)
    present = [axis for axis in (order or range(len(shape))) if shape[axis] != 1]
    return {axis + shift: place for place, axis in enumerate(present)}


def _follow(places: dict[int, int], outer: int, inner: int) -> bool:
    if (outer in places) != (inner in places):
        return False
    return outer not in places or places[inner] == places[outer] + 1


def cost(chain: Chain, inputs: Sequence[Fact], output: Fact) -> float | None:
    """Estimated nanoseconds; None where the library cannot compute the chain."""
    if not chain.instructions or not is_of_floats(chain):
        return None
    levels = reads_levels(chain)
    if any(fact.element is None or (fact.dtype != np.float32) != (i in levels) for i, fact in enumerate(inputs)):
        return None
    if 0 in output.static_shape or program_of(chain, alone=True) is None:
        return None
    size = math.prod(output.static_shape)
    full = sum(fact.shape == output.shape for fact in inputs)
    return _STEP + size * (_MOVED * (full + 1) + _PASS * (chain.passes + len(inputs)))


class Followed(NativeKernel):
    """A kernel without a chain of its own, then the chain in place."""

    def __init__(self, kernel: NativeKernel, task: Task) -> None:
        assert task.chain is not None, "the task has a chain"
        facts, output, orders = _tensors(task)
        axes = axes_of(facts, output, orders, task.output_orders[0])
        assert axes is not None, "can_follow was asked"
        self.kernel, self.own = kernel, len(task.inputs)
        self.order = task.output_orders[0] or tuple(range(len(output.static_shape)))
        self.chain = NativeElementwise(task.chain, facts, output, axes)
        self.algorithm, self.reads = kernel.algorithm, kernel.reads
        self.shared_workspace, self.workspace = kernel.shared_workspace, kernel.workspace

    def pack(self, store: ConstantStore) -> None:
        self.kernel.pack(store)

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
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
    if axes_of(facts, output, orders, task.output_orders[0]) is None:
        return False
    return cost(task.chain, facts, output) is not None


def _tensors(task: Task) -> tuple[list[Fact], Fact, list[Any]]:
    """The inputs of the chain, its output, and the orders of the inputs."""
    output, order = task.outputs[0], task.output_orders[0]
    own = len(task.inputs)
    orders = [order, *(task.input_orders[own:] or [None] * len(task.operands))]
    return [output, *task.operands], output, orders
