"""ConvTranspose: a transposed convolution of data, filter and result in any layout, with bias."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import Kernel, KernelContext, Task
from irexec.backend.transposed.geometry import TransposedGeometry
from irexec.backend.transposed.phases import PhaseColumns
from irexec.backend.transposed.sums import TapSums
from irexec.ir.facts import Fact
from irexec.reference.conv_transpose import filter_by_group


class AnyLayout(Kernel):
    """The cheapest kernel of the convolution itself, on views of data and result whose channels are the second axis."""

    def __init__(self, task: Task) -> None:
        a = task.attributes
        self._layout = a["filter_format"] or a["weights_format"] or "XIO"
        self._groups: int = a["groups"]
        self._is_last = a["data_format"] == "NXC"
        key = (self._groups, self._layout)
        shape = self._by_group(np.broadcast_to(np.int8(0), task.shape(1))).shape
        planar = dataclasses.replace(
            task,
            inputs=(Fact(task.inputs[0].element, self._sizes(task.shape(0))), Fact(task.inputs[1].element, shape)),
            constants=(None, task.constants[1]),
            outputs=(Fact(task.outputs[0].element, self._sizes(task.output_shape())),),
            chain=None,
            operands=(),
            input_orders=(self._order(task), None),
            output_orders=(self._order(task),),
        )
        geometry = _geometry(planar)
        arrange = (key, self._by_group)
        made: list[Kernel] = [
            PhaseColumns(planar, geometry, self._is_last, arrange),
            TapSums(planar, geometry, arrange),
        ]
        self._kernel = min(made, key=lambda kernel: kernel.cost)
        self.algorithm, self.cost, self.workspace, self.splits = (
            self._kernel.algorithm,
            self._kernel.cost,
            self._kernel.workspace,
            True,
        )
        self._has_bias = task.has_input(2)
        self.reads = (0, 2) if self._has_bias else (0,)

    def _by_group(self, filter: np.ndarray) -> np.ndarray:
        return filter_by_group(filter, self._groups, self._layout)

    def _sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (shape[0], shape[-1], *shape[1:-1]) if self._is_last else shape

    def _order(self, task: Task) -> tuple[int, ...]:
        rank = len(task.output_shape())
        return (0, *range(2, rank), 1) if self._is_last else tuple(range(rank))

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
