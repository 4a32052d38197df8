"""Sizes that windows give, where a row cannot say it: bounds on both sides, and what partial facts refuse."""

import pytest

from irexec.dtypes.elements import F32
from irexec.errors import OpError
from irexec.ir.dims import ANY, Dim
from irexec.ir.facts import Fact
from irexec.schema.shape_rules import group_count
from irexec.schema.windows import natural_size, resolve_pads, same_pads, window_count, window_count_or_zero


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "dilation", "expected"),
    [
        (10, 3, 1, 1, 8),
        (10, 3, 2, 2, 3),
        (Dim(2, 10), 3, 1, 1, Dim(1, 8)),
        (10, Dim(1, 4), 1, 1, Dim(7, 10)),
        (ANY, 3, 1, 1, Dim(1, None)),
        (10, ANY, 2, 1, Dim(1, 5)),
        (ANY, ANY, 1, 1, Dim(1, None)),
        (Dim(1, 3), 3, 1, 1, 1),
        (10**30, 3, 10**29, 1, 10),
    ],
)
def test_windows_that_fit(size, kernel, stride, dilation, expected):
    assert window_count(size, kernel, stride, dilation, 0, 0) == expected


def test_rounding_up_adds_a_window_that_reaches_beyond():
    assert window_count(10, 3, 2, 1, 0, 0) == 4
    assert window_count(10, 3, 2, 1, 0, 0, ceil=True) == 5
    assert window_count(11, 3, 2, 1, 0, 0, ceil=True) == 5


@pytest.mark.parametrize(("size", "kernel"), [(2, 3), (Dim(0, 2), 3), (2, Dim(3, None)), (5, 0)])
def test_a_window_that_cannot_fit_is_refused(size, kernel):
    with pytest.raises(OpError):
        window_count(size, kernel, 1, 1, 0, 0)


@pytest.mark.parametrize(
    ("size", "kernel", "expected"),
    [(4, 3, 9), (0, 3, 3), (Dim(2, 4), 3, Dim(5, 9)), (4, Dim(1, 3), Dim(7, 9)), (ANY, 3, Dim(3, None))],
)
def test_natural_sizes_of_a_transposed_convolution(size, kernel, expected):
    assert natural_size(size, kernel, 2, 1) == expected


def test_same_pads_give_the_size_by_the_stride():
    for size in range(12):
        for kernel in range(1, 6):
            for stride in range(1, 5):
                for dilation in range(1, 4):
                    begin, end = same_pads(size, kernel, stride, dilation, True)
                    assert same_pads(size, kernel, stride, dilation, False) == (end, begin)
                    assert end - begin in (0, 1)
                    assert window_count_or_zero(size, kernel, stride, dilation, begin, end) == -(-size // stride)


def test_explicit_pads_may_be_left_out():
    assert resolve_pads("explicit", (5, 5), (3, 3), (1, 1), (1, 1), (), (1, 2)) == ((0, 0), (1, 2))


@pytest.mark.parametrize(
    ("channels", "inputs", "expected"),
    [
        (6, 2, 3),
        (6, Dim(1, 2), Dim(3, 6)),
        (Dim(4, 9), Dim(2, 3), Dim(2, 4)),
        (ANY, 2, ANY),
        (6, ANY, Dim(1, 6)),
        (0, ANY, ANY),
    ],
)
def test_channels_tell_the_number_of_groups(channels, inputs, expected):
    assert group_count(Fact(F32, (1, channels, 5)), ANY, inputs) == expected


def test_channels_that_do_not_divide_are_refused():
    with pytest.raises(OpError, match="5 channels of data do not divide into groups of 2"):
        group_count(Fact(F32, (1, 5, 5)), ANY, 2)
