"""Nodes of If and Loop, and the graphs of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import GraphProto

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import OnnxGraph, Tensor
from irexec.dtypes.elements import BOOLEAN, I64
from irexec.ir.dims import ANY

Step = Callable[..., tuple[Sequence[Tensor], Sequence[Tensor]]]


def inner_context(ctx: ExportContext, name: str) -> ExportContext:
    """A context that adds nodes to a body, which may read the tensors of the graph around."""
    inner = ExportContext(ctx.opset, OnnxGraph(name, ctx.graph.names, ctx.graph), ctx.writer)
    inner.node, inner.facts = ctx.node, ctx.facts
    return inner


def branches(
    ctx: ExportContext, condition: Tensor, then: Callable[[ExportContext], Sequence[Tensor]],
    otherwise: Callable[[ExportContext], Sequence[Tensor]],
) -> tuple[Tensor, ...]:  # fmt: skip
    """An If: the tensors that ``then`` adds nodes for where the condition is true, else those of ``otherwise``."""
    graphs, results = [], list[Sequence[Tensor]]()
    for name, body in (("then_branch", then), ("else_branch", otherwise)):
        inner = inner_context(ctx, name)
        found = [
            inner.cast(tensor, results[0][i].element if results else tensor.element)
            for i, tensor in enumerate(body(inner))
        ]
        graphs.append(finished(inner, found))
        results.append(found)
    outputs = [
        Tensor("", a.element, a.shape if a.shape == b.shape else None) for a, b in zip(*results, strict=True)
    ]  # fmt: skip
    return if_node(ctx, condition, graphs[0], graphs[1], outputs)


def if_node(
    ctx: ExportContext, condition: Tensor, then: GraphProto, otherwise: GraphProto, outputs: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """A node of If, whose outputs have the element types and shapes of ``outputs``."""
    flag = ctx.cast(condition if condition.rank == 0 else ctx.reshape(condition, []), BOOLEAN)
    return ctx.emit_bodies("If", [flag], outputs, then_branch=then, else_branch=otherwise)


def loop(
    ctx: ExportContext, count: Tensor | None, carried: Sequence[Tensor], step: Step, condition: Tensor | None = None,
    fixed: bool = True,
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:  # fmt: skip
    """A Loop of ``count`` iterations that all take place.

    Args:
        ctx: of the graph around.
        count: of iterations, a scalar of i64.
        carried: initial values of the tensors that an iteration passes to the next one.
        step: takes a context, the index of the iteration and the carried tensors; returns the next carried tensors,
            and tensors to stack.
        condition: of the first iteration; then the first tensor that ``step`` returns is that of the next iteration.

    Returns:
        The last carried tensors, and the stacked ones, with the iterations as the first axis.
    """
    inner = inner_context(ctx, "body")
    number = _input(inner, "iteration", Tensor("", I64, ()))
    continues = _input(inner, "condition", Tensor("", BOOLEAN, ()))
    states = [
        _input(inner, "state", Tensor("", tensor.element, tensor.shape if fixed else None)) for tensor in carried
    ]  # fmt: skip
    after, stacked = step(inner, number, *states)
    if condition is None:
        after = [inner.emit("Identity", continues, shape=()), *after]
    following = [
        after[0],
        *(inner.cast(tensor, state.element) for tensor, state in zip(after[1:], states, strict=True)),
    ]
    body = finished(inner, [*following, *stacked])
    outputs = [Tensor("", state.element, state.shape) for state in states]
    outputs += [
        Tensor("", tensor.element, None if tensor.shape is None else (ANY, *tensor.shape)) for tensor in stacked
    ]  # fmt: skip
    made = ctx.emit_bodies("Loop", [count, condition, *carried], outputs, body=body)
    return made[: len(carried)], made[len(carried) :]


def _input(inner: ExportContext, name: str, like: Tensor) -> Tensor:
    tensor = Tensor(inner.graph.names.unique(f"{inner.node.name}/{name}"), like.element, like.shape)
    inner.graph.input(tensor)
    return tensor


def finished(inner: ExportContext, results: Sequence[Tensor]) -> GraphProto:
    """The graph of a body; each of its outputs is the output of a node of the body, and of no other one."""
    made = {name for node in inner.graph.nodes for name in node.output}
    for tensor in results:
        if tensor.name not in made:
            shape, tensor = tensor.shape, inner.emit("Identity", tensor)
            tensor.shape = shape
        made.discard(tensor.name)
        inner.graph.output(tensor)
    return inner.graph.finished()
