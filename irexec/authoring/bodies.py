"""If, Loop and TensorIterator, whose bodies are functions of Python, and layers as a file has them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from irexec.analysis.collection import arranged, collected, connected_copies, in_order, name_nodes
from irexec.authoring.tensor import BodyScope, LooseBuilder, Operand, Tensor, apply, constant, parameter
from irexec.dtypes.elements import I64, element
from irexec.errors import OpError, check
from irexec.ir.dims import widen_shapes
from irexec.ir.facts import Fact
from irexec.ir.graph import BackEdge, Body, Graph, Input, PortMap, Value, slice_attributes
from irexec.ir.shape_text import parse_shape
from irexec.schema.registry import newest
from irexec.schema.shape_rules import normalize_axis


@dataclass(frozen=True)
class Slices:
    """A tensor divided into slices of size 1 along an axis, one for each iteration.

    Attributes:
        tensor: the whole tensor; of a result of a body, the slice of one iteration.
        axis: the axis; the slices keep it.
        reverse: whether the first iteration has the last slice; for TensorIterator only.
    """

    tensor: Tensor
    axis: int = 0
    reverse: bool = False

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of a port map."""
        return slice_attributes(self.axis, reverse=self.reverse)


@dataclass(frozen=True)
class Iteration:
    """The results of one iteration.

    Attributes:
        carried: the values that the next iteration starts from; those of the last one are outputs.
        slices: slices that become outputs concatenated along their axis; a tensor is a slice along axis 0.
        condition: whether there is a next iteration; None for always.
    """

    carried: Sequence[Operand] = ()
    slices: Sequence[Slices | Tensor] = ()
    condition: Tensor | None = None


Results: TypeAlias = Tensor | Sequence[Tensor]


def if_(
    cond: Operand, then: Callable[[], Results], else_: Callable[[], Results], *, name: str | None = None,
    names: Sequence[str] = (),
) -> Any:  # fmt: skip
    """If of opset8. The tensors that ``then`` returns where ``cond`` (one element) is true, else those of ``else_``.

    Args:
        cond: the condition.
        then: a function without arguments that returns a tensor or several. Tensors of the model around it become
            inputs of the body.
        else_: the same for a false condition; it returns as many tensors.
        name: the layer's name.
        names: the tensor names of the first output.

    Returns:
        A tensor, or a tuple of tensors where the functions return several.
    """
    condition = cond if isinstance(cond, Tensor) else constant(cond)
    branches = [_branch(then), _branch(else_)]
    inputs = {value: tensor for branch in branches for value, tensor in branch.captured.items()}
    order, bodies = list(inputs), {}
    for kind, branch in zip(("then_body", "else_body"), branches, strict=True):
        graph = branch.graph
        maps = [PortMap("input", 1 + order.index(value), branch.ids[value]) for value in branch.captured]
        maps += [PortMap("output", 1 + len(order) + i, node.id) for i, node in enumerate(graph.results)]
        bodies[kind] = Body(graph, maps)
    made = apply(newest("If"), [condition, *inputs.values()], {}, name=name, names=names, bodies=bodies)
    return made[0] if branches[0].is_single and isinstance(made, tuple) else made


def loop(
    body: Callable[..., Iteration], carried: Sequence[Operand] = (), *, sliced: Sequence[Slices | Tensor] = (),
    trip_count: Operand | None = None, condition: Operand = True, name: str | None = None, names: Sequence[str] = (),
) -> tuple[Tensor, ...]:  # fmt: skip
    """Loop of opset5. Runs ``body`` until its condition is false, at most ``trip_count`` times.

    Args:
        body: ``body(index, *carried, *slices)`` makes one iteration from its index (a scalar), the values that the
            iteration before it returned, and a slice of each sliced tensor. The function is called again until the
            shapes of the carried values hold in every iteration.
        carried: the values that the first iteration starts from.
        sliced: tensors of which each iteration gets a slice; a tensor alone is sliced along axis 0.
        trip_count: the maximum number of iterations; unless given the number of slices, without slices no limit.
        condition: whether there is a first iteration.
        name: the layer's name.
        names: the tensor names of the first output.

    Returns:
        The last carried values, then the concatenated slices.
    """
    parts = [_slices(part) for part in sliced]
    check(not any(part.reverse for part in parts), "a Loop has its slices in ascending order: use tensor_iterator")
    trips = _trip_count(parts) if trip_count is None else trip_count
    inputs = [trips if isinstance(trips, Tensor) else constant(trips), condition]
    return _iterated("Loop", body, carried, parts, inputs, {"name": name, "names": names})


def tensor_iterator(
    body: Callable[..., Iteration], carried: Sequence[Operand] = (), *, sliced: Sequence[Slices | Tensor],
    name: str | None = None, names: Sequence[str] = (),
) -> tuple[Tensor, ...]:  # fmt: skip
    """TensorIterator of opset1. Runs ``body`` once for each slice.

    Args:
        body: ``body(*carried, *slices)`` makes one iteration, as for ``loop``; it has no condition.
        carried: the values that the first iteration starts from.
        sliced: tensors of which each iteration gets a slice; a tensor alone is sliced along axis 0.
        name: the layer's name.
        names: the tensor names of the first output.

    Returns:
        The last carried values, then the concatenated slices.
    """
    parts = [_slices(part) for part in sliced]
    return _iterated("TensorIterator", body, carried, parts, [], {"name": name, "names": names})


@dataclass
class _Made:
    """A body that a function has made.

    Attributes:
        graph: the body.
        captured: the tensors of the graph around it that it reads.
        ids: the id of the Parameter of each captured value.
        is_single: whether the function returned a tensor rather than a sequence.
    """

    graph: Graph
    captured: dict[Value, Tensor]
    ids: dict[Value, int]
    is_single: bool = False


def _branch(function: Callable[[], Results]) -> _Made:
    with BodyScope() as scope:
        returned = function()
        made = _closed(scope, [], [returned] if isinstance(returned, Tensor) else returned)
    made.is_single = isinstance(returned, Tensor)
    return made


def _closed(scope: BodyScope, parameters: Sequence[Tensor], results: Sequence[Tensor]) -> _Made:
    """The graph of a body: its Parameters, a Parameter for each tensor that it captures, the layers, the Results.

    A constant of the graph around the body is copied into the body.
    """
    endings = [LooseBuilder([tensor]).result(tensor.value, "Result") for tensor in results]
    given = [tensor.value.node for tensor in parameters]
    order = in_order([*given, *endings], lambda node: node not in scope.nodes and node.constant is None)
    inside = set(order)
    read = dict.fromkeys(v for node in order for v in node.inputs if v is not None and v.node not in inside)
    captured = {value: scope.captured[value] for value in read}
    stand_ins = {value: _parameter(tensor.name, tensor.fact).value for value, tensor in captured.items()}
    given += [value.node for value in stand_ins.values()]
    nodes = arranged([*order, *(value.node for value in stand_ins.values())], given, endings)
    graph = Graph(nodes=connected_copies(nodes, stand_ins))
    name_nodes(graph.nodes)
    numbers = {node: number for number, node in enumerate(nodes)}
    return _Made(graph, captured, {value: numbers[stand_in.node] for value, stand_in in stand_ins.items()})


def _parameter(name: str, fact: Fact) -> Tensor:
    if fact.element is None:
        raise OpError(f"the element type of {name!r}, which a body reads, is not known")
    return parameter(fact.shape, fact.element, name, names=())


def _slices(part: Slices | Tensor) -> Slices:
    return Slices(part) if isinstance(part, Tensor) else part


def _slice_fact(part: Slices) -> Fact:
    shape = part.tensor.shape
    if shape is None:
        return Fact(part.tensor.element, None)
    axis = normalize_axis(part.axis, len(shape))
    return Fact(part.tensor.element, (*shape[:axis], 1, *shape[axis + 1 :]))


def _trip_count(parts: Sequence[Slices]) -> Operand:
    """The number of slices; -1 where there are none."""
    if not parts:
        return -1
    rank = parts[0].tensor.fact.rank
    axis = parts[0].axis if rank is None else normalize_axis(parts[0].axis, rank)
    sizes = apply(newest("ShapeOf"), [parts[0].tensor], {})
    made = apply(newest("Gather"), [sizes if isinstance(sizes, Tensor) else sizes[0], axis, 0], {})
    return made if isinstance(made, Tensor) else made[0]


def _iterated(
    type: str, body: Callable[..., Iteration], carried: Sequence[Operand], parts: Sequence[Slices],
    controls: Sequence[Operand], named: Mapping[str, Any],
) -> tuple[Tensor, ...]:  # fmt: skip
    """A Loop, or a TensorIterator without controls."""
    states = [state if isinstance(state, Tensor) else constant(state) for state in carried]
    facts = [Fact(state.element, state.shape) for state in states]
    for attempt in itertools.count():
        with BodyScope() as scope:
            index = [_parameter("index", Fact(I64, ()))] if controls else []
            given = [_parameter(state.name, fact) for state, fact in zip(states, facts, strict=True)]
            rows = [_parameter(part.tensor.name, _slice_fact(part)) for part in parts]
            made = _checked(body(*index, *given, *rows), len(states))
            widened = [_widened(*pair, attempt) for pair in zip(facts, made.carried, strict=True)]
            if all(fact.shape == wider.shape for fact, wider in zip(facts, widened, strict=True)):
                is_read = any(value is index[0].value for node in scope.nodes for value in node.inputs if index)
                results = [*_conditions(made, controls), *made.carried, *(part.tensor for part in made.slices)]
                closed = _closed(scope, [*index[: int(is_read)], *given, *rows], results)
                break
            facts = widened
    inputs = [*controls, *states, *(part.tensor for part in parts), *closed.captured.values()]
    wired = _wired(closed.graph, made, parts, len(controls), len(inputs))
    node = apply(newest(type), inputs, {}, bodies={"body": wired}, **named)
    return node if isinstance(node, tuple) else (node,)


@dataclass(frozen=True)
class _Checked:
    """An Iteration whose values are tensors."""

    carried: list[Tensor]
    slices: list[Slices]
    condition: Tensor | None


def _checked(made: object, count: int) -> _Checked:
    check(isinstance(made, Iteration), f"a body returned {made!r:.100}, expected an Iteration")
    assert isinstance(made, Iteration)
    check(len(made.carried) == count, f"an iteration carries {len(made.carried)} values, expected {count}")
    carried = [value if isinstance(value, Tensor) else constant(value) for value in made.carried]
    return _Checked(carried, [_slices(part) for part in made.slices], made.condition)


def _conditions(made: _Checked, controls: Sequence[Operand]) -> list[Tensor]:
    """The result of a Loop's body that decides whether there is a next iteration."""
    if not controls:
        check(made.condition is None, "the body of a TensorIterator has no condition: use loop")
        return []
    return [constant(True) if made.condition is None else made.condition]


def _wired(graph: Graph, made: _Checked, parts: Sequence[Slices], controls: int, inputs: int) -> Body:
    """A body with its port maps: the index, carried values, slices and captured tensors in; the condition, carried
    values and slices out.

    Args:
        graph: the body.
        made: the results of an iteration.
        parts: the sliced inputs.
        controls: number of inputs before the carried values.
        inputs: number of inputs of the node.
    """
    given, ended = ([node.id for node in ends] for ends in (graph.parameters, graph.results))
    count = len(made.carried)
    indices, given = given[: len(given) - (inputs - controls)], given[len(given) - (inputs - controls) :]
    conditions, ended = ended[: len(ended) - count - len(made.slices)], ended[len(ended) - count - len(made.slices) :]
    maps = [
        *(PortMap("input", -1, number, {"purpose": "current_iteration"}) for number in indices),
        *_entries("input", controls, given, [*[None] * count, *parts]),
        *(PortMap("output", -1, number, {"purpose": "execution_condition"}) for number in conditions),
        *_entries("output", inputs, ended, [*[None] * count, *made.slices]),
    ]
    return Body(graph, maps, [BackEdge(*edge) for edge in zip(ended[:count], given[:count], strict=True)])


def _entries(kind: str, first: int, numbers: Sequence[int], parts: Sequence[Slices | None]) -> Iterator[PortMap]:
    """Entries of consecutive ports, of layers of the body, some of which are in slices."""
    for i, (number, part) in enumerate(itertools.zip_longest(numbers, parts)):
        yield PortMap(kind, first + i, number, {} if part is None else part.attributes)


def _widened(fact: Fact, after: Tensor, attempt: int) -> Fact:
    """The fact that holds before and after an iteration."""
    if fact.element is not after.element:
        raise OpError(f"a carried value is {fact} before an iteration and {after.fact} after it")
    return Fact(fact.element, widen_shapes(fact.shape, after.shape, attempt))


PortEntry: TypeAlias = tuple[int, Tensor] | tuple[int, Tensor, Mapping[str, str]]
"""The index of an input or output of a layer, or -1; a Parameter or Result of its body; attributes of the port map."""


def layer(
    type: str, version: str, inputs: Sequence[Tensor], attributes: Mapping[str, str], outputs: Sequence[str | None], *,
    name: str | None = None, names: Sequence[str] = (), bodies: Mapping[str, Body] | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """A layer of any type, as it is: nothing is checked or inferred.

    Args:
        type: the operation type.
        version: as IR writes it: "opset1", "extension".
        inputs: tensors.
        attributes: text by name.
        outputs: the declared element type and shape of each output, such as "f32[1,?,8]"; None for an output without.
        name: the layer's name.
        names: the tensor names of the first output.
        bodies: by the IR's element name: "body", "then_body", "else_body".
    """
    node = LooseBuilder(inputs).layer(type, version, name or type, dict(attributes))
    node.ports = [Input(tensor.value, tensor.value.fact) for tensor in inputs]
    node.bodies = dict(bodies or {})
    facts = [None if text is None else declared(text) for text in outputs]
    node.outputs = [Value(node, i, fact, list(names) if i == 0 else []) for i, fact in enumerate(facts)]
    return tuple(Tensor(value, value.fact or Fact(None, None)) for value in node.outputs)


def declared(text: str) -> Fact:
    """A fact from text such as "f32[1,?,8]"; "?" in place of an element type that is not known."""
    name, _, shape = text.partition("[")
    return Fact(None if name == "?" else element(name), parse_shape(f"[{shape}"))


def body(
    results: Sequence[Tensor], parameters: Sequence[Tensor], *, inputs: Sequence[PortEntry],
    outputs: Sequence[PortEntry], back_edges: Sequence[tuple[Tensor, Tensor]] = (), sinks: Sequence[Tensor] = (),
    name: str = "",
) -> Body:  # fmt: skip
    """A body with its port maps, for ``layer``.

    Args:
        results: the outcomes of ``result``, in order.
        parameters: the outcomes of ``parameter``, in order.
        inputs: for each entry of the port map: the index of the layer's input, the Parameter, and further attributes.
        outputs: the same for the layer's outputs and Results.
        back_edges: pairs of a Result and the Parameter of the next iteration.
        sinks: tensors to be kept although no result depends on them.
        name: of the graph.
    """
    graph = Graph(name, collected(results, parameters, sinks))
    ids = {
        tensor.value.node: node.id
        for tensors, nodes in ((results, graph.results), (parameters, graph.parameters))
        for tensor, node in zip(tensors, nodes, strict=True)
    }
    maps = [
        PortMap(kind, index, ids[tensor.value.node], dict(*more))
        for kind, ports in (("input", inputs), ("output", outputs))
        for index, tensor, *more in ports
    ]
    backs = [BackEdge(ids[source.value.node], ids[target.value.node]) for source, target in back_edges]
    return Body(graph, maps, backs)
