"""Axes in attributes and inputs: possibly negative, possibly out of range."""

from __future__ import annotations

from collections.abc import Iterable

from irexec.errors import check

# NumPy arrays have at most 64 axes; longer lists of axes are not expanded.
MAX_AXES = 64


def normalize_axis(axis: int, rank: int, what: str = "axis") -> int:
    """The axis counted from the front; OpError if it is out of range."""
    check(-rank <= axis < rank, f"{what} {axis} is out of range for data of rank {rank}")
    return axis % rank if rank else 0


def normalize_axes(axes: Iterable[int], rank: int, what: str = "axis", *, scalar: bool = False) -> tuple[int, ...]:
    """The axes counted from the front, in the order given; OpError if one is out of range.

    With ``scalar``, axes 0 and -1 are allowed for data of rank 0, and the result is empty.
    """
    if scalar and rank == 0:
        normalize_axes(axes, 1, what)
        return ()
    return tuple(normalize_axis(axis, rank, what) for axis in axes)
