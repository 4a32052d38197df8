"""The sizes of one transposed convolution, and its phases.

Results whose position has the same remainder by the stride make a phase. Each value of a phase is the sum over some
taps of the kernel, those whose distance from it is a multiple of the stride; along one axis the pixels that they meet
have equal distances. So a phase is a convolution with stride 1.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np

from irexec.backend.convolution.geometry import widened
from irexec.backend.kernel import Task
from irexec.reference.windows import TransposedWindows
from irexec.schema.convolution import BackpropAttributes


@dataclass(frozen=True)
class AxisPhase:
    """One remainder along one axis: value ``remainder + stride * q`` is the sum over the taps.

    Attributes:
        remainder: of the position in the result.
        taps: indexes in the kernel, in the order of the pixels that they meet.
        first: the pixel that the first tap meets for q = 0; it may be negative.
        step: from the pixel of one tap to that of the next.
        count: values of the phase.
    """

    remainder: int
    taps: tuple[int, ...]
    first: int
    step: int
    count: int


@dataclass(frozen=True)
class TransposedGeometry:
    """Data (N, groups * inputs, sizes...), weights (groups, inputs, outputs, kernel...).

    Attributes:
        dtype: of the data.
        images: N.
        windows: strides, dilations, what is cropped and the sizes of the result.
    """

    dtype: np.dtype
    images: int
    groups: int
    inputs: int
    outputs: int
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    windows: TransposedWindows

    @functools.cached_property
    def computed(self) -> np.dtype:
        """The type to compute in."""
        return widened(self.dtype)

    @property
    def weights(self) -> tuple[int, ...]:
        """The shape of the weights."""
        return (self.groups, self.inputs, self.outputs, *self.kernel)

    @property
    def points(self) -> int:
        """Number of points of the kernel."""
        return math.prod(self.kernel)

    @property
    def macs(self) -> int:
        return self.images * self.groups * self.inputs * self.outputs * self.points * math.prod(self.sizes)

    @property
    def unrolled(self) -> int:
        """About how many phases and taps are looked at one by one."""
        phases = list(map(min, self.windows.strides, self.windows.counts))
        return math.prod(phases) + sum(phase * taps for phase, taps in zip(phases, self.kernel, strict=True))

    @functools.cached_property
    def axes(self) -> tuple[tuple[AxisPhase, ...], ...]:
        """The phases with values along each axis."""
        return tuple(self._phases_along(axis) for axis in range(len(self.kernel)))

    def _phases_along(self, axis: int) -> tuple[AxisPhase, ...]:
        w = self.windows
        stride, dilation, begin, count = w.strides[axis], w.dilations[axis], w.begins[axis], w.counts[axis]
        found = []
        for remainder in range(min(stride, count)):
            met = sorted(
                ((remainder + begin - tap * dilation) // stride, tap)
                for tap in range(self.kernel[axis])
                if (remainder + begin - tap * dilation) % stride == 0
            )
            step = met[1][0] - met[0][0] if len(met) > 1 else 1
            first = met[0][0] if met else 0
            found.append(
                AxisPhase(remainder, tuple(tap for _, tap in met), first, step, -(-(count - remainder) // stride))
            )
        return tuple(found)

    @functools.cached_property
    def phases(self) -> list[tuple[AxisPhase, ...]]:
        """All combinations of the phases along the axes."""
        return list(itertools.product(*self.axes))


def backprop_geometry(task: Task, grouped: bool) -> TransposedGeometry:
    """The geometry of a task of ConvolutionBackpropData or GroupConvolutionBackpropData."""
    wanted = task.output_shape()[2:] if task.has_input(2) else None
    dtype = task.dtype(0)
    assert dtype is not None
    filter = task.shape(1) if grouped else (1, *task.shape(1))
    return geometry_of(dtype, task.shape(0), filter, wanted, task.attributes["attributes"])


# Selecting layouts asks for the same geometries again and again.
@functools.lru_cache(maxsize=1 << 5)
def geometry_of(
    dtype: np.dtype,
    data: tuple[int, ...],
    filter: tuple[int, ...],
    wanted: tuple[int, ...] | None,
    attributes: BackpropAttributes,
) -> TransposedGeometry:
    """The geometry of data (N, C, sizes...) and a filter (groups, inputs, outputs, kernel...)."""
    groups, inputs, outputs, *kernel = filter
    windows = attributes.windows(data[2:], kernel, wanted)
    return TransposedGeometry(dtype, data[0], groups, inputs, outputs, data[2:], tuple(kernel), windows)
