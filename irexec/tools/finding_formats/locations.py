"""How the formats name a file and a layer."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from urllib.parse import quote

from irexec.ir.findings import Finding, layer_text
from irexec.messages import cut, visible
from irexec.tools.validation.files import STDIN

UNREADABLE = "unreadable"
"""The code of a file that cannot be read at all; no finding has this code."""

_LONGEST = 300


def relative(path: str) -> PurePath:
    """The path from the working folder, if the file is below it; else as given. Standard input is a file "stdin"."""
    if path == STDIN:
        return PurePath("stdin")
    full, folder = os.path.abspath(path), os.getcwd()
    return PurePath(os.path.relpath(full, folder)) if Path(full).is_relative_to(folder) else PurePath(path)


def uri(path: str) -> str:
    """A relative reference for a file below the working folder, else a file: URI."""
    target = relative(path)
    if target.is_absolute() or ".." in target.parts:
        return "file://" + quote(_bytes(f"/{Path(os.path.abspath(path)).as_posix().lstrip('/')}"), safe="/:")
    return quote(_bytes(target.as_posix()))


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogatepass")


def layer(finding: Finding) -> str:
    """The layer on one line, such as "4 conv0 (Add)"; empty for a finding of the whole model."""
    return visible(cut(layer_text(finding), _LONGEST))


def message(finding: Finding) -> str:
    """The layer and what is wrong with it."""
    where = layer(finding)
    return f"{where}: {finding.message}" if where else finding.message
