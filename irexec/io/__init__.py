"""Reading and writing IR: syntax alone, no operation is known here.

The modules are imported when a name is first used: the command line needs those that write files before it needs NumPy.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irexec.io.payload import metadata, plain, set_metadata
    from irexec.io.reader import OldVersionError, read, read_text
    from irexec.io.sources import ModelSource, WeightsSource
    from irexec.io.writer import write, write_text

__all__ = [
    "ModelSource", "OldVersionError", "WeightsSource", "metadata", "plain", "read", "read_text", "set_metadata",
    "write", "write_text",
]  # fmt: skip

_MODULES = {
    "ModelSource": "sources", "WeightsSource": "sources",
    "metadata": "payload", "plain": "payload", "set_metadata": "payload",
    "OldVersionError": "reader", "read": "reader", "read_text": "reader", "write": "writer", "write_text": "writer",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"irexec.io.{_MODULES[name]}"), name)
    globals()[name] = found
    return found
