"""A function of NumPy that it does not export."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np


def _clip() -> Callable[..., Any]:
    """The ufunc behind ``np.clip``, which takes 3 microseconds more for each call; ``np.clip`` itself where NumPy has moved it."""
    try:
        found: Callable[..., Any] = importlib.import_module("numpy._core.umath").clip
    except (ImportError, AttributeError):
        return np.clip
    return found


clip = _clip()
