"""Faults of implementations, planted in one layer of a model: the wrong result is what all later layers read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.analysis.model import Model
from irexec.dtypes.elements import F16, F32, I64
from irexec.ir.constants import constant_value
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from tests.reduce_sweep import Editing

Facts = Mapping[Value, Fact]
Damage = Callable[[Model, Sequence[Value]], None]
_PRODUCTS = ("MatMul", "Convolution", "GroupConvolution", "ConvolutionBackpropData", "Gemm")


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    Attributes:
        kind: its name.
        fits: whether a layer with these facts can have it.
        change: changes the layer with its editing, and returns the value that later layers read in place of its own.
    """

    kind: str
    fits: Callable[[Node, Facts], bool]
    change: Callable[[Node, Fact, Editing], Value]


def planted(fault: Fault, layer: str, fact: Fact, when_unobserved: bool = False) -> Damage:
    """The damage of a copy of a model that holds a layer of this name."""

    def damage(model: Model, values: Sequence[Value]) -> None:
        node = next((one for one in model.nodes if one.name == layer), None)
        if node is None or (when_unobserved and node.outputs[0] in values):
            return
        replace_output(model, values, node, lambda edit: fault.change(node, fact, edit))

    return damage


def replace_output(
    model: Model, values: Sequence[Value], node: Node, change: Callable[[Editing], Value], output: int = 0
) -> None:
    """Let all readers of a layer, and the values that are asked for, have what ``change`` makes of an output."""
    edit, own, before = Editing(model), node.outputs[output], set(model.nodes)
    new = change(edit)
    if new is own:
        return
    edit.put_after(own, new, [one for one in model.nodes if one not in before])
    for i, value in enumerate(values):
        if value is own:
            values[i] = new  # type: ignore[index]


def _shape(node: Node, facts: Facts) -> tuple[int, ...]:
    fact = facts[node.outputs[0]]
    return fact.static_shape if fact.is_static else ()


def _is_f32(node: Node, facts: Facts) -> bool:
    return facts[node.outputs[0]].element is F32 and bool(np.prod(_shape(node, facts)) > 1)


def _pads(node: Node) -> tuple[list[int], list[int]]:
    texts = (node.attributes.get("pads_begin", ""), node.attributes.get("pads_end", ""))
    begin, end = ([int(part) for part in text.split(",") if part.strip()] for text in texts)
    return begin, end


def _with_shifted_pads(node: Node, fact: Fact, edit: Editing) -> Value:
    if node.attributes.get("auto_pad", "explicit") in ("same_upper", "same_lower"):
        other = {"same_upper": "same_lower", "same_lower": "same_upper"}
        node.attributes["auto_pad"] = other[node.attributes["auto_pad"]]
        return node.outputs[0]
    begin, end = _pads(node)
    axis = next(i for i, size in enumerate(begin) if size)
    begin[axis], end[axis] = begin[axis] - 1, end[axis] + 1
    node.attributes |= {"pads_begin": ",".join(map(str, begin)), "pads_end": ",".join(map(str, end))}
    return node.outputs[0]


def _rolled(node: Node, fact: Fact, edit: Editing) -> Value:
    numbers = [edit.constant(np.array(one, np.int64), I64) for one in (1, len(fact.static_shape) - 1)]
    return edit.layer("Roll", "opset7", [node.outputs[0], *numbers], fact).outputs[0]


def _equal_axes(shape: Sequence[int]) -> tuple[int, int] | None:
    pairs = [(a, b) for b in range(len(shape)) for a in range(b) if shape[a] == shape[b] > 1]
    return pairs[-1] if pairs else None


def _transposition(node: Node, fact: Fact, edit: Editing, order: Sequence[int]) -> Value:
    shape = tuple(fact.static_shape[axis] for axis in order)
    axes = edit.constant(np.array(order, np.int64), I64)
    return edit.layer("Transpose", "opset1", [node.outputs[0], axes], Fact(F32, shape)).outputs[0]


def _with_swapped_axes(node: Node, fact: Fact, edit: Editing) -> Value:
    a, b = _equal_axes(fact.static_shape) or (0, 0)
    order = list(range(len(fact.static_shape)))
    order[a], order[b] = b, a
    return _transposition(node, fact, edit, order)


def _read_transposed(node: Node, fact: Fact, edit: Editing) -> Value:
    shape = fact.static_shape
    turned = _transposition(node, fact, edit, [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2])
    sizes = edit.constant(np.array(shape, np.int64), I64)
    return edit.layer("Reshape", "opset1", [turned, sizes], fact, special_zero="false").outputs[0]


def _addend(node: Node) -> int | None:
    """The input that is a constant."""
    found = [i for i, value in enumerate(node.inputs) if value is not None and value.node.constant is not None]
    return found[0] if len(found) == 1 else None


def _has_bias(node: Node, facts: Facts) -> bool:
    i = _addend(node) if node.type == "Add" and _is_f32(node, facts) else None
    return i is not None and _shape(node.inputs[1 - i].node, facts) == _shape(node, facts)  # type: ignore[union-attr]


def _without_bias(node: Node, fact: Fact, edit: Editing) -> Value:
    i = _addend(node)
    assert i is not None
    bias = node.inputs[i]
    assert bias is not None
    assert bias.node.constant is not None
    nothing = edit.constant(np.zeros_like(constant_value(bias.node.constant)), F32)
    node.ports[i].source = nothing
    return node.outputs[0]


def _has_epsilon(node: Node, facts: Facts) -> bool:
    if node.type in ("MVN", "NormalizeL2"):
        return True
    i = _addend(node) if node.type == "Add" and _is_f32(node, facts) else None
    constant = None if i is None else node.inputs[i].node.constant  # type: ignore[union-attr]
    return constant is not None and constant.count == 1 and 0 < float(constant_value(constant).reshape(-1)[0]) < 1e-3


def _with_larger_epsilon(node: Node, fact: Fact, edit: Editing) -> Value:
    if "eps" in node.attributes:
        node.attributes["eps"] = str(float(node.attributes["eps"]) * 1000)
        return node.outputs[0]
    i = _addend(node)
    assert i is not None
    value = node.inputs[i]
    assert value is not None
    assert value.node.constant is not None
    node.ports[i].source = edit.constant(constant_value(value.node.constant) * np.float32(1000), F32)
    return node.outputs[0]


def _rounds(node: Node, facts: Facts) -> bool:
    if node.type == "Interpolate":
        return node.attributes.get("mode") == "nearest" or "coordinate_transformation_mode" in node.attributes
    return node.type in ("FakeQuantize", "Round")


def _rounded_otherwise(node: Node, fact: Fact, edit: Editing) -> Value:
    if node.type == "Interpolate":
        node.attributes["coordinate_transformation_mode"] = (
            "half_pixel" if node.attributes.get("coordinate_transformation_mode") == "asymmetric" else "asymmetric"
        )
        node.attributes["nearest_mode"] = "ceil"
        return node.outputs[0]
    if node.type == "Round":
        node.type, node.version = "Floor", "opset1"
        node.attributes.clear()
        return node.outputs[0]
    low, high = (value for value in node.inputs[1:3])
    assert low is not None
    assert high is not None
    assert low.node.constant is not None
    assert high.node.constant is not None
    width = constant_value(high.node.constant) - constant_value(low.node.constant)
    half = edit.constant((width / (int(node.attributes["levels"]) - 1) / 2).astype(np.float32), F32)
    source = node.inputs[0]
    assert source is not None
    lower = edit.layer("Subtract", "opset1", [source, half], Fact(F32, fact.shape), auto_broadcast="numpy")
    node.ports[0].source = lower.outputs[0]
    return node.outputs[0]


def _in_f16(node: Node, fact: Fact, edit: Editing) -> Value:
    half = edit.layer("Convert", "opset1", [node.outputs[0]], Fact(F16, fact.shape), destination_type="f16")
    back = edit.layer("Convert", "opset1", [half.outputs[0]], fact, destination_type="f32")
    return back.outputs[0]


def _without_last_block(node: Node, fact: Fact, edit: Editing) -> Value:
    mask = np.ones(fact.static_shape[-1], np.float32)
    mask[-max(1, mask.size // 8) :] = 0
    kept = edit.constant(mask, F32)
    return edit.layer("Multiply", "opset1", [node.outputs[0], kept], fact, auto_broadcast="numpy").outputs[0]


def _has_weights(node: Node, facts: Facts) -> bool:
    if node.type not in ("MatMul", "Convolution") or not _is_f32(node, facts) or node.inputs[1] is None:
        return False
    constant = node.inputs[1].node.constant
    return constant is not None and constant.element is F32 and constant.count > 1


def _without_last_terms(node: Node, fact: Fact, edit: Editing) -> Value:
    """The sum leaves the last eighth of its terms out."""
    weights = node.inputs[1]
    assert weights is not None
    assert weights.node.constant is not None
    array = constant_value(weights.node.constant).copy()
    axis = 1 if node.type == "Convolution" or node.attributes.get("transpose_b") == "true" else 0
    kept = array.shape[axis] - max(1, array.shape[axis] // 8)
    array[(slice(None),) * axis + (slice(kept, None),)] = 0
    node.ports[1].source = edit.constant(array, F32)
    return node.outputs[0]


FAULTS = (
    Fault("wrong pad", lambda node, facts: any(_pads(node)[0]) or node.attributes.get("auto_pad", "").startswith("same"), _with_shifted_pads),
    Fault("off by one", lambda node, facts: _is_f32(node, facts) and _shape(node, facts)[-1] > 1, _rolled),
    Fault("swapped axis", lambda node, facts: _is_f32(node, facts) and _equal_axes(_shape(node, facts)) is not None, _with_swapped_axes),
    Fault("missing bias", _has_bias, _without_bias),
    Fault("wrong epsilon", _has_epsilon, _with_larger_epsilon),
    Fault("wrong rounding", _rounds, _rounded_otherwise),
    Fault("f16", _is_f32, _in_f16),
    Fault("dropped last block", lambda node, facts: _is_f32(node, facts) and _shape(node, facts)[-1] > 1, _without_last_block),
    Fault("dropped last terms", _has_weights, _without_last_terms),
    Fault("transposed result", lambda node, facts: node.type in _PRODUCTS and _is_f32(node, facts) and min(_shape(node, facts)[-2:]) > 1, _read_transposed),
)  # fmt: skip
