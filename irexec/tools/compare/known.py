"""Known reasons for differing layers: the table of portability for OpenVINO, exact products of bytes for ONNX
Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from irexec.analysis.model import Model
from irexec.analysis.portability import DIFFERENCES
from irexec.analysis.portability.findings import differences
from irexec.analysis.shape_inference import infer_shapes
from irexec.bounds import EDGES, Interval, arithmetic, graph_bounds
from irexec.errors import IrexecError, RunTimeoutError
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node
from irexec.messages import counted
from irexec.tools.compare.comparison import ComparedLayer, Divergence, Known, TensorRow
from irexec.tools.compare.int8 import explain
from irexec.tools.compare.open_sides import OpenSides
from irexec.tools.compare.rows import layer, paths_of
from irexec.tools.compare.sides import ModelSide, RecordedSide
from irexec.tools.engines.runtimes import OWN

_VISIBLE = [row for row in DIFFERENCES.values() if row.effect != "fails"]
"""Differences that change tensors."""


def known_reasons(
    context: OpenSides, first: Divergence | None, independent: Sequence[ComparedLayer], results: Sequence[TensorRow]
) -> tuple[Known, ...]:
    """Known reasons for a difference.

    Args:
        context: the comparison.
        first, independent, results: as in Comparison.

    Raises:
        RunTimeoutError: a run takes longer than the timeout.
    """
    differing = [row for row in results if row.is_fault]
    if first is None and not differing:
        return ()
    found = list(_of_openvino(context, _suspects(context.b.model, first, independent, differing)))
    product = _of_onnxruntime(context, 0 if first is None else first.row.run - 1)
    edge = None if first is None else _at_edges(context, first)
    return (*found, *(one for one in (product, edge) if one is not None))


def _at_edges(context: OpenSides, first: Divergence) -> Known | None:
    """A layer that jumps, such as a FakeQuantize, with values in A and in B that both lie in their interval."""
    named = {node.name: node for node in context.b.model.nodes if node.type in EDGES}
    node = named.get(first.row.b.name)
    partner = None if node is None else context.pairs.layer_of_a(node)
    if node is None or partner is None or partner.type != node.type or first.inputs_agree is not True:
        return None
    facts, result = infer_shapes(context.b.model, tolerant=True).facts, node.outputs[0]
    for side, observed in ((partner, context.observed_a), (node, context.observed_b)):
        asked = [value for value in (*side.inputs, side.outputs[0]) if value is not None]
        found = observed([value for value in asked if value.node.constant is None]).arrays
        arrays = [
            found[value][first.row.run - 1] if constant is None else constant_value(constant)
            for value in asked if (constant := value.node.constant) is not None or value in found
        ]  # fmt: skip
        if len(arrays) != len(asked) or len(asked) != len(node.inputs) + 1:
            return None
        sources = {value: array for value, array in zip(node.inputs, arrays, strict=False) if value is not None}
        bound = graph_bounds([node], sources, facts, arithmetic("f32"))[result]
        if not isinstance(bound, Interval) or bound.exact.shape != arrays[-1].shape or bound.outside(arrays[-1]).any():
            return None
    count = counted(first.row.agreement.differing, "value")
    return Known("", layer(result), f"{count} on an edge between two levels: rounding decides, and either is right", "")


def _suspects(
    model: Model, first: Divergence | None, independent: Sequence[ComparedLayer], results: Sequence[TensorRow]
) -> dict[Node, str]:
    """Layers of B that may be the reason, with the paths of their bodies."""
    paths = paths_of(model)
    by_name = {(f"{path}{node.name}", node.id): node for node, path in paths.items()}
    if first is not None:
        layers = [first.suspect.layer, *(one.layer for one in first.between), *independent]
        named = {by_name[key]: paths[by_name[key]] for one in layers if (key := (one.name, one.id)) in by_name}
        # A difference inside a body may be a fault of the layer that runs the body.
        around = (
            node
            for node in paths
            if node.bodies
            for path in named.values()
            if path.startswith(f"{paths[node]}{node.name}/")
        )
        return named | {node: paths[node] for node in around}
    # No observed tensor differs: any layer in front of the results may be the reason.
    waiting = [by_name[key] for row in results if (key := (row.b.name, row.b.id)) in by_name]
    found: dict[Node, str] = {}
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = paths[node]
            waiting += [value.node for value in node.inputs if value is not None]
    return found


def _of_openvino(context: OpenSides, suspects: Mapping[Node, str]) -> Iterator[Known]:
    """Known differences of OpenVINO at these layers."""
    options, is_recorded = context.options, isinstance(context.a, RecordedSide)
    right = next((name for name in (options.b_runtime, options.a_runtime) if name in OWN), "")
    if options.b_runtime == "openvino" or (is_recorded and options.b_runtime in OWN):
        condition = "if A was recorded from OpenVINO: " if is_recorded and options.b_runtime in OWN else ""
        model, of_b = context.b.model, {node: node for node in suspects}
    elif isinstance(context.a, ModelSide) and options.a_runtime == "openvino":
        condition, model = "", context.a.model
        of_b = {of_a: node for node in suspects if (of_a := context.pairs.layer_of_a(node)) is not None}
    else:
        return
    for node, row in differences(model, infer_shapes(model, tolerant=True), _VISIBLE):
        if node in of_b:
            known = of_b[node]
            yield Known(row.code, layer(known.outputs[0], suspects[known]), f"{condition}{row.does}", right)


def _of_onnxruntime(context: OpenSides, run: int) -> Known | None:
    """The first product of bytes with different values in ONNX Runtime and irexec."""
    options, a = context.options, context.a
    if options.b_runtime == "onnxruntime" and options.a_runtime in OWN:
        model, runtime, inputs = context.b.model, context.run_b, context.inputs.b
    elif (
        options.a_runtime == "onnxruntime"
        and options.b_runtime in OWN
        and isinstance(a, ModelSide)
        and context.run_a is not None
    ):
        model, runtime, inputs = a.model, context.run_a, context.inputs.a
    else:
        return None
    try:
        return explain(model, runtime, inputs[run], options)
    except RunTimeoutError:
        raise
    except IrexecError:
        # The reason stays unknown if ONNX Runtime does not run the model again, or irexec not in parts.
        return None
