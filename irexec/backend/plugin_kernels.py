"""Fast kernels of plug-ins, whose faults name the plug-in.

A plug-in knows less of the compiler than irexec's own kernels: its kernels run no chains, and write C order.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable

from irexec.backend.kernel import Candidate, Kernel, Task
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
    vars(kernel).update(pack=guarded(kernel.pack, what), run=guarded(kernel.run, what))
    return kernel
