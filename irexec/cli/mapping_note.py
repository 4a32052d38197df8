"""A note about the mapping of weights."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from irexec.cli import render


def note_mapping(model: str, bin: str | None = None) -> None:
    """A note on stderr if the weights of a model will be mapped, and shortening their file would end the process."""
    from irexec.io import weights_file

    path = Path(bin or model)
    if bin is None and path.name:
        path = path.with_suffix(".bin")
    is_mapped = (
        not model.lower().endswith(".onnx") and path.is_file() and os.path.getsize(path) > weights_file.READ_AT_ONCE
    )
    if is_mapped and hasattr(signal, "SIGBUS"):
        render.note_line(
            f"{path} is mapped: if another program shortens it, the system ends this one; --no-mmap reads it at once"
        )
