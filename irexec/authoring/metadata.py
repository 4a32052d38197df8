"""Metadata of a model."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.authoring.editing import Editing
from irexec.io.annotations import set_rt_info as set_entry


def set_rt_info(editing: Editing, path: str | Sequence[str], value: object) -> None:
    """Set an entry of rt_info; see Editor.set_rt_info."""
    names = path.split("/") if isinstance(path, str) else list(path)
    set_entry(editing.model, names, str(value))
