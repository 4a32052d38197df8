"""Fast kernels of Convolution and GroupConvolution."""

from __future__ import annotations

from collections.abc import Iterator

from irexec.backend.convolution.columns import Columns
from irexec.backend.convolution.geometry import Geometry, is_channels_last
from irexec.backend.convolution.pointwise import Pointwise
from irexec.backend.convolution.winograd import TILES, Winograd, suits
from irexec.backend.kernel import Kernel, Task
from irexec.backend.registry import kernels

# Channels of data that is copied to channels last in next to no time.
_FEW = 4
# Bytes of scratch that a kernel may ask for.
_WORKSPACE = 8 << 20


@kernels("Convolution", since=1)
def convolution(task: Task) -> Iterator[Kernel]:
    """Of float types; known weights are packed."""
    geometry = Geometry.of(task, grouped=False)
    return iter(()) if geometry is None else _candidates(task, geometry)


@kernels("GroupConvolution", since=1)
def group_convolution(task: Task) -> Iterator[Kernel]:
    """Groups of more than one channel."""
    geometry = Geometry.of(task, grouped=True)
    if geometry is None or (geometry.inputs == geometry.outputs == 1 and geometry.groups > 1):
        return iter(())
    return _candidates(task, geometry)


def _candidates(task: Task, geometry: Geometry) -> Iterator[Kernel]:
    if geometry.is_pointwise:
        data_last, result_last = is_channels_last(task.input_orders[0]), is_channels_last(task.output_orders[0])
        if not (data_last and result_last):
            yield Pointwise(task, geometry, channels_last=False)
        if data_last or result_last:
            yield Pointwise(task, geometry, channels_last=True)
        return
    yield Columns(task, geometry, channels_last=False)
    either_last = is_channels_last(task.input_orders[0]) or is_channels_last(task.output_orders[0])
    if either_last or geometry.groups * geometry.inputs <= _FEW:
        yield Columns(task, geometry, channels_last=True)
    for tile in TILES:
        if task.constants[1] is not None and suits(geometry, tile):
            kernel = Winograd(task, geometry, tile)
            if kernel.workspace <= _WORKSPACE:
                yield kernel
