"""Layers of bf16 computed in f32: by CPU plugins before 2023.0 on a processor without bf16, and where plugins before
2025.0 have a reference implementation alone, which does not know bf16.

Source: the releases 2022.3.2 and 2023.3.0 themselves (tests.release_sweep).
"""

from __future__ import annotations

from typing import Any

from irexec.analysis.portability.plugins import BF16_EVERYWHERE, BF16_NOT_COMPUTED, is_constant
from irexec.analysis.portability.releases import NOT_ASKED
from irexec.authoring.downgrade.layer import ONE, Layer, respells
from irexec.authoring.tensor import constant
from irexec.dtypes.elements import BF16, F32, lowest

_REDUCTIONS = tuple(f"Reduce{kind}" for kind in ("Max", "Min", "Mean", "Sum", "Prod", "L1", "L2"))
_IN_A_REFERENCE = ("BinaryConvolution", "GatherTree", "MatrixNms", "FakeConvert")
"""Operations that plugins do not compute in bf16; FakeConvert they compute, and round each step to bf16."""


@respells(BF16_EVERYWHERE, "Convert", *sorted(BF16_NOT_COMPUTED), follows=True)
def _on_any_processor(layer: Layer) -> Any:
    return _in_f32(layer)


@respells(NOT_ASKED, *_IN_A_REFERENCE, follows=True)
def _by_a_reference(layer: Layer) -> Any:
    return _in_f32(layer)


@respells(NOT_ASKED, "FakeQuantize", "MVN", "NormalizeL2", *_REDUCTIONS, follows=True)
def _by_computed_lists(layer: Layer) -> Any:
    """With axes or ranges that are not constants the plugin takes its reference implementation."""
    return None if all(is_constant(x.value) for x in layer.inputs[1:]) else _in_f32(layer)


@respells(NOT_ASKED, "MaxPool", follows=True)
def _with_indices(layer: Layer) -> Any:
    """Indices come from the reference implementation; a window in the padding gives infinity without them."""
    return _in_f32(layer) if 1 in layer.read or _may_miss_the_data(layer) else None


def _in_f32(layer: Layer) -> Any:
    """The results are rounded to bf16, as those of the layer are."""
    if all(tensor.element is not BF16 for tensor in layer.inputs):
        return None
    inputs = [ONE.convert(x, destination_type="f32") if x.element is BF16 else x for x in layer.inputs]
    if layer.definition.type == "Convert":
        target = layer.outputs[0].element
        return layer.same(1, *inputs) if target is not None and target.kind == "boolean" else None
    wide: dict[str, Any] = {name: F32 for name, value in layer.attributes.items() if value is BF16}
    found = layer.same(layer.since, *inputs, **wide)
    given = found if isinstance(found, tuple) else (found,)
    if _may_miss_the_data(layer):
        given = (ONE.maximum(given[0], constant(lowest(BF16), "f32")), *given[1:])
    return tuple(
        ONE.convert(x, destination_type="bf16") if x.element is not output.element else x
        for x, output in zip(given, layer.outputs, strict=True)
    )


def _may_miss_the_data(layer: Layer) -> bool:
    """Whether a window of a MaxPool may lie in the padding: its maximum is the lowest number of the type."""
    if layer.definition.type != "MaxPool":
        return False
    is_whole = layer["auto_pad"] != "explicit" or all(
        max(ends) < size for size, *ends in zip(layer["kernel"], layer["pads_begin"], layer["pads_end"], strict=True)
    )
    return not is_whole or layer["rounding_type"] != "floor" or set(layer.attributes.get("dilations", [1])) > {1}
