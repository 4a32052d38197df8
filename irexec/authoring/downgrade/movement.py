"""Operations that move elements, pooling, resizing and detection in older operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irexec.analysis.portability.releases import NOT_ASKED
from irexec.authoring.downgrade.layer import FOUR, ONE, REASONS, Inexact, Layer, respells, rewrites
from irexec.authoring.tensor import constant
from irexec.ir.dims import is_static


@rewrites("Pad", 12)
def _pad_12(layer: Layer) -> Any:
    """Positive pads by Pad-1; what negative pads remove is sliced off afterwards."""
    begin, end = layer.ints(1, "pads_begin"), layer.ints(2, "pads_end")
    data, _, _, *value = layer.inputs
    if max([0, *begin, *end]) > 0 or min([0, *begin, *end]) == 0:
        adds = [constant(np.maximum(pads, 0), "i64") for pads in (begin, end)]
        data = layer.same(1, data, *adds, *value)
    if min([0, *begin, *end]) == 0:
        return data
    first, last = [max(0, -pad) for pad in begin], [min(0, pad) for pad in end]
    ends = [int(pad == 0) for pad in last]
    return ONE.strided_slice(data, first, last, [1] * len(first), begin_mask=[0] * len(first), end_mask=ends)


@rewrites("Gather", 8)
def _gather_8(layer: Layer) -> Any:
    """Gather-7 does not count negative indices from the end: the size of the axis is added to them.

    Below that range they become the size, because an index out of range gives zeros.
    """
    data, indices, axis = layer.inputs
    if layer.element(1).kind == "unsigned" or (layer.is_known(1) and not (layer.known(1, "indices") < 0).any()):
        return layer.same(7)
    size = layer.sizes()[layer.axis(layer.ints(2, "axis")[0])]
    if not isinstance(size, int):
        raise Inexact("indices may be negative, and the size of the axis is not known")
    if layer.is_known(1):
        given = layer.known(1, "indices")
        wrapped = np.where(given < -size, size, np.where(given < 0, given + size, given))
        return layer.same(7, data, constant(wrapped, layer.element(1)), axis)
    zero, limit = layer.number(0, 1), layer.number(size, 1)
    inside = ONE.select(ONE.less(indices, zero), ONE.add(indices, limit), indices)
    return layer.same(7, data, ONE.select(ONE.less(inside, zero), limit, inside), axis)


@rewrites("GatherND", 8)
def _gather_nd_8(layer: Layer) -> Any:
    """GatherND-5 merges the batch axes, so that they are split again."""
    if layer["batch_dims"] <= 1:
        return layer.same(5)
    (output,) = layer.outputs
    shape = output.fact.shape
    layer.refuse_unless(
        shape is not None and sum(not isinstance(size, int) for size in shape) <= 1, "the shape is not known"
    )
    sizes = [size if isinstance(size, int) else -1 for size in shape or ()]
    return ONE.reshape(layer.same(5), sizes, special_zero=False)


@rewrites("TopK", 11)
def _top_k_11(layer: Layer) -> Any:
    """The order of equal elements decides nothing about the values; the first of them is found by its index."""
    if not layer["stable"] or (layer["sort"] == "value" and layer.read <= {0}):
        return layer.same(3, leave=["stable"])
    layer.refuse_unless(layer.is_known(1) and layer.ints(1, "k") == [1], "no older version is stable")
    (x, _), axis = layer.inputs, layer.axis(layer["axis"])
    size = layer.sizes()[axis]
    reduce = ONE.reduce_max if layer["mode"] == "max" else ONE.reduce_min
    best = reduce(x, [axis], keep_dims=True)
    after = list(range(1, layer.rank() - axis))
    if isinstance(size, int):
        indices, end = constant(np.arange(size).reshape(-1, *[1] * len(after)), "i32"), constant(size, "i32")
    else:
        shape = ONE.convert(ONE.shape_of(x), destination_type="i32")
        end = ONE.gather(shape, constant(axis, "i64"), constant(0, "i64"))
        indices = FOUR.range(constant(0, "i32"), end, constant(1, "i32"), output_type="i32")
        indices = ONE.unsqueeze(indices, after) if after else indices
    first = ONE.reduce_min(ONE.select(ONE.equal(x, best), indices, end), [axis], keep_dims=True)
    element = layer["index_element_type"]
    return best, first if str(element) == "i32" else ONE.convert(first, destination_type=element)


@respells(NOT_ASKED, "TopK")
def _top_k_1(layer: Layer) -> Any:
    return _top_k_3(layer) if layer.since == 1 and layer["index_element_type"] != "i32" else None


@rewrites("TopK", 3)
def _top_k_3(layer: Layer) -> Any:
    """Old releases give i32 for the indices of TopK-1, whatever ``index_element_type`` is."""
    element = layer["index_element_type"]
    values, indices = layer.same(1, leave=["index_element_type"])
    return values, indices if element == "i32" else ONE.convert(indices, destination_type=element)


@rewrites("Squeeze", 15)
def _squeeze_15(layer: Layer) -> Any:
    if not layer["allow_axis_skip"]:
        layer.refuse_unless(
            len(layer.inputs) > 1 or layer.outputs[0].fact.shape is not None, "the axes of size 1 are not known"
        )
        return layer.same(1, leave=["allow_axis_skip"])
    layer.refuse_unless(len(layer.inputs) > 1, "no axes are given")
    sizes, rank = layer.sizes(), layer.rank()
    axes = [axis % rank for axis in layer.ints(1, "axes")]
    layer.refuse_unless(all(isinstance(sizes[axis], int) for axis in axes), "the sizes of the axes are not known")
    ones = [axis for axis in axes if sizes[axis] == 1]
    return ONE.squeeze(layer.inputs[0], ones) if ones else layer.inputs[0]


@rewrites("OneHot", 16)
def _one_hot_16(layer: Layer) -> Any:
    """Negative indices that are counted from the end get the depth added."""
    leave = ["negative_indices_mode"]
    if layer["negative_indices_mode"] == "ignore_negative" or layer.element().kind == "unsigned":
        return layer.same(1, leave=leave)
    indices, depth, *values = layer.inputs
    size = ONE.convert(depth, destination_type=layer.element())
    wrapped = ONE.select(ONE.less(indices, layer.number(0)), ONE.add(indices, size), indices)
    return layer.same(1, wrapped, depth, *values, leave=leave)


@rewrites("ShapeOf", 3)
def _shape_of_3(layer: Layer) -> Any:
    """ShapeOf-1 gives i64."""
    shape = layer.same(1, leave=["output_type"])
    return shape if layer["output_type"] == "i64" else ONE.convert(shape, destination_type=layer["output_type"])


@rewrites("Slice", 8)
def _slice_8(layer: Layer) -> Any:
    """StridedSlice takes its bounds for all axes in order."""
    rank = layer.rank()
    data, *bounds = layer.inputs
    count = len(layer.ints(3, "step"))
    axes = [axis % rank for axis in layer.ints(4, "axes")] if len(layer.inputs) > 4 else list(range(count))
    if axes == list(range(count)):
        mask = [0] * count
        return ONE.strided_slice(data, *bounds[:3], begin_mask=mask, end_mask=mask)
    given = [layer.ints(i, name) for i, name in ((1, "start"), (2, "stop"), (3, "step"))]
    length = max(axes) + 1
    lists = [[default] * length for default in (0, 0, 1)]
    mask = [int(axis not in axes) for axis in range(length)]
    for values, full in zip(given, lists, strict=True):
        for axis, value in zip(axes, values, strict=True):
            full[axis] = value
    return ONE.strided_slice(data, *lists, begin_mask=mask, end_mask=mask)


@rewrites("Roll", 7)
def _roll(layer: Layer) -> Any:
    """Along each axis the end comes before the beginning."""
    sizes, rank = layer.static(), layer.rank()
    shifts, axes = layer.ints(1, "shift"), layer.ints(2, "axes")
    total = [0] * rank
    for axis, shift in zip(axes, shifts if len(shifts) == len(axes) else shifts * len(axes), strict=True):
        total[axis % rank] += shift
    data = layer.inputs[0]
    for axis, shift in enumerate(total):
        cut = shift % sizes[axis] if sizes[axis] else 0
        if cut:
            first, last = ONE.variadic_split(data, axis, [sizes[axis] - cut, cut])
            data = ONE.concat(last, first, axis=axis)
    return data


@rewrites("Eye", 9)
def _eye(layer: Layer) -> Any:
    rows, columns, diagonal = (layer.ints(i, name)[0] for i, name in enumerate(("num_rows", "num_columns", "diagonal")))
    batch = layer.ints(3, "batch_shape") if len(layer.inputs) > 3 else []
    element = layer["output_type"]
    matrix = np.eye(rows, columns, diagonal)
    return constant(np.broadcast_to(matrix, (*batch, rows, columns)), element)


def _rounded_down(layer: Layer) -> dict[str, Any]:
    """Attributes in place of the rounding_type ceil_torch: rounded down, with padding at the end up to the last window.

    Other rounding types stay, with no attributes in their place.
    """
    if layer["rounding_type"] != "ceil_torch":
        return {}
    sizes, counts = layer.sizes()[2:], (layer.outputs[0].shape or ())[2:]
    if layer["auto_pad"] not in ("explicit", "valid") or not is_static(sizes) or not is_static(counts):
        raise Inexact("no older version has the rounding_type ceil_torch, and the sizes are not known")
    dilations = layer.attributes.get("dilations") or [1] * len(sizes)
    axes = zip(counts, sizes, layer["kernel"], layer["strides"], dilations, layer["pads_begin"], strict=True)
    ends = [
        max(0, (count - 1) * stride + (kernel - 1) * dilation + 1 - size - begin)
        for count, size, kernel, stride, dilation, begin in axes
    ]
    return {"rounding_type": "floor", "pads_end": ends}


@rewrites("MaxPool", 14)
def _max_pool_14(layer: Layer) -> Any:
    return layer.same(8, **_rounded_down(layer))


@rewrites("MaxPool", 8)
def _max_pool_8(layer: Layer) -> Any:
    layer.refuse_unless(1 not in layer.read, "MaxPool-1 gives no indices")
    layer.refuse_unless(all(size == 1 for size in layer["dilations"] or ()), "MaxPool-1 has no dilations")
    return layer.same(1, leave=["dilations", "index_element_type", "axis"])


@rewrites("AvgPool", 14)
def _avg_pool_14(layer: Layer) -> Any:
    """Without any padding, points beyond the data do not count."""
    changed = _rounded_down(layer)
    if changed and not any((*layer["pads_begin"], *layer["pads_end"])):
        changed["exclude_pad"] = True
    return layer.same(1, **changed)


@rewrites("Interpolate", 11)
def _interpolate_11(layer: Layer) -> Any:
    layer.refuse_unless("pillow" not in layer["mode"], f"no older version has the mode {layer['mode']}")
    data, given, *axes = layer.inputs
    if not axes:
        axes = [constant(range(layer.rank()), "i64")]
    if layer["shape_calculation_mode"] == "sizes":
        count = layer.sizes(1)[0]
        layer.refuse_unless(isinstance(count, int), "the number of axes is not known")
        return layer.same(4, data, given, constant([1.0] * int(count), "f32"), *axes)
    sizes = _scaled_sizes(layer)
    return layer.same(4, data, sizes, given, *axes)


def _scaled_sizes(layer: Layer) -> Any:
    """Sizes that Interpolate-4 ignores; it has the input all the same."""
    count = layer.sizes(1)[0]
    layer.refuse_unless(isinstance(count, int), "the number of axes is not known")
    return constant([1] * int(count), "i64")


@rewrites("DeformableConvolution", 8)
def _deformable_convolution_8(layer: Layer) -> Any:
    layer.refuse_unless(len(layer.inputs) == 3, "DeformableConvolution-1 has no mask")
    padded = layer["bilinear_interpolation_pad"]
    layer.refuse_unless(not padded, "DeformableConvolution-1 has no bilinear_interpolation_pad")
    return layer.same(1, leave=["bilinear_interpolation_pad"])


@rewrites("NonMaxSuppression", 5)
def _nms_5(layer: Layer) -> Any:
    layer.refuse_unless(layer.read <= {0}, "NonMaxSuppression-4 gives neither scores nor a number of boxes")
    layer.refuse_unless(len(layer.inputs) < 6, "NonMaxSuppression-4 has no soft_nms_sigma")
    return layer.same(4)


REASONS["NonMaxSuppression", 4] = "NonMaxSuppression-3 limits the boxes of all classes together"


@rewrites("DetectionOutput", 8)
def _detection_output_8(layer: Layer) -> Any:
    """DetectionOutput-1 has the number of classes as an attribute."""
    classes, proposals = layer.sizes(1)[1], layer.sizes(2)[2]
    layer.refuse_unless(isinstance(classes, int) and isinstance(proposals, int), "the number of classes is not known")
    values = 4 if layer["normalized"] else 5
    return layer.same(1, num_classes=int(str(classes)) // (int(str(proposals)) // values))


def _older(type: str, since: int, older: int, fits: Callable[[Layer], Any], reason: str, *leave: str) -> None:
    """Replace a version by an ``older`` one without the attributes ``leave``, where it fits, else refuse it."""

    @rewrites(type, since)
    def rewrite(layer: Layer) -> Any:
        layer.refuse_unless(fits(layer), reason.format_map(layer.attributes))
        return layer.same(older, leave=leave)


def _has_no_reduction(layer: Layer) -> bool:
    return bool(layer["reduction"] == "none")


_REDUCTION, _ORDER = "no older version has the reduction {reduction}", "min_max_aspect_ratios_order"
_older("ScatterElementsUpdate", 12, 3, _has_no_reduction, _REDUCTION, "reduction", "use_init_val")
_older("ScatterNDUpdate", 15, 4, _has_no_reduction, _REDUCTION, "reduction")
_older("Gather", 7, 1, lambda x: x["batch_dims"] == 0, "Gather-1 has no batch_dims", "batch_dims")
_older("Broadcast", 3, 1, lambda x: x["mode"] != "bidirectional", "Broadcast-1 has no mode bidirectional")
_older("AvgPool", 16, 14, lambda x: {*(x["dilations"] or ())} <= {1}, "AvgPool-14 has no dilations", "dilations")
_older(
    "ROIAlign", 9, 3, lambda x: x["aligned_mode"] == "asymmetric", "ROIAlign-3 has no aligned_mode {aligned_mode}",
    "aligned_mode",
)  # fmt: skip
_older("NonMaxSuppression", 9, 5, lambda x: True, "")
_older("PriorBox", 8, 1, lambda x: x[_ORDER], f"PriorBox-1 has {_ORDER} alone", _ORDER)
_older("MulticlassNms", 9, 8, lambda x: len(x.inputs) == 2, "MulticlassNms-8 has no roisnum")
_older("Proposal", 4, 1, lambda x: 1 not in x.read, "Proposal-1 gives no scores")
_older(
    "Range", 4, 1, lambda x: all(each.element is x["output_type"] for each in x.inputs), "Range-1 has no output_type",
    "output_type",
)  # fmt: skip
