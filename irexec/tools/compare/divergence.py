"""The first tensor that differs: its layer, the inputs of the layer, and differences of the layer itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.f32_arithmetic import HALVES
from irexec.analysis.matching.side import attribute_values
from irexec.errors import IrexecError
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node, Value
from irexec.messages import counted
from irexec.tools.arrays.agreement import Agreement, Tolerance, agreement_of
from irexec.tools.compare.comparison import ComparedLayer, Divergence, InputRow, Suspect
from irexec.tools.compare.evidence import is_suspicious
from irexec.tools.compare.folded import COMMUTATIVE
from irexec.tools.compare.open_sides import OpenSides
from irexec.tools.compare.pairs import FOLDED, VALUES
from irexec.tools.compare.reordering import MOVES, reordering
from irexec.tools.compare.rows import Ancestors, Found, Rows, layer, paths_of
from irexec.tools.compare.sides import computed_from_shapes
from irexec.tools.compare.trials import with_trials

_TELLING = 8
"""Minimum number of elements of an unknown constant that is named; exporters fold smaller ones in many ways."""
_SMALL_SET = 5
"""Maximum number of layers that are named together with layers that compute shapes or move axes."""
_FAR = 100
"""Maximum number of tensors in front of a divergence that are examined."""
_EXACT = Tolerance(rtol=0.0, atol=0.0)
_FOLDED = Tolerance(rtol=1e-6, atol=1e-6, scaled=True)
"""Tolerance of constants that two exporters folded in different orders."""


def describe_first(rows: Rows, context: OpenSides) -> tuple[Divergence | None, tuple[ComparedLayer, ...]]:
    """The first divergence, and all layers that differ by themselves: their inputs agree, or equal inputs have another
    result."""
    differing = [found for found in rows.found if found.row.is_fault]
    if not differing:
        return None, ()
    by_value = {found.value: found for found in rows.found}
    found = independent(rows, context)
    first = found[0] if found else min(differing, key=lambda one: one.order)
    layers = {one.value.node: layer(one.value, one.path) for one in found}
    described = _described(first, by_value, Ancestors(by_value, context.b.model), context)
    tried = with_trials(described, first, rows, context, lambda node: suspect(node, first, rows, context))
    return tried, tuple(layers.values())


def independent(rows: Rows, context: OpenSides) -> list[Found]:
    """Tensors that differ by themselves, see ``describe_first``: those of certain pairs first, then guesses.

    Two exporters compute shapes in different layers: integers from shapes that are guessed to be a pair come last.
    Tensors of one rank have the order of their computation.
    """
    by_value = {found.value: found for found in rows.found}
    ancestors = Ancestors(by_value, context.b.model)
    differing = [found for found in rows.found if found.row.is_fault]
    found = [
        one
        for one in differing
        if context.options.isolate or _is_told(one) or _is_independent(one, by_value, ancestors)
    ]
    of_shapes = computed_from_shapes(context.b.model)

    def doubt(one: Found) -> int:
        # A pair by what follows may be wrong too: other tensors may do as well in front of a layer.
        is_guess = is_suspicious(one) or one.row.how == VALUES[1]
        return is_guess * (2 if one.value.node in of_shapes else 1)

    return sorted(found, key=lambda one: (doubt(one), one.order))


def blame_reordering(rows: Rows, context: OpenSides) -> None:
    """Name the layer that changed an order of axes, in place of the layer that reads the tensor.

    The reading layer computes the same function as A's layer, but on A's values with axes in another order. The layer
    that changed the order is at fault if it also differs from A's layer by itself; else both may be at fault.
    """
    by_value = {found.value: found for found in rows.found}
    ancestors = Ancestors(by_value, context.b.model)
    of_shapes = computed_from_shapes(context.b.model)
    moved: dict[Value, Found] = {}
    innocent: set[Value] = set()
    for found in rows.found:
        if not found.row.is_fault or found.path:
            continue
        has_right_shape = _has_right_shape(found)
        if not has_right_shape and _suspect(found.value, found, by_value, context).differs:
            continue
        sources, between = ancestors.of(found.value)
        first = reordering(sources, ancestors, context.pairs.orders)
        is_direct = not between or (
            has_right_shape and of_shapes.issuperset(node for node in between if node.type != "ShapeOf")
        )
        are_known = all(by_value[one].row.agreement.agrees for one in (*sources, *first))
        if is_direct and are_known and first and all(_suspect(one, found, by_value, context).differs for one in first):
            innocent.add(found.value)
            moved |= dict.fromkeys(first, found)
    rows.found = [
        _reordered(one, moved[one.value], context.pairs.orders[one.value])
        if one.value in moved
        else replace(one, row=replace(one.row, follows=True))
        if one.value in innocent
        else one
        for one in rows.found
    ]


def _reordered(one: Found, reader: Found, order: Sequence[int]) -> Found:
    text = f"values of A with axes in the order {list(order)}, which {reader.row.b.name!r} reads in A's order"
    agreement = replace(one.row.agreement, agrees=False, message=text)
    return replace(one, row=replace(one.row, agreement=agreement, follows=False))


def suspect(node: Node, first: Found, rows: Rows, context: OpenSides) -> Suspect:
    """A layer of B as a suspect, with inputs as they are up to the first tensor that differs."""
    return _suspect(node.outputs[0], first, {found.value: found for found in rows.found}, context)


def _is_told(found: Found) -> bool:
    """Whether equal inputs have another result in the layer; layers inside its bodies are named in its place."""
    return found.row.follows is False and not found.value.node.bodies


def _is_independent(found: Found, by_value: Mapping[Value, Found], ancestors: Ancestors) -> bool:
    """Whether all inputs of a tensor agree, in the run in which it first differs."""
    sources = [by_value[value] for value in ancestors.of(found.value)[0]]
    return all(source.row.agreement.agrees or source.order >= found.order for source in sources)


def _described(first: Found, by_value: Mapping[Value, Found], ancestors: Ancestors, context: OpenSides) -> Divergence:
    nodes = _in_front(first, by_value, ancestors, context)
    if first.is_other_values:
        nodes = _computing(first.value.node, nodes)
    model = context.b.model
    constant, of_shapes = constant_layers(model), computed_from_shapes(model)
    between: dict[Node, Suspect] = {}
    shapes: dict[Node, Suspect] = {}
    for node in nodes:
        one = _suspect(node.outputs[0], first, by_value, context)
        if one.differs or (node not in of_shapes and node.type != "ShapeOf"):
            between[node] = one
        elif node.type != "ShapeOf" and (node not in constant or _is_float(node)):
            shapes[node] = one
    if not _has_right_shape(first):
        between |= _few(shapes, {first.value.node, *between})
    return Divergence(
        row=first.row, suspect=_suspect(first.value, first, by_value, context), between=tuple(between.values())
    )


def _in_front(first: Found, by_value: Mapping[Value, Found], ancestors: Ancestors, context: OpenSides) -> list[Node]:
    """Layers between the agreeing tensors and one that differs, and layers that moved axes in front of them.

    Beside a tensor of f32 they include layers whose tensors of f16 or bf16 agree by the tolerance of these types alone.
    """
    sources, nodes = ancestors.of(first.value)
    nodes += [value.node for value in reordering(sources, ancestors, context.pairs.orders)]
    nodes += [node for node in _coarser(first.value, sources, ancestors) if node not in nodes]
    if first.row.agreement.largest is not None:
        return _misread(first, context) or nodes
    more = [node for node in _axes_from(first, by_value, context) if node not in nodes]
    return [*nodes, *more[: max(0, _SMALL_SET - 1 - len(nodes))]]


def _coarser(value: Value, sources: Sequence[Value], ancestors: Ancestors) -> list[Node]:
    """The layers of f16 or bf16 in front of a value of another type, as long as these are few."""
    found: dict[Node, None] = {}
    waiting = [] if _is_half(value) else [*sources]
    while waiting and len(found) < _SMALL_SET - 1:
        source = waiting.pop(0)
        if _is_half(source) and source.node not in found and source.node.type not in ("Parameter", "Constant"):
            found[source.node] = None
            waiting += ancestors.of(source)[0]
    return list(found)


def _is_half(value: Value) -> bool:
    return value.fact is not None and value.fact.element in HALVES


def _axes_from(first: Found, by_value: Mapping[Value, Found], context: OpenSides) -> list[Node]:
    """Layers that may have given a tensor its shape, which is another one in A; the nearest first.

    These are layers that move axes, and layers unlike those of A. Other layers pass axes on. Layers whose tensors have
    A's shape come last; the search ends at such a layer if the first layer has a difference of its own.
    """
    inputs, own = first.value.node.inputs, _suspect(first.value, first, by_value, context)
    constants = {i for i, value in enumerate(inputs) if value is not None and value.node.constant is not None}
    is_told = bool(own.attributes or own.unknown_constants) or any(
        one.agrees is False and one.index in constants for one in own.inputs
    )
    near: dict[Node, None] = {}
    far: dict[Node, None] = {}
    waiting, seen = deque(inputs), set[Value]()
    while waiting and len(near) < _SMALL_SET and len(seen) < _FAR:
        value = waiting.popleft()
        if value is None or value in seen or value.node.type in ("Parameter", "Constant", "ShapeOf", "ReadValue"):
            continue
        seen.add(value)
        node, found = value.node, by_value.get(value)
        moves = node.type in MOVES
        is_as_in_a = found is not None and found.row.agreement.agrees and not found.is_reshaped
        if is_as_in_a and value not in context.pairs.orders:
            if is_told:
                continue
            if moves:
                far[node] = None
        elif moves or found is None or _suspect(value, first, by_value, context).differs:
            near[node] = None
        waiting.extend(node.inputs[:1] if moves else node.inputs)
    return [*near, *far]


def _misread(first: Found, context: OpenSides) -> list[Node]:
    """Layers in front of an input at which A's layer reads a tensor that B does not have.

    One of them may be at fault: B lacks a layer after it, or a layer such as a Transpose moves elements otherwise. The
    same holds if B has the tensor, but in front of such a layer.
    """
    node, of_a = first.value.node, context.pairs.layer_of_a(first.value.node)
    if of_a is None or of_a.type != node.type:
        return []
    paired = set(context.pairs.by_b.values())
    found: dict[Node, None] = {}
    for value, theirs in zip(node.inputs, of_a.inputs, strict=False):
        partner = None if value is None else context.pairs.by_b.get(value)
        if theirs is None or partner is None or partner in of_a.inputs or _are_equal_in_a(theirs, partner, context):
            continue
        moved = _moved(value)
        if theirs not in paired or any(context.pairs.by_b.get(one) is theirs for one in moved[1:]):
            found |= dict.fromkeys(one.node for one in moved)
    return list(found)[: _SMALL_SET - 1]


def _moved(value: Value | None) -> list[Value]:
    """A value and the values in front of it with the same elements, up to the first that is computed."""
    found: list[Value] = []
    while value is not None and value.node.type not in ("Parameter", "Constant"):
        found.append(value)
        value = value.node.inputs[0] if value.node.type in MOVES else None
    return found


def _has_right_shape(one: Found) -> bool:
    """Whether the shape that a Reshape or Broadcast reads is right, since its result has A's shape."""
    return one.value.node.type in ("Reshape", "Broadcast") and one.row.agreement.largest is not None


def _are_equal_in_a(one: Value, other: Value, context: OpenSides) -> bool:
    """Whether two tensors of A have the same elements in one order, as those in front of and after a Reshape."""
    arrays = context.observed_a([one, other]).arrays
    if one not in arrays or other not in arrays:
        return False
    runs = zip(arrays[one], arrays[other], strict=True)
    return all(np.array_equal(mine.ravel(), theirs.ravel()) for mine, theirs in runs)


def _computing(first: Node, nodes: Sequence[Node]) -> list[Node]:
    """The layers without innocent ones: layers that only move or copy elements, up to a layer that does the same."""
    moving = (*MOVES, "Concat", "Broadcast", "Tile")
    innocent: set[Node] = set()
    waiting = [first] if first.type in moving else []
    while waiting:
        node = waiting.pop()
        sources = {value.node for value in node.inputs[: None if node.type == "Concat" else 1] if value is not None}
        fresh = [source for source in sources if source.type in moving and source not in innocent]
        innocent.update(fresh)
        waiting += fresh
    return [node for node in nodes if node not in innocent]


def _few(shapes: Mapping[Node, Suspect], chosen: set[Node]) -> dict[Node, Suspect]:
    """Layers that compute shapes or weights for the chosen layers, if all of them are a small set; else the layers that
    are read directly."""
    read = {value.node for node in chosen for value in node.inputs if value is not None}
    for few in (dict(shapes), {node: one for node, one in shapes.items() if node in read}):
        if len(few) + len(chosen) <= _SMALL_SET:
            return few
    return {}


def _is_float(node: Node) -> bool:
    facts = (value.fact for value in node.outputs)
    return any(fact is not None and fact.element is not None and fact.element.is_float for fact in facts)


def _suspect(value: Value, first: Found, by_value: Mapping[Value, Found], context: OpenSides) -> Suspect:
    node = value.node
    of_a = context.pairs.layer_of_a(node)
    theirs = [*_inputs_of_a(node, of_a, context), *[None] * len(node.inputs)]
    inputs = (
        _input(i, value, source, first, by_value, context)
        for i, (value, source) in enumerate(zip(node.inputs, theirs, strict=False))
        if value is not None
    )
    # A Constant of A in place of many layers has the constants of these layers folded into it.
    unknown = () if first.row.how == FOLDED else context.unknown_constants.get(node, ())
    constants = (one for one in unknown if one.constant is not None and one.constant.count >= _TELLING)
    return Suspect(
        layer(value, paths_of(context.b.model)[node]),
        tuple(inputs),
        differing_attributes(of_a, node),
        tuple(one.name for one in constants),
    )


def _inputs_of_a(node: Node, of_a: Node | None, context: OpenSides) -> list[Value | None]:
    """The inputs of A's layer in B's order: two exporters may write a sum with its operands exchanged."""
    inputs = [] if of_a is None else list(of_a.inputs)
    if node.type not in COMMUTATIVE or len(inputs) != len(node.inputs):
        return inputs
    partners = [None if value is None else context.pairs.by_b.get(value) for value in node.inputs]
    is_exchanged = any(one is not None and one is other for one, other in zip(partners, inputs[::-1], strict=True))
    return inputs[::-1] if is_exchanged else inputs


def _input(
    i: int, value: Value, source: Value | None, first: Found, by_value: Mapping[Value, Found], context: OpenSides
) -> InputRow:
    """An input of a layer beside the same input of A's layer."""
    name = value.name
    if value.node.constant is not None and source is not None and source.node.constant is not None:
        agreement = _constants(value.node, source.node, name)
        return InputRow(i, name, agreement.agrees, agreement.message)
    partner = context.pairs.by_b.get(value)
    if source is not None and partner is not None and partner is not source:
        return InputRow(i, name, False, f"A reads {source.name!r} here")
    if value.node.type == "Parameter":
        outer = value.node in context.b.model.nodes
        # The input of a body is a tensor outside of the body.
        return InputRow(i, name, True if outer else None, "an input of the model" if outer else "an input of the body")
    if context.options.isolate and partner is not None:
        return InputRow(i, name, True, "as in A")
    found = by_value.get(value)
    if found is None:
        return InputRow(i, name, None, "")
    if found.order > first.order:
        # It differs only later: in another run or iteration.
        return InputRow(i, name, True, "")
    return InputRow(i, name, found.row.agreement.agrees, found.row.agreement.message)


def _constants(node: Node, other: Node, name: str) -> Agreement:
    if node.constant is None or other.constant is None:
        raise AssertionError("both are Constants")
    if node.constant.element is other.constant.element and node.constant.shape == other.constant.shape:
        try:
            if np.array_equal(node.constant.raw, other.constant.raw):
                return Agreement(name, True, 0.0, "")
        except IrexecError as error:
            return Agreement(name, False, None, str(error))
    values, theirs = (_without_leading_ones(constant_value(one)) for one in (node.constant, other.constant))
    agreement = agreement_of(name, values, theirs, _EXACT, "A")
    if not agreement.agrees and agreement_of(name, values, theirs, _FOLDED, "A").agrees:
        return Agreement(
            name, True, agreement.largest, f"{counted(agreement.differing, 'value')} of {values.size} by rounding"
        )
    if agreement.agrees and node.constant.element is not other.constant.element:
        return Agreement(name, True, 0.0, f"of type {node.constant.element}, A has {other.constant.element}")
    return agreement


def _without_leading_ones(array: np.ndarray) -> np.ndarray:
    """An array without the axes of size 1 in front, which broadcasting adds anyway."""
    first = next((i for i, size in enumerate(array.shape) if size != 1), array.ndim)
    return array.reshape(array.shape[first:])


def differing_attributes(of_a: Node | None, node: Node) -> dict[str, tuple[str | None, str | None]]:
    """Differing attributes; the types, for layers of two types."""
    if of_a is None:
        return {}
    if of_a.type != node.type:
        return {"type": (of_a.type, node.type)}
    mine, theirs = attribute_values(of_a), attribute_values(node)
    names = dict.fromkeys([*mine, *theirs])
    differing = {name: (mine.get(name), theirs.get(name)) for name in names if mine.get(name) != theirs.get(name)}
    if _is_one_axis(node, *differing.get("axis", ("", ""))):
        del differing["axis"]
    return differing


def _is_one_axis(node: Node, one: str | None, other: str | None) -> bool:
    """Whether two texts are an axis of a layer, counted from the first axis and from the last."""
    fact = node.inputs[0].fact if node.inputs and node.inputs[0] is not None else None
    if not one or not other or fact is None or not fact.shape:
        return False
    if not one.lstrip("-").isdigit() or not other.lstrip("-").isdigit():
        return False
    return int(one) % len(fact.shape) == int(other) % len(fact.shape)
