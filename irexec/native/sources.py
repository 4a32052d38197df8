"""The C sources, and the number by which a library is known to be built from them."""

from __future__ import annotations

import hashlib
from pathlib import Path

SOURCE = Path(__file__).parent / "source"
"""The folder of the C sources, which every installation has: Python reads the structures of parameters there."""


def sources_hash() -> int:
    """A number of 62 bits that follows from the C sources; 0 without sources."""
    digest = hashlib.sha256()
    files = sorted(SOURCE.glob("*.[ch]"))
    for path in files:
        # Git may have changed the ends of lines.
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return int.from_bytes(digest.digest()[:8], "little") >> 2 if files else 0
