"""Candidates for depthwise convolution: GroupConvolution with one input channel in each group."""

from __future__ import annotations

from collections.abc import Iterator

from irexec.backend.depthwise_products import DepthwiseProducts
from irexec.backend.depthwise_windows import DepthwiseWindows
from irexec.backend.eligibility import chain_keeps_type, has_elements, working_type
from irexec.backend.kernel import Kernel, Task
from irexec.backend.registry import kernels


@kernels("GroupConvolution", since=1)
def depthwise_convolution(task: Task) -> Iterator[Kernel]:
    """Constant weights (G, O, 1, kernel...): by products for images, by windows for any number of axes where O is 1."""
    dtype = working_type(task)
    if dtype is None or task.constants[1] is None or not chain_keeps_type(task) or not has_elements(task):
        return
    groups, outputs, inputs, *kernel = task.shape(1)
    if inputs != 1 or groups == 1:
        return
    windows = task.attributes["attributes"].windows(task.shape(0)[2:], kernel)
    if len(kernel) == 2 and DepthwiseProducts.fits(task, windows):
        yield DepthwiseProducts(task, windows, dtype)
    if outputs == 1:
        yield DepthwiseWindows(task, windows, dtype)
