"""Layers of bf16 computed in f32, for CPU plugins before 2023.0 on a processor without bf16.

Source: the release 2022.3.2 itself (tests.release_sweep).
"""

from __future__ import annotations

from typing import Any

from irexec.analysis.portability.plugins import BF16_EVERYWHERE, BF16_NOT_COMPUTED
from irexec.authoring.downgrade.layer import ONE, Layer, respells
from irexec.dtypes.elements import BF16, F32


@respells(BF16_EVERYWHERE, "Convert", *sorted(BF16_NOT_COMPUTED), follows=True)
def _in_f32(layer: Layer) -> Any:
    """The results are rounded to bf16, as those of the layer are."""
    if all(tensor.element is not BF16 for tensor in layer.inputs) or _may_miss_the_data(layer):
        return None
    inputs = [ONE.convert(x, destination_type="f32") if x.element is BF16 else x for x in layer.inputs]
    if layer.definition.type == "Convert":
        target = layer.outputs[0].element
        return layer.same(1, *inputs) if target is not None and target.kind == "boolean" else None
    wide: dict[str, Any] = {name: F32 for name, value in layer.attributes.items() if value is BF16}
    found = layer.same(layer.since, *inputs, **wide)
    given = found if isinstance(found, tuple) else (found,)
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
