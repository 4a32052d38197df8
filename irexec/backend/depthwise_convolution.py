"""Candidates for depthwise convolution: GroupConvolution with one input channel in each group."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from irexec.backend.convolution.geometry import sliding_windows
from irexec.backend.depthwise_products import DepthwiseProducts, DepthwiseTiling
from irexec.backend.depthwise_windows import DepthwiseWindows
from irexec.backend.eligibility import chain_keeps_type, has_elements, working_type
from irexec.backend.kernel import Candidate, Task
from irexec.backend.registry import kernels


@kernels("GroupConvolution", since=1)
def depthwise_convolution(task: Task) -> Iterator[Candidate]:
    """Constant weights (G, O, 1, kernel...): by products for images, by windows for any number of axes where O is 1."""
    dtype = working_type(task)
    if dtype is None or task.constants[1] is None or not chain_keeps_type(task) or not has_elements(task):
        return
    groups, outputs, inputs, *kernel = task.shape(1)
    if inputs != 1 or groups == 1:
        return
    windows = sliding_windows(task.attributes["attributes"], task.shape(0)[2:], tuple(kernel))
    tiling = DepthwiseTiling.of(dtype, task.shape(0), task.shape(1), windows) if len(kernel) == 2 else None
    if tiling is not None:
        yield Candidate(tiling.cost(task), functools.partial(DepthwiseProducts, task, tiling))
    if outputs == 1:
        arguments = task, windows, dtype
        yield Candidate(DepthwiseWindows.estimate(*arguments), functools.partial(DepthwiseWindows, *arguments))
