"""Known reasons for differing layers: the table of portability for OpenVINO, and products of bytes in ONNX Runtime.

ONNX Runtime computes QLinearConv, QLinearMatMul, MatMulInteger and fused DequantizeLinear and QuantizeLinear with
vpmaddubsw on x86 processors without VNNI: neighbouring products of an unsigned and a signed byte are added in 16 bits
with saturation (Intel's manual of instructions). 255 * 127 twice is 64,770, and the sum is 32,767. Weights of 7 bits
avoid it: 255 * 64 twice is 32,640.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.portability import DIFFERENCES
from irexec.analysis.portability.findings import differences
from irexec.analysis.shape_inference import infer_shapes
from irexec.bounds import EDGES, Interval, arithmetic, graph_bounds
from irexec.dtypes.elements import I8, U8
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node, Value
from irexec.ir.order import ancestors
from irexec.messages import counted
from irexec.schema.shape_rules import MOVES
from irexec.tools.compare.comparison import ComparedLayer, Divergence, Known, TensorRow
from irexec.tools.compare.evidence import Evidence
from irexec.tools.compare.layers import layer
from irexec.tools.compare.options import Side
from irexec.tools.compare.pairs import Pairs
from irexec.tools.engines.runtimes import OWN
from irexec.tools.observing.sides import Facts, ModelSide, RecordedSide

IN_16_BITS = (
    "adds neighbouring products of bytes in 16 bits on x86 processors without VNNI, such as this one: sums beyond "
    "32,767 are cut off"
)
SATURATION = f"ONNX Runtime {IN_16_BITS}"
_SEVEN_BITS = 64
"""Largest magnitude of weights of which two products with an unsigned byte fit in 16 bits."""
_KEEP_LEVELS = MOVES | {"MaxPool"}
_VISIBLE = [row for row in DIFFERENCES.values() if row.effect != "fails"]
"""Differences that change tensors."""


def known_reasons(
    evidence: Evidence,
    pairs: Pairs,
    first: Divergence | None,
    independent: Sequence[ComparedLayer],
    results: Sequence[TensorRow],
) -> tuple[Known, ...]:
    """Known reasons for a difference.

    Args:
        evidence, pairs: both sides, and their pairs.
        first, independent, results: as in Comparison.
    """
    differing = [row for row in results if row.is_fault]
    if first is None and not differing:
        return ()
    suspects = _suspects(evidence.b, first, independent, differing)
    found = (*_of_openvino(evidence, pairs, suspects), *_of_onnxruntime(evidence, pairs, suspects))
    edge = None if first is None else _at_edges(evidence, pairs, first)
    return found if edge is None else (*found, edge)


def _at_edges(evidence: Evidence, pairs: Pairs, first: Divergence) -> Known | None:
    """A layer that jumps, such as a FakeQuantize, with values in A and in B that both lie in their interval."""
    named = {node.name: node for node in evidence.b.model.nodes if node.type in EDGES}
    node = named.get(first.row.b.name)
    partner = None if node is None else pairs.layer_of_a(node)
    if node is None or partner is None or partner.type != node.type or first.inputs_agree is not True:
        return None
    result = node.outputs[0]
    sides: tuple[tuple[Node, Side], ...] = ((partner, "A"), (node, "B"))
    for own, side in sides:
        asked = [value for value in (*own.inputs, own.outputs[0]) if value is not None]
        found = evidence.tensors(side, [value for value in asked if value.node.constant is None]).arrays
        arrays = [
            found[value][first.row.run - 1] if constant is None else constant_value(constant)
            for value in asked if (constant := value.node.constant) is not None or value in found
        ]  # fmt: skip
        if len(arrays) != len(asked) or len(asked) != len(node.inputs) + 1:
            return None
        sources = {value: array for value, array in zip(node.inputs, arrays, strict=False) if value is not None}
        bound = graph_bounds([node], sources, evidence.facts_b, arithmetic("f32"))[result]
        if not isinstance(bound, Interval) or bound.exact.shape != arrays[-1].shape or bound.outside(arrays[-1]).any():
            return None
    count = counted(first.row.agreement.differing, "value")
    return Known("", layer(result), f"{count} on an edge between two levels: rounding decides, and either is right", "")


def _suspects(
    b: ModelSide, first: Divergence | None, independent: Sequence[ComparedLayer], results: Sequence[TensorRow]
) -> dict[Node, str]:
    """Layers of B that may be the reason, with the paths of their bodies."""
    paths = b.paths
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
    before = ancestors(by_name[key] for row in results if (key := (row.b.name, row.b.id)) in by_name)
    return {node: path for node, path in paths.items() if node in before}


def _of_openvino(evidence: Evidence, pairs: Pairs, suspects: Mapping[Node, str]) -> Iterator[Known]:
    """Known differences of OpenVINO at these layers."""
    options, is_recorded = evidence.options, isinstance(evidence.a, RecordedSide)
    right = next((name for name in (options.b_runtime, options.a_runtime) if name in OWN), "")
    if options.b_runtime == "openvino" or (is_recorded and options.b_runtime in OWN):
        condition = "if A was recorded from OpenVINO: " if is_recorded and options.b_runtime in OWN else ""
        model, of_b = evidence.b.model, {node: node for node in suspects}
    elif isinstance(evidence.a, ModelSide) and options.a_runtime == "openvino":
        condition, model = "", evidence.a.model
        of_b = {of_a: node for node in suspects if (of_a := pairs.layer_of_a(node)) is not None}
    else:
        return
    for node, row in differences(model, infer_shapes(model, tolerant=True), _VISIBLE):
        if node in of_b:
            known = of_b[node]
            yield Known(row.code, layer(known.outputs[0], suspects[known]), f"{condition}{row.does}", right)


def _of_onnxruntime(evidence: Evidence, pairs: Pairs, suspects: Mapping[Node, str]) -> Iterator[Known]:
    """Products of bytes at these layers, or in front of them, that ONNX Runtime may saturate."""
    options = evidence.options
    names = {options.a_runtime, options.b_runtime}
    if "onnxruntime" not in names or names.isdisjoint(OWN):
        return
    right = next(name for name in (options.b_runtime, options.a_runtime) if name in OWN)
    for node in products_of_bytes(evidence.b.model, suspects):
        yield saturated(node, suspects[node], right)


def saturated(node: Node, path: str = "", right: str = "irexec") -> Known:
    """The known reason at a product of bytes."""
    return Known("", layer(node.outputs[0], path), SATURATION, right)


def products_of_bytes(model: Model, suspects: Iterable[Node]) -> Iterator[Node]:
    """The layers among some whose products of bytes a runtime may saturate on this processor.

    Both operands come from bytes or a FakeQuantize, and weights of i8 have 8 bits.
    """
    if not _saturates():
        return
    facts = infer_shapes(model, tolerant=True).facts
    for node in suspects:
        if node.type in ("Convolution", "GroupConvolution", "MatMul") and len(node.inputs) == 2:
            integers = [None if value is None else _integers(value, facts) for value in node.inputs]
            weights = integers[1]
            if (
                (integers[0] is None and not _is_of_levels(node.inputs[0]))
                or weights is None
                or facts[weights].element is not I8
            ):
                continue
            constant = weights.node.constant
            if constant is None or np.abs(constant_value(constant).astype(int)).max(initial=0) > _SEVEN_BITS:
                yield node


def _saturates() -> bool:
    """Whether this processor adds products of bytes in 16 bits: x86 without VNNI."""
    found = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    features: Mapping[str, bool] = getattr(found, "__cpu_features__", {})
    return bool(features.get("SSE42")) and not features.get("AVX512VNNI")


def _integers(value: Value, facts: Facts) -> Value | None:
    """The bytes that an operand is computed from, as ``(bytes - zero) * scale``; None if it is not."""
    for type in ("Reshape", "Multiply", "Reshape", "Subtract", "Convert"):
        source = value.node.inputs[0] if value.node.type == type else None
        value = source or value
    return value if value in facts and facts[value].element in (I8, U8) else None


def _is_of_levels(value: Value | None) -> bool:
    while value is not None and value.node.type in _KEEP_LEVELS:
        value = value.node.inputs[0]
    return value is not None and value.node.type == "FakeQuantize"
