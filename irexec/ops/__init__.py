"""Operations, one file per family. Importing this package makes them known to irexec.schema.registry."""

import importlib
import pkgutil

from irexec.schema.registry import load_with


def _load_families() -> None:
    """Import every file of this package, so that a new one registers itself."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


load_with(_load_families)
