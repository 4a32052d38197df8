"""Sizes and shapes in shape rules."""

from __future__ import annotations

from irexec.errors import check
from irexec.ir.dims import ANY, PartialShape, Size, at_least, high, may_equal, meet
from irexec.ir.facts import Fact
from irexec.schema.axes import MAX_AXES


def sizes_of(fact: Fact, rank: int, what: str) -> tuple[Size, ...]:
    """The sizes of a tensor of that rank, all unknown where its shape is; OpError for another rank."""
    check(fact.rank in (None, rank), f"{what} has rank {fact.rank}, expected {rank}")
    return (ANY,) * rank if fact.shape is None else fact.shape


def unify_sizes(what: str, *sizes: Size) -> Size:
    """Knowledge of a size that several inputs share; ``what`` names it in the OpError."""
    result, *others = sizes
    for size in others:
        check(may_equal(result, size), f"{what} differs between inputs: {result} and {size}")
        result = meet(result, size)
    return result


def non_negative(size: Size, what: str) -> Size:
    """The value of an input as a size, 0 or more; OpError if it cannot be one."""
    top = high(size)
    check(top is None or top >= 0, f"{what} is {size}, expected 0 or more")
    return at_least(size, 0)


def scalar_size(fact: Fact, what: str) -> Size:
    """The size that an integer scalar holds; OpError if it is negative. ``what`` names the input."""
    given = fact.sizes(what)
    check(given is None or len(given) == 1, f"{what} has {0 if given is None else len(given)} elements, expected 1")
    return ANY if given is None else non_negative(given[0], what)


def vector_length(fact: Fact) -> int | None:
    """The number of elements of a scalar or vector; None if it is not known, or more than an array can have axes."""
    if fact.shape is None or len(fact.shape) > 1:
        return None
    count = fact.shape[0] if fact.shape else 1
    return count if isinstance(count, int) and count <= MAX_AXES else None


def open_shape(rank: int | None) -> PartialShape:
    """A shape of unknown sizes; of unknown rank for None."""
    return None if rank is None else (ANY,) * rank
