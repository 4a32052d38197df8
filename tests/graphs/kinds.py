"""Kinds of graphs that random graphs must have among them: a condition on a graph and its runs each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from irexec.ir.dims import admits
from irexec.ir.graph import Graph, Node, Value
from tests.graphs.making import Made

_MOVES = {"Reshape", "Squeeze", "Unsqueeze", "Transpose", "Split", "VariadicSplit", "Slice", "StridedSlice"}
_TWO_SIDES = {"Add", "Multiply", "Subtract", "Divide", "Maximum", "Minimum", "Power", "MatMul"}
_LOOPS = {"Loop", "TensorIterator"}


def all_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of its bodies."""
    for node in graph.nodes:
        yield node
        for body in node.bodies.values():
            yield from all_nodes(body.graph)


def _values(made: Made) -> Iterator[Value]:
    return (value for node in all_nodes(made.model) for value in node.outputs)


def _has_size(made: Made, size: int) -> bool:
    return any(value.fact is not None and size in (value.fact.shape or ()) for value in _values(made))


def _rank(made: Made) -> int:
    return max((len(value.fact.shape or ()) for value in _values(made) if value.fact is not None), default=0)


def _results(made: Made) -> list[Value]:
    return [node.inputs[0] for node in made.model.results if node.inputs[0] is not None]


def _readers(made: Made) -> Counter[Value]:
    found = [value for node in all_nodes(made.model) if node.type != "Result" for value in node.inputs]
    return Counter(value for value in found if value is not None)


def _has_constant(made: Made, side: int) -> bool:
    pairs = [node.inputs for node in all_nodes(made.model) if node.type in _TWO_SIDES]
    return any(pair[side] is not None and pair[side].node.type == "Constant" for pair in pairs)


def _chained_moves(made: Made) -> bool:
    moves = [node for node in all_nodes(made.model) if node.type in _MOVES]
    return any(node.inputs[0] is not None and node.inputs[0].node.type in _MOVES for node in moves)


def _states(made: Made, inputs: int) -> bool:
    return any(node.type == "ReadValue" and len(node.inputs) == inputs for node in all_nodes(made.model))


def _bodies(made: Made, types: set[str], depth: int) -> bool:
    """True if a node of one of these types is inside this number of bodies."""

    def within(graph: Graph, left: int) -> bool:
        inner = [body.graph for node in graph.nodes for body in node.bodies.values()]
        if left:
            return any(within(one, left - 1) for one in inner)
        return any(node.type in types for node in graph.nodes)

    return within(made.model, depth)


def _has_varying_trips(made: Made) -> bool:
    """Whether the number of iterations of a Loop in a body is not constant."""
    inner = [node for outer in made.model.nodes for body in outer.bodies.values() for node in all_nodes(body.graph)]
    loops = [node for node in inner if node.type == "Loop"]
    return any(node.inputs[0] is not None and node.inputs[0].node.type != "Constant" for node in loops)


def _shapes(made: Made) -> set[tuple[tuple[int, ...], ...]]:
    return {tuple(array.shape for array in run) for run in made.runs}


def _is_refused(made: Made) -> bool:
    """Whether a run has an input that does not fit what the graph declares."""
    facts = [node.outputs[0].fact for node in made.model.parameters]
    return any(
        fact is not None and not admits(fact.shape, array.shape)
        for run in made.runs
        for fact, array in zip(facts, run, strict=True)
    )


def _is_dynamic(made: Made) -> bool:
    facts = [value.fact for node in made.model.parameters for value in node.outputs]
    return any(fact is not None and not fact.is_static for fact in facts)


KINDS: dict[str, Callable[[Made], bool]] = {
    "a size of 0": lambda made: _has_size(made, 0),
    "a size of 1": lambda made: _has_size(made, 1),
    "a size of 2": lambda made: _has_size(made, 2),
    "rank of 6 or more": lambda made: _rank(made) > 5,
    "several results": lambda made: len(_results(made)) > 1,
    "a result that other operations read": lambda made: any(value in _readers(made) for value in _results(made)),
    "two results of one value": lambda made: len(set(_results(made))) < len(_results(made)),
    "a result that is an input": lambda made: any(value.node.type == "Parameter" for value in _results(made)),
    "a result that is a constant": lambda made: any(value.node.type == "Constant" for value in _results(made)),
    "several readers of one value": lambda made: max(_readers(made).values(), default=0) > 1,
    "a constant as the first operand": lambda made: _has_constant(made, 0),
    "a constant as the second operand": lambda made: _has_constant(made, 1),
    "a view of a view": _chained_moves,
    "dynamic dimensions": _is_dynamic,
    "runs of several shapes": lambda made: len(_shapes(made)) > 1,
    "a run whose inputs do not fit": _is_refused,
    "several runs": lambda made: len(made.runs) > 1,
    "a state with an initial value": lambda made: _states(made, 1),
    "a state without an initial value": lambda made: _states(made, 0),
    "an If": lambda made: _bodies(made, {"If"}, 0),
    "a Loop": lambda made: _bodies(made, {"Loop"}, 0),
    "a TensorIterator": lambda made: _bodies(made, {"TensorIterator"}, 0),
    "a loop in a loop's body": lambda made: _bodies(made, _LOOPS, 1),
    "a body in a body in a body": lambda made: _bodies(made, {"If", *_LOOPS}, 2),
    "an inner Loop whose number of iterations is computed": _has_varying_trips,
}
