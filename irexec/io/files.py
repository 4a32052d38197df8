"""Files written together: either all are replaced, or all stay as they were."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(*targets: Path) -> Iterator[Sequence[IO[bytes]]]:
    """New files, open for writing, that replace ``targets`` when the block is left without an error.

    They are written beside their targets, flushed to the disk and renamed in the order given. Old files
    that are open or mapped keep their contents. If a rename fails, those before it are undone;
    only a process killed between two renames leaves a new file beside an old one.

    Raises:
        OSError: a file cannot be written or renamed; the targets are then as they were.
    """
    made = [_beside(target) for target in targets]
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(open(path, "xb")) for path in made]
            yield files
            for file in files:
                file.flush()
                os.fsync(file.fileno())
        _rename_all(made, targets)
    finally:
        for path in made:
            path.unlink(missing_ok=True)


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}")


def _rename_all(made: list[Path], targets: tuple[Path, ...]) -> None:
    kept = [_keep(target) for target in targets]
    done: list[tuple[Path | None, Path]] = []
    try:
        for new, old, target in zip(made, kept, targets, strict=True):
            if old is not None:
                shutil.copymode(old, new)
            os.replace(new, target)
            done.append((old, target))
    except BaseException:
        for old, target in reversed(done):
            if old is None:
                target.unlink(missing_ok=True)
            else:
                os.replace(old, target)
        raise
    finally:
        for old in kept:
            if old is not None:
                old.unlink(missing_ok=True)


def _keep(target: Path) -> Path | None:
    """A hard link to the file, or a copy where the file system has no hard links; None if the file does not exist."""
    if not target.exists():
        return None
    old = _beside(target)
    try:
        os.link(target, old)
    except OSError:
        shutil.copy2(target, old)
    return old
