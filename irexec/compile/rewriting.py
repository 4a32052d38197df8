"""Rules that replace matches of a pattern, and the options, derived constants and report that passes share."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irexec.analysis.evaluate import as_tuple
from irexec.backend.constants import ConstantSource
from irexec.backend.kernel import KernelOptions
from irexec.compile.graph import CompileGraph, CompileValue, LoweredBody, Operation, constant_value
from irexec.compile.pattern import Match, Pattern
from irexec.dtypes.elements import F32, F64, I64, Element
from irexec.errors import OpError
from irexec.ir.graph import Node
from irexec.ir.order import grouped
from irexec.ir.process import new_lock
from irexec.schema.opdef import OpDef
from irexec.schema.registry import resolve

FOLDING_BUDGET = 256 << 20
"""Bytes that folding a constant may add to what is stored."""


class DerivedConstants:
    """Constants that passes derive, by their sources: plans of several input shapes share them.

    That is what keeps weights from being packed once for each shape. A constant lives as long as a plan reads it.
    """

    def __init__(self) -> None:
        self._made: weakref.WeakValueDictionary[Hashable, ConstantSource] = weakref.WeakValueDictionary()
        self._lock = new_lock()

    def get(
        self,
        key: Hashable,
        sources: Sequence[ConstantSource],
        element: Element,
        shape: tuple[int, ...],
        compute: Callable[..., np.ndarray],
    ) -> ConstantSource:
        """The constant that ``compute`` returns for the values of ``sources``, computed on request.

        Args:
            key: the computation with all its parameters: a pass and its settings.
        """

        def value() -> np.ndarray:
            array = np.asarray(compute(*(source.array() for source in sources)))
            if array.flags.writeable:
                array.flags.writeable = False
            return array

        return self.share(key, sources, lambda: ConstantSource(element, shape, value))

    def share(
        self, key: Hashable, sources: Sequence[ConstantSource], make: Callable[[], ConstantSource]
    ) -> ConstantSource:
        """The constant of this key and these sources, made unless a plan reads it already."""
        whole = (key, tuple(map(id, sources)))
        with self._lock:
            found = self._made.get(whole)
            if found is None:
                found = self._made[whole] = make()
                # The key is made of identities, which stay theirs only as long as the sources live.
                found.made_of = tuple(sources)
            return found


@dataclass(frozen=True)
class Refusal:
    """Why a pass left an operation as it is.

    Attributes:
        pass_name: the pass.
        reason: a clause about the operation, "it ...".
        type: of the operation.
        layer: its name.
    """

    pass_name: str
    reason: str
    type: str
    layer: str


@dataclass
class Report:
    """The changes and refusals of the passes.

    Attributes:
        applied: number of changes of each pass.
        refusals: by layer, for an operation of it that a pass looked at and left alone: the passes and their reasons,
            and the number of such operations before it. The bodies of a model share a report, and each asks for its own
            layers.
    """

    applied: dict[str, int] = field(default_factory=dict)
    refusals: dict[Node, dict[Operation, tuple[int, list[tuple[str, str]]]]] = field(default_factory=dict)
    refused: int = 0

    def refuse(self, operation: Operation, name: str, reason: str) -> None:
        """Note why the pass of that name left an operation alone."""
        operations = self.refusals.setdefault(operation.node, {})
        if operation not in operations:
            operations[operation] = self.refused, []
            self.refused += 1
        _, reasons = operations[operation]
        if (name, reason) not in reasons:
            reasons.append((name, reason))

    def refusals_of(self, graph: CompileGraph) -> tuple[Refusal, ...]:
        """The refusals of operations whose layers are still computed, by the operations or their replacements."""
        layers = {node for operation in graph for node in operation.origins}
        found = [
            (number, operation, reasons)
            for node in layers
            for operation, (number, reasons) in self.refusals.get(node, {}).items()
        ]
        found.sort(key=lambda each: each[0])
        return tuple(
            Refusal(name, reason, operation.type, operation.node.name)
            for _, operation, reasons in found
            for name, reason in reasons
        )


@dataclass
class Rewriting:
    """The argument of a pass besides the graph.

    Attributes:
        constants: the constants made of others.
        options: of the kernels that will be chosen.
        dynamic_quantization: values of a group of the activations that are quantised in each run; 0 for none.
        budget: bytes that folding may add to what is stored.
        report: the changes of the passes.
        name: the pass that runs.
    """

    constants: DerivedConstants = field(default_factory=DerivedConstants)
    options: KernelOptions = field(default_factory=KernelOptions)
    dynamic_quantization: int = 0
    budget: int = FOLDING_BUDGET
    report: Report = field(default_factory=Report)
    name: str = ""

    def applied(self, count: int = 1) -> None:
        """Count a change of the running pass."""
        self.report.applied[self.name] = self.report.applied.get(self.name, 0) + count

    def refused(self, operation: Operation, reason: str) -> None:
        """Note why the running pass leaves an operation alone."""
        self.report.refuse(operation, self.name, reason)

    def replace(self, graph: CompileGraph, operation: Operation, *values: CompileValue) -> None:
        """Replace the outputs of an operation, remove it, and count a change of the running pass."""
        for old, new in zip(operation.outputs, values, strict=False):
            graph.replace_all_uses_with(old, new)
        graph.remove(operation)
        self.applied()

    def derived(
        self,
        key: Hashable,
        inputs: Sequence[CompileValue],
        like: Element,
        shape: tuple[int, ...],
        compute: Callable[..., np.ndarray],
    ) -> CompileValue:
        """A constant value that ``compute`` returns for constant ``inputs``; see DerivedConstants.get."""
        sources = [value.constant for value in inputs if value.constant is not None]
        return constant_value(self.constants.get((self.name, key), sources, like, shape, compute))

    def literal(self, array: np.ndarray, like: Element) -> CompileValue:
        """A small constant, such as the order of a Transpose. Equal constants of one type are shared."""
        if array.dtype == object:
            return constant_value(ConstantSource.of(array, like))
        key = ("literal", like, array.dtype.str, array.shape, array.tobytes())
        return constant_value(self.constants.get(key, [], like, array.shape, lambda: array))


def computation(operation: Operation) -> Hashable:
    """The computation of an operation, apart from its inputs: its definition and attributes."""
    return operation.definition, _frozen(operation.attributes)


def _frozen(attribute: Any) -> Hashable:
    """A key that equal attributes share; it distinguishes 1, 1.0 and True, and 0.0 and -0.0."""
    if isinstance(attribute, Mapping):
        return tuple((name, _frozen(value)) for name, value in sorted(attribute.items()))
    if isinstance(attribute, tuple | list):
        return type(attribute), tuple(map(_frozen, attribute))
    try:
        hash(attribute)
    except TypeError:
        # Equal to nothing, not even after its memory is used again.
        return object()
    return type(attribute), repr(attribute)


def create(
    graph: CompileGraph,
    type: str,
    version: str,
    inputs: Sequence[CompileValue],
    attributes: dict[str, Any],
    origins: Sequence[Operation],
) -> Operation:
    """Insert an operation; its facts follow from those of its inputs.

    Args:
        attributes: by name; defaults are added.
        origins: the operations that it replaces or belongs to.

    Raises:
        OpError: the shape rule refuses the inputs or attributes.
    """
    return created(graph, resolve(type, version), inputs, attributes, origins)


def created(
    graph: CompileGraph,
    definition: OpDef,
    inputs: Sequence[CompileValue],
    attributes: dict[str, Any],
    origins: Sequence[Operation],
) -> Operation:
    """The same as ``create`` for a definition."""
    arguments = definition.arguments(attributes)
    facts = as_tuple(definition.infer([value.fact for value in inputs], arguments))
    outputs = [CompileValue(fact, name=origins[-1].output.name if i == 0 else "") for i, fact in enumerate(facts)]
    layers = tuple(dict.fromkeys(node for operation in origins for node in operation.origins))
    made = Operation(
        definition, arguments, list(inputs), outputs, origins[-1].node, layers, len(inputs), rank=origins[-1].rank
    )
    return graph.insert(made)


def bodies(graph: CompileGraph) -> list[LoweredBody]:
    """The bodies of the graph's operations."""
    return [body for operation in graph for body in operation.bodies.values()]


@dataclass(frozen=True, eq=False)
class Replacement:
    """Inserts the replacement of a match.

    Attributes:
        match: the matched operations.
        root: the operation whose output is replaced.
        rewriting: the rewriting, with constants and the options of the pass.
    """

    graph: CompileGraph
    match: Match
    root: Operation
    rewriting: Rewriting

    def emit(self, type: str, version: str, *inputs: CompileValue, **attributes: Any) -> CompileValue:
        """The first output of a new operation."""
        origins = [operation for operation in dict.fromkeys(self.match.operations) if operation is not self.root]
        ordered = sorted(origins, key=lambda operation: operation.rank)
        return create(self.graph, type, version, inputs, attributes, [*ordered, self.root]).output

    def scalar(self, number: float, like: CompileValue) -> CompileValue:
        """A constant of rank 0, of the type of another value."""
        if like.fact.element is None:
            raise AssertionError("rules apply to values of known types")
        return self.rewriting.literal(np.array(number, like.fact.element.carrier), like.fact.element)

    def indexes(self, *numbers: int) -> CompileValue:
        """A constant vector of i64."""
        return self.rewriting.literal(np.array(numbers, np.int64), I64)


@dataclass(frozen=True, eq=False)
class Rule:
    """A pattern and its replacement.

    Attributes:
        name: the recognised operation, for reports.
        pattern: of the value that is replaced.
        replace: makes the replacement, or says why it does not; operations that it made and that are not used are
            removed after the pass.
    """

    name: str
    pattern: Pattern
    replace: Callable[[Replacement], CompileValue | str]


def apply_rules(
    graph: CompileGraph, rewriting: Rewriting, rules: Iterable[Rule], *, outermost_first: bool = False
) -> None:
    """Replace matches of the rules, each operation by the first rule that applies.

    Args:
        outermost_first: begin at the results, for a pattern with optional parts at its end.
    """
    by_type = grouped((type, rule) for rule in rules for type in rule.pattern.roots or ())
    order = graph.order()
    for operation in reversed(order) if outermost_first else order:
        for rule in by_type.get(operation.type, ()):
            if (
                operation in graph
                and operation.output.fact.element in (F32, F64)
                and _apply(graph, rewriting, rule, operation)
            ):
                break


def _apply(graph: CompileGraph, rewriting: Rewriting, rule: Rule, operation: Operation) -> bool:
    match = next(rule.pattern.match(operation.output, Match()), None)
    if match is None or operation not in match.operations:
        return False
    made: CompileValue | str = "a value inside is read elsewhere"
    if not leaks(graph, match, operation):
        try:
            made = rule.replace(Replacement(graph, match, operation, rewriting))
        except OpError as error:
            made = str(error)
    if isinstance(made, CompileValue) and made.fact.shape != operation.output.fact.shape:
        made = f"the result would be {made.fact}, not {operation.output.fact}"
    if isinstance(made, str):
        rewriting.refused(operation, f"{rule.name}: {made}")
        return False
    graph.replace_all_uses_with(operation.output, made)
    for inside in sorted(dict.fromkeys(match.operations), key=lambda one: -one.rank):
        if not any(graph.is_used(output) for output in inside.outputs):
            graph.remove(inside)
    rewriting.applied()
    return True


def leaks(graph: CompileGraph, match: Match, root: Operation) -> bool:
    """Whether a value between matched operations is read, or asked for, outside."""
    inside = set(match.operations)
    values = [output for operation in inside if operation is not root for output in operation.outputs]
    return any(graph.is_target(value) or not inside.issuperset(value.readers) for value in values)
