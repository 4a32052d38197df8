"""Fast kernel of FakeQuantize."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irexec.backend.registry import fast_kernel
from irexec.dtypes.elements import F32
from irexec.ir.facts import Fact


@fast_kernel("FakeQuantize", since=1)
def _fake_quantize_1(
    data: Fact,
    input_low: Fact,
    input_high: Fact,
    output_low: Fact,
    output_high: Fact,
    *,
    levels: int,
    auto_broadcast: str = "numpy",
) -> Callable[..., np.ndarray] | None:
    """For constant bounds with input_low < input_high: data clipped to them, then every operation in place."""
    bounds = [fact.known for fact in (input_low, input_high, output_low, output_high)]
    if data.element is not F32 or auto_broadcast == "pdpd":
        return None
    known = [bound for bound in bounds if bound is not None and np.isfinite(bound).all()]
    if len(known) < 4 or not (known[0] < known[1]).all():
        return None
    low, high, out_low, out_high = known
    span, out_span, intervals = high - low, out_high - out_low, np.float32(levels - 1)
    if not (np.isfinite(span).all() and np.isfinite(out_span).all()):
        return None

    def quantize(data: np.ndarray, *_: np.ndarray) -> np.ndarray:
        out = np.asarray(np.maximum(data, low))
        with np.errstate(all="ignore"):
            np.minimum(out, high, out=out)
            out -= low
            out /= span
            out *= intervals
            np.rint(out, out=out)
            out /= intervals
            out *= out_span
            out += out_low
        return out

    return quantize
