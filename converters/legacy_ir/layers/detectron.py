"""The layers of Detectron, which became operations of the same names and attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.objections import WrongAttributeError
from converters.legacy_ir.registry import translates
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.schema.registry import resolve

_VERSION = 6
_TYPES = (
    "ExperimentalDetectronDetectionOutput", "ExperimentalDetectronGenerateProposalsSingleImage",
    "ExperimentalDetectronPriorGridGenerator", "ExperimentalDetectronROIFeatureExtractor",
    "ExperimentalDetectronTopKROIs",
)  # fmt: skip


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
        return layer.outputs(type, *(layer.f32(value) for value in inputs), version=_VERSION, **given)

    return translate


for _type in _TYPES:
    translates(_type)(_operation(_type))
