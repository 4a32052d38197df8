"""The names that a plug-in imports: the decorators, the annotations of inputs and attributes, and the classes of fast
kernels, which are imported at their first use."""

import importlib
from typing import TYPE_CHECKING, Any

from irexec.ir.facts import Fact
from irexec.schema.attributes import AtLeast
from irexec.schema.extension import operation, translates
from irexec.schema.opdef import (
    AnyTensor,
    BooleanTensor,
    FloatTensor,
    IndexTensor,
    IntegerTensor,
    NumericTensor,
    Rank,
    StringTensor,
)

if TYPE_CHECKING:
    from irexec.analysis.validate import finding_check, finding_code
    from irexec.backend.kernel import Candidate, Kernel, KernelContext, Task
    from irexec.backend.scratch import Scratch

__all__ = [
    "AnyTensor",
    "AtLeast",
    "BooleanTensor",
    "Candidate",
    "Fact",
    "FloatTensor",
    "IndexTensor",
    "IntegerTensor",
    "Kernel",
    "KernelContext",
    "NumericTensor",
    "Rank",
    "Scratch",
    "StringTensor",
    "Task",
    "finding_check",
    "finding_code",
    "operation",
    "translates",
]

# A plug-in that is loaded to validate a model needs no kernels.
_LATE = {
    "Candidate": "irexec.backend.kernel",
    "Kernel": "irexec.backend.kernel",
    "KernelContext": "irexec.backend.kernel",
    "Scratch": "irexec.backend.scratch",
    "Task": "irexec.backend.kernel",
    "finding_check": "irexec.analysis.validate",
    "finding_code": "irexec.analysis.validate",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'irexec.plugins' has no attribute {name!r}")
    return getattr(importlib.import_module(_LATE[name]), name)
