"""Methods of a model whose functions are in layers above it: ``save`` and ``edit``.

The package, which may import everything and is imported before any of its modules, sets ``writer`` and ``editor``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    # A name for editors and checkers of types: whoever calls ``edit`` sees the methods of what it returns.
    from irexec.authoring.editor import Editor as Editor


class Write(Protocol):
    """Write a model to the path of an .xml."""

    def __call__(self, model: Any, path: str | Path, *, overwrite: bool = False) -> None: ...


def _unset() -> Any:
    raise RuntimeError("irexec has set no functions of models")


writer: Callable[[], Write] = _unset
"""Import the function that writes a model; irexec sets it."""
editor: Callable[[], Callable[[Any], Editor]] = _unset
"""Import the editor of models; irexec sets it."""
