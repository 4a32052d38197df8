"""Fast kernels of Convolution and GroupConvolution."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from irexec.backend.convolution import winograd
from irexec.backend.convolution.columns import Columns, Pointwise, PointwiseBlocks
from irexec.backend.convolution.geometry import Geometry, is_channels_last
from irexec.backend.convolution.output import Output
from irexec.backend.kernel import SHARES, Candidate, Task
from irexec.backend.registry import kernels

# Channels up to which copying data to channels last costs next to nothing.
_FEW = 4
# Bytes of scratch that a kernel may ask for.
_WORKSPACE = 8 << 20


@kernels("Convolution", since=1)
@kernels("GroupConvolution", since=1)
def convolution(task: Task) -> Iterator[Candidate]:
    """Candidates for float types; known weights are packed."""
    if task.definition.type == "GroupConvolution":
        from irexec.backend.convolution import depthwise

        yield from depthwise.candidates(task)
    geometry = Geometry.of(task)
    if geometry is None or (geometry.inputs == geometry.outputs == 1 and geometry.groups > 1):
        return
    data_last, result_last = is_channels_last(task.input_orders[0]), is_channels_last(task.output_orders[0])
    if geometry.is_pointwise:
        for channels_last in [False] * (not (data_last and result_last)) + [True] * (data_last or result_last):
            blocks = PointwiseBlocks(geometry, channels_last, result_last)
            yield Candidate(
                blocks.cost(data_last, result_last),
                functools.partial(Pointwise, task, geometry, channels_last),
            )
        return
    few = geometry.groups * geometry.inputs <= _FEW
    for channels_last in (False, True) if data_last or result_last or few else (False,):
        arguments = task, geometry, channels_last
        yield Candidate(Columns.estimate(*arguments), functools.partial(Columns, *arguments))
    if task.constants[1] is not None:
        yield from _winograd(task, geometry, data_last, result_last)


def _winograd(task: Task, geometry: Geometry, data_last: bool, result_last: bool) -> Iterator[Candidate]:
    fitting = [tile for tile in winograd.TILES if winograd.suits(geometry, tile)]
    output = Output(task, geometry.computed) if fitting else None
    for tile in fitting:
        tiling = winograd.Tiling(geometry, tile)
        chain = 0 if output is None else output.workspace(geometry.outputs, tiling.block_pixels)
        shared, own = tiling.workspaces
        # Scratch of all threads counts by its shares; a block of tiles may be half too large.
        if shared // SHARES + own + chain <= 3 * _WORKSPACE // 2:
            yield Candidate(tiling.cost(data_last, result_last), functools.partial(winograd.Winograd, task, tiling))
