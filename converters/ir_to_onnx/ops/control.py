"""Control flow and state: If, Loop, TensorIterator, ReadValue, Assign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto

from converters.ir_to_onnx.bodies import finished, if_node, inner_context, loop
from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor, onnx_element
from converters.ir_to_onnx.graph_writer import RefusedBody
from converters.ir_to_onnx.ops.generation import as_i64
from converters.ir_to_onnx.registry import composed, exact
from irexec.analysis.builder import packed
from irexec.dtypes.elements import BOOLEAN, I32, Element
from irexec.errors import check
from irexec.ir.dims import low
from irexec.ir.facts import Fact
from irexec.ir.graph import Body
from irexec.schema.bodies import Branch, Slice, Wiring

_NO_LIMIT = int(np.iinfo(np.int64).max)


def _results(ctx: ExportContext, body: Body, given: Sequence[Tensor]) -> list[Tensor]:
    """Write the layers of a body into the graph of a context; the tensors of its Results.

    Raises:
        RefusedBody: layers of the body cannot be written.
    """
    writer = ctx.writer.inside(body.graph, ctx.graph)
    for parameter, tensor in zip(body.graph.parameters, given, strict=True):
        writer.values[parameter.outputs[0]] = tensor
    writer.nodes()
    values = [result.inputs[0] for result in body.graph.results]
    if any(value in writer.inexpressible for value in values):
        raise RefusedBody("its body cannot be written")
    return [writer.tensor(value) for value in values]


def _like(ctx: ExportContext, index: int) -> Tensor:
    """A tensor of the type and shape of an output of the layer."""
    fact = ctx.facts[index]
    check(fact.element is not None, f"the element type of output {index} is not known")
    assert fact.element is not None
    return Tensor("", onnx_element(fact.element, ctx.opset), fact.shape)


@exact("If")
def if_(ctx: ExportContext, *inputs: Tensor) -> tuple[Tensor, ...]:
    """If."""
    outputs = [_like(ctx, i) for i in range(len(ctx.node.outputs))]

    def branch(name: str) -> GraphProto:
        body = ctx.node.bodies[name]
        wiring, inner = Branch.of(ctx.node, body), inner_context(ctx, name)
        found = _results(inner, body, [inputs[i] for i in wiring.sources])
        cast = [inner.cast(found[i], like.element) for i, like in zip(wiring.outputs, outputs, strict=True)]
        return finished(inner, cast)

    return if_node(ctx, inputs[0], branch("then_body"), branch("else_body"), outputs)


@composed("Loop")
def loop_(ctx: ExportContext, trip_count: Tensor, execution_condition: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Loop; inputs are sliced in the body, and results of the iterations are concatenated after it."""
    trips = ctx.reshape(as_i64(ctx, trip_count), [])
    count: Tensor | None = trips
    if trip_count.value is not None:
        count = None if int(trip_count.value.ravel()[0]) < 0 else ctx.constant(int(trip_count.value.ravel()[0]))
    else:
        count = ctx.where(ctx.emit("Less", trips, ctx.constant(0)), ctx.constant(_NO_LIMIT), trips)
    condition = ctx.cast(ctx.reshape(execution_condition, []), BOOLEAN)
    return _Iteration(ctx, [trip_count, execution_condition, *inputs]).written(count, condition)


@composed("TensorIterator")
def tensor_iterator(ctx: ExportContext, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Loop of as many iterations as there are slices; they are cut in the body, and results are concatenated after
    it."""
    wiring = Wiring.of(ctx.node, ctx.node.bodies["body"])
    cuts = [source for source in wiring.sources if source is not None and source[1] is not None]
    counts = [_slices(ctx, inputs[index], cut) for index, cut in cuts if cut is not None]
    known = [count for count in counts if count.value is not None]
    count = (known or counts or [ctx.constant(1)])[0]
    return _Iteration(ctx, inputs).written(count, ctx.constant(True, BOOLEAN))


def _slices(ctx: ExportContext, data: Tensor, cut: Slice) -> Tensor:
    """The number of slices of an input, a scalar."""
    shape = data.require_shape("a sliced input")
    size = shape[cut.axis]
    if isinstance(size, int):
        found = cut.iterations(size)
        assert isinstance(found, int)
        return ctx.constant(found)
    total = ctx.emit("Gather", ctx.emit("Shape", data), ctx.constant(cut.axis % len(shape)), axis=0)
    first, last = (
        ctx.emit("Add", total, ctx.constant(bound)) if bound < 0 else ctx.constant(bound)
        for bound in (cut.start, cut.end)
    )
    distance = ctx.emit("Add", ctx.emit("Abs", ctx.emit("Sub", last, first)), ctx.constant(1))
    found_count = ctx.emit("Div", distance, ctx.constant(cut.part))
    is_empty = ctx.emit("Equal", total, ctx.constant(0))
    result: Tensor = ctx.where(is_empty, ctx.constant(0), found_count)
    result.shape = ()
    return result


class _Iteration:
    """A Loop of ONNX for a body of IR: its carried and its stacked tensors."""

    def __init__(self, ctx: ExportContext, inputs: Sequence[Tensor]) -> None:
        self.ctx, self.inputs = ctx, inputs
        self.body = ctx.node.bodies["body"]
        self.wiring = Wiring.of(ctx.node, self.body)
        # Parameters that carry a value from one iteration to the next.
        self.merged = [
            i for i, back in enumerate(self.wiring.backs)
            if back is not None and (source := self.wiring.sources[i]) is not None and source[1] is None
        ]  # fmt: skip
        self.results = [self._fact(result.inputs[0]) for result in self.body.graph.results]
        # Outputs of the last iteration that no Parameter carries.
        backs = {self.wiring.backs[i] for i in self.merged}
        self.last = [i for i, (result, cut) in enumerate(self.wiring.outputs) if cut is None and result not in backs]
        self.sliced = [i for i, (_, cut) in enumerate(self.wiring.outputs) if cut is not None]

    def _fact(self, value: Any) -> Fact:
        found: Fact = self.ctx.writer.state.facts.get(value, Fact(None, None))
        return found

    def written(self, count: Tensor | None, condition: Tensor) -> tuple[Tensor, ...]:
        """The outputs of the layer, of at most ``count`` iterations."""
        carried = [self._initial(i) for i in self.merged] + [self._nothing(self.ctx, i) for i in self.last]
        final, stacked = loop(self.ctx, count, carried, self._step, condition, fixed=False)
        states = {self.wiring.backs[i]: state for i, state in zip(self.merged, final, strict=False)}
        found: dict[int, Tensor] = dict(zip(self.last, final[len(self.merged) :], strict=True))
        for i, tensor in zip(self.sliced, stacked, strict=True):
            found[i] = self._joined(i, tensor)
        return tuple(
            found[i] if i in found else states[result] for i, (result, _) in enumerate(self.wiring.outputs)
        )  # fmt: skip

    def _initial(self, index: int) -> Tensor:
        source = self.wiring.sources[index]
        assert source is not None
        return self.inputs[source[0]]

    def _nothing(self, ctx: ExportContext, output: int) -> Tensor:
        """An output without an iteration: zeros, of which every unknown size is 0."""
        like = _like(self.ctx, output)
        sizes = [size if isinstance(size, int) else 0 for size in like.shape or ()]
        return ctx.emit("Expand", ctx.scalar(0, like), ctx.ints(*sizes), shape=None)

    def _step(self, inner: ExportContext, number: Tensor, *states: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        arguments = []
        given = dict(zip(self.merged, states, strict=False))
        for i, source in enumerate(self.wiring.sources):
            if source is None:
                arguments.append(self._counter(inner, i, number))
            elif source[1] is not None:
                arguments.append(_cut(inner, self.inputs[source[0]], source[1], number))
            else:
                state = given.get(i, self.inputs[source[0]])
                fact = self._fact(self.body.graph.parameters[i].outputs[0])
                arguments.append(Tensor(state.name, state.element, fact.shape, None, state.constant)
                                 if i in given else state)  # fmt: skip
        results = _results(inner, self.body, arguments)
        more = inner.constant(True, BOOLEAN)
        if self.wiring.condition is not None:
            more = inner.cast(inner.reshape(results[self.wiring.condition], []), BOOLEAN)
        after = [results[back] for i in self.merged if (back := self.wiring.backs[i]) is not None]
        after += [results[self.wiring.outputs[i][0]] for i in self.last]
        return [more, *after], [self._stackable(inner, i, results) for i in self.sliced]

    def _counter(self, inner: ExportContext, index: int, number: Tensor) -> Tensor:
        parameter = self.body.graph.parameters[index]
        if parameter.attributes.get("element_type") == "i32":
            number = inner.cast(number, I32)
        return inner.reshape(number, [1]) if parameter.attributes.get("shape", "").strip() == "1" else number

    def _stackable(self, inner: ExportContext, output: int, results: Sequence[Tensor]) -> Tensor:
        """A result as ONNX stacks it: of the same shape in each iteration."""
        result, cut = self.wiring.outputs[output]
        assert cut is not None
        shape = self.results[result].shape
        check(shape is not None, "the rank of a result of the body is not known")
        assert shape is not None
        check(isinstance(shape[cut.axis], int),
              "the size of a result of the body along the axis of concatenation is not known")  # fmt: skip
        return results[result]

    def _joined(self, output: int, stacked: Tensor) -> Tensor:
        """The results of all iterations [iterations, ...] one after the other along their axis."""
        ctx, (result, cut) = self.ctx, self.wiring.outputs[output]
        shape = self.results[result].shape
        assert cut is not None and shape is not None
        rank, axis = len(shape), cut.axis % len(shape)
        if cut.stride < 0:
            stacked = ctx.slice(stacked, -1, None, 0, -1)
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
        moved = stacked if axis == 0 else ctx.transpose(stacked, order)
        if shape[axis] == 1:
            # Without iterations the other unknown sizes are 0, which -1 could not be inferred beside.
            return ctx.emit("Squeeze", moved, ctx.ints(axis + 1))
        sizes = ctx.emit("Shape", moved)
        part = shape[axis]
        assert isinstance(part, int)
        along = ctx.emit("Mul", ctx.slice(sizes, axis, axis + 1, 0), ctx.ints(part))
        before = [ctx.slice(sizes, 0, axis, 0)] if axis else []
        after = [ctx.slice(sizes, axis + 2, None, 0)] if axis + 1 < rank else []
        return ctx.emit("Reshape", moved, ctx.concat(*before, along, *after), allowzero=1 if ctx.opset >= 14 else None)


def _cut(ctx: ExportContext, data: Tensor, cut: Slice, number: Tensor) -> Tensor:
    """The slice of an iteration."""
    shape = data.require_shape("a sliced input")
    axis = cut.axis % len(shape)
    first = ctx.constant(cut.start)
    if cut.start < 0:
        size = shape[axis]
        total = ctx.constant(size) if isinstance(size, int) else ctx.emit(
            "Gather", ctx.emit("Shape", data), ctx.constant(axis), axis=0)  # fmt: skip
        first = ctx.emit("Add", total, first)
    shift = cut.part - 1 if cut.stride < 0 else 0
    begin = ctx.emit("Mul", number, ctx.constant(cut.stride))
    begin = ctx.emit("Sub", ctx.emit("Add", begin, first), ctx.constant(shift))
    start = ctx.reshape(begin, [1])
    end = ctx.emit("Add", start, ctx.ints(cut.part))
    return ctx.emit("Slice", data, start, end, ctx.ints(axis),
                    shape=(*shape[:axis], cut.part, *shape[axis + 1 :]))  # fmt: skip


@exact("ReadValue")
def read_value(
    ctx: ExportContext, init_value: Tensor | None = None, *, variable_id: str, variable_type: Element | None = None,
    variable_shape: Any = None,
) -> Tensor:  # fmt: skip
    """An input of the name of the variable, whose default is a constant initial value."""
    check(ctx.graph.around is None, "a variable in a body cannot be an input of the model")
    tensors = ctx.writer.state.variable(variable_id)
    if tensors.before is None:
        tensors.before = _input(ctx, init_value, variable_id)
    found: Tensor = tensors.before
    return found


def _input(ctx: ExportContext, init_value: Tensor | None, variable: str) -> Tensor:
    fact = ctx.facts[0]
    check(fact.element is not None and fact.shape is not None, "the type or rank of the variable is not known")
    assert fact.element is not None and fact.shape is not None
    tensor = Tensor(ctx.graph.names.claim(variable), onnx_element(fact.element, ctx.opset), fact.shape)
    ctx.graph.input(tensor)
    if init_value is None:
        first = np.zeros([low(size) for size in fact.shape], tensor.element.carrier)
    elif init_value.value is not None:
        first = init_value.value
    else:
        ctx.remark("the initial value is computed from inputs, and has to be passed as an input of the first run")
        return tensor
    ctx.graph.default(Tensor(tensor.name, tensor.element, first.shape, None, packed(first, tensor.element)))
    return tensor


@exact("Assign")
def assign(ctx: ExportContext, new_value: Tensor, *, variable_id: str) -> Tensor:
    """An output, the name of the variable and /next."""
    check(ctx.graph.around is None, "a variable in a body cannot be an output of the model")
    tensors = ctx.writer.state.variable(variable_id)
    tensors.after, tensors.assign = new_value, ctx.node
    return new_value
