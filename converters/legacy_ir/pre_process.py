"""``<pre-process>``: mean values that the engine subtracts from an input.

Source: measured on Inference Engine 2020.1 and 2020.4: the mean of a channel is a number or an image of H x W; scale
values are ignored; without ``reference-layer-name`` the first input of rank 4 is meant.
"""

from __future__ import annotations

import math

import numpy as np

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.objections import WrongAttributeError
from converters.legacy_ir.syntax import OldModel
from irexec.dtypes.elements import F32
from irexec.dtypes.packing import unpack
from irexec.errors import OpError, check
from irexec.io.context import parse_integer
from irexec.io.elements import XmlElement
from irexec.io.names import named_element
from irexec.ir import legacy_codes
from irexec.ir.graph import Node, Value


class MeanSubtraction:
    """The mean values of a file.

    Attributes:
        node: the input layer that they are for.
        element: the <pre-process> element.
    """

    def __init__(self, node: Node, element: XmlElement) -> None:
        self.node, self.element = node, element

    def __call__(self, layer: Layer, value: Value) -> Value:
        """The input minus its mean; OpError if the values do not fit the input."""
        shape = layer.shape(value)
        check(len(shape) > 1, f"the input has rank {len(shape)}, mean values need channels")
        channels = sorted(
            self.element.all("channel"), key=lambda each: parse_integer(each.attributes.get("id", "")) or 0
        )
        if any(float(scale.attributes.get("value", "1")) != 1 for each in channels for scale in each.all("scale")):
            layer.note(legacy_codes.IGNORED_SCALE, "scale values of the pre-processing are ignored")
        means = [mean for each in channels for mean in each.all("mean")]
        if not means:
            return value
        check(len(means) == shape[1], f"{len(means)} channels have a mean, the input has {shape[1]}")
        array = np.stack(np.broadcast_arrays(*[self._mean(layer, mean, shape[2:]) for mean in means]))[None]
        return layer.emit("Subtract", layer.f32(value), layer.constant(array), version=1)

    def _mean(self, layer: Layer, mean: XmlElement, image: tuple[int, ...]) -> np.ndarray:
        """The mean of a channel: as an image, or with sizes of 1."""
        if "value" in mean.attributes:
            try:
                return np.full([1] * len(image), float(mean.attributes["value"]), np.float32)
            except ValueError:
                raise WrongAttributeError(f"the mean {mean.attributes['value']!r} is not a number") from None
        offset, size = (parse_integer(mean.attributes.get(key, "")) for key in ("offset", "size"))
        if offset is None or size is None:
            raise WrongAttributeError("a mean has neither a value nor an offset and a size")
        element = named_element(self.element.attributes.get("mean-precision", "FP32")) or F32
        count = math.prod(image)
        check(
            size * 8 == count * element.bits, f"the mean image has {size} bytes, the input {count} elements a channel"
        )
        return unpack(element, layer.job.weights.read(offset, size), count).reshape(image).astype(np.float32)


def mean_subtraction(old: OldModel) -> MeanSubtraction | None:
    """The mean values of a file; None if it has none."""
    if old.pre_process is None:
        return None
    inputs = [node for node in old.graph.nodes if node.type.lower() == "input"]
    name = old.pre_process.attributes.get("reference-layer-name")
    for node in inputs:
        fact = node.outputs[0].fact if node.outputs else None
        if node.name == name or (not name and fact is not None and fact.rank == 4):
            return MeanSubtraction(node, old.pre_process)
    raise OpError(f"the pre-processing is for the layer {name!r}, which is not an input")
