"""Methods of a model whose functions are in layers above it: ``save`` and ``edit``.

The package, which may import everything and is imported before any of its modules, sets ``writer`` and ``editor``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

Write: TypeAlias = Callable[[Any, str | Path], None]
"""Write a model to the path of an .xml."""
Edit: TypeAlias = Callable[[Any], Any]
"""The editor of a model."""


def _unset() -> Any:
    raise RuntimeError("irexec has set no functions of models")


writer: Callable[[], Write] = _unset
"""Import the function that writes a model; irexec sets it."""
editor: Callable[[], Edit] = _unset
"""Import the editor of models; irexec sets it."""
