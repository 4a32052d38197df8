"""Concat of tensors of any type, each written straight to its position in the output."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from irexec.backend.chain import Epilogue
from irexec.backend.kernel import Candidate, Kernel, KernelContext, Task, chain_keeps_type, has_elements
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch
from irexec.schema.shape_rules import normalize_axis

# Nanoseconds: of a call of a NumPy function, of a copied element, of one copied in another order.
_CALL, _COPY, _REORDERED = 1500.0, 0.3, 1.0


@kernels("Concat", since=1)
def concat(task: Task) -> Iterator[Candidate]:
    """Tensors of any type that NumPy has."""
    element = task.outputs[0].element
    if element is None or element.carrier.kind == "O" or not has_elements(task) or not chain_keeps_type(task):
        return
    orders = {*task.input_orders[: len(task.inputs)], task.output_orders[0]}
    copies = math.prod(task.output_shape()) * (_COPY if len(orders) == 1 else _REORDERED)
    yield Candidate(len(task.inputs) * _CALL + copies, partial(Concat, task), joins=True)


class Concat(Kernel):
    """Tensors one after the other, each followed by the chain on it; None is in its position already."""

    def __init__(self, task: Task) -> None:
        own, shape = len(task.inputs), task.output_shape()
        super().__init__("copies side by side", splits=own > 1, records=True)
        axis = normalize_axis(task.attributes["axis"], len(shape))
        sizes, start = [task.shape(i)[axis] for i in range(own)], 0
        self._regions: list[tuple[slice, ...]] = []
        for size in sizes:
            whole = [slice(0, every) for every in shape]
            whole[axis] = slice(start, start + size)
            self._regions.append(tuple(whole))
            start += size
        self._epilogue = Epilogue(task.chain, shape, tuple((axis,) for axis in range(len(shape))))
        self.workspace = self._epilogue.workspace(math.prod(shape) // shape[axis] * max(sizes)) + 256

    def run(self, inputs: Sequence[Any], outputs: Sequence[np.ndarray], context: KernelContext) -> None:
        out, count = outputs[0], len(self._regions)
        operands = context.bind(self._epilogue, inputs[count:])

        def block(index: int, scratch: Scratch) -> None:
            region = self._regions[index]
            if inputs[index] is not None:
                scratch.do(np.copyto, out[region], inputs[index])
            self._epilogue.run(scratch, out[region], operands, region)

        context.parallel(count, block)
