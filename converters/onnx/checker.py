"""Objections of the package onnx, as findings; findings of irexec are not repeated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnx
from onnx import checker

from converters.onnx.graphs import subgraphs
from converters.onnx.inference import LARGEST_MESSAGE, infer_shapes
from converters.onnx.load import Source, is_text
from converters.onnx.locations import graphs_of, location
from irexec.errors import ConversionError, EngineError, RunTimeoutError
from irexec.ir import onnx_codes as codes
from irexec.ir.findings import Finding, in_model

_AT_NODE = re.compile(r"\(op_type:(?P<type>[^,)]*)(?:, node name: (?P<name>[^)]*))?\): (?P<reason>.*)")
_PREFIX = re.compile(r"^(\[\w+\] |Inference error\(s\): |\(op_type:[^)]*\): )+")


def checker_findings(model: onnx.ModelProto, reason: str | None, found: Sequence[Finding]) -> list[Finding]:
    """Findings of onnx.checker; if it has none, those of the strict shape inference of onnx.

    Args:
        model: a model whose nodes are marked.
        reason: the objection of onnx.checker to the whole model.
        found: findings of irexec.
    """
    is_sound = all(finding.severity == "info" for finding in found)
    if reason is None:
        return list(_inference_findings(model)) if is_sound else []
    known = {(finding.layer_name, finding.layer_id) for finding in found if finding.layer_id is not None}
    at_nodes = list(_node_findings(model))
    if at_nodes or not is_sound:
        return [finding for finding in at_nodes if (finding.layer_name, finding.layer_id) not in known]
    return [in_model(codes.CHECKER, reason)]


def objection(model: onnx.ModelProto, source: Source) -> str | None:
    """The objection of onnx.checker to a whole model, which was read from ``source``; None without objection.

    No other function of onnx may receive a model with an objection: its C++ may crash.
    """
    is_file = isinstance(source, str | Path)
    if not is_file and model.ByteSize() > LARGEST_MESSAGE:
        return "the model is too large to be checked"
    try:
        checker.check_model(str(source) if is_file and not is_text(str(source)) else model)
    except Exception as error:
        # The checker is C++; its own exception classes have no common base but Exception.
        return _brief(error)
    return None


def _node_findings(model: onnx.ModelProto) -> Iterator[Finding]:
    """Objections to single nodes. A node with subgraphs cannot be checked without the graphs around it."""
    imported = {opset.domain: opset.version for opset in model.opset_import}
    for _, graph in graphs_of(model):
        context = checker.C.CheckerContext()
        context.ir_version = model.ir_version
        own = graph.opset_import if isinstance(graph, onnx.FunctionProto) else ()
        context.opset_imports = imported | {opset.domain: opset.version for opset in own}
        for node in graph.node:
            if not any(subgraphs(node)) and not _is_own_function(node, model):
                try:
                    checker.check_node(node, context)
                except Exception as error:
                    # As above.
                    yield location(node).finding(codes.CHECKER, _brief(error))


def _is_own_function(node: onnx.NodeProto, model: onnx.ModelProto) -> bool:
    return any((function.domain, function.name) == (node.domain, node.op_type) for function in model.functions)


def _inference_findings(model: onnx.ModelProto) -> Iterator[Finding]:
    try:
        infer_shapes(model, strict=True)
    except (EngineError, RunTimeoutError):
        # A fault of the package is no statement about the model.
        return
    except ConversionError as error:
        matches = list(_AT_NODE.finditer(str(error)))
        for match in matches:
            yield _at_node(model, match["type"], match["name"] or "", _PREFIX.sub("", match["reason"]))
        if not matches:
            yield in_model(codes.SHAPE_INFERENCE, _brief(error))


def _at_node(model: onnx.ModelProto, operator: str, name: str, reason: str) -> Finding:
    """The finding at the node that a message names, or in the model if several nodes or none have that name."""
    nodes = [
        node for _, graph in graphs_of(model) for node in graph.node if node.op_type == operator and node.name == name
    ]
    if len(nodes) == 1:
        return location(nodes[0]).finding(codes.SHAPE_INFERENCE, reason)
    return in_model(codes.SHAPE_INFERENCE, f"{operator} {name!r}: {reason}" if name else f"{operator}: {reason}")


def _brief(error: Exception) -> str:
    """The message without the text of the node that the checker appends."""
    text = str(error).split("==> Context:")[0].strip()
    return _PREFIX.sub("", " ".join(text.split())) or type(error).__name__
