"""What the facts rules of convolution and pooling share: spatial attributes and the sizes that windows give.

It registers no operation. Sizes are int | Dim and may be hostile (10**30): there is only arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from irexec.errors import check
from irexec.ir.dims import ANY, PartialShape, Size, at_least, ceil_div, high, low, span
from irexec.ir.facts import Fact

AutoPad = Literal["explicit", "same_upper", "same_lower", "valid"]


def spatial_rank(data: PartialShape, kernel: PartialShape = None, lead: int = 2, lists: Iterable[Sequence[object]] = ()) -> int | None:
    """The number of spatial axes: of the data, else of the kernel (``lead`` axes of it are not spatial), else of a list."""
    if data is not None:
        return len(data) - 2
    if kernel is not None:
        return len(kernel) - lead
    return next((len(numbers) for numbers in lists if numbers), None)


def check_list(numbers: Sequence[int], rank: int, what: str) -> None:
    """Raise OpError unless there is one number for each spatial axis, or none at all.

    An empty list means the default, as OpenVINO reads and writes it.
    """
    check(len(numbers) in (0, rank), f"{what} has {len(numbers)} numbers for {rank} spatial axes")


def filled(numbers: Sequence[int], rank: int, default: int) -> tuple[int, ...]:
    """The list, or the default for each axis if it is empty."""
    return tuple(numbers) or (default,) * rank


def spatial_sizes(shape: PartialShape, rank: int, lead: int = 2) -> tuple[Size, ...]:
    """The spatial sizes of a shape; unknown ones where its rank is."""
    return (ANY,) * rank if shape is None else tuple(shape[lead:])


def known_rank(fact: Fact, ranks: Sequence[int], what: str) -> None:
    """Raise OpError if the rank is known and none of ``ranks``."""
    text = " or ".join(map(str, ranks)) if len(ranks) < 3 else f"{ranks[0]} to {ranks[-1]}"
    check(fact.rank is None or fact.rank in ranks, f"{what} has rank {fact.rank}, expected {text}")


def dilated(kernel: Size, dilation: int) -> Size:
    """How far a window reaches: ``dilation * (kernel - 1) + 1``."""
    top = high(kernel)
    return span(dilation * (low(kernel) - 1) + 1, None if top is None else dilation * (top - 1) + 1)


def window_size(size: Size, kernel: Size, stride: int, dilation: int, begin: int, end: int, *, ceil: bool = False) -> Size:
    """How many windows fit along one padded axis; rounded up with ``ceil``.

    Raises:
        OpError: not even one can fit.
    """
    check(high(kernel) != 0, "the kernel has a spatial size of 0")
    reach = dilated(at_least(kernel, 1), dilation)
    top, most = high(size), high(reach)
    fits = top is None or top + begin + end >= low(reach)
    check(fits, f"kernel {kernel} with dilation {dilation} does not fit into size {size} padded by {begin} and {end}")
    spare = span(
        0 if most is None else max(0, low(size) + begin + end - most),
        None if top is None else max(0, top + begin + end - low(reach)),
    )
    return (ceil_div(spare, stride) if ceil else spare // stride) + 1


def transposed_size(size: Size, kernel: Size, stride: int, dilation: int) -> Size:
    """The size that a transposed convolution gives along one axis before anything is cut.

    A size of 0 counts as 1, as in OpenVINO's shape inference.
    """
    check(high(kernel) != 0, "the kernel has a spatial size of 0")
    return (at_least(size, 1) - 1) * stride + dilated(at_least(kernel, 1), dilation)


def same_size(size: Size, stride: int) -> Size:
    """How many windows same_upper and same_lower give along one axis: the size by the stride, rounded up."""
    return ceil_div(size, stride)


def window_sizes(
    sizes: Sequence[Size],
    kernel: Sequence[Size],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    auto_pad: str,
    *,
    ceil: bool = False,
) -> tuple[Size, ...]:
    """The spatial sizes of a forward window operation, for every ``auto_pad``; empty lists mean the defaults."""
    rank = len(sizes)
    steps, apart = filled(strides, rank, 1), filled(dilations, rank, 1)
    if auto_pad in ("same_upper", "same_lower"):
        return tuple(same_size(size, stride) for size, stride in zip(sizes, steps, strict=True))
    explicit = auto_pad == "explicit"
    begins = filled(pads_begin if explicit else (), rank, 0)
    ends = filled(pads_end if explicit else (), rank, 0)
    axes = zip(sizes, kernel, steps, apart, begins, ends, strict=True)
    return tuple(window_size(*axis, ceil=ceil) for axis in axes)
