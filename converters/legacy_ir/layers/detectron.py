"""The layers of Detectron, which became operations of the same names and attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.objections import WrongAttributeError
from converters.legacy_ir.registry import translates
from irexec.dtypes.elements import F32
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.schema.registry import resolve

_VERSION = 6
_GRID = "ExperimentalDetectronPriorGridGenerator"
_TYPES = (
    "ExperimentalDetectronDetectionOutput", "ExperimentalDetectronGenerateProposalsSingleImage",
    _GRID, "ExperimentalDetectronROIFeatureExtractor",
    "ExperimentalDetectronTopKROIs",
)  # fmt: skip


def _grid_of_its_own(layer: Layer, inputs: Sequence[Value], given: dict[str, Any]) -> Sequence[Value]:
    """The inputs, with a feature map of h x w cells where the layer has these attributes.

    The engines write the boxes of h x w cells, and the output has the declared rows: today's operation has a row for
    each cell of the feature map. Whether the result is flat follows from the declared sizes too.
    """
    given["flatten"] = len(layer.size()) == 2
    priors, feature_map, image = inputs
    batch, _, *cells = layer.shape(feature_map)
    asked = [given.pop("h", 0), given.pop("w", 0)]
    sizes = [own or size for own, size in zip(asked, cells, strict=True)]
    return inputs if sizes == cells else (priors, layer.filled(0.0, (batch, 1, *sizes), F32), image)


def _operation(type: str) -> Callable[..., tuple[Value, ...]]:
    def translate(layer: Layer, *inputs: Value) -> tuple[Value, ...]:
        given: dict[str, Any] = {}
        for attribute in resolve(type, f"opset{_VERSION}").attributes:
            text = layer.attributes.get(attribute.name)
            if text is None and attribute.required:
                raise WrongAttributeError(f"the attribute {attribute.name} is missing")
            if text is not None:
                try:
                    given[attribute.parameter] = attribute.parse(text)
                except OpError as error:
                    raise WrongAttributeError(f"attribute {attribute.name}: {error}") from None
        if type == _GRID:
            inputs = _grid_of_its_own(layer, inputs, given)
        return layer.outputs(type, *(layer.f32(value) for value in inputs), version=_VERSION, **given)

    return translate


for _type in _TYPES:
    translates(_type)(_operation(_type))
