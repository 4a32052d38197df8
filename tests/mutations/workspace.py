"""A copy of the source in which mutations are applied, one at a time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from irexec.native.sources import is_supported, levels
from tests.mutations.mutation import Mutation
from tests.support.paths import ROOT

COPIED = ("irexec", "converters", "tests", "samples", "pyproject.toml")
"""What the tests of mutations read of the source."""


class Workspace:
    """The copy; it is deleted when the context is left."""

    def __enter__(self) -> Workspace:
        self._temporary = tempfile.TemporaryDirectory(prefix="irexec-mutations-", ignore_cleanup_errors=True)
        self.root = Path(self._temporary.name).resolve()
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, self.root / name)
        return self

    def __exit__(self, *error: object) -> None:
        self._temporary.cleanup()

    @contextmanager
    def mutated(self, mutation: Mutation) -> Iterator[None]:
        """The copy has the fault while the context lasts; a fault in C is in its library too.

        Raises:
            ValueError: the text to be replaced does not occur exactly once, or the C kernels cannot be built.
        """
        path = self.root / mutation.file
        before = path.read_text("utf-8")
        after = mutation.applied(before)
        built = {file: file.read_bytes() for file in (self.root / "irexec/native/built").glob("*")}
        try:
            _write(path, after)
            if mutation.is_native:
                self._build()
            yield
        finally:
            _write(path, before)
            if mutation.is_native:
                for file, content in built.items():
                    file.write_bytes(content)

    def _build(self) -> None:
        """Build the C kernels of the copy for this processor."""
        level = next(level.name for level in levels() if is_supported(level))
        done = subprocess.run(
            [sys.executable, "-m", "irexec.native.build", level], cwd=self.root, env=os.environ | {"PYTHONPATH": str(self.root)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise ValueError(f"the C kernels cannot be built: {done.stderr[-2000:]}")


def _write(path: Path, text: str) -> None:
    """Write a module. Its bytecode is deleted: Python would take it for a file of the same size and second."""
    path.write_text(text, "utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()
