"""NumPy as it is on a 32-bit system, simulated on a 64-bit one.

There np.intp, the type of indices, has 32 bits. What NumPy makes of its own accord (np.arange, np.argsort,
np.nonzero, ...) has that type, and functions that take indices refuse the wider types, which cannot be cast safely.
Which functions refuse was tried with NumPy 2.2 on i386. There np.take, np.bincount and np.unravel_index accept what
they refuse in 2.0 and 2.1, the oldest versions that irexec runs with.
"""

from __future__ import annotations

import ctypes
import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_WIDE = (np.dtype(np.int64), np.dtype(np.uint64), np.dtype(np.uint32))
_NARROW = np.dtype(np.int32)

# The functions that take indices, each with the position and the name of that argument. Methods count themselves.
_TAKE_INDICES: dict[tuple[Any, str], tuple[int, str]] = {
    (np.ndarray, "take"): (1, "indices"),
    (np.ndarray, "repeat"): (1, "repeats"),
    (np.ndarray, "choose"): (0, "self"),
    (np.ndarray, "put"): (1, "indices"),
    (np.ndarray, "searchsorted"): (3, "sorter"),
    (np.ufunc, "reduceat"): (2, "indices"),
    (np, "bincount"): (0, "x"),
    (np, "unravel_index"): (0, "indices"),
}
_MAKE_INDICES: tuple[tuple[Any, str], ...] = (
    *((np.ndarray, name) for name in ("argmax", "argmin", "argpartition", "argsort", "nonzero", "searchsorted")),
    *((np, name) for name in ("bincount", "indices", "lexsort", "unravel_index")),
)
# The functions that make integers of the default type, unless a type is given or follows from another array.
_MAKE_DEFAULT: tuple[tuple[Any, str], ...] = (
    (np, "arange"),
    (np, "array"),
    (np, "full"),
    *((np.ndarray, name) for name in ("cumsum", "cumprod", "sum", "prod")),
)


def _narrow(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_narrow, result))
    is_wide = isinstance(result, np.ndarray | np.generic) and result.dtype == np.int64
    return result.astype(_NARROW) if is_wide else result


def _refusing(original: Callable[..., Any], name: str, position: int, keyword: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*arguments: Any, **options: Any) -> Any:
        indices = arguments[position] if position < len(arguments) else options.get(keyword)
        if isinstance(indices, np.ndarray | np.generic) and indices.dtype in _WIDE:
            raise TypeError(
                f"{name}: Cannot cast array data from dtype('{indices.dtype}') to dtype('int32') according to the rule 'safe'"
            )
        return original(*arguments, **options)

    return call


def _making(original: Callable[..., Any], is_default: bool) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options)
        typed = any(isinstance(x, np.ndarray | np.generic) and x.dtype in _WIDE for x in arguments)
        if is_default and (typed or options.get("dtype") is not None or _is_type(arguments) or _is_large(result)):
            return result
        return _narrow(result)

    return call


def _is_type(arguments: tuple[Any, ...]) -> bool:
    return any(isinstance(x, np.dtype | type | str) for x in arguments[1:])


def _is_large(result: Any) -> bool:
    """Whether the values have more than 32 bits, for which NumPy chooses 64."""
    if not isinstance(result, np.ndarray) or result.dtype != np.int64 or not result.size:
        return False
    return bool(result.max() > np.iinfo(_NARROW).max or result.min() < np.iinfo(_NARROW).min)


def simulate() -> Callable[[], None]:
    """Give NumPy indices of 32 bits, in the whole process. Returns what takes them away again."""
    wrapped: dict[tuple[Any, str], Any] = {}
    for owner, name in dict.fromkeys((*_TAKE_INDICES, *_MAKE_INDICES, *_MAKE_DEFAULT)):
        call = getattr(owner, name)
        if (owner, name) in _TAKE_INDICES:
            call = _refusing(call, f"{owner.__name__}.{name}", *_TAKE_INDICES[owner, name])
        if (owner, name) in _MAKE_INDICES or (owner, name) in _MAKE_DEFAULT:
            call = _making(call, (owner, name) in _MAKE_DEFAULT)
        wrapped[owner, name] = call
    wrapped[np, "intp"] = wrapped[np, "int_"] = np.int32
    wrapped[np, "uintp"] = wrapped[np, "uint"] = np.uint32
    before = {key: _replaced(*key, value) for key, value in wrapped.items()}

    def restore() -> None:
        for key, value in before.items():
            _replaced(*key, value)

    return restore


@contextmanager
def intp_of_32_bits() -> Iterator[None]:
    """NumPy has indices of 32 bits in the block."""
    restore = simulate()
    try:
        yield
    finally:
        restore()


def _replaced(owner: Any, name: str, value: Any) -> Any:
    """The attribute that ``value`` replaces, of a type written in C too, which setattr refuses."""
    # The dictionary itself, which a type shows read-only.
    contents = gc.get_referents(owner.__dict__)[0] if isinstance(owner, type) else owner.__dict__
    before, contents[name] = contents[name], value
    if isinstance(owner, type):
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))
    return before
