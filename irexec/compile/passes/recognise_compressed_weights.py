"""Recognise weights stored as small integers (NNCF), so that only the kernels that read them unpack them.

    Constant (u2, i4, u4, i8, u8) -> Convert -> [Subtract zero point] -> Multiply scale -> [Reshape] -> [Convert]

becomes one constant. A kernel that knows its form decompresses blocks; for any other it is like every constant.
"""

from __future__ import annotations

import math

from irexec.backend.compressed import CompressedSource
from irexec.compile.graph import CompileGraph, CompileValue, constant_value
from irexec.compile.levels import PRODUCTS, THROUGH
from irexec.compile.pattern import call, either, value
from irexec.compile.rewriting import Replacement, Rewriting, Rule, apply_rules
from irexec.dtypes.elements import F16, F32, I4, I8, U2, U4, U8
from irexec.ir.constants import Constant
from irexec.ir.dims import is_static

SMALLEST = 1 << 12
"""Elements of a constant that is worth being kept compressed."""

_CONVERTED = call("Convert", value("stored", constant=True))
_ZERO, _SCALE = (
    either(call("Convert", part), part) for part in (value(name, constant=True) for name in ("zero point", "scale"))
)
_SCALED = call("Multiply", either(call("Subtract", _CONVERTED, _ZERO), _CONVERTED), _SCALE)
_SHAPED = either(call("Reshape", _SCALED, value("shape")), _SCALED)
WEIGHTS = either(call("Convert", _SHAPED), _SHAPED)
"""Weights of a product: ``stored``, ``scale`` and perhaps ``zero point``."""


def recognise_compressed_weights(graph: CompileGraph, rewriting: Rewriting) -> None:
    """Replace each by a constant of a CompressedSource."""
    apply_rules(graph, rewriting, [Rule("compressed weights", WEIGHTS, _compressed)], outermost_first=True)


def _compressed(found: Replacement) -> CompileValue | str:
    sources = {name: part.constant for name, part in found.match.values.items() if part.constant is not None}
    packed, root = sources["stored"].raw, found.root.output
    if packed is None:
        return "its values are computed"
    reason = _obstacle(found, packed)
    if reason is not None:
        return reason
    shape = root.fact.static_shape
    computed = _scaled(found).fact.element

    def make() -> CompressedSource:
        zero_point = sources["zero point"].array() if "zero point" in sources else None
        return CompressedSource(packed, zero_point, sources["scale"].array(), shape, computed or F32)

    key = ("compressed weights", shape, computed)
    return constant_value(found.rewriting.constants.share(key, tuple(sources.values()), make), root.name)


def _scaled(found: Replacement) -> CompileValue:
    return next(one.output for one in found.match.operations if one.type == "Multiply")


def _obstacle(found: Replacement, packed: Constant) -> str | None:
    """Why the weights are computed as every other constant; None if they can stay compressed."""
    scaled = _scaled(found).fact
    if packed.element not in (U2, I4, U4, I8, U8):
        return f"values of {packed.element} are not decompressed by blocks"
    # Whether a product reads them whose data is quantised, which may be computed in integers.
    data = (reader.inputs[0].producer for reader in found.root.output.readers if reader.type in PRODUCTS)
    quantised = THROUGH | {"FakeQuantize", "Dequantize"}
    of_levels = any(producer is not None and producer.type in quantised for producer in data)
    if packed.count < SMALLEST and not of_levels:
        return f"{packed.count} elements are too few"
    if scaled.element not in (F16, F32):
        return f"it is scaled in {scaled.element}"
    if scaled.shape != packed.shape or not found.root.output.fact.is_static:
        return "scale or zero point enlarge it"
    shapes = [found.match[name].fact.shape for name in ("zero point", "scale") if name in found.match.values]
    smallest = 1 if of_levels else 4
    if any(not is_static(shape) or math.prod(shape) > packed.count // smallest for shape in shapes):
        return "its groups are too small"
    return None
