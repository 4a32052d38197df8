"""Channels of grouped convolutions on ``Dim`` arithmetic."""

from __future__ import annotations

from irexec.errors import check
from irexec.ir.dims import Size, high, low, may_equal, meet, span
from irexec.ir.facts import Fact


def group_count(data: Fact, groups: Size, inputs: Size) -> Size:
    """The number of groups as far as it follows from the channels of the data, each group taking ``inputs`` of them.

    Raises:
        OpError: the channels do not divide into groups of ``inputs``.
    """
    if data.shape is None or len(data.shape) < 2 or not may_equal(data.shape[1], groups * inputs):
        return groups
    channels = data.shape[1]
    if low(channels) == 0 and low(inputs) == 0:
        return groups
    smallest, largest = max(1, low(inputs)), high(inputs)
    minimum = min(1, low(channels)) if largest is None else -(-low(channels) // max(1, largest))
    top = high(channels)
    check(
        top is None or minimum <= top // smallest, f"{channels} channels of data do not divide into groups of {inputs}"
    )
    return meet(groups, span(minimum, None if top is None else top // smallest))
