"""Fast kernels of transposed convolutions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irexec.backend.convolution.geometry import float_type, is_channels_last
from irexec.backend.kernel import Kernel, Task
from irexec.backend.registry import kernels
from irexec.backend.transposed.any_layout import AnyLayout
from irexec.backend.transposed.geometry import TransposedGeometry, backprop_geometry
from irexec.backend.transposed.phases import PhaseColumns
from irexec.backend.transposed.shared_windows import SharedWindows, share_windows
from irexec.backend.transposed.sums import TapSums

# Bytes of scratch that a kernel may ask for.
_WORKSPACE = 8 << 20
# Phases and taps that are listed one by one; with more, compiling would take longer than the fast kernels save.
_UNROLLED = 1 << 14


@kernels("ConvolutionBackpropData", since=1)
def convolution_backprop_data(task: Task) -> Iterator[Kernel]:
    """One group."""
    return _candidates(task, None if float_type(task) is None else backprop_geometry(task, grouped=False))


@kernels("GroupConvolutionBackpropData", since=1)
def group_convolution_backprop_data(task: Task) -> Iterator[Kernel]:
    """Several groups."""
    return _candidates(task, None if float_type(task) is None else backprop_geometry(task, grouped=True))


@kernels("ConvTranspose", since="onednn")
def conv_transpose(task: Task) -> Iterator[Kernel]:
    """Known weights, in any layout. float16 with a bias is left to the reference kernel, which rounds once."""
    dtype = float_type(task)
    if dtype is not None and task.constants[1] is not None and (dtype != np.float16 or not task.has_input(2)):
        yield AnyLayout(task)


def _candidates(task: Task, geometry: TransposedGeometry | None) -> Iterator[Kernel]:
    if geometry is None or geometry.unrolled > _UNROLLED:
        return
    found: list[Kernel] = [PhaseColumns(task, geometry), TapSums(task, geometry)]
    if share_windows(geometry):
        found.append(SharedWindows(task, geometry, channels_last=False))
    if is_channels_last(task.input_orders[0]) or is_channels_last(task.output_orders[0]):
        found.append(PhaseColumns(task, geometry, channels_last=True))
        if share_windows(geometry):
            found.append(SharedWindows(task, geometry, channels_last=True))
    yield from (kernel for kernel in found if kernel.workspace <= _WORKSPACE)
