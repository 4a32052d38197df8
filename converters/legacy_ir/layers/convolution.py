"""Convolution and Deconvolution, with weights as blobs or as inputs."""

from __future__ import annotations

from typing import Annotated

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.registry import translates
from converters.legacy_ir.windows import Windows, windows
from irexec.errors import check
from irexec.ir.graph import Value
from irexec.schema.attributes import AtLeast

Group = Annotated[int, AtLeast(1)]


@translates("Convolution")
def convolution(
    layer: Layer,
    data: Value,
    weights: Value | None = None,
    biases: Value | None = None,
    *,
    output: int,
    group: Group = 1,
) -> Value:
    """Weights [O, I/group, (Z,) Y, X], groups outermost."""
    data = layer.f32(data)
    shape = _images(layer, data, output, group)
    given = windows(layer, len(shape) - 2)
    grouped = (group, output // group) if group > 1 else (output,)
    matrix = filters(layer, weights, (*grouped, shape[1] // group, *given.kernel))
    type = "GroupConvolution" if group > 1 else "Convolution"
    product = layer.emit(type, data, matrix, version=1, auto_pad=given.auto_pad, **given.explicit)
    return with_biases(layer, product, biases, output)


@translates("Deconvolution")
def deconvolution(
    layer: Layer,
    data: Value,
    weights: Value | None = None,
    biases: Value | None = None,
    *,
    output: int,
    group: Group = 1,
) -> Value:
    """Weights [I, O/group, (Z,) Y, X], groups outermost; the sizes of the output are those that are declared."""
    data = layer.f32(data)
    shape = _images(layer, data, output, group)
    given = windows(layer, len(shape) - 2)
    grouped = (group, shape[1] // group) if group > 1 else (shape[1],)
    matrix = filters(layer, weights, (*grouped, output // group, *given.kernel))
    declared = layer.size()
    check(len(declared) == len(shape), f"the output declares {len(declared)} axes, the input has {len(shape)}")
    pads = _transposed_pads(given, shape[2:], declared[2:])
    type = "GroupConvolutionBackpropData" if group > 1 else "ConvolutionBackpropData"
    product = layer.emit(type, data, matrix, version=1, **given.explicit | pads)
    return with_biases(layer, product, biases, output)


def _images(layer: Layer, data: Value, output: int, group: int) -> tuple[int, ...]:
    """The shape of the data, whose channels and those of the output are of so many groups."""
    shape = layer.shape(data)
    check(len(shape) in (3, 4, 5), f"the input has rank {len(shape)}, expected 3 to 5")
    check(
        shape[1] % group == 0 and output % group == 0, f"{group} groups do not divide {shape[1]} and {output} channels"
    )
    return shape


def _transposed_pads(given: Windows, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Pads with which the operation gives the declared sizes; ``pads_begin`` is as given unless auto_pad says it."""
    total = given.total_pads(outputs, inputs)
    begin = given.pads_begin
    if given.auto_pad == "same_upper":
        begin = tuple(max(0, pads // 2) for pads in total)
    elif given.auto_pad == "same_lower":
        begin = tuple(max(0, -(-pads // 2)) for pads in total)
    rest = [pads - first for pads, first in zip(total, begin, strict=True)]
    return {
        "pads_begin": begin,
        "pads_end": tuple(max(0, pads) for pads in rest),
        "output_padding": tuple(max(0, -pads) for pads in rest),
    }


def filters(layer: Layer, weights: Value | None, shape: tuple[int, ...]) -> Value:
    """The weights in this shape: an input, or the blob."""
    if weights is None:
        return layer.blob("weights", shape)
    return layer.reshaped(layer.f32(weights), shape)


def with_biases(layer: Layer, product: Value, biases: Value | None, channels: int) -> Value:
    """The product plus one bias for each channel, axis 1: an input or a blob, if there is one."""
    if biases is None and not layer.has_blob("biases"):
        return product
    shape = (1, channels, *[1] * (layer.rank(product) - 2))
    if biases is None:
        addend = layer.blob("biases", shape)
    else:
        addend = layer.reshaped(layer.f32(biases), shape)
    total: Value = layer.emit("Add", product, addend, version=1)
    return total
