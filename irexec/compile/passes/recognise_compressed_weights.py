"""Recognise weights that are stored as small integers, as NNCF writes them, so that they are not unpacked before a kernel asks for them.

    Constant (i4, u4, i8, u8) -> Convert -> [Subtract zero point] -> Multiply scale -> [Reshape] -> [Convert]

becomes one constant. A kernel that knows its form decompresses blocks; for any other it is like every constant.
"""

from __future__ import annotations

import math

from irexec.backend.compressed import CompressedSource
from irexec.compile.graph import Graph, Value, constant_value
from irexec.compile.pattern import Replacement, Rule, apply_rules, call, either, value
from irexec.compile.rewriting import Rewriting
from irexec.dtypes.elements import F16, F32, I4, I8, U4, U8
from irexec.ir.constants import Constant

SMALLEST = 1 << 12
"""Elements of a constant that is worth being kept compressed."""

_CONVERTED = call("Convert", value("stored"))
_ZERO, _SCALE = (either(call("Convert", value(name)), value(name)) for name in ("zero point", "scale"))
_SCALED = call("Multiply", either(call("Subtract", _CONVERTED, _ZERO), _CONVERTED), _SCALE)
_SHAPED = either(call("Reshape", _SCALED, value("shape")), _SCALED)
_WEIGHTS = either(call("Convert", _SHAPED), _SHAPED)


def recognise_compressed_weights(graph: Graph, rewriting: Rewriting) -> None:
    """Replace each by a constant of a CompressedSource."""
    apply_rules(graph, rewriting, [Rule("compressed weights", _WEIGHTS, _compressed)], outermost_first=True)


def _compressed(found: Replacement) -> Value | str:
    parts = {name: found.match.values[name] for name in ("stored", "zero point", "scale") if name in found.match.values}
    sources = {name: part.constant for name, part in parts.items() if part.constant is not None}
    packed = sources["stored"].raw if "stored" in sources else None
    reason = _obstacle(found, packed, len(sources) == len(parts))
    if reason is not None or packed is None:
        return reason or "its values are not constants"
    shape = tuple(int(size) for size in found.root.output.fact.shape or ())  # type: ignore[arg-type]
    computed = next(one for one in found.match.operations if one.type == "Multiply").output.fact.element

    def make() -> CompressedSource:
        zero_point = sources["zero point"].array() if "zero point" in sources else None
        return CompressedSource(packed, zero_point, sources["scale"].array(), shape, computed or F32)

    key = ("compressed weights", shape, computed)
    return constant_value(found.rewriting.constants.share(key, tuple(sources.values()), make), found.root.output.name)


def _obstacle(found: Replacement, packed: Constant | None, constant: bool) -> str | None:
    """Why the weights are computed as every other constant; None if they can stay compressed."""
    if not constant or packed is None:
        return "its values are not constants"
    if packed.element not in (I4, U4, I8, U8):
        return f"values of {packed.element} are not decompressed by blocks"
    if packed.count < SMALLEST:
        return f"{packed.count} elements are too few"
    scaled = next(one for one in found.match.operations if one.type == "Multiply")
    if scaled.output.fact.element not in (F16, F32):
        return f"it is scaled in {scaled.output.fact.element}"
    if scaled.output.fact.shape != packed.shape or not found.root.output.fact.is_static:
        return "scale or zero point enlarge it"
    shapes = [found.match[name].fact.shape for name in ("zero point", "scale") if name in found.match.values]
    if any(shape is None or math.prod(shape) > packed.count // 4 for shape in shapes):  # type: ignore[arg-type]
        return "its groups are too small"
    return None
