"""Fast kernels alone: a task for arrays, the kernels for it, and their runs as a plan has them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from irexec.analysis.evaluate import as_tuple
from irexec.backend.chain import Chain
from irexec.backend.constants import ConstantSource
from irexec.backend.kernel import Kernel, KernelContext, Task
from irexec.backend.registry import offers
from irexec.dtypes.elements import element_of
from irexec.ir.facts import Fact
from irexec.schema.registry import resolve


def candidates(task: Task) -> list[Kernel]:
    """All fast kernels that can compute a task, constructed."""
    return [candidate.construct() for candidate in offers(task)]


def task_of(
    type: str,
    version: str,
    inputs: Sequence[np.ndarray | None],
    attributes: dict[str, Any] | None = None,
    *,
    constants: Collection[int] = (),
    chain: Chain | None = None,
    operands: Sequence[np.ndarray] = (),
    threads: int = 1,
    native: bool = False,
) -> Task:
    """The task of one operation on these arrays; ``constants`` are the indexes of the inputs that are constants, and
    ``native`` tells whether C kernels may compute it."""
    definition = resolve(type, version)
    arguments = definition.arguments(attributes or {})
    facts = tuple(Fact(None, None) if x is None else Fact(element_of(x.dtype), x.shape) for x in inputs)
    known = [Fact(None, None) if x is None else Fact.of(x) for x in inputs]
    outputs = tuple(as_tuple(definition.infer(known, arguments)))
    sources = tuple(
        ConstantSource.of(x, element_of(x.dtype)) if i in constants and x is not None else None
        for i, x in enumerate(inputs)
    )
    return Task(
        definition, arguments, facts, sources, outputs, (True,) * len(outputs), chain,
        tuple(Fact(element_of(x.dtype), x.shape) for x in operands),
        (None,) * (len(facts) + len(operands)), (None,) * len(outputs), threads, native=native,
    )  # fmt: skip


def run_recorded(
    kernel: Kernel, threads: int, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray | None]
) -> None:
    """Run a packed kernel as a plan on an arena does: calls that were recorded on other values are repeated on the
    inputs."""
    context = KernelContext.of(kernel, threads, fixed=True)
    arrays = [None if x is None else x.copy(order="K") for x in inputs]
    for number in range(4):
        for array, values in zip(arrays, inputs, strict=True):
            if array is not None and values is not None:
                array[...] = values if number else values.reshape(-1)[::-1].reshape(values.shape)
        for output in outputs:
            if output is not None:
                output[...] = np.nan if output.dtype.kind == "f" else 77
        context.run(kernel, arrays, outputs)
