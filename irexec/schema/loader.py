"""Importing the modules that register something, once, when it is first needed."""

from __future__ import annotations

import importlib
import pkgutil
import threading


class Loader:
    """Imports every module of the packages it was given; a new file in one of them registers itself."""

    def __init__(self) -> None:
        self._packages: list[tuple[str, list[str]]] = []
        self._lock = threading.RLock()
        self._loading = False

    def add_package(self, name: str, path: list[str]) -> None:
        """The modules below the package of this ``__name__`` and ``__path__`` are imported by the next ``load``."""
        self._packages.append((name, path))

    def load(self) -> None:
        """Import what has not been imported yet. Other threads wait until it is done; modules being imported do not."""
        if not self._packages:
            return
        with self._lock:
            if self._loading:
                return
            self._loading = True
            try:
                for name, path in self._packages:
                    for module in pkgutil.iter_modules(path):
                        importlib.import_module(f"{name}.{module.name}")
                self._packages.clear()
            finally:
                self._loading = False
