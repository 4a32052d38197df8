"""Importing the modules that register something, when it is first needed."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import defaultdict
from pathlib import Path

from irexec.ir.forks import new_rlock

# Bytes, since decoding the sources takes as long as searching them. Names of layers that are emitted register nothing.
# The look-behind comes after the quote, which a search finds a dozen times faster than a position without "emit(".
_NAME = re.compile(rb'"(?<!emit\(")([A-Z]\w*)"')


class Loader:
    """Imports the modules of the packages it was given; a new file in one of them registers itself.

    A model uses few families of operations, and importing all of them takes longer than compiling a small model. So
    modules are looked through for the names that they have in double quotes, and the modules that have the name in
    question are imported.
    """

    def __init__(self) -> None:
        self._packages: list[tuple[str, list[str]]] = []
        self._pending: dict[str, None] = {}
        self._by_name: dict[str, list[str]] = {}
        self._loaded: set[str] = set()
        self._lock = new_rlock()
        self._loading = False

    def add_package(self, name: str, path: list[str]) -> None:
        """The modules below the package of this ``__name__`` and ``__path__`` are imported when they are needed."""
        with self._lock:
            self._packages.append((name, path))
            self._loaded.clear()

    def load(self) -> None:
        """Import what has not been imported yet. Other threads wait until it is done; modules being imported do not."""
        if not self._packages and not self._pending:
            return
        with self._lock:
            self._find_modules()
            self._import(list(self._pending))

    def load_for(self, name: str) -> None:
        """Import the modules that have ``name`` in quotes. What is registered under a name that is put together is not
        found so."""
        if name in self._loaded or (not self._packages and not self._pending):
            return
        with self._lock:
            self._find_modules()
            modules = self._by_name.get(name, ())
            self._import([module for module in modules if module in self._pending])
            if not any(module in self._pending for module in modules):
                self._loaded.add(name)

    def modules_for(self, name: str) -> list[str]:
        """The modules that have ``name`` in quotes."""
        with self._lock:
            self._find_modules()
            return self._by_name.get(name, [])

    def _find_modules(self) -> None:
        """Look through the modules of the packages that were added; one without its source is imported."""
        packages, self._packages = self._packages, []
        found: dict[str, list[str]] = defaultdict(list, self._by_name)
        for name, path in packages:
            for module in pkgutil.iter_modules(path):
                whole = f"{name}.{module.name}"
                self._pending[whole] = None
                files = [file for folder in path for file in _sources(Path(folder), module.name)]
                if not files:
                    self._import([whole])
                for quoted in {quoted for file in files for quoted in _NAME.findall(file.read_bytes())}:
                    found[quoted.decode()].append(whole)
        self._by_name = dict(found)

    def _import(self, modules: list[str]) -> None:
        if self._loading:
            return
        self._loading = True
        try:
            for module in modules:
                importlib.import_module(module)
                self._pending.pop(module, None)
        finally:
            self._loading = False


operations = Loader()
"""Imports the families of operations, which irexec.ops names, when the first operation is looked up."""


def _sources(folder: Path, name: str) -> list[Path]:
    """The source files of a module or package."""
    file = folder / f"{name}.py"
    return [file] if file.is_file() else sorted((folder / name).glob("**/*.py"))
