"""Transposed convolution by the C library: each phase is a product, whose result is copied to its positions."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel, is_available
from irexec.backend.constants import ConstantStore
from irexec.backend.convolution.geometry import is_channels_last
from irexec.backend.copies import Copy, array_at, bind_copies, channels_last
from irexec.backend.kernel import Candidate, Task
from irexec.backend.native.convolution import STEP, Product, zeros
from irexec.backend.native.elementwise import can_follow, followed
from irexec.backend.native.panels import Cut, pack, panel_of, product_cost, table_bytes, three, windows_of
from irexec.backend.registry import kernels
from irexec.backend.transposed import Phase, TransposedGeometry, backprop_geometry, positions, windows_of_phase
from irexec.dtypes.elements import F32
from irexec.native.structures import Parameters

# Nanoseconds of a value that is copied, of a phase.
_COPY, _PHASE = 0.35, 800
# Phases and taps of a kernel, each of which is a call or an entry of a table.
_UNROLLED = 1 << 9


class NativeTransposed(NativeKernel):
    """Phases of the result, each a convolution of stride 1 of data that is channels last, or is copied so."""

    def __init__(self, task: Task, geometry: TransposedGeometry, copies: bool) -> None:
        g = self.geometry = geometry
        self.copies, self.source, self.reads = copies, task.constants[1], (0,)
        self.phases = [phase for phase in g.phases if all(axis.count for axis in phase)]
        self.panel = panel_of(g.outputs)
        self.algorithm = "C, phases as products"
        self.cuts = [
            Cut.of(g.images * g.groups, _pixels(phase), max(1, _taps(phase)), g.inputs, g.outputs, task.threads)
            for phase in self.phases
        ]
        table = max(
            (
                table_bytes(cut.block_rows(_pixels(phase)), _taps(phase))
                for cut, phase in zip(self.cuts, self.phases, strict=True)
            ),
            default=0,
        )
        self.copied = g.images * g.groups * g.inputs * math.prod(g.sizes) if copies else 0
        results = sum(map(_pixels, self.phases)) * g.images * g.groups * g.outputs
        self.workspace, self.shared_workspace = table, 4 * (self.copied + results)

    def pack(self, store: ConstantStore) -> None:
        assert self.source is not None, "weights are constants"
        g = self.geometry

        def make(filter: np.ndarray) -> np.ndarray:
            weights = filter.reshape(g.weights)
            return np.concatenate([self._packed(weights, phase) for phase in self.phases] or [np.empty(0, np.float32)])

        self.weights = store.get([self.source], ("native transposed", g.weights, g.windows, self.panel), make)

    def _packed(self, weights: np.ndarray, phase: Phase) -> np.ndarray:
        """The panels of a phase from weights (groups, inputs, outputs, kernel...)."""
        g = self.geometry
        return pack(np.ascontiguousarray(weights_of(phase, weights)).reshape(g.groups, -1, g.outputs))

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        g, x, address = self.geometry, inputs[0], binding.shared
        x = channels_last(x, address, binding) if self.copies else binding.with_stride(x, 1)
        address += 4 * self.copied
        out, scattered, start = np.moveaxis(outputs[0], 1, -1), [], 0
        for phase, cut in zip(self.phases, self.cuts, strict=True):
            target = out[(slice(None), *positions(phase, g.windows.strides))]
            if not _taps(phase):
                scattered.append(Copy(np.broadcast_to(zeros(1), target.shape), target))
                continue
            result = array_at(address, target.shape)
            address += result.nbytes
            parameters = self._product(
                phase, cut, phase_windows(x, phase, zeros(g.inputs), binding), result, start, binding
            )
            binding.call("irx_product", parameters, g.images * g.groups * cut.rows * cut.panels)
            start += len(self.weights) * _taps(phase) // sum(map(_taps, self.phases))
            scattered.append(Copy(result, target))
        bind_copies(scattered, binding)

    def _product(
        self, phase: Phase, cut: Cut, windows: Parameters, result: np.ndarray, start: int, binding: Binding
    ) -> Parameters:
        g = self.geometry
        channels = g.groups * g.outputs
        weights = binding.address(self.weights) + 4 * start
        return Product(
            windows, weights, 0, None, None, binding.address(result), _pixels(phase) * channels, channels, 1, None,
            g.inputs, g.groups, g.outputs, self.panel, _pixels(phase), cut.rows, cut.panels, -np.inf, np.inf, False,
        )  # fmt: skip


def weights_of(phase: Phase, weights: np.ndarray) -> np.ndarray:
    """The weights (groups, taps, inputs, outputs) of a phase from weights (groups, inputs, outputs, kernel...)."""
    index: Any = (..., *np.ix_(*(list(axis.taps) for axis in phase)))
    return np.moveaxis(weights[index].reshape(*weights.shape[:3], _taps(phase)), 3, 1)


def phase_windows(x: np.ndarray, phase: Phase, zeros: np.ndarray, binding: Binding) -> Parameters:
    """The windows of a phase on data that is channels last; ``zeros`` is read in the padding."""
    made = windows_of(x, windows_of_phase(phase), zeros, binding)
    # The first pixel may lie before the data or inside of it.
    made.pads = three([-axis.first for axis in phase], 0)
    return made


def _taps(phase: Phase) -> int:
    return math.prod(len(axis.taps) for axis in phase)


def _pixels(phase: Phase) -> int:
    return math.prod(axis.count for axis in phase)


@kernels("ConvolutionBackpropData", since=1)
@kernels("GroupConvolutionBackpropData", since=1)
def convolution_backprop_data(task: Task) -> Iterator[Candidate]:
    """Constant weights, f32, up to three spatial axes."""
    if not is_available(task) or task.constants[1] is None or task.inputs[0].element is not F32:
        return
    if 0 in (*task.shape(0), *task.shape(1), *task.output_shape()) or len(task.shape(0)) > 5 or not can_follow(task):
        return
    g = backprop_geometry(task)
    if g.unrolled > _UNROLLED:
        return
    cost = STEP + _COPY * math.prod(task.output_shape())
    for phase in g.phases:
        pixels, taps = _pixels(phase), _taps(phase)
        cost += _PHASE + g.images * (g.groups * product_cost(pixels, taps * g.inputs, g.outputs) + pixels * taps * 3)
    copies = not is_channels_last(task.input_orders[0]) and math.prod(g.sizes) > 1
    if copies:
        cost += STEP + _COPY * math.prod(task.shape(0))
    make = functools.partial(NativeTransposed, task, g, copies)
    yield Candidate(cost, lambda: followed(make(), task))
