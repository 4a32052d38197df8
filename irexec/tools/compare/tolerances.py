"""Default tolerances of pairs of tensors."""

from __future__ import annotations

import functools
import math

from irexec.analysis.model import Model
from irexec.dtypes.elements import BF16, Element
from irexec.ir.graph import Graph, Value
from irexec.ir.order import topological
from irexec.tools.arrays.agreement import THRESHOLDS, Metric, Tolerance
from irexec.tools.compare.options import CompareOptions

RTOL = {"f64": 1e-4, "f32": 1e-4, "f16": 1e-2, "bf16": 5e-2, "f8e4m3": 0.25, "f8e5m2": 0.5}
"""Relative tolerance by the coarser element type of a pair: about ten times the rounding of a value, for sums of
products."""
QUANTISED_SNR = 20.0
"""Minimum SNR in decibels of a tensor of a well quantised network."""
_WEIGHTS = 16
"""Minimum number of elements of weights."""


class Tolerances:
    """The tolerance for each pair of tensors.

    Args:
        options: the options of the user.
        a, b: the precision of the weights of both models.
    """

    def __init__(self, options: CompareOptions, a: Precision, b: Precision) -> None:
        self._options = options
        self.quantised = a.quantised != b.quantised
        self.metric: Metric = options.metric or (
            "snr" if self.quantised and options.rtol is None and options.atol is None else "max"
        )
        # Weights of another precision have other values, and so have all tensors after them.
        self._coarsest = max((a.rtol, b.rtol)) if a.rtol != b.rtol else 0.0

    def of(self, *elements: Element | None) -> Tolerance:
        """The tolerance for tensors of these element types."""
        options = self._options
        if self.metric != "max":
            default = QUANTISED_SNR if self.quantised and self.metric == "snr" else THRESHOLDS[self.metric]
            return Tolerance(self.metric, threshold=default if options.threshold is None else options.threshold)
        rtol = options.rtol
        if rtol is None:
            rtol = max([RTOL["f32"], self._coarsest, *(RTOL.get(str(one), RTOL["f32"]) for one in elements)])
        if options.atol is not None:
            return Tolerance(rtol=rtol, atol=options.atol)
        return Tolerance(rtol=rtol, atol=rtol, scaled=True)

    @functools.cached_property
    def text(self) -> str:
        """The tolerance of f32 values as text."""
        return str(self.of())


class Precision:
    """The precision of the weights of a model.

    Attributes:
        rtol: relative tolerance for the coarsest floating-point type of weights.
        quantised: whether it has FakeQuantize, or weights of small integers that are converted.
    """

    def __init__(self, model: Model | None) -> None:
        self.rtol, self.quantised = RTOL["f32"], False
        converted = {
            value.node
            for node in (model.walk() if model else ())
            if node.type == "Convert"
            for value in node.inputs
            if value is not None
        }
        for node in model.walk() if model else ():
            if node.type in ("FakeQuantize", "FakeConvert"):
                self.quantised = True
            if node.constant is None or math.prod(node.constant.shape) < _WEIGHTS:
                continue
            element = node.constant.element
            if element.is_float:
                self.rtol = max(self.rtol, RTOL.get(str(element), RTOL["f8e5m2"]))
            elif element.bits <= 8 and element.is_integer and node in converted:
                self.quantised = True


def computed_from_bf16(model: Model) -> set[Value]:
    """The values that are computed in bf16, and all that are computed from them.

    OpenVINO's CPU plugin leaves bf16 as it is on processors that have it, whatever its precision hint:
    each layer rounds.
    """
    found: set[Value] = set()
    _add_computed_from_bf16(model, found, is_all=False)
    return found


def _add_computed_from_bf16(graph: Graph, found: set[Value], *, is_all: bool) -> bool:
    """Add the values of a graph, all of them or those from bf16 on; returns whether there are any."""
    has_any = is_all
    for node in topological(graph)[0]:
        if node.type == "Constant" or (node.type == "Parameter" and not is_all):
            continue
        rounds = is_all or any(value.fact is not None and value.fact.element is BF16 for value in node.outputs)
        rounds |= any(value in found for value in node.inputs)
        for body in node.bodies.values():
            rounds |= _add_computed_from_bf16(body.graph, found, is_all=rounds)
        if rounds:
            found.update(node.outputs)
            has_any = True
    return has_any
