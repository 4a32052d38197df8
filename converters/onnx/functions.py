"""Inlining of functions: those of the model, and those by which ONNX defines operators without a translator.

Such a function body is used only if all of it can be translated: messages then name the operator of the model,
not one of its body.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import AttributeProto, defs, inliner

from converters.onnx.registry import find
from irexec.errors import ConversionError

_ALIASES = {"ai.onnx": ""}


def domain_of(node: onnx.NodeProto) -> str:
    """The domain of a node, "" for ai.onnx."""
    return _ALIASES.get(node.domain, node.domain)


def opsets_of(model: onnx.ModelProto) -> dict[str, int]:
    """The version of each domain. The domains of ONNX Runtime are often used without an import."""
    found = {_ALIASES.get(opset.domain, opset.domain): opset.version for opset in model.opset_import}
    return {"": 1, "com.microsoft": 1, "com.ms.internal.nhwc": found.get("", 1)} | found


def every_graph(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and all of its subgraphs."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for subgraph in [attribute.g] if attribute.type == AttributeProto.GRAPH else attribute.graphs:
                yield from every_graph(subgraph)


def every_node(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of all of its subgraphs."""
    for inner in every_graph(graph):
        yield from inner.node


def inlined(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """The model without calls of its own functions, and without operators that only function bodies can translate.

    Raises:
        ConversionError: the model's own functions cannot be inlined.
    """
    if len(model.functions):
        try:
            model = inliner.inline_local_functions(model)
        except Exception as error:
            # The inliner is C++ and raises classes of its own, which have no common base but Exception.
            raise ConversionError(f"{where}: the model's own functions cannot be inlined: {' '.join(str(error).split())}") from None
    for operator in sorted(_untranslated(model)):
        model = _expanded(model, operator)
    return model


def _untranslated(model: onnx.ModelProto) -> set[tuple[str, str]]:
    """The operators without a translator, each with its domain."""
    opsets = opsets_of(model)
    operators = {(domain_of(node), node.op_type) for node in every_node(model.graph)}
    return {(domain, operator) for domain, operator in operators if find(operator, domain, opsets.get(domain, 1)) is None}


def _with_body(domain: str, operator: str, opset: int) -> defs.OpSchema | None:
    """The schema of an operator that ONNX defines by a function body; None for others."""
    try:
        schema = defs.get_schema(operator, opset, domain)
    except defs.SchemaError:
        return None
    # The type stubs of onnx lack these two.
    lists = ("function_opset_versions", "context_dependent_function_opset_versions")
    return schema if any(getattr(schema, name) for name in lists) else None


def _expanded(model: onnx.ModelProto, operator: tuple[str, str]) -> onnx.ModelProto:
    """The model with an operator replaced by its function body; unchanged if there is none that can be translated."""
    schema = _with_body(*operator, opsets_of(model).get(operator[0], 1))
    if schema is None:
        return model
    try:
        expanded = inliner.inline_selected_functions(_with_defaults(model, schema), [operator], inline_schema_functions=True)
    except Exception:
        # As above; the operator is then reported as one without a translator.
        return model
    before = _untranslated(model)
    for inner in sorted(_untranslated(expanded) - before):
        expanded = _expanded(expanded, inner)
    return expanded if _untranslated(expanded) < before else model


def _with_defaults(model: onnx.ModelProto, schema: defs.OpSchema) -> onnx.ModelProto:
    """The model with all default attributes of an operator added: bodies refer to attributes, which the inliner drops otherwise."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in every_node(copy.graph):
        if (domain_of(node), node.op_type) != (schema.domain, schema.name):
            continue
        given = {attribute.name for attribute in node.attribute}
        defaults = (attribute.default_value for name, attribute in schema.attributes.items() if name not in given)
        node.attribute.extend(default for default in defaults if default.name)
    return copy
