"""Layers that CPU plugins before 2023.0 take and compute wrongly, in forms that they compute right.

Source: the releases 2021.4.2 and 2022.3.2 themselves (tests.release_sweep).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from irexec.analysis.portability.plugins import DYNAMIC_SHAPES, is_constant
from irexec.analysis.portability.releases import Release
from irexec.authoring.downgrade.layer import ONE, Layer, respells
from irexec.authoring.ends import constant
from irexec.ir.dims import is_static


@respells(DYNAMIC_SHAPES, "Concat")
def _concat(layer: Layer) -> Any:
    """A constant before other inputs is lost along axis 1 of a batch of 1; along axis 0 it is not.

    The plugin lets the inputs share the memory of the result, and another layer overwrites the constant.
    """
    first, *others = [tensor.value for tensor in layer.inputs]
    is_lost = is_constant(first) and not all(map(is_constant, others))
    if not is_lost or layer.axis(layer["axis"]) != 1 or layer.sizes()[0] != 1:
        return None
    axis = [0]
    return ONE.unsqueeze(ONE.concat(*(ONE.squeeze(x, axis) for x in layer.inputs), axis=0), axis)


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
    (output,) = layer.outputs
    rank = layer.rank()
    found = layer.same(1, axis=rank - 1, end_axis=rank - 1)
    return ONE.reshape(found, constant(np.array(output.shape), "i64"), special_zero=False)


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
