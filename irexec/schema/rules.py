"""The former home of what shape rules share: now element_checks, sizes, axes and broadcasting."""

from __future__ import annotations

from irexec.errors import check
from irexec.ir.dims import Size, may_equal
from irexec.ir.facts import Fact
from irexec.schema.axes import MAX_AXES as MOST_AXES
from irexec.schema.axes import normalize_axes, normalize_axis
from irexec.schema.broadcasting import Broadcasting, broadcast
from irexec.schema.element_checks import check_float, check_floats, check_integers
from irexec.schema.element_checks import unify_elements as same_element
from irexec.schema.sizes import non_negative as not_negative
from irexec.schema.sizes import open_shape, scalar_size, sizes_of, unify_sizes
from irexec.schema.sizes import vector_length as length


def check_scalar(fact: Fact, what: str) -> None:
    """Raise OpError unless the tensor can be a scalar, or a vector of one number as many writers have it."""
    vector = fact.shape is not None and len(fact.shape) == 1 and may_equal(fact.shape[0], 1)
    check(fact.rank in (None, 0) or vector, f"{what} has shape {fact}, expected a scalar")


def check_vector(fact: Fact, what: str) -> None:
    """Raise OpError if the rank is known and not 1."""
    check(fact.rank in (None, 1), f"{what} has rank {fact.rank}, expected 1")


def size_from(fact: Fact, what: str) -> Size:
    """As scalar_size, of an input whose type and rank were not checked."""
    check_integers(fact, what)
    check_scalar(fact, what)
    return scalar_size(fact, what)


__all__ = [
    "MOST_AXES",
    "Broadcasting",
    "broadcast",
    "check_float",
    "check_floats",
    "check_integers",
    "check_scalar",
    "check_vector",
    "length",
    "normalize_axes",
    "normalize_axis",
    "not_negative",
    "open_shape",
    "same_element",
    "size_from",
    "sizes_of",
    "unify_sizes",
]
