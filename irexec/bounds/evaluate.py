"""Bounds of one operation, and of a region of layers whose inner tensors are not observed."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.evaluate import rounded
from irexec.bounds.bodies import body_bounds
from irexec.bounds.interval import ARITHMETICS, Algebra, Arithmetic, Bound, Interval, Unbounded, floats, joint, settled
from irexec.bounds.readings import UNDEFINED, anything, quantised_by_groups, read_as
from irexec.bounds.registry import Layer, rule_of, rules_integers
from irexec.dtypes.elements import BF16, F16, Element
from irexec.errors import IrexecError, OpError, check
from irexec.ir.constants import constant_value
from irexec.ir.dims import admits, shape_text
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node, Value
from irexec.ir.order import readers, topological
from irexec.schema.attributes import ElementTypes, Written
from irexec.schema.registry import resolve
from irexec.schema.shape_rules import MOVES

_PRODUCTS = {"MatMul", "Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData"}
Readings = Mapping[Node, Sequence[str]]
_NO_READINGS: Readings = {}
Groups = Mapping[Node, int]
_NO_GROUPS: Groups = {}
Known = TypeVar("Known")
Given = Mapping[Value, np.ndarray | Interval]


def graph_bounds(
    nodes: Sequence[Node],
    given: Mapping[Value, np.ndarray | Bound],
    facts: Mapping[Value, Fact],
    arithmetic: Arithmetic,
    roundings: float = 0,
    readings: Readings = _NO_READINGS,
    groups: Groups = _NO_GROUPS,
) -> dict[Value, Bound]:
    """The bounds of every output of the layers of a region.

    Args:
        nodes: layers in topological order; a single one for a layer whose inputs were observed.
        given: arrays, in the carriers of their types, or bounds of the values that the region reads from outside.
        facts: facts of all values.
        arithmetic: the arithmetic of the runtime.
        roundings: further roundings of each tensor, and of the terms of a sum, for layers that are computed as one: a
            runtime may give them another form. oneDNN computes clamp(x + 3, 0, 6) / 6 as clamp(x / 6 + 1 / 2, 0, 1).
        readings: codes of layers that are read otherwise, see irexec.bounds.readings.
        groups: for products whose rows the runtime quantises, the size of the groups.
    """
    known = {value: one if isinstance(one, Bound) else Interval.certain(one) for value, one in given.items()}
    found: dict[Value, Bound] = {}
    scaled, algebra = _scaled_weights(nodes), Algebra(arithmetic)
    known |= {one: algebra.rounded(bound) for one in scaled if isinstance(bound := known.get(one), Interval)}
    for node in nodes:
        bounds = _of_node(node, known, facts, arithmetic, readings.get(node, ()), groups.get(node, 0))
        if roundings and node.type not in MOVES and node.constant is None:
            bounds = tuple(_loosened(node, one, known, algebra, roundings) for one in bounds)
        for value, bound in zip(node.outputs, bounds, strict=True):
            # A value that is also given was observed: layers after it read the observed array.
            known.setdefault(
                value, algebra.rounded(bound) if value in scaled and isinstance(bound, Interval) else bound
            )
            found[value] = bound
    return found


def _scaled_weights(nodes: Sequence[Node]) -> set[Value]:
    """The constant weights of products that a constant of the region scales: a runtime may scale and round these."""
    products = [
        source.node
        for node in nodes
        if node.type in ("Multiply", "Divide", "BatchNormInference")
        for source in node.inputs
        if source is not None and source.node.type in _PRODUCTS
    ]
    return {one for node in products for one in node.inputs[1:2] if one is not None and one.node.constant is not None}


def _of_node(
    node: Node,
    known: Mapping[Value, Bound],
    facts: Mapping[Value, Fact],
    arithmetic: Arithmetic,
    codes: Sequence[str] = (),
    group: int = 0,
) -> tuple[Bound, ...]:
    if node.constant is not None and node.type == "Constant":
        return (Interval.certain(constant_value(node.constant)),)
    unknown = Unbounded("an input is not known")
    inputs = [
        None if value is None else _admitted(known.get(value, unknown), facts.get(value)) for value in node.inputs
    ]
    try:
        if node.bodies:
            # A runtime may hold them in its own type before the body, which may pass them on, begins.
            read = Algebra(arithmetic).read
            given = [unknown if one is None else read(one) if isinstance(one, Interval) else one for one in inputs]
            found = body_bounds(node, given, functools.partial(_of_body, facts, arithmetic))
            return found if UNDEFINED.isdisjoint(codes) else anything(found)
        for bound in inputs:
            if isinstance(bound, Unbounded):
                return (bound,) * len(node.outputs)
        layer = layer_of(node, facts, arithmetic)
    except IrexecError as error:
        return (Unbounded(str(error)),) * len(node.outputs)
    known_inputs = [one for one in inputs if not isinstance(one, Unbounded)]
    if node.type in _TRUNCATING and known_inputs[0] is not None and _is_whole(node.inputs[0], known, facts):
        x = known_inputs[0]
        known_inputs[0] = settled(floats(x.exact), np.ceil(floats(x.low)), np.floor(floats(x.high)), x.codes)
    if group and known_inputs[0] is not None:
        known_inputs[0] = quantised_by_groups(known_inputs[0], group, -2 if layer.attributes["transpose_a"] else -1)
    try:
        return read_as(codes, layer, known_inputs, operation_bounds)
    except OpError as error:
        return (Unbounded(str(error)),) * len(node.outputs)


_TRUNCATING = ("Convert", "ConvertLike")
_OF_FIRST = {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Broadcast", "Tile", "Slice", "StridedSlice", "Clamp"}
_OF_WHOLE = _OF_FIRST | {"Add", "Subtract", "Multiply", "Minimum", "Maximum", "CumSum", "ReduceSum", "Concat"}
"""Layers that make integers of integers, those of ``_OF_FIRST`` of the first input, in any order of sums: a sum or
product of integers that is rounded is one, too."""
_WHOLE_DEPTH = 8
"""Layers in front of a conversion that are asked for integers."""


def _is_whole(value: Value | None, known: Mapping[Value, Bound], facts: Mapping[Value, Fact], depth: int = 0) -> bool:
    """Whether a floating-point tensor has integers alone, as behind a Round: rounded sums of them are integers, too."""
    bound = None if value is None else known.get(value)
    if value is None or isinstance(bound, Unbounded) or depth > _WHOLE_DEPTH:
        return False
    if bound is not None and bound.is_certain:
        return bound.exact.dtype.kind in "iu" or bool((np.rint(floats(bound.exact)) == bound.exact).all())
    node = value.node
    if node.type in ("Round", "Floor", "Ceiling"):
        return True
    sources = node.inputs[: 1 if node.type in _OF_FIRST else None]
    if node.type == "Convert":
        fact = None if sources[0] is None else facts.get(sources[0])
        return fact is not None and fact.element is not None and fact.element.is_integer
    limits = [float(node.attributes[end]) for end in ("min", "max") if end in node.attributes]
    return (
        node.type in _OF_WHOLE
        and all(limit == np.rint(limit) for limit in limits)
        and all(_is_whole(source, known, facts, depth + 1) for source in sources)
    )


def _loosened(node: Node, bound: Bound, known: Mapping[Value, Bound], algebra: Algebra, roundings: float) -> Bound:
    """The bound with further roundings of the result and of the terms of a sum; see ``graph_bounds``."""
    if isinstance(bound, Unbounded) or bound.admits is not None or bound.exact.dtype.kind != "f":
        return bound
    sizes = [bound.magnitude]
    # Terms that are aligned otherwise than at their last axes are left out.
    if node.type in ("Add", "Subtract") and node.attributes.get("auto_broadcast", "numpy") == "numpy":
        terms = [known[value] for value in node.inputs if value is not None and value in known]
        sizes += [one.magnitude for one in terms if isinstance(one, Interval)]
    largest = functools.reduce(np.maximum, sizes)
    return algebra.widened(bound, roundings * algebra.arithmetic.unit * largest)


def _admitted(bound: Bound, fact: Fact | None) -> Bound:
    """The bound of an input, unless a runtime gave it a shape, or integers of shapes, that it cannot have."""
    if fact is None or isinstance(bound, Unbounded):
        return bound
    if not admits(fact.shape, bound.exact.shape):
        return Unbounded(f"an input has shape {list(bound.exact.shape)}, expected {shape_text(fact.shape)}")
    if fact.known is not None and fact.known.dtype.kind in "iu" and not np.array_equal(fact.known, bound.exact):
        return Unbounded("an input has other integers than shape inference")
    return bound


def _of_body(
    facts: Mapping[Value, Fact], arithmetic: Arithmetic, graph: Graph, arguments: Sequence[Bound]
) -> list[Bound]:
    """The bounds of the Results of a body from those of its Parameters."""
    given = {node.outputs[0]: bound for node, bound in zip(graph.parameters, arguments, strict=True)}
    inner = [node for node in topological(graph)[0] if node.type not in ("Parameter", "Result")]
    known = given | graph_bounds(inner, given, facts, arithmetic)
    unknown = Unbounded("a result of a body is not connected")
    sources = [node.inputs[0] for node in graph.results]
    return [unknown if value is None else known.get(value, unknown) for value in sources]


def layer_of(node: Node, facts: Mapping[Value, Fact], arithmetic: Arithmetic, **injected: object) -> Layer:
    """The layer of a node; raises IrexecError for one that is not known or whose attributes are wrong."""
    definition = resolve(node.type, node.version)
    attributes = {**typed_attributes(node, definition).require(), **injected}
    sources = [None if value is None else facts.get(value) for value in node.inputs]
    outputs = [facts.get(value, Fact(None, None)) for value in node.outputs]
    if definition.elements_parameter is not None:
        elements = ElementTypes(None if fact is None else fact.element for fact in sources)
        attributes[definition.elements_parameter] = elements
    return Layer(definition, attributes, sources, outputs, arithmetic)


def caches_after(node: Node, given: Given, facts: Mapping[Value, Fact], arithmetic: Arithmetic) -> dict[str, Interval]:
    """The intervals of the inputs that a layer writes, as it leaves them, by their names; those without an error are
    left out."""
    kept, known = Written(), known_inputs([node], given)
    arrays = (None if value is None else known[value] for value in node.inputs)
    inputs = [one if one is None or isinstance(one, Interval) else Interval.certain(one) for one in arrays]
    operation_bounds(layer_of(node, facts, arithmetic, caches=kept), inputs)
    return kept.inputs


def known_inputs(nodes: Iterable[Node], given: Mapping[Value, Known]) -> dict[Value, Known | np.ndarray]:
    """The known inputs of layers: given ones, and the arrays of constants."""
    read = readers(nodes)
    constants = {one: constant_value(one.node.constant) for one in read if one.node.constant is not None}
    return {**{one: given[one] for one in read if one in given}, **constants}


def operation_bounds(layer: Layer, inputs: Sequence[Interval | None]) -> tuple[Bound, ...]:
    """The bounds of the outputs of one operation.

    Args:
        layer: its definition, attributes, facts and the arithmetic.
        inputs: an interval for each input; Interval.certain for an array that is known.
    """
    # The stated arithmetic, joined with that of the layer's element type: a runtime may compute in either.
    elements = {fact.element for fact in (*layer.inputs, *layer.outputs) if fact is not None}
    types = [ARITHMETICS[element.name] for element in elements if element in (F16, BF16)]
    layer = replace(layer, arithmetic=functools.reduce(joint, types, layer.arithmetic))
    count = len(layer.outputs)
    if layer.definition.type == "Assign" and inputs[0] is not None:
        return (inputs[0],)
    if (
        (layer.definition.stateful and not layer.definition.caches)
        or (not layer.definition.deterministic and rule_of(layer.definition.type) is None)
        or set(layer.definition.injected) - {layer.definition.elements_parameter, "caches"}
    ):
        return (Unbounded(f"{layer.definition.type} is random, has state or runs bodies"),) * count
    try:
        _check_shapes(layer, inputs)
        return _checked(layer, _bounds(layer, inputs))
    except OpError as error:
        return (Unbounded(str(error)),) * count


def _check_shapes(layer: Layer, inputs: Sequence[Interval | None]) -> None:
    """Infer the layer for the shapes of its inputs where those were not known before, or did not give a result.

    Raises:
        OpError: the layer does not take these shapes, as those of a runtime that computed another shape before.
    """
    is_open = any(fact is not None and fact.element is not None and not fact.is_static for fact in layer.inputs)
    if is_open or not all(fact.is_static for fact in layer.outputs):
        facts = [
            Fact(None, None) if one is None else Fact.of(one.exact, None if fact is None else fact.element)
            for one, fact in zip(inputs, layer.inputs, strict=True)
        ]
        layer.definition.infer(facts, layer.attributes)


def _bounds(layer: Layer, inputs: Sequence[Interval | None]) -> tuple[Bound, ...]:
    floating = any(one is not None and one.exact.dtype.kind == "f" for one in inputs)
    is_float = floating or any(fact.element is not None and fact.element.is_float for fact in layer.outputs)
    is_known = all(one is None or one.is_certain for one in inputs)
    if not is_float and is_known and not rules_integers(layer.definition.type):
        return _of_integers(layer, [None if one is None else one.exact for one in inputs])
    found = rule_of(layer.definition.type)
    if found is None:
        raise OpError(f"{layer.definition.type} has no rule")
    algebra = Algebra(layer.arithmetic)
    made = found(layer, *(None if one is None else algebra.read(one) for one in inputs))
    return made if isinstance(made, tuple) else (made,)


def _of_integers(layer: Layer, arrays: Sequence[np.ndarray | None]) -> tuple[Bound, ...]:
    """The results themselves, unless they do not fit their type.

    Runtimes saturate or wrap there, and what a division by zero gives is nowhere specified. Results that fit have one
    right value: OpenVINO's CPU plugin, which computes i64 in 32 bits, is outside where 32 bits do not suffice.
    """
    has_integers = any(one is not None and one.dtype.kind in "iu" for one in arrays)
    type = layer.definition.type
    check(not (type in _CUT and has_integers), "a function of integers, which is rounded to nearest or cut")
    has_zeros = type in _DIVIDING and any(one is not None and (one == 0).any() for one in arrays[1:])
    check(not has_zeros, "a division of integers by zero")
    outputs = [rounded(out, fact.element) for out, fact in zip(layer.run(*arrays), layer.outputs, strict=True)]
    if type not in MOVES and has_integers:
        for out, wide in zip(outputs, _widest(layer, arrays), strict=True):
            check(out.dtype.kind not in "iu" or _fits(out, wide), "integers that do not fit their type")
    return tuple(Interval.certain(out) for out in outputs)


_CUT = ("Exp", "Log", "Sin", "Asin")
"""Functions of integers that OpenVINO's constant folding cuts, where its CPU plugin rounds to nearest."""

_DIVIDING = ("Divide", "Mod", "FloorMod", "Power")


def _widest(layer: Layer, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """The results in 64 bits, or in f64 for integers that have 64 bits themselves."""
    is_wide = any(one is not None and one.dtype.kind in "iu" and one.dtype.itemsize == 8 for one in arrays[:2])
    wide = [one.astype(np.int64) if one is not None and one.dtype.kind in "iu" else one for one in arrays]
    try:
        found = layer.run(*wide)
        if not is_wide:
            return list(found)
        # Indices, axes and counts stay integers.
        data = [_as_data(one, i, layer) for i, one in enumerate(arrays)]
        with np.errstate(all="ignore"):
            return [floats(one) for one in layer.run(*data)]
    except (OpError, TypeError, ValueError):
        return [np.asarray(one) for one in layer.run(*arrays)]


def _as_data(array: np.ndarray | None, index: int, layer: Layer) -> np.ndarray | None:
    is_data = index == 0 or layer.definition.type in _OF_TWO
    return floats(array) if array is not None and is_data and array.dtype.kind in "iu" else array


_OF_TWO = ("Add", "Subtract", "Multiply", "Divide", "Power", "Maximum", "Minimum", "SquaredDifference", "MatMul", "Mod",
           "FloorMod", "PRelu")  # fmt: skip
"""Operations whose second input are data, too."""


def _fits(narrow: np.ndarray, wide: np.ndarray) -> bool:
    """True if a result did not leave its type: it is that of a wider type, or near to that of f64."""
    if narrow.shape != wide.shape:
        return False
    if wide.dtype.kind in "iu":
        return bool((narrow.astype(object) == wide.astype(object)).all())
    limits = np.iinfo(narrow.dtype)
    is_inside = (wide > float(limits.min) * (1 - 1e-9) - 1) & (wide < float(limits.max) * (1 - 1e-9))
    return bool(is_inside.all())


_WHOLE = 2.0**53
"""Integers up to this one are numbers of f64."""


def _checked(layer: Layer, bounds: tuple[Bound, ...]) -> tuple[Bound, ...]:
    """The bounds after each tensor is stored in its element type, or is not, as the runtime likes."""
    if len(bounds) != len(layer.outputs):
        raise ValueError(f"the rule of {layer.definition.type} gave {len(bounds)} bounds for {len(layer.outputs)}")
    return tuple(
        bound if isinstance(bound, Unbounded) or bound.is_certain else stored_in(bound, fact.element)
        for bound, fact in zip(bounds, layer.outputs, strict=True)
    )


def unrounded(array: np.ndarray, element: Element) -> Interval:
    """The interval of the values that become these when they are stored in f16 or bf16, rounded or cut."""
    of, exact = ARITHMETICS[element.name], floats(array)
    with np.errstate(all="ignore"):
        exponent = np.frexp(exact)[1] - 1
        half = np.maximum(np.ldexp(of.unit, exponent), of.unit * of.smallest) * (2 if element is BF16 else 1)
    half = np.where(np.isfinite(exact), half, 0.0)
    low, high = exact - half, exact + half
    low, high = np.where(exact == np.inf, of.largest, low), np.where(exact == -np.inf, -of.largest, high)
    return Interval(exact, low, high)


def stored_in(bound: Interval, element: Element | None) -> Interval:
    """The interval of values held in an element type: rounded to nearest, and bf16 also by cutting bits off.

    OpenVINO's own evaluation of operations cuts (2026.4, where it folds constants); its plugins round to nearest.
    """
    if element is not None and element.is_integer and bound.admits is None:
        return _stored_integers(bound, element)
    if element is None or not element.is_float or element.bits >= 32 or bound.admits is not None:
        return bound
    low, high = floats(bound.low), floats(bound.high)
    # Rounding never decreases, and neither does cutting: the results for the ends bound all results.
    for held in (_nearest, _cut) if element is BF16 else (_nearest,):
        low, high = np.minimum(low, held(element, bound.low)), np.maximum(high, held(element, bound.high))
    return settled(floats(bound.exact), low, high, bound.codes)


def _stored_integers(bound: Interval, element: Element) -> Interval:
    """The integers in an interval. One that may not fit its type, or f64, is open: see _of_integers."""
    if bound.exact.dtype.kind in "iu" and np.array_equal(bound.low, bound.high):
        return Interval.certain(bound.exact)
    least, most = element.limits
    ends = np.ceil(floats(bound.low)), np.floor(floats(bound.high))
    is_inside = (ends[0] >= max(least, -_WHOLE)) & (ends[1] <= min(most, _WHOLE))
    carrier = np.dtype(element.carrier)
    with np.errstate(invalid="ignore"):
        # An exact result that does not fit is open: any integer stands for it.
        exact = (bound.exact if bound.exact.dtype.kind in "iu" else np.rint(bound.exact)).astype(carrier)
        low = np.where(is_inside, ends[0].astype(carrier), carrier.type(least))
        high = np.where(is_inside, ends[1].astype(carrier), carrier.type(most))
    return Interval(exact, low, high, bound.codes)


def _nearest(element: Element, array: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return floats(rounded(np.asarray(array).astype(element.carrier), element))


def _cut(element: Element, array: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        bits = np.ascontiguousarray(array, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return floats(bits.view(np.float32)).reshape(np.shape(array))
