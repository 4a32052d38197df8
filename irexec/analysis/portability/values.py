"""The conditions of the differences that one sees in the values."""

from __future__ import annotations

import math

import numpy as np

from irexec.analysis.portability.conditions import applies
from irexec.analysis.portability.layer import BYTES, Layer, may_be
from irexec.analysis.portability.shapes import aligned_at_the_end, is_aligned_at_the_start, windows_beside
from irexec.ir.dims import low
from irexec.ir.graph import Value
from irexec.reference.quantization import zero_level


@applies("IR911")
def _quotients_cut(layer: Layer) -> bool:
    if layer["m_pythondiv"] is False:
        return False
    divisor = layer.value(1)
    exact = divisor is not None and bool((abs(divisor) == 1).all())
    return (layer.may_be_negative(0) or layer.may_be_negative(1)) and not exact


@applies("IR912")
def _aligned_at_the_end(layer: Layer) -> bool:
    right = layer.definition.type in ("Equal", "NotEqual") and not layer.is_integer()
    return not right and is_aligned_at_the_start(layer) and aligned_at_the_end(layer)


@applies("IR913")
def _saturated(layer: Layer) -> bool:
    return layer.element() in BYTES


@applies("IR914")
def _saturated_mean(layer: Layer) -> bool:
    sizes = layer.ints(1)
    return layer.element() in BYTES and sizes is not None and set(sizes) == {1}


@applies("IR915")
def _interpolated_bytes(layer: Layer) -> bool:
    return layer.element() in BYTES and layer["mode"] == "linear_onnx"


@applies("IR916")
def _sampled_bytes(layer: Layer) -> bool:
    return layer.element() in BYTES and layer["mode"] in ("bilinear", "bicubic")


@applies("IR917")
def _index_of_zero(layer: Layer) -> bool:
    return layer.is_used(1) and layer.element().startswith("u")


@applies("IR918")
def _empty_window(layer: Layer) -> bool:
    return layer.element() in ("f16", "f64") and windows_beside(layer)


@applies("IR919")
def _coefficient(layer: Layer) -> bool:
    return layer["mode"] == "bicubic_pillow" and not math.isclose(layer["cube_coeff"], -0.5, rel_tol=1e-6)


@applies("IR920")
def _without_extent(layer: Layer) -> bool:
    return layer["sampling_ratio"] == 0


@applies("IR921")
def _empty_segment(layer: Layer) -> bool:
    return layer["fill_mode"] == "lowest" and layer.element() in ("f16", "bf16", "f64", "i64")


@applies("IR922")
def _integer_mean(layer: Layer) -> bool:
    return (
        layer["reduction"] == "mean" and layer.is_integer() and (layer.may_be_negative(0) or layer.may_be_negative(2))
    )


@applies("IR923")
def _bytes(layer: Layer) -> bool:
    return layer.element() in BYTES


@applies("IR924")
def _binary_padding(layer: Layer) -> bool:
    windows = layer.attributes
    if windows is None:
        return False
    pads = windows.auto_pad in ("same_upper", "same_lower") or any((*windows.pads_begin, *windows.pads_end))
    return pads and windows.auto_pad != "valid" and layer["pad_value"] == 0


@applies("IR925")
def _peepholes(layer: Layer) -> bool:
    peepholes = layer.value(6)
    given = layer.has(6) and (peepholes is None or bool(peepholes.any()))
    return layer.definition.since == 1 and (given or layer["input_forget"] is True)


@applies("IR926")
def _lengths(layer: Layer) -> bool:
    sizes = layer.sizes()
    if sizes is not None and all(isinstance(size, int) for size in sizes[:2]):
        return False
    # Converters write the size of the data's axis as the length of every sequence, which runs to its end then.
    return not layer.is_made_of_sizes(3 if layer.definition.type == "LSTMSequence" else 2)


@applies("IR927")
def _three_axes(layer: Layer) -> bool:
    axes = layer.ints(1)
    return axes is not None and len(axes) >= 3 and min(axes) in (0, 1)


@applies("IR928")
def _long_transform(layer: Layer) -> bool:
    axes, wanted, shape = layer.ints(1), layer.ints(2), layer.sizes()
    if axes is None or wanted is None or shape is None or len(axes) != len(wanted):
        return False
    rank = len(shape) - (layer.definition.type == "IRDFT")
    needed = [*wanted[:-1], wanted[-1] // 2 + 1 if layer.definition.type == "IRDFT" else wanted[-1]] if wanted else []
    return any(low(shape[axis % rank]) < need for axis, need in zip(axes, needed, strict=True) if -rank <= axis < rank)


@applies("IR929")
def _double(layer: Layer) -> bool:
    computes = layer.definition.type not in ("Parameter", "Constant", "Result", "Convert", "ReadValue", "Assign")
    return computes and "f64" in map(layer.element, range(len(layer.node.inputs)))


@applies("IR930")
def _maximum_of_nothing(layer: Layer) -> bool:
    shape, axes = layer.shape(), layer.ints(1)
    floats = layer.element() in ("f32", "f16", "bf16", "f64")
    return (
        floats
        and shape is not None
        and axes is not None
        and any(-len(shape) <= axis < len(shape) and shape[axis] == 0 for axis in axes)
    )


@applies("IR931")
def _bits(layer: Layer) -> bool:
    return layer.element() == "u1" and layer.value(0) is None


@applies("IR932")
def _softmax_absent(layer: Layer) -> bool:
    return layer.says("do_softmax") is None


@applies("IR933")
def _mixed_up(layer: Layer) -> bool:
    regions, shape = layer.attributes, layer.sizes()
    if layer.says("do_softmax") not in ("false", "0", "False") or shape is None or len(shape) != 4 or regions is None:
        return False
    taken = len(regions.mask) * (regions.classes + regions.coords + 1)
    return not (may_be(shape[0], 1) and isinstance(shape[0], int)) and low(shape[1]) > taken


@applies("IR934")
def _no_sizes(layer: Layer) -> bool:
    return layer.says("width") is None or layer.says("height") is None


def _seeded(layer: Layer) -> bool:
    return bool(layer["global_seed"] or layer["op_seed"])


@applies("IR935")
def _small_random(layer: Layer) -> bool:
    return _seeded(layer) and layer.element(1) in ("f16", "bf16", "f64")


applies("IR936")(_seeded)
applies("IR937")(_seeded)


@applies("IR938")
def _folded(layer: Layer) -> bool:
    return layer.is_integer()


@applies("IR939")
def _beside_zero(layer: Layer) -> bool:
    bounds, levels = [layer.value(3), layer.value(4)], layer["levels"]
    if levels is None or any(bound is None for bound in bounds):
        return False
    begin, end = (np.asarray(bound, np.float32) for bound in bounds)
    with np.errstate(all="ignore"):
        index, step = zero_level(begin, end, levels), (end - begin) / np.float32(levels - 1)
        # The plugin multiplies and adds with one rounding.
        return bool(((index > 0) & ((index * step + begin).astype(np.float32) != 0)).any())


@applies("IR940")
def _gathered_operand(layer: Layer) -> bool:
    operands, arrow, result = (layer["equation"] or "").partition("->")
    labels = operands.split(",")
    if not arrow or len(labels) != 2 or not set(labels[0]).intersection(labels[1], result) - {" ", "."}:
        return False
    return any(layer.has(i) and layer.is_gathered_from_constants(i) for i in range(2))


@applies("IR941")
def _unread_slices(layer: Layer) -> bool:
    body = layer.node.bodies.get("body")
    if body is None:
        return False
    read = {value.node.id for node in body.graph.nodes for value in node.inputs if value is not None}
    sliced = [edge for edge in body.port_maps if "axis" in edge.attributes]
    internal = {edge.internal for edge in sliced if edge.kind == "input"}
    return bool(internal) and internal.isdisjoint(read) and any(edge.kind == "output" for edge in sliced)


_POOLS = frozenset({"MaxPool", "AvgPool"})
_AROUND_POOLS = _POOLS | {"FakeQuantize", "Relu", "PRelu", "Clamp", "Add", "Multiply"}
_CONVOLUTIONS = frozenset({"Convolution", "GroupConvolution"})


@applies("IR942")
def _scale_of_the_first_channel(layer: Layer) -> bool:
    if layer.element() != "f16" or any(math.prod(layer.shape(i) or ()) != 1 for i in range(1, 5)):
        return False
    value = _before_scales_by_channel(layer.node.inputs[0])
    if value is None or value.node.type not in _POOLS:
        return False
    while value is not None and value.node.type in _AROUND_POOLS:
        value = value.node.inputs[0]
    return value is not None and value.node.type in _CONVOLUTIONS


def _before_scales_by_channel(value: Value | None) -> Value | None:
    """The value that a chain of constant Multiply and Add scales and shifts; None unless one varies by channel."""
    varies = False
    while value is not None and value.node.type in ("Multiply", "Add"):
        constants = [None if one is None else one.node.constant for one in value.node.inputs]
        counts = [constant.count for constant in constants if constant is not None]
        if len(counts) != 1:
            return None
        varies |= counts[0] > 1
        value = value.node.inputs[constants.index(None)]
    return value if varies else None
