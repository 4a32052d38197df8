"""Smaller archives: without members, with members stored and smaller; bytes where it cannot be read."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from lzma import LZMAError

from irexec.tools.arrays.files import DAMAGED
from tests.fuzz.shrink import parts, smaller_bytes

# irexec refuses members that are encrypted (RuntimeError), or compressed by bzip2 (OSError) or LZMA, before it reads them.
_UNREADABLE = (*DAMAGED, RuntimeError, OSError, LZMAError)


def smaller_npz(data: bytes) -> Iterator[bytes]:
    """Archives that zipfile writes again, if it reads this one; then fewer bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    except _UNREADABLE:
        members = []
    for fewer in parts(members):
        yield _archive(fewer)
    if members:
        yield _archive(members)
    for i, (name, content) in enumerate(members):
        for less in smaller_bytes(content):
            yield _archive([*members[:i], (name, less), *members[i + 1 :]])
    yield from smaller_bytes(data)


def _archive(members: list[tuple[str, bytes]]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content)
    return file.getvalue()
