"""The first tensor that differs: its layer, what arrives there, and what differs in the layer itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.matching.side import attribute_values
from irexec.analysis.model import Model
from irexec.dtypes.elements import I32, I64
from irexec.errors import IrexecError
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node, Value
from irexec.ir.order import topological
from irexec.messages import counted
from irexec.tools.arrays.agreement import Agreement, Tolerance, agreement_of
from irexec.tools.compare.comparison import Divergence, InputRow, Layer, Suspect
from irexec.tools.compare.context import Context
from irexec.tools.compare.pairs import FOLDED
from irexec.tools.compare.rows import Ancestors, Found, Rows, layer, paths_of

_TELLING = 8
"""Elements from which on a constant that A has not tells a layer from others; exporters fold smaller ones in many
ways."""
_SMALL_SET = 5
"""Layers at most that are named together, if those that compute shapes are to be among them."""
_MOVES = ("Reshape", "Transpose", "Squeeze", "Unsqueeze")
"""Layers that move elements, or none."""
_EXACT = Tolerance(rtol=0.0, atol=0.0)
_FOLDED = Tolerance(rtol=1e-6, atol=1e-6, scaled=True)
"""The tolerance of constants that two exporters have folded in different orders."""


def describe_first(rows: Rows, context: Context) -> tuple[Divergence | None, tuple[Layer, ...]]:
    """The first divergence, and all layers that differ by themselves: their inputs agree, or they compute otherwise
    from the same."""
    differing = [found for found in rows.found if found.row.is_fault]
    if not differing:
        return None, ()
    by_value = {found.value: found for found in rows.found}
    found = independent(rows, context)
    first = min(found or differing, key=lambda one: one.order)
    layers = {one.value.node: layer(one.value, one.path) for one in found}
    return _described(first, by_value, Ancestors(by_value, context.b.model), context), tuple(layers.values())


def independent(rows: Rows, context: Context) -> list[Found]:
    """The tensors that differ by themselves, in the order in which they come to differ; see ``describe_first``."""
    by_value = {found.value: found for found in rows.found}
    ancestors = Ancestors(by_value, context.b.model)
    differing = [found for found in rows.found if found.row.is_fault]
    found = [one for one in differing if context.isolates or _is_told(one) or _is_independent(one, by_value, ancestors)]
    return sorted(found, key=lambda one: one.order)


def suspect(node: Node, first: Found, rows: Rows, context: Context) -> Suspect:
    """What is known of a layer of B, up to the first tensor that differs."""
    return _suspect(node.outputs[0], first, {found.value: found for found in rows.found}, context)


def _is_told(found: Found) -> bool:
    """Whether a layer computes otherwise; of one with bodies its layers tell more."""
    return found.row.follows is False and not found.value.node.bodies


def _is_independent(found: Found, by_value: Mapping[Value, Found], ancestors: Ancestors) -> bool:
    """Whether all that a tensor is computed from agrees, in the run in which it first differs."""
    sources = [by_value[value] for value in ancestors.of(found.value)[0]]
    return all(source.row.agreement.agrees or source.order >= found.order for source in sources)


def _described(first: Found, by_value: Mapping[Value, Found], ancestors: Ancestors, context: Context) -> Divergence:
    nodes = _in_front(first, by_value, ancestors, context.pairs.orders)
    nodes += [node for node in _misread(first, context) if node not in nodes]
    model = context.b.model
    constant, of_shapes = constant_layers(model), _computed_from_shapes(model)
    between: dict[Node, Suspect] = {}
    shapes: dict[Node, Suspect] = {}
    for node in nodes:
        one = _suspect(node.outputs[0], first, by_value, context)
        is_told = one.attributes or one.unknown_constants or any(row.agrees is False for row in one.inputs)
        if is_told or (node not in of_shapes and node.type != "ShapeOf"):
            between[node] = one
        elif node.type != "ShapeOf" and (node not in constant or _is_float(node)):
            shapes[node] = one
    between |= _few(shapes, {first.value.node, *between})
    return Divergence(
        row=first.row, suspect=_suspect(first.value, first, by_value, context), between=tuple(between.values())
    )


def _in_front(
    first: Found, by_value: Mapping[Value, Found], ancestors: Ancestors, orders: Mapping[Value, tuple[int, ...]]
) -> list[Node]:
    """The layers between the tensors that agree and one that differs.

    A layer in front that moves elements may be why, if A has its tensor in another order of axes. Where the shape of
    the tensor differs, a layer in front whose shape could not be compared may be, as long as these are few.
    """
    sources, nodes = ancestors.of(first.value)
    nodes += _reordering(sources, ancestors, orders)
    while first.row.agreement.largest is None:
        reshaped = [value for value in sources if value in by_value and by_value[value].is_reshaped]
        more = [node for node in dict.fromkeys(value.node for value in reshaped) if node not in nodes]
        if not more or len(nodes) + len(more) >= _SMALL_SET:
            break
        nodes += more
        sources = []
        for value in reshaped:
            found, between = ancestors.of(value)
            sources += found
            if len(nodes) + len(between) < _SMALL_SET:
                nodes += [node for node in between if node not in nodes]
    return nodes


def _reordering(sources: Sequence[Value], ancestors: Ancestors, orders: Mapping[Value, tuple[int, ...]]) -> list[Node]:
    """The layers from which on A has the tensors in another order of axes, up to some sources.

    These are layers that move elements, and others whose own sources come in A's order, such as a product with swapped
    operands.
    """
    found: dict[Node, None] = {}
    waiting, seen = [value for value in sources if value in orders], set(sources)
    while waiting:
        value = waiting.pop()
        reordered = [source for source in ancestors.of(value)[0] if source in orders]
        if value.node.type in _MOVES or not reordered:
            found[value.node] = None
        waiting += [source for source in reordered if source not in seen]
        seen.update(reordered)
    return list(found)


def _misread(first: Found, context: Context) -> list[Node]:
    """The layers that give what the layer reads where A's layer reads a tensor that B does not have.

    One of them may be at fault: B lacks a layer there, or one that moves elements, such as a Transpose, moves them
    otherwise.
    """
    node, of_a = first.value.node, context.pairs.layer_of_a(first.value.node)
    if of_a is None or of_a.type != node.type:
        return []
    paired = set(context.pairs.by_b.values())
    found: dict[Node, None] = {}
    for value, theirs in zip(node.inputs, of_a.inputs, strict=False):
        partner = None if value is None else context.pairs.by_b.get(value)
        if theirs is None or partner is None or partner in of_a.inputs or theirs in paired:
            continue
        source: Value | None = value
        while source is not None and source.node.type not in ("Parameter", "Constant") and len(found) < _SMALL_SET - 1:
            found[source.node] = None
            source = source.node.inputs[0] if source.node.type in _MOVES else None
    return list(found)


def _few(shapes: Mapping[Node, Suspect], chosen: set[Node]) -> dict[Node, Suspect]:
    """Layers that compute shapes or weights for the chosen layers, as long as all of them are a small set: else those
    read directly."""
    read = {value.node for node in chosen for value in node.inputs if value is not None}
    for few in (dict(shapes), {node: one for node, one in shapes.items() if node in read}):
        if len(few) + len(chosen) <= _SMALL_SET:
            return few
    return {}


def _is_float(node: Node) -> bool:
    facts = (value.fact for value in node.outputs)
    return any(fact is not None and fact.element is not None and fact.element.is_float for fact in facts)


def _computed_from_shapes(model: Model) -> set[Node]:
    """The layers whose results depend on constants alone, or are integers that depend on shapes, those of bodies
    included."""
    graphs = [model, *(body.graph for node in model.walk() for body in node.bodies.values())]
    found = {node for graph in graphs for node in constant_layers(graph)}
    for graph in graphs:
        for node in topological(graph)[0]:
            sources = [value.node for value in node.inputs if value is not None]
            are_integers = all(value.fact is not None and value.fact.element in (I32, I64) for value in node.outputs)
            if sources and are_integers and all(one.type in ("ShapeOf", "Constant") or one in found for one in sources):
                found.add(node)
    return found


def _suspect(value: Value, first: Found, by_value: Mapping[Value, Found], context: Context) -> Suspect:
    node = value.node
    of_a = context.pairs.layer_of_a(node)
    inputs = (
        _input(i, source, of_a, first, by_value, context) for i, source in enumerate(node.inputs) if source is not None
    )
    # Where A has one Constant for many layers, it has none of the constants that were folded into it.
    unknown = () if first.row.how == FOLDED else context.unknown_constants.get(node, ())
    constants = (one for one in unknown if one.constant is not None and one.constant.count >= _TELLING)
    return Suspect(
        layer(value, paths_of(context.b.model)[node]),
        tuple(inputs),
        _attributes(of_a, node),
        tuple(one.name for one in constants),
    )


def _input(
    i: int, value: Value, of_a: Node | None, first: Found, by_value: Mapping[Value, Found], context: Context
) -> InputRow:
    """What arrives at an input of the layer, against what arrives there in A."""
    name = value.name
    source = of_a.inputs[i] if of_a is not None and i < len(of_a.inputs) else None
    if value.node.constant is not None and source is not None and source.node.constant is not None:
        agreement = _constants(value.node, source.node, name)
        return InputRow(i, name, agreement.agrees, agreement.message)
    partner = context.pairs.by_b.get(value)
    if source is not None and partner is not None and partner is not source:
        return InputRow(i, name, False, f"A reads {source.name!r} here")
    if value.node.type == "Parameter":
        outer = value.node in context.b.model.nodes
        # That of a body is given what is compared outside of it.
        return InputRow(i, name, True if outer else None, "an input of the model" if outer else "an input of the body")
    if context.isolates and partner is not None:
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
    values, theirs = constant_value(node.constant), constant_value(other.constant)
    agreement = agreement_of(name, values, theirs, _EXACT, "A")
    if not agreement.agrees and agreement_of(name, values, theirs, _FOLDED, "A").agrees:
        return Agreement(
            name, True, agreement.largest, f"{counted(agreement.differing, 'value')} of {values.size} by rounding"
        )
    if agreement.agrees and node.constant.element is not other.constant.element:
        return Agreement(name, True, 0.0, f"of type {node.constant.element}, A has {other.constant.element}")
    return agreement


def _attributes(of_a: Node | None, node: Node) -> dict[str, tuple[str | None, str | None]]:
    """The attributes that differ; of layers of two types, the types."""
    if of_a is None:
        return {}
    if of_a.type != node.type:
        return {"type": (of_a.type, node.type)}
    mine, theirs = attribute_values(of_a), attribute_values(node)
    names = dict.fromkeys([*mine, *theirs])
    return {name: (mine.get(name), theirs.get(name)) for name in names if mine.get(name) != theirs.get(name)}
