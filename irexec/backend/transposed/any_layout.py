"""ConvTranspose: a transposed convolution of data, filter and result in any layout, with bias."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.backend.constants import ConstantStore
from irexec.backend.convolution.geometry import is_channels_last
from irexec.backend.kernel import Candidate, Kernel, KernelContext, Task
from irexec.backend.transposed.geometry import TransposedGeometry
from irexec.backend.transposed.phases import PhaseBlocks, PhaseColumns
from irexec.backend.transposed.sums import TapBlocks, TapSums
from irexec.ir.facts import Fact
from irexec.reference.conv_transpose import filter_by_group


def any_layout(task: Task) -> Candidate:
    """The cheapest kernel of the convolution itself, on views of data and result whose channels are the second axis."""
    layout = _Layout.of(task)
    planar, arrange = layout.planar(task), ((layout.groups, layout.filter), layout.by_group)
    geometry = _geometry(planar)
    phases, taps = PhaseBlocks(geometry, layout.is_last), TapBlocks(geometry)
    last = is_channels_last(planar.input_orders[0]), is_channels_last(planar.output_orders[0])
    costs = phases.cost(*last), taps.cost(*last)

    def make() -> Kernel:
        by_phases = costs[0] <= costs[1]
        kernel = PhaseColumns(planar, phases, arrange) if by_phases else TapSums(planar, taps, arrange)
        return AnyLayout(task, layout, kernel)

    return Candidate(min(costs), make, runs_chain=False)


@dataclass(frozen=True)
class _Layout:
    """The layouts of data and filter.

    Attributes:
        filter: the axes of the filter, such as XIO.
        is_last: whether channels are the last axis of data and result.
    """

    groups: int
    filter: str
    is_last: bool

    @staticmethod
    def of(task: Task) -> _Layout:
        a = task.attributes
        return _Layout(a["groups"], a["filter_format"] or a["weights_format"] or "XIO", a["data_format"] == "NXC")

    def by_group(self, filter: np.ndarray) -> np.ndarray:
        """The filter as (groups, inputs, outputs, kernel...)."""
        return filter_by_group(filter, self.groups, self.filter)

    def planar(self, task: Task) -> Task:
        """The convolution without bias, of views whose channels are the second axis."""
        shape = self.by_group(np.broadcast_to(np.int8(0), task.shape(1))).shape
        return dataclasses.replace(
            task,
            inputs=(Fact(task.inputs[0].element, self._sizes(task.shape(0))), Fact(task.inputs[1].element, shape)),
            constants=(None, task.constants[1]),
            outputs=(Fact(task.outputs[0].element, self._sizes(task.output_shape())),),
            chain=None,
            operands=(),
            input_orders=(self._order(task), None),
            output_orders=(self._order(task),),
        )

    def _sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (shape[0], shape[-1], *shape[1:-1]) if self.is_last else shape

    def _order(self, task: Task) -> tuple[int, ...]:
        rank = len(task.output_shape())
        return (0, *range(2, rank), 1) if self.is_last else tuple(range(rank))


class AnyLayout(Kernel):
    """A kernel of the convolution itself on views of data and result, and the bias."""

    def __init__(self, task: Task, layout: _Layout, kernel: Kernel) -> None:
        self._is_last, self._kernel = layout.is_last, kernel
        self.algorithm, self.workspace, self.splits = kernel.algorithm, kernel.workspace, True
        self._has_bias = task.has_input(2)
        self.reads = (0, 2) if self._has_bias else (0,)

    def pack(self, store: ConstantStore) -> None:
        self._kernel.pack(store)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        data, out = inputs[0], outputs[0]
        if self._is_last:
            data, out = np.moveaxis(data, -1, 1), np.moveaxis(out, -1, 1)
        self._kernel.run([data, None], [out], context)
        if self._has_bias:
            np.add(out, inputs[2].reshape(-1, *[1] * (out.ndim - 2)), out=out)


def _geometry(task: Task) -> TransposedGeometry:
    images, _, *sizes = task.shape(0)
    groups, inputs, outputs, *kernel = task.shape(1)
    windows = task.attributes["attributes"].windows(sizes, kernel)
    dtype = task.dtype(0)
    assert dtype is not None
    return TransposedGeometry(dtype, images, groups, inputs, outputs, tuple(sizes), tuple(kernel), windows)
