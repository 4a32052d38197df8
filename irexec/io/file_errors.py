"""Errors of the system at files, as errors of irexec that name the file; JSON files that may have been damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from irexec.errors import ModelError
from irexec.io.regular_files import open_regular


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


def read_json(path: str | Path) -> Any:
    """The document in a file.

    Raises:
        OSError: the file cannot be read, or is not a regular one.
        ValueError: it is not JSON in a Unicode encoding, or is nested deeper than Python reads.
    """
    with open_regular(path) as file:
        return parse_json(file.read())


def parse_json(text: bytes) -> Any:
    """The document of a text; raises ValueError as ``read_json`` does."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
