"""Bounds of operations that choose: either side of an edge where the input is within its bound of it, else one."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.bounds import ARITHMETICS, Interval, Unbounded
from irexec.bounds.interval import Algebra, joint
from irexec.testing import Case, case
from tests.bounds.rows import row_bounds


def _intervals(row: Case, name: str = "f32") -> tuple[Interval, ...]:
    found = row_bounds(row, ARITHMETICS[name])
    assert all(isinstance(one, Interval) for one in found), found
    return found  # type: ignore[return-value]


def _topk(x: list[float], k: int, name: str = "f32", **attributes: object) -> tuple[Interval, ...]:
    given = {"axis": 0, "mode": "max", "sort": "value", **attributes}
    return _intervals(case("TopK", 11, np.float32(x), np.int64(k), id="a", **given), name)


def test_equal_elements_have_either_index() -> None:
    values, indices = _topk([1, 5, 5, 0], 2)
    assert not values.outside(np.float32([5, 5])).any()
    assert values.outside(np.float32([5, 1])).tolist() == [False, True]
    for given in ([1, 2], [2, 1]):
        assert not indices.outside(np.int32(given)).any()
    for wrong in ([1, 1], [1, 0], [1, 4], [-1, 2]):
        assert indices.outside(np.int32(wrong)).any()


def test_a_stable_order_has_one_answer() -> None:
    indices = _topk([1, 5, 5, 0], 2, stable=True)[1]
    assert indices.outside(np.int32([2, 1])).all()


def test_elements_that_f16_cannot_tell_apart_have_either_index() -> None:
    x = [1.0, 1.0001, 3.0]
    assert _topk(x, 2)[1].outside(np.int32([2, 0])).tolist() == [False, True]
    assert not _topk(x, 2, "f16")[1].outside(np.int32([2, 0])).any()


def test_without_an_order_any_is_right() -> None:
    values, indices = _topk([1, 5, 7, 0], 2, sort="none")
    assert not values.outside(np.float32([5, 7])).any()
    assert not indices.outside(np.int32([1, 2])).any()
    assert values.outside(np.float32([5, 1])).any()
    assert indices.outside(np.int32([1, 0])).any()


def test_in_the_order_of_the_indices_equal_elements_may_change_the_values() -> None:
    values, indices = _topk([5, 7, 5, 0], 2, sort="index")
    for given, index in (([5, 7], [0, 1]), ([7, 5], [1, 2])):
        assert not values.outside(np.float32(given)).any()
        assert not indices.outside(np.int32(index)).any()
    assert indices.outside(np.int32([1, 0])).any()
    settled = _topk([5, 7, 4, 0], 2, sort="index")
    assert settled[0].outside(np.float32([7, 5])).all()


def test_equal_elements_of_a_window_have_either_index() -> None:
    row = case("MaxPool", 8, np.float32([[[3, 3, 1, 2]]]), id="a", kernel=[2], strides=[2], pads_begin=[0],
               pads_end=[0], dilations=[1], rounding_type="floor", auto_pad="explicit", axis=2)  # fmt: skip
    indices = _intervals(row)[1]
    assert not indices.outside(np.int64([[[1, 3]]])).any()
    assert indices.outside(np.int64([[[2, 2]]])).tolist() == [[[True, True]]]


def test_a_mean_of_integers_is_rounded_either_way() -> None:
    row = case("AvgPool", 1, np.int32([[[3, 4]]]), id="a", kernel=[2], strides=[2], pads_begin=[0], pads_end=[0],
               rounding_type="floor", auto_pad="explicit", **{"exclude-pad": True})  # fmt: skip
    (found,) = _intervals(row)
    assert [bool(found.outside(np.int32([[[n]]])).any()) for n in (2, 3, 4, 5)] == [True, False, False, True]


def test_a_boundary_that_f16_reaches_counts_or_does_not() -> None:
    row = case("Bucketize", 3, np.float32([1.0001, 3]), np.float32([1, 2]), id="a")
    assert _intervals(row)[0].outside(np.int64([0, 2])).tolist() == [True, False]
    assert not _intervals(row, "f16")[0].outside(np.int64([0, 2])).any()


def test_a_range_may_add_its_step() -> None:
    row = case("Range", 4, np.float32(0), np.float32(0.95), np.float32(0.1), id="a", output_type="f32")
    (found,) = _intervals(row)
    added = np.cumsum(np.full(10, 0.1, np.float32)) - np.float32(0.1)
    assert not found.outside(added).any()
    assert found.outside(added + np.float32(1e-5)).all()
    edge = case("Range", 4, np.float32(0), np.float32(0.9), np.float32(0.1), id="b", output_type="f32")
    assert isinstance(row_bounds(edge, ARITHMETICS["f32"])[0], Unbounded)


@pytest.mark.parametrize(("values", "is_known"), [([0, 1, -2], True), ([0, 1e-40, 2], False)])
def test_indices_of_what_is_not_zero(values: list[float], is_known: bool) -> None:
    (found,) = row_bounds(case("NonZero", 3, np.float32(values), id="a"), ARITHMETICS["f32"])
    assert isinstance(found, Interval) is is_known


def _suppressed(scores: list[float], iou: float, shift: float = 1.0) -> tuple[Interval | Unbounded, ...]:
    """Two boxes of size 2 by 2, the second moved: the overlap is 1/3 where it is moved by 1."""
    boxes = np.float32([[[0, 0, 2, 2], [0, shift, 2, 2 + shift]]])
    row = case("NonMaxSuppression", 9, boxes, np.float32([[scores]]), np.int64(2), np.float32(iou), np.float32(0),
               id="a", box_encoding="corner", sort_result_descending=True)  # fmt: skip
    return row_bounds(row, ARITHMETICS["f32"])


def test_suppression_has_one_result_away_from_all_edges() -> None:
    indices, rows, number = _suppressed([0.9, 0.8], 0.5)
    assert isinstance(indices, Interval)
    assert isinstance(rows, Interval)
    assert isinstance(number, Interval)
    assert not indices.outside(np.int64([[0, 0, 0], [0, 0, 1]])).any()
    assert indices.outside(np.int64([[0, 0, 1], [0, 0, 0]]))[:, 2].all()
    assert rows.outside(np.float32([[0, 0, 0.9], [0, 0, 0.81]])).tolist()[1] == [False, False, True]
    assert number.outside(np.int64([1])).all()


@pytest.mark.parametrize(
    ("scores", "iou", "reason"),
    [([0.9, 0.9], 0.5, "equal"), ([0.9, 0.8], 1 / 3, "an overlap"), ([0.9, 0.0], 0.5, "a score within")],
)
def test_rows_of_a_suppression_at_an_edge_are_any_of_the_candidates(
    scores: list[float], iou: float, reason: str
) -> None:
    indices, rows, number = _suppressed(scores, iou)
    assert isinstance(number, Unbounded)
    assert reason in number.reason
    assert isinstance(indices, Interval)
    assert isinstance(rows, Interval)
    count = len(indices.exact)
    assert not indices.outside(np.array([[0, 0, 1], [0, 0, 0]])[:count]).any()
    assert indices.outside(np.array([[0, 1, 0], [0, 0, 2]])[:count]).all()
    assert not rows.outside(np.float32([[0, 0, scores[0]], [0, 0, scores[1]]])[:count]).any()
    assert rows.outside(np.float32([[0, 0, 0.91], [0, 0, 0.81]])[:count]).all()


def _detected(**attributes: bool) -> Interval:
    """Two boxes of one class, which do not overlap, of equal scores, and a row that ends them."""
    priors = np.float32([[[0.1, 0.1, 0.3, 0.3, 0.6, 0.6, 0.9, 0.9], [1] * 8]])
    logits, scores = np.float32([[0.1] * 8]), np.float32([[0.2, 0.8, 0.2, 0.8]])
    row = case("DetectionOutput", 8, logits, scores, priors, id="a", keep_top_k=(3,), nms_threshold=0.5,
               confidence_threshold=0.5, normalized=True, **attributes)  # fmt: skip
    (found,) = _intervals(row)
    return found


def test_rows_of_detections_are_a_set_before_the_row_that_ends_them() -> None:
    found = _detected()
    # The corners are those of the priors, moved by 0.1.
    first, second = [0, 1, 0.8, 0.2, 0.2, 0.4, 0.4], [0, 1, 0.8, 0.7, 0.7, 1, 1]
    end, nothing = [-1, 0, 0, 0, 0, 0, 0], [0] * 7
    for rows in ([first, second, end], [second, first, end], [first, end, nothing]):
        assert not found.outside(np.float32([[rows]])).any()
    wrong = [first[:], [0, 1, 0.81, 0.7, 0.7, 1, 1], nothing]
    assert found.outside(np.float32([[wrong]])).all(-1).tolist() == [[[False, True, True]]]


def test_a_class_is_decoded_if_it_is_the_best_for_certain() -> None:
    data = np.float32([[[0.2, 0.7, 0.1]], [[0.1, 0.2, 0.7]]])
    assert row_bounds(case("CTCGreedyDecoder", 1, data, np.ones((2, 1), np.float32), id="a"), ARITHMETICS["f32"])
    data[0, 0, 0] = 0.7
    (found,) = row_bounds(case("CTCGreedyDecoder", 1, data, np.ones((2, 1), np.float32), id="b"), ARITHMETICS["f32"])
    assert isinstance(found, Unbounded)


def test_random_numbers_are_in_their_range() -> None:
    row = case("RandomUniform", 8, np.int64([2]), np.float32(1), np.float32(2), id="a", output_type="f32")
    (found,) = _intervals(row)
    assert found.outside(np.float32([1.5, 2.1])).tolist() == [False, True]


def test_bytes_of_a_colour_are_rounded_either_way() -> None:
    """Hand computed: of Y = 100, U = V = 128 each channel is 1.164 * 84 = 97.8."""
    y, uv = np.full((1, 2, 2, 1), 100, np.uint8), np.full((1, 1, 1, 2), 128, np.uint8)
    (found,) = _intervals(case("NV12toRGB", 8, y, uv, id="a"))
    for value, is_outside in ((97, False), (98, False), (90, True), (105, True)):
        assert found.outside(np.full((1, 2, 2, 3), value, np.uint8)).all() == is_outside


def _aligned(roi: list[float]) -> Interval:
    data = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    row = case("ROIAlign", 9, data, np.float32([roi]), np.int32([0]), id="a", pooled_h=1, pooled_w=1,
               sampling_ratio=1, spatial_scale=1.0, mode="avg", aligned_mode="asymmetric")  # fmt: skip
    (found,) = _intervals(row)
    return found


def test_a_point_of_a_region_is_interpolated() -> None:
    """Hand computed: the middle of the box is (1.5, 1.5), the mean of 5, 6, 9 and 10."""
    found = _aligned([0.5, 0.5, 2.5, 2.5])
    assert [bool(found.outside(np.full((1, 1, 1, 1), value, np.float32)).any()) for value in (7.5, 7.499, 8.0)] == [
        False, True, True,
    ]  # fmt: skip


def test_a_point_at_the_edge_of_what_is_zero_is_open() -> None:
    found = _aligned([3.0, 0.0, 5.0, 2.0])
    assert not found.outside(np.full((1, 1, 1, 1), 0, np.float32)).any()
    assert not found.outside(np.full((1, 1, 1, 1), 7, np.float32)).any()


def test_a_coarser_arithmetic_may_hold_f64_in_f32() -> None:
    x = np.array([-3.9464288127875093]).reshape(1, 1, 1)
    (found,) = _intervals(case("MaxPool", 1, x, id="a", kernel=[1], strides=[1], pads_begin=[0], pads_end=[0],
                               rounding_type="floor", auto_pad="explicit"), "bf16")  # fmt: skip
    assert not found.outside(x.astype(np.float32).astype(np.float64)).any()


@pytest.mark.parametrize(
    ("value", "is_inside"), [(-1.60839844, True), (-1.609375, True), (-1.6088419, True), (-1.6079, False)]
)
def test_a_tensor_of_either_type_of_16_bits(value: float, is_inside: bool) -> None:
    """-1.6088419 is -1.609375 in bf16 and -1.60839844 in f16."""
    found = Algebra(ARITHMETICS["bf16-f16"]).read(Interval.certain(np.float32([-1.6088419])))
    assert found.outside(np.float32([value])).any() != is_inside
    assert joint(ARITHMETICS["f16"], ARITHMETICS["bf16"]).finer_unit == ARITHMETICS["f16"].unit
    assert joint(ARITHMETICS["f32"], ARITHMETICS["bf16"]).finer_unit == 0


@pytest.mark.parametrize(("scale", "is_open"), [(4 / 3, True), (1.5, False)])
def test_a_size_that_follows_from_a_scale_near_an_edge_is_open(scale: float, is_open: bool) -> None:
    """3 * 4/3 is 4 elements in f32, and 3 where the scale is held in f16."""
    of = {"mode": "linear", "shape_calculation_mode": "scales", "coordinate_transformation_mode": "half_pixel"}
    row = case("Interpolate", 11, np.float32([1, 2, 3]), np.float32([scale]), id="a", **of)
    assert isinstance(row_bounds(row, ARITHMETICS["f16"])[0], Unbounded) == is_open
    assert isinstance(row_bounds(row, ARITHMETICS["f32"])[0], Interval)


def test_a_convolution_of_padding_alone_has_a_bound() -> None:
    """Data without elements, and results that are sums of zeros."""
    x, weights = np.zeros((1, 2, 0, 4), np.float32), np.ones((3, 2, 3, 3), np.float32)
    sizes = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (2, 1), "pads_end": (2, 1)}
    (found,) = _intervals(case("Convolution", 1, x, weights, id="a", **sizes))
    assert found.exact.shape == (1, 3, 2, 4)
    assert not found.outside(np.zeros((1, 3, 2, 4), np.float32)).any()
    assert found.outside(np.ones((1, 3, 2, 4), np.float32)).all()
