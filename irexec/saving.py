"""Saving a model by its method ``save``: the function that writes the files is in a layer above the model.

The package, which may import everything and is imported before any of its modules, sets ``writer``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

Write: TypeAlias = Callable[[Any, str | Path], None]
"""Write a model to the path of an .xml."""


def _unset() -> Write:
    raise RuntimeError("irexec has set no writer")


writer: Callable[[], Write] = _unset
"""Import the function that writes a model; irexec sets it."""
