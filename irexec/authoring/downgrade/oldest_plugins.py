"""Layers that the CPU plugin before 2022.1 takes and computes wrongly, in forms that it computes right.

Source: the release 2021.4.2 itself (tests.release_sweep).
"""

from __future__ import annotations

from typing import Any

from irexec.analysis.portability.plugins import DYNAMIC_SHAPES, is_constant
from irexec.authoring.downgrade.layer import ONE, Layer, respells


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
