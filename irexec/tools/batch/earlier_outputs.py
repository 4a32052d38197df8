"""Files of a folder that earlier jobs have written, found by the manifests beside the outputs."""

from __future__ import annotations

import os

from irexec.io.regular_files import open_regular

MANIFEST, PARTS = ".sqlite", ".parts"
"""Suffixes of the manifest of an output, and of the folder of its parts while the output is not complete."""

APPLICATION = 0x69724261
"""The application id in the header of each manifest, which can be read while another process has the manifest open."""

_MAGIC, _APPLICATION_AT = b"SQLite format 3\0", 68
_PAGE = 4096
_TABLES = (b"CREATE TABLE job (key TEXT PRIMARY KEY, value TEXT)", b"CREATE TABLE parts (number INTEGER PRIMARY KEY)")
"""Tables that the first page of a manifest declares; the first manifests had no application id."""


class EarlierOutputs:
    """Tells the outputs of jobs from other files.

    Args:
        root: the folder in which files are looked for; it may itself be the output of a job, since the user names it.

    Attributes:
        found: paths of the outputs that a file was part of.
    """

    def __init__(self, root: str) -> None:
        self._below = os.path.join(os.path.realpath(root), "")
        self._outputs: dict[str, frozenset[str]] = {}
        self.found: set[str] = set()

    def has(self, path: str) -> bool:
        """True if a file, with links resolved in its folder, is the output of a job or is in one."""
        while True:
            folder, name = os.path.split(path)
            if folder not in self._outputs:
                self._outputs[folder] = _outputs_in(folder)
            if name in self._outputs[folder]:
                self.found.add(path)
                return True
            if not folder.startswith(self._below):
                return False
            path = folder


def _outputs_in(folder: str) -> frozenset[str]:
    """Names of the outputs in a folder, and of the folders of their parts."""
    try:
        names = [name.removesuffix(MANIFEST) for name in os.listdir(folder) if name.endswith(MANIFEST)]
    except OSError:
        return frozenset()
    return frozenset(
        f"{name}{end}" for name in names if _is_manifest(os.path.join(folder, name + MANIFEST)) for end in ("", PARTS)
    )


def _is_manifest(path: str) -> bool:
    try:
        with open_regular(path) as file:
            page = file.read(_PAGE)
    except OSError:
        return False
    has_id = page[_APPLICATION_AT : _APPLICATION_AT + 4] == APPLICATION.to_bytes(4, "big")
    return page.startswith(_MAGIC) and (has_id or all(table in page for table in _TABLES))
