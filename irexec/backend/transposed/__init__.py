"""Fast kernels of transposed convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from irexec.backend.convolution.geometry import float_type, is_channels_last
from irexec.backend.convolution.output import Output
from irexec.backend.kernel import Candidate, Task
from irexec.backend.registry import kernels
from irexec.backend.transposed.any_layout import any_layout
from irexec.backend.transposed.geometry import TransposedGeometry, backprop_geometry
from irexec.backend.transposed.phases import PhaseBlocks, PhaseColumns
from irexec.backend.transposed.sums import TapBlocks, TapSums

# Bytes of scratch that a kernel may ask for.
_WORKSPACE = 8 << 20
# Phases and taps that are listed one by one; with more, compiling would take longer than the fast kernels save.
_UNROLLED = 1 << 14


@kernels("ConvolutionBackpropData", since=1)
def convolution_backprop_data(task: Task) -> Iterator[Candidate]:
    """One group."""
    return _candidates(task, None if float_type(task) is None else backprop_geometry(task, grouped=False))


@kernels("GroupConvolutionBackpropData", since=1)
def group_convolution_backprop_data(task: Task) -> Iterator[Candidate]:
    """Several groups."""
    return _candidates(task, None if float_type(task) is None else backprop_geometry(task, grouped=True))


@kernels("ConvTranspose", since="onednn")
def conv_transpose(task: Task) -> Iterator[Candidate]:
    """Known weights, in any layout. float16 with a bias is left to the reference kernel, which rounds once."""
    dtype = float_type(task)
    if dtype is not None and task.constants[1] is not None and (dtype != np.float16 or not task.has_input(2)):
        yield any_layout(task)


def _candidates(task: Task, geometry: TransposedGeometry | None) -> Iterator[Candidate]:
    if geometry is None or geometry.unrolled > _UNROLLED:
        return
    data_last, result_last = is_channels_last(task.input_orders[0]), is_channels_last(task.output_orders[0])
    output = Output(task, geometry.computed)
    taps, phases = TapBlocks(geometry), [PhaseBlocks(geometry)]
    if data_last or result_last:
        phases.append(PhaseBlocks(geometry, channels_last=True))
    for blocks in phases:
        if blocks.workspace(output) <= _WORKSPACE:
            yield Candidate(blocks.cost(data_last, output.channels_last), partial(PhaseColumns, task, blocks))
    if taps.workspace(output) <= _WORKSPACE:
        yield Candidate(taps.cost(data_last, output.channels_last), partial(TapSums, task, taps))
