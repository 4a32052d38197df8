"""Fast kernels of plug-ins, whose faults name the plug-in.

A plug-in knows less of the compiler than irexec's own kernels: its kernels run no chains, and write contiguous arrays.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from irexec.backend.kernel import Candidate, Kernel, KernelContext, Task
from irexec.errors import OpError
from irexec.schema.extension import guarded


def of_plugin(function: Callable[[Task], Iterable[Candidate]], task: Task) -> list[Candidate]:
    """The candidates of a function of a plug-in.

    Raises:
        OpError: it raises, or yields something else.
    """
    what = f"the fast kernel of {task.definition}"
    found = guarded(lambda: list(function(task)), what)()
    for candidate in found:
        if not isinstance(candidate, Candidate):
            raise OpError(f"{what}: {function.__name__} yields {type(candidate).__name__}, expected a Candidate")
    return [
        dataclasses.replace(candidate, make=functools.partial(_kernel, candidate.make, what), runs_chain=False)
        for candidate in found
    ]


def _kernel(make: Callable[[], Kernel], what: str) -> Kernel:
    """The kernel of a candidate; its calls raise OpError."""
    kernel = guarded(make, what)()
    if not isinstance(kernel, Kernel):
        raise OpError(f"{what}: a candidate makes {type(kernel).__name__}, expected a Kernel")
    # Calls that were recorded would be repeated without the guard.
    kernel.records = False
    run = functools.partial(_run_contiguous, guarded(kernel.run, what))
    vars(kernel).update(pack=guarded(kernel.pack, what), run=run)
    return kernel


def _run_contiguous(
    run: Callable[..., None], inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext
) -> None:
    """Run with contiguous outputs; one that is a part of another array, such as that of a Concat, is copied into it."""
    arrays = [x if x is None or x.flags.c_contiguous else np.empty(x.shape, x.dtype) for x in outputs]
    run(inputs, arrays, context)
    for output, array in zip(outputs, arrays, strict=True):
        if output is not array:
            np.copyto(output, array)
