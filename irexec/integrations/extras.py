"""Messages about libraries of extras that cannot be imported."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from irexec.errors import UnsupportedError

TOO_NEW = {"kserve": (3, 14), "ray": (3, 15)}
"""The first Python for which a library has no package. The extras in pyproject.toml have the same versions as
markers."""


def not_importable(library: str, extra: str, error: ImportError) -> UnsupportedError:
    """The reason why a library is missing, and the cure.

    Args:
        library: its name on PyPI.
        extra: the extra of irexec that installs the library.
        error: the error of its import.
    """
    here, too_new = sys.version_info[:2], TOO_NEW[library]
    if isinstance(error, ModuleNotFoundError) and here >= too_new:
        return UnsupportedError(
            f"this needs {library}, which has no package for Python {here[0]}.{here[1]}: use Python 3.11 to "
            f"{too_new[0]}.{too_new[1] - 1}"
        )
    if isinstance(error, ModuleNotFoundError):
        what = "" if find_spec(library) is None else f" with {error.name}"
        return UnsupportedError(f"this needs {library}{what}, which is not installed: pip install 'irexec[{extra}]'")
    return UnsupportedError(f"{library} is installed, and cannot be imported: {error}")
