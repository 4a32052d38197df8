"""Layers that a release has, written so that its reader and its CPU plugin take them.

Each of these forms means the same, and older releases refuse or crash on one of them. Source: the releases 2021.4.2,
2022.3.2, 2023.3.0 and 2024.6.0 themselves (tests.release_sweep).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irexec.analysis.portability.releases import NOT_ASKED, Release
from irexec.authoring.downgrade.activations import attention
from irexec.authoring.downgrade.layer import ONE, Layer, respells
from irexec.authoring.tensor import Tensor, constant
from irexec.ir.dims import is_static
from irexec.schema.shape_rules import pdpd_start

_UNMENDED = Release(2027, 0)
"""Behind the newest release, 2026.4, which still does the same."""

_PDPD = (
    "Add", "Subtract", "Multiply", "Divide", "Power", "Mod", "FloorMod", "Maximum", "Minimum", "SquaredDifference",
    "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr", "LogicalXor", "Xor",
    "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseLeftShift", "BitwiseRightShift",
)  # fmt: skip


_NUMPY: Any = {"auto_broadcast": "numpy", "auto_broadcast_axis": None}


@respells(Release(2022, 1), "Xor")
def _xor(layer: Layer) -> Any:
    """The plugin has LogicalXor alone, which is the same."""
    if layer["auto_broadcast"] == "pdpd" and layer.rank(0) >= layer.rank(1):
        return ONE.logical_xor(layer.inputs[0], _with_axes_at_the_end(layer, 1))
    return ONE.logical_xor(*layer.inputs, **layer.attributes)


@respells(NOT_ASKED, "ScatterUpdate")
def _scalar_index(layer: Layer) -> Any:
    """The plugin takes no scalar index: its update gets an axis of size 1."""
    data, index, update, axis = layer.inputs
    if layer.rank(1) or not layer.is_known(3):
        return None
    position = layer.axis(layer.ints(3, "axis")[0])
    return layer.same(layer.since, data, ONE.unsqueeze(index, 0), ONE.unsqueeze(update, position), axis)


@respells(NOT_ASKED, "Einsum")
def _einsum(layer: Layer) -> Any:
    """The result is named, and one operand whose axes only move is transposed."""
    equation = layer["equation"].replace(" ", "")
    if "." in equation:
        return None
    operands, arrow, result = equation.partition("->")
    if not arrow:
        letters = operands.replace(",", "")
        result = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    if sorted(operands) == sorted(result):
        return ONE.transpose(layer.inputs[0], [operands.index(letter) for letter in result])
    named = f"{operands}->{result}"
    return None if named == layer["equation"] else layer.same(layer.since, equation=named)


@respells(NOT_ASKED, "ScatterNDUpdate")
def _one_index(layer: Layer) -> Any:
    """The plugin takes no single index: it gets an axis of size 1, and so does its update, unless that has one."""
    data, index, update = layer.inputs
    if layer.rank(1) != 1:
        return None
    (count,) = layer.static(1)
    if layer.rank(2) == layer.rank() - count:
        update = ONE.unsqueeze(update, 0)
    return layer.same(layer.since, data, ONE.unsqueeze(index, 0), update)


_REDUCED = ("Max", "Min", "Mean", "Sum", "Prod", "L1", "L2", "LogicalAnd", "LogicalOr")


@respells(NOT_ASKED, *(f"Reduce{kind}" for kind in _REDUCED))
def _reduced_scalar(layer: Layer) -> Any:
    """The plugin reduces no scalar, whose value stays."""
    if layer.rank():
        return None
    return ONE.abs(layer.inputs[0]) if layer.definition.type in ("ReduceL1", "ReduceL2") else layer.unchanged()


@respells(NOT_ASKED, "StridedSlice")
def _masks_of_the_entries(layer: Layer) -> Any:
    """The plugin takes bits of masks beyond the entries for entries, and begins at 0 where begin_mask says so although
    the axis is removed."""
    (count,) = layer.static(1)
    masks = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
    cut = {name: list(layer[name][:count]) for name in masks}
    removed = [i for i, on in enumerate(cut["shrink_axis_mask"]) if on]
    cut["begin_mask"] = [0 if i in removed else on for i, on in enumerate(cut["begin_mask"])]
    if all(list(layer[name]) == cut[name] for name in masks):
        return None
    return layer.same(layer.since, **cut)


@respells(NOT_ASKED, "NonMaxSuppression")
def _overlap_of_the_threshold(layer: Layer) -> Any:
    """The plugin suppresses boxes whose overlap is the threshold: it gets the next larger number.

    With a threshold of 0, or none, it would suppress boxes that do not overlap.
    """
    given = list(layer.inputs)
    if len(given) > 3 and not layer.is_known(3):
        return None
    threshold = np.float32(layer.known(3, "iou_threshold").ravel()[0] if len(given) > 3 else 0)
    if threshold < 0:
        return None
    given += [constant(0, "i64")] if len(given) == 2 else []
    kind = np.float32 if layer.element(1).bits > 16 else np.float16
    larger = max(np.nextafter(kind(threshold), kind(np.inf)), np.finfo(kind).tiny)
    return layer.same(layer.since, *given[:3], layer.number(float(larger), 1), *given[4:])


@respells(Release(2023, 0), "NonMaxSuppression", follows=True)
def _boxes_that_are_selected(layer: Layer) -> Any:
    """Where sizes are known, the plugin gives as many boxes as may be selected, the last ones unwritten.

    The number that is selected, which version 5 and newer give, cuts them off.
    """
    if len(layer.outputs) < 3 or not layer.read & {0, 1} or not all(is_static(layer.sizes(i)) for i in (0, 1)):
        return None
    *boxes, count = layer.same(layer.since)
    first, whole = constant([0], count.element), constant([1], count.element)
    masks = {"begin_mask": [0], "end_mask": [0]}
    return (*(ONE.strided_slice(one, first, count, whole, **masks) for one in boxes), count)


@respells(Release(2022, 1), "NormalizeL2")
def _normalized(layer: Layer) -> Any:
    """The plugin normalises over axis 1 alone, or over all but the batch."""
    if not layer.is_known(1) or not layer.element().is_float or not layer.rank():
        return None
    summed = {layer.axis(axis) for axis in layer.ints(1, "axes")}
    if summed in (set(), {1}):
        return None
    (x, axes), eps = layer.inputs, layer.number(layer["eps"])
    squares = ONE.reduce_sum(ONE.multiply(x, x), axes, keep_dims=True)
    is_sum = layer["eps_mode"] == "add"
    return ONE.divide(x, ONE.sqrt(ONE.add(squares, eps) if is_sum else ONE.maximum(squares, eps)))


@respells(NOT_ASKED, "GatherND", "GatherElements", "ScatterNDUpdate", "ScatterElementsUpdate")
def _indices_from_the_front(layer: Layer) -> Any:
    """Plugins do not count indices from the end."""
    if not layer.is_known(1):
        return None
    indices = layer.known(1, "indices")
    if indices.size == 0 or indices.min() >= 0:
        return None
    shape = layer.static()
    if "ND" in layer.definition.type:
        first = layer.attributes.get("batch_dims", 0)
        sizes = np.array(shape[first : first + indices.shape[-1]])
    else:
        given = layer.attributes.get("axis")
        sizes = np.array(shape[layer.axis(layer.ints(3, "axis")[0] if given is None else given)])
    front = constant(np.where(indices < 0, indices + sizes, indices), layer.element(1))
    return layer.same(layer.since, layer.inputs[0], front, *layer.inputs[2:])


@respells(_UNMENDED, "LRN")
def _bias_of_one(layer: Layer) -> Any:
    """The plugin cuts the bias to an integer: bias + s is bias * (1 + s / bias)."""
    bias, beta = layer["bias"], layer["beta"]
    if bias.is_integer() or bias < 0:
        return None
    x, axes = layer.inputs
    if layer.is_known(1):
        axes = constant(sorted({layer.axis(axis) for axis in layer.ints(1, "axes")}), "i64")
    return ONE.multiply(layer.same(1, x, axes, alpha=layer["alpha"] / bias, bias=1), layer.number(bias**-beta))


@respells(NOT_ASKED, "LRN", "MVN", "NormalizeL2")
def _axes_of_normalization(layer: Layer) -> Any:
    """The plugin counts axes from the front."""
    if len(layer.inputs) < 2 or not layer.is_known(1):
        return None
    axes = layer.ints(1, "axes")
    if min(axes, default=0) >= 0:
        return None
    front = constant(sorted({layer.axis(axis) for axis in axes}), "i64")
    return layer.same(layer.since, layer.inputs[0], front)


@respells(Release(2022, 1), "Tile")
def _tile(layer: Layer) -> Any:
    """The plugin takes as many repeats as the data has axes."""
    data = layer.inputs[0]
    if not layer.is_known(1):
        return None
    counts = layer.ints(1, "repeats")
    more = len(counts) - layer.rank()
    if not more:
        return None
    if more > 0:
        data = ONE.unsqueeze(data, list(range(more)))
    return ONE.tile(data, constant([1] * -more + counts, "i64"))


@respells(NOT_ASKED, "FakeQuantize")
def _ranges_aligned_at_the_start(layer: Layer) -> Any:
    """With axes of size 1 at their end, ranges are aligned at the last axes."""
    if layer["auto_broadcast"] != "pdpd":
        return None
    ranges = [_with_axes_at_the_end(layer, index) for index in range(1, 5)]
    return layer.same(layer.since, layer.inputs[0], *ranges, **_NUMPY)


@respells(Release(2023, 0), "FakeQuantize")
def _two_levels(layer: Layer) -> Any:
    """The plugin fails for two levels with ranges of one number: values above the middle get the higher level."""
    if layer["levels"] != 2 or layer["auto_broadcast"] != "numpy" or not all(map(layer.is_known, range(1, 5))):
        return None
    low, high = (np.asarray(layer.known(index, "ranges"), np.float64) for index in (1, 2))
    if low.size != 1 or high.size != 1 or not low < high:
        return None
    x, *_, output_low, output_high = layer.inputs
    return ONE.select(ONE.greater(x, constant((low + high) / 2, layer.element())), output_high, output_low)


@respells(Release(2022, 1), "FakeQuantize")
def _of_one_axis(layer: Layer) -> Any:
    """The plugin takes two axes and more."""
    if layer.rank() > 1 or layer["auto_broadcast"] != "numpy":
        return None
    missing = list(range(2 - layer.rank()))
    return ONE.squeeze(layer.same(1, ONE.unsqueeze(layer.inputs[0], missing), *layer.inputs[1:]), missing)


@respells(NOT_ASKED, *_PDPD)
def _aligned_at_the_start(layer: Layer) -> Any:
    """With axes of size 1 at its end, the second input is aligned at the last axis."""
    if layer["auto_broadcast"] != "pdpd" or layer.rank(0) < layer.rank(1):
        return None
    return layer.same(layer.since, layer.inputs[0], _with_axes_at_the_end(layer, 1), **_NUMPY)


def _with_axes_at_the_end(layer: Layer, index: int, of: int = 0) -> Tensor:
    """An input of pdpd with its last axis at the last one of another input; a scalar as it is."""
    rank = layer.rank(index)
    end = layer.rank(of) - pdpd_start(layer.rank(of), rank, layer["auto_broadcast_axis"])
    missing = list(range(rank, end)) if rank else []
    return ONE.unsqueeze(layer.inputs[index], missing) if missing else layer.inputs[index]


@respells(NOT_ASKED, "Select")
def _select(layer: Layer) -> Any:
    """Condition and the other value are aligned at the last axes of the first value."""
    if layer["auto_broadcast"] != "pdpd":
        return None
    condition, other = (_with_axes_at_the_end(layer, index, 1) for index in (0, 2))
    return layer.same(layer.since, condition, layer.inputs[1], other, **_NUMPY)


@respells(NOT_ASKED, "LSTMCell", "GRUCell", "RNNCell")
def _cell(layer: Layer) -> Any:
    """The reader has no default for activations, and none for the biases.

    To version 1 of LSTMCell it adds peepholes, which the plugin refuses.
    """
    type, defaults = layer.definition.type, layer.definition.groups["attributes"]
    bias = 5 if type == "LSTMCell" else 4
    is_complete = len(layer.inputs) > bias
    is_old = type == "LSTMCell" and layer.since == 1
    has_peepholes = is_old and (len(layer.inputs) > 6 or layer["input_forget"])
    if has_peepholes or (layer["activations"] and is_complete and not is_old):
        return None
    inputs = list(layer.inputs)
    if not is_complete:
        gates = defaults.gates + int(type == "GRUCell" and layer["linear_before_reset"])
        inputs.append(constant(np.zeros(gates * layer["hidden_size"]), layer.element()))
    names = layer["activations"] or defaults.activations
    leave = ["weights_format", "input_forget"] if is_old else []
    return layer.same(4 if is_old else layer.since, *inputs, leave=leave, activations=names)


@respells(NOT_ASKED, "CumSum")
def _cum_sum(layer: Layer) -> Any:
    """The reader needs the axis."""
    return layer.same(3, *layer.inputs, constant(0, "i64")) if len(layer.inputs) == 1 else None


@respells(NOT_ASKED, "DetectionOutput")
def _detection_output(layer: Layer) -> Any:
    """The reader takes the whole name of a code_type alone."""
    kind, prefix = layer["code_type"], "caffe.PriorBoxParameter."
    return None if kind.startswith(prefix) else layer.same(layer.since, code_type=prefix + kind)


@respells(NOT_ASKED, "GroupConvolutionBackpropData")
def _one_group(layer: Layer) -> Any:
    """Plugins from 2024.2 on refuse a single group of several channels."""
    if layer.sizes(1)[0] != 1:
        return None
    data, filter, *others = layer.inputs
    return ONE.convolution_backprop_data(data, ONE.squeeze(filter, [0]), *others, **layer.attributes)


@respells(NOT_ASKED, "MatrixNms", "MulticlassNms")
def _sorted_by_class(layer: Layer) -> Any:
    """The order is called sort_result_type, and the one by class classid."""
    order = layer.attributes.get("sort_result") or layer["sort_result_type"]
    wanted = "classid" if order == "class" else order
    if layer["sort_result_type"] == wanted and not layer.attributes.get("sort_result"):
        return None
    return layer.same(layer.since, leave=["sort_result"], sort_result_type=wanted)


@respells(NOT_ASKED, "Interpolate")
def _axes_from_the_front(layer: Layer) -> Any:
    """Shape inference takes no axes that are counted from the end."""
    index = {4: 3, 11: 2}.get(layer.since)
    if index is None or len(layer.inputs) <= index or not layer.is_known(index):
        return None
    axes = layer.ints(index, "axes")
    if min(axes, default=0) >= 0:
        return None
    front = constant([axis % layer.rank() for axis in axes], "i64")
    return layer.same(layer.since, *layer.inputs[:index], front)


@respells(NOT_ASKED, "AdaptiveMaxPool")
def _indices_of_32_bits(layer: Layer) -> Any:
    """The plugin gives indices of i32."""
    if layer["index_element_type"] != "i64":
        return None
    values, indices = layer.same(8, index_element_type="i32")
    return values, ONE.convert(indices, destination_type="i64")


# The plugin of 2023.3 refuses boolean masks, and gives NaN for some others.
respells(NOT_ASKED, "ScaledDotProductAttention")(attention)


@respells(Release(2022, 1), "Interpolate")
def _last_axes(layer: Layer) -> Any:
    """The plugin resizes no axis of the first two: they are moved to the end."""
    index = {4: 3, 11: 2}.get(layer.since)
    if index is None or len(layer.inputs) <= index or not layer.is_known(index):
        return None
    rank, axes = layer.rank(), [layer.axis(axis) for axis in layer.ints(index, "axes")]
    if min(axes) > 1 or len(axes) > rank - 2 or any(layer["pads_begin"]) or any(layer["pads_end"]):
        return None
    order = [axis for axis in range(rank) if axis not in axes] + axes
    moved = ONE.transpose(layer.inputs[0], order)
    last = constant(range(rank - len(axes), rank), "i64")
    return ONE.transpose(layer.same(layer.since, moved, *layer.inputs[1:index], last), np.argsort(order).tolist())


@respells(NOT_ASKED, "HardSigmoid")
def _hard_sigmoid(layer: Layer) -> Any:
    """The plugin takes constants for alpha and beta."""
    if layer.is_known(1) and layer.is_known(2):
        return None
    x, alpha, beta = layer.inputs
    line = ONE.add(ONE.multiply(x, alpha), beta)
    return ONE.minimum(ONE.maximum(line, layer.number(0)), layer.number(1))


@respells(NOT_ASKED, "Selu")
def _selu(layer: Layer) -> Any:
    """The plugin takes constants for alpha and lambda."""
    if layer.is_known(1) and layer.is_known(2):
        return None
    x, alpha, scale = layer.inputs
    low = ONE.subtract(ONE.exp(ONE.minimum(x, layer.number(0))), layer.number(1))
    return ONE.multiply(scale, ONE.add(ONE.relu(x), ONE.multiply(alpha, low)))


@respells(NOT_ASKED, "Clamp")
def _bounds_of_integers(layer: Layer) -> Any:
    """Plugins round bounds of integers towards zero, and take 0 for a bound that i32 does not hold."""
    element, bounds = layer.element(), (layer["min"], layer["max"])
    if not element.is_integer or all(bound.is_integer() and abs(bound) < 2**31 for bound in bounds):
        return None
    low, high = element.limits
    (x,) = layer.inputs
    if bounds[0] > low:
        x = ONE.maximum(x, layer.number(min(math.ceil(bounds[0]), high)))
    return ONE.minimum(x, layer.number(max(math.floor(bounds[1]), low))) if bounds[1] < high else x


@respells(Release(2022, 1), "ConvertLike")
def _convert_like(layer: Layer) -> Any:
    """The plugin has no ConvertLike."""
    return ONE.convert(layer.inputs[0], destination_type=layer.element(1))


@respells(Release(2023, 0), "Reverse")
def _reverse(layer: Layer) -> Any:
    """The plugin takes neither masks nor axes that are counted from the end."""
    if not layer.is_known(1):
        return None
    given = layer.ints(1, "axes")
    masked = [axis for axis, on in enumerate(given) if on]
    axes = masked if layer["mode"] == "mask" else sorted({axis % layer.rank() for axis in given})
    if not axes:
        return layer.unchanged()
    return None if axes == given else ONE.reverse(layer.inputs[0], axes, mode="index")
