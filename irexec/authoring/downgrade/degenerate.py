"""Layers that older plugins compute wrongly, in forms that every plugin computes right.

Source: the releases 2021.4.2, 2022.3.2, 2023.3.0 and 2024.6.0 themselves (tests.release_sweep).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from irexec.analysis.portability.plugins import DYNAMIC_SHAPES, is_constant
from irexec.analysis.portability.releases import NOT_ASKED, Release
from irexec.authoring.downgrade.layer import EIGHT, FIVE, ONE, Layer, respells
from irexec.authoring.tensor import Tensor, constant
from irexec.dtypes.elements import Element
from irexec.ir.dims import is_static
from irexec.ir.facts import Fact
from irexec.schema.shape_rules import pdpd_start


@respells(NOT_ASKED, "Transpose")
def _transpose(layer: Layer) -> Any:
    """An empty order reverses the axes, which stay where there is one at most: plugins give unwritten memory."""
    order = list(range(layer.rank()))[::-1]
    if layer.static(1) != (0,):
        return None
    return layer.same(1, layer.inputs[0], constant(order, "i64")) if len(order) > 1 else layer.unchanged()


@respells(NOT_ASKED, "Squeeze")
def _squeezed_scalar(layer: Layer) -> Any:
    """A scalar stays, whatever the axes: shape inference refuses them, or the plugin does not know the rank."""
    return layer.unchanged() if layer.rank() == 0 and len(layer.inputs) > 1 else None


@respells(NOT_ASKED, "Softmax", "LogSoftmax")
def _softmax_of_a_scalar(layer: Layer) -> Any:
    """Shape inference of the older version finds no axis: the scalar gets one for a time."""
    if layer.rank():
        return None
    one = layer.same(layer.since, _reshaped(layer.inputs[0], [1]), axis=0)
    return _reshaped(one, [])


@respells(NOT_ASKED, "DFT", "IDFT")
def _no_axes(layer: Layer) -> Any:
    """A transform along no axes: the plugin gives unwritten memory."""
    return layer.inputs[0] if layer.static(1) == (0,) else None


@respells(NOT_ASKED, "DFT", "IDFT", "RDFT", "IRDFT")
def _sizes_of_the_axes(layer: Layer) -> Any:
    """A signal_size of -1 is the size of the axis: some plugins fail to make room for it."""
    if len(layer.inputs) < 3 or not layer.is_known(2) or -1 not in layer.ints(2, "signal_size"):
        return None
    wanted, shape, type = layer.ints(2, "signal_size"), layer.static(), layer.definition.type
    rank = len(shape) - (type != "RDFT")
    sizes = [shape[axis % rank] for axis in layer.ints(1, "axes")]
    if type == "IRDFT":
        sizes[-1] = 2 * (sizes[-1] - 1)
    found = [size if given == -1 else given for given, size in zip(wanted, sizes, strict=True)]
    return layer.same(layer.since, *layer.inputs[:2], constant(found, "i64"))


@respells(NOT_ASKED, "GatherND")
def _of_no_indices(layer: Layer) -> Any:
    """Indices of no axes take the whole data each time: the plugin gives unwritten memory."""
    indices = layer.static(1)
    if indices[-1] or layer.attributes["batch_dims"]:
        return None
    return ONE.broadcast(layer.inputs[0], constant([*indices[:-1], *layer.static()], "i64"))


@respells(NOT_ASKED, "StridedSlice")
def _an_entry_for_each_axis(layer: Layer) -> Any:
    """No ellipsis, and new axes by an Unsqueeze.

    Shape inference counts an ellipsis of no axes as one, and plugins fail for new axes, or for removed ones beside an
    ellipsis, if bounds are computed.
    """
    (count,) = layer.static(1)
    masks = {name: [*layer[name], *[0] * count][:count] for name in _MASKS}
    added, removed, others = masks["new_axis_mask"], masks["shrink_axis_mask"], masks["ellipsis_mask"]
    axes = layer.rank() - sum(not new and not other for new, other in zip(added, others, strict=True))
    fails = any(added) or (any(removed) and any(others))
    if not (any(others) and axes == 0) and not (fails and not layer.is_known(1)):
        return None
    entries: list[int | None] = []
    positions: list[int] = []
    position = 0
    for i in range(count):
        given: list[int | None] = [None] * axes if others[i] else [] if added[i] else [i]
        positions += [position] if added[i] and not others[i] else []
        position += len(given) + int(added[i] and not others[i]) - int(bool(given) and removed[i] and not others[i])
        entries += given
    data = layer.inputs[0]
    if entries:
        bounds = [_picked(layer, index, entries) for index in range(1, len(layer.inputs))]
        spread: dict[str, Any] = {
            name: [int(name in _MASKS[:2]) if i is None else on[i] for i in entries] for name, on in masks.items()
        }
        data = layer.same(1, data, *bounds, **spread)
    return ONE.unsqueeze(data, positions) if positions else data


_MASKS = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")


def _picked(layer: Layer, index: int, entries: list[int | None]) -> Tensor:
    """Entries of a list of bounds; 0, or a stride of 1, where there is None."""
    element, whole = layer.element(index), int(index == 3)
    if layer.is_known(index):
        values = layer.known(index, "bounds")
        return constant(np.array([whole if i is None else values[i] for i in entries]), element)
    pieces = []
    for is_whole, run in itertools.groupby(entries, lambda i: i is None):
        picked = [whole if i is None else i for i in run]
        found = constant(picked, element if is_whole else "i64")
        pieces.append(found if is_whole else ONE.gather(layer.inputs[index], found, constant(0, "i64")))
    return ONE.concat(*pieces, axis=0) if len(pieces) > 1 else pieces[0]


@respells(NOT_ASKED, "StridedSlice")
def _one_element(layer: Layer) -> Any:
    """An element whose indices are computed: the plugin has no scalars here."""
    (count,), rank = layer.static(1), layer.rank()
    if layer.is_known(1) or count == 0 or count != rank or list(layer["shrink_axis_mask"]) != [1] * count:
        return None
    found = layer.inputs[0]
    for axis in range(rank):
        index = EIGHT.gather(layer.inputs[1], constant([axis], "i64"), constant(0, "i64"))
        found = EIGHT.gather(found, index, constant(axis, "i64"))
    return _reshaped(found, [])


@respells(NOT_ASKED, "ScatterElementsUpdate")
def _of_no_updates(layer: Layer) -> Any:
    """The data stays: some plugins divide by the number of updates."""
    return layer.unchanged() if 0 in layer.static(1) else None


@respells(NOT_ASKED, "EmbeddingBagPackedSum", "EmbeddingBagPacked")
def _empty_bags(layer: Layer) -> Any:
    """Sums of bags that are all empty are zeros: plugins refuse the indices."""
    count, size = layer.static(1)
    if size:
        return None
    shape = [count, *layer.static()[1:]]
    return ONE.broadcast(layer.number(0), constant(shape, "i64"))


@respells(NOT_ASKED, "Broadcast")
def _aligned_with_the_first_axes(layer: Layer) -> Any:
    """Shape inference takes no data of fewer axes in mode pdpd: it gets axes of size 1 at its end."""
    if layer["mode"] != "pdpd":
        return None
    (count,) = layer.static(1)
    missing = list(range(layer.rank(), count - pdpd_start(count, layer.rank(), layer["mode_axis"])))
    data = ONE.unsqueeze(layer.inputs[0], missing) if missing else layer.inputs[0]
    return ONE.broadcast(data, layer.inputs[1])


@respells(NOT_ASKED, "Broadcast")
def _to_no_axes(layer: Layer) -> Any:
    """A bidirectional target without axes leaves the data as it is: shape inference refuses it."""
    return layer.unchanged() if layer["mode"] == "bidirectional" and layer.static(1) == (0,) else None


@respells(Release(2023, 0), "Eye")
def _half_eye(layer: Layer) -> Any:
    """The plugin has no f16 and bf16 here."""
    element = layer["output_type"]
    if str(element) not in ("f16", "bf16"):
        return None
    return ONE.convert(layer.same(layer.since, output_type="f32"), destination_type=element)


@respells(NOT_ASKED, "Gather")
def _index_before_the_data(layer: Layer) -> Any:
    """An index before the first element gives zeros: the plugin counts it from the end once more."""
    if layer.since < 8 or not layer.is_known(1) or not layer.is_known(2):
        return None
    indices, size = layer.known(1, "indices"), layer.sizes()[layer.axis(layer.ints(2, "axis")[0])]
    if not isinstance(size, int) or not (indices < -size).any():
        return None
    behind = constant(np.where(indices < -size, size, indices), layer.element(1))
    return layer.same(layer.since, layer.inputs[0], behind, layer.inputs[2])


def _reshaped(x: Tensor, shape: list[int]) -> Tensor:
    return ONE.reshape(x, constant(np.array(shape, np.int64), "i64"), special_zero=False)


_UNTIL = Release(2022, 1)

_ROUNDED = (
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Elu", "Erf", "Exp", "HSigmoid", "HSwish", "Log",
    "Sigmoid", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "AvgPool",
)  # fmt: skip
"""Operations that OpenVINO computes in f32 and rounds to the integers of the input."""


def _is_narrow(element: Element | None) -> bool:
    return element is not None and element.is_integer and element.bits in (8, 16)


@respells(_UNTIL, *_ROUNDED)
def _rounded(layer: Layer) -> Any:
    """Rounds to even, and saturates."""
    element = layer.element()
    if not _is_narrow(element):
        return None
    first, *rest = layer.inputs
    floats = (ONE.convert(given, destination_type="f32") for given in (first, *rest))
    exact = FIVE.round(layer.same(layer.since, *floats), mode="half_to_even")
    low, high = element.limits
    return _in_type(ONE.clamp(exact, min=low, max=high), element)


@respells(Release(2024, 6), "Convert")
def _through_a_few_bits(layer: Layer) -> Any:
    """A Convert to integers of 2 to 6 bits, followed by one of them: both wrap in i32. Plugins hold bytes, if any."""
    element, target, made = layer.element(), layer.outputs[0].element, layer.inputs[0].value.node
    source = made.inputs[0] if made.type == "Convert" else None
    if source is None or source.fact is None or target is None or not (element.is_integer and 1 < element.bits < 8):
        return None
    x = Tensor(source, Fact(source.fact.element, layer.inputs[0].shape))
    wrapped = _wrapped(ONE.convert(x, destination_type="i32"), element)
    if target.kind == "boolean":
        return ONE.not_equal(wrapped, constant(0, "i32"))
    return ONE.convert(wrapped, destination_type=target)


@respells(_UNTIL, "Convert", "ConvertLike")
def _convert(layer: Layer) -> Any:
    """Zero is false, other numbers are true; integers wrap."""
    source, target = layer.element(), layer.outputs[0].element
    (x, *_) = layer.inputs
    if target is None or source is target:
        return None
    if target.kind == "boolean":
        return ONE.not_equal(x, layer.number(0))
    if not _is_narrow(target) or source.kind == "boolean" or (source.is_integer and _holds(target, source)):
        return None
    return _in_type(_wrapped(ONE.convert(x, destination_type="i32"), target), target)


def _wrapped(x: Tensor, element: Element) -> Tensor:
    low, high = element.limits
    middle, count = constant(-low, "i32"), constant(high - low + 1, "i32")
    if low == 0:
        return ONE.floor_mod(x, count)
    return ONE.subtract(ONE.floor_mod(ONE.add(x, middle), count), middle)


def _in_type(x: Tensor, element: Element) -> Tensor:
    """Numbers in the range of the type, as the type."""
    return ONE.convert(ONE.convert(x, destination_type="i32"), destination_type=element)


def _holds(element: Element, other: Element) -> bool:
    (low, high), (other_low, other_high) = element.limits, other.limits
    return low <= other_low and other_high <= high


@respells(DYNAMIC_SHAPES, "Concat")
def _concat(layer: Layer) -> Any:
    """A constant before other inputs is lost along axis 1 of a batch of 1; along axis 0 it is not.

    The plugin lets the inputs share the memory of the result, and another layer overwrites the constant.
    """
    first, *others = [tensor.value for tensor in layer.inputs]
    is_lost = is_constant(first) and not all(map(is_constant, others))
    if not is_lost or layer.axis(layer["axis"]) != 1 or layer.sizes()[0] != 1:
        return None
    return ONE.unsqueeze(ONE.concat(*(ONE.squeeze(x, [0]) for x in layer.inputs), axis=0), [0])


@respells(Release(2023, 0), "Split", "VariadicSplit")
def _split(layer: Layer) -> Any:
    """Parts of known size along axis 0 are slices where other sizes are open.

    The plugin finds no memory for a part after the first one that an element-wise layer of open size reads.
    """
    data, is_first = layer.inputs[0], layer.is_known(1) and layer.axis(layer.ints(1, "axis")[0]) == 0
    if not layer.is_open or layer.read <= {0} or not is_first or not is_static(data.shape):
        return None
    shapes = [output.shape for output in layer.outputs]
    ends = [0, *itertools.accumulate(int(str(shape[0])) for shape in shapes if shape is not None)]
    return tuple(
        ONE.strided_slice(data, [begin], [end], [1], begin_mask=[0], end_mask=[0])
        for begin, end in itertools.pairwise(ends)
    )


@respells(Release(2023, 0), "RegionYolo")
def _region_yolo(layer: Layer) -> Any:
    """Axes that are counted from the end, or that end before they begin, give another shape or none."""
    axis, end_axis = layer.axis(layer["axis"]), layer.axis(layer["end_axis"])
    if not layer["do_softmax"] or (end_axis >= axis and (axis, end_axis) == (layer["axis"], layer["end_axis"])):
        return None
    last = layer.rank() - 1
    shape = constant(np.array(layer.outputs[0].shape), "i64")
    return ONE.reshape(layer.same(1, axis=last, end_axis=last), shape, special_zero=False)


@respells(DYNAMIC_SHAPES, "BinaryConvolution")
def _binary_convolution(layer: Layer) -> Any:
    """The plugin reads the bits of a filter in another order: a Convolution counts the bits that agree.

    Data other than 0 and 1 agrees with neither.
    """
    data, _ = layer.inputs
    if layer["auto_pad"] != "explicit" or not layer.is_known(1):
        return None
    bits = np.asarray(layer.known(1, "filter"), np.float32)
    ends = [[0, 0, *layer[name]] for name in ("pads_begin", "pads_end")]
    if any(map(any, ends)):
        data = ONE.pad(data, *ends, layer.number(layer["pad_value"]), pad_mode="constant")
    is_bit = [ONE.convert(ONE.equal(data, layer.number(bit)), destination_type="f32") for bit in (1, 0)]
    agreeing = ONE.convolution(
        ONE.concat(*is_bit, axis=1), constant(np.concatenate([bits, 1 - bits], 1), "f32"), strides=layer["strides"],
        pads_begin=[0, 0], pads_end=[0, 0], dilations=layer["dilations"],
    )  # fmt: skip
    found = ONE.subtract(ONE.multiply(agreeing, constant(2, "f32")), constant(bits[0].size, "f32"))
    return ONE.convert(found, destination_type=layer.element())
