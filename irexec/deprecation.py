"""Deprecation of public functions and classes: a warning at each use, and the version without them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Deprecation(NamedTuple):
    """One deprecated function or class.

    Attributes:
        name: its name, with the module.
        remove_in: the version without it.
        use_instead: its replacement.
    """

    name: str
    remove_in: str
    use_instead: str

    def __str__(self) -> str:
        return f"{self.name} is deprecated and goes in irexec {self.remove_in}: use {self.use_instead}"


DEPRECATIONS: list[Deprecation] = []
"""Every deprecation of the modules that were imported."""


def deprecated(*, remove_in: str, use_instead: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a public function as deprecated: each call is a DeprecationWarning that names the replacement.

    A class is deprecated by a function of its name that constructs it.

    Args:
        remove_in: the first version without the function, such as "1.0.0". A test fails when irexec has this version.
        use_instead: the replacement, as users write it: "irexec.infer".
    """

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        row = Deprecation(f"{function.__module__}.{function.__qualname__}", remove_in, use_instead)
        DEPRECATIONS.append(row)

        @functools.wraps(function)
        def warned(*args: P.args, **kwargs: P.kwargs) -> R:
            warnings.warn(str(row), DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        return warned

    return mark
