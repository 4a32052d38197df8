"""A bound of the time that Python's ``re`` takes to search a text: how often it may backtrack.

A repetition of one character can end at as many positions as the text has; several in sequence can at the product of
these, and a repetition of what itself can match in several ways at a power of them. Source: CPython, ``Modules/_sre``.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Sequence
from typing import Any

STEPS = 2e7
"""Number of steps that a search in this process may have: a second or two. A step on other characters than those of
ASCII may compare hundreds of ranges."""
_WIDE = 30
_MAXIMUM = 24

Cost = tuple[float, float]
"""Number of ways to match at a position, and number of steps to try all of them."""


@functools.lru_cache(maxsize=256)
def longest_texts(outline: str) -> tuple[int, int]:
    """Number of characters up to which any text is searched within the limit: of ASCII alone, and of all.

    Args:
        outline: a pattern that Python accepts, or one of the same structure.
    """
    try:
        # Without a name that typing knows, since Python promises nothing of it.
        tree = importlib.import_module("re._parser").parse(outline)
        return _longest(tree, STEPS), _longest(tree, STEPS / _WIDE)
    except (ImportError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return -1, -1


def _longest(tree: Any, steps: float) -> int:
    """The largest power of two whose cost is within the limit; -1 if there is none."""
    size = 8
    while size <= 1 << _MAXIMUM and (size + 1) * _sequence(tree, size)[1] <= steps:
        size *= 2
    return size // 2 if size > 8 else -1


def _sequence(items: Any, size: int) -> Cost:
    ways, steps = 1.0, 1.0
    for name, argument in items:
        item = _item(str(name), argument, size)
        steps += ways * item[1]
        ways *= item[0]
    return ways, steps


def _item(name: str, argument: Any, size: int) -> Cost:
    """The cost of a node of the tree of ``re``, on a text of ``size`` characters."""
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        ways, steps = _repeated(argument[0], min(argument[1], size), _sequence(argument[2], size))
        return (1.0 if name == "POSSESSIVE_REPEAT" else ways), steps
    if name == "BRANCH":
        return _any(argument[1], size)
    if name == "SUBPATTERN":
        return _sequence(argument[-1], size)
    if name == "ATOMIC_GROUP":
        return 1.0, _sequence(argument, size)[1]
    if name in ("ASSERT", "ASSERT_NOT"):
        return 1.0, _sequence(argument[1], size)[1]
    if name == "GROUPREF_EXISTS":
        return _any([item for item in argument[1:] if item], size)
    if name == "GROUPREF":
        return 1.0, 1.0 + size
    if name in ("LITERAL", "NOT_LITERAL", "ANY", "ANY_ALL", "IN", "AT", "RANGE", "CATEGORY", "FAILURE"):
        return 1.0, 1.0
    raise LookupError(name)


def _any(choices: Sequence[Any], size: int) -> Cost:
    costs = [_sequence(choice, size) for choice in choices]
    return max(1.0, sum(ways for ways, _ in costs)), 1.0 + sum(steps for _, steps in costs)


def _repeated(minimum: int, maximum: int, once: Cost) -> Cost:
    ways, steps = once
    count = max(minimum, maximum)
    if ways <= 1:
        return 1.0 + max(0, maximum - minimum), 1.0 + count * steps
    if count * math.log(ways) > math.log(1e30):
        return math.inf, math.inf
    # Sums of powers: as many ways as there are for each number of repetitions.
    return (ways ** (count + 1) - ways**minimum) / (ways - 1), 1.0 + steps * (ways**count - 1) / (ways - 1)
