"""The standard error of the process, to which libraries in C write past Python."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_STDERR = 2


@contextmanager
def silenced_stderr() -> Iterator[None]:
    """Write nothing to stderr in the block: some libraries print objections, which cannot be turned off."""
    try:
        kept = os.dup(_STDERR)
    except OSError:
        # It is closed.
        yield
        return
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), _STDERR)
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
