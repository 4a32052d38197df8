"""Methods of a model whose functions are in layers above it: ``save`` and ``edit``.

The package, which may import everything and is imported before any of its modules, sets ``writer`` and ``editor``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeAlias


class Write(Protocol):
    """Write a model to the path of an .xml."""

    def __call__(self, model: Any, path: str | Path, *, overwrite: bool = False) -> None: ...


Edit: TypeAlias = Callable[[Any], Any]
"""The editor of a model."""


def _unset() -> Any:
    raise RuntimeError("irexec has set no functions of models")


writer: Callable[[], Write] = _unset
"""Import the function that writes a model; irexec sets it."""
editor: Callable[[], Edit] = _unset
"""Import the editor of models; irexec sets it."""
