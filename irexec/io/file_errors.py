"""Errors of the system at files, as errors of irexec that name the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from irexec.errors import ModelError


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Raise an OSError of the block as ModelError: the file cannot be read."""
    with _named(path, "read"):
        yield


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Raise an OSError of the block as ModelError: the file cannot be written."""
    with _named(path, "written"):
        yield


@contextmanager
def _named(path: str | Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ModelError(f"{path}: cannot be {what}: {error.strerror or error}") from None
