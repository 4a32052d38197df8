"""JSON that irexec wrote and reads again, and that may have been damaged since."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from irexec.io.regular_files import open_regular


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
