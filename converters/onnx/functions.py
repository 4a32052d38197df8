"""Inlining of functions: functions of the model, and function bodies by which ONNX defines operators.

The function body of an operator is inlined only if every node of it has a translator: otherwise messages would name
operators that are not in the model.
"""

from __future__ import annotations

import onnx
from onnx import defs, helper, inliner

from converters.onnx.function_sizes import size_when_inlined
from converters.onnx.graphs import domain_of, every_graph, every_node, opset_of, opsets_of
from converters.onnx.inlining import has_schema, identity_of, overrides_an_operator, with_functions_inlined
from converters.onnx.limits import MAX_INLINED_BYTES, MAX_INLINED_NODES
from converters.onnx.locations import carry_marks
from converters.onnx.registry import find
from irexec.errors import ConversionError

# The maximum number of nodes in a function body of ONNX.
_NODES_OF_A_SCHEMA_FUNCTION = 100


def inlined(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """The model with its own functions inlined, and the function bodies of operators without a translator.

    Raises:
        ConversionError: the model's own functions cannot be inlined, or inlining would produce too many nodes.
    """
    if len(model.functions):
        model = _without_overrides(model)
        _check_size(model, where)
        try:
            model = with_functions_inlined(model)
        except ConversionError as error:
            raise ConversionError(f"{where}: the model's own functions cannot be inlined: {error}") from None
    for operator in sorted(_untranslated(model)):
        model = _expanded(model, operator, where)
    return model


def overriding(model: onnx.ModelProto) -> list[onnx.FunctionProto]:
    """The functions of a model that have the name of an operator: the operator is computed."""
    opsets = opsets_of(model)
    return [function for function in model.functions if overrides_an_operator(function, opsets)]


def _without_overrides(model: onnx.ModelProto) -> onnx.ModelProto:
    names = {identity_of(function) for function in overriding(model)}
    if not names:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.functions[:]
    copy.functions.extend(function for function in model.functions if identity_of(function) not in names)
    return copy


def _check_size(model: onnx.ModelProto, where: str) -> None:
    """Raise ConversionError if functions call each other in a cycle, or if the inlined model exceeds the limits."""
    whole = size_when_inlined(model, where)
    for size, limit, what in ((whole.nodes, MAX_INLINED_NODES, "nodes"), (whole.bytes, MAX_INLINED_BYTES, "bytes")):
        if size > limit:
            shown = size if size < 10**18 else "over 10**18"
            raise ConversionError(
                f"{where}: inlining its functions produces {shown} {what}, more than the {limit} allowed"
            )


def _untranslated(model: onnx.ModelProto) -> set[tuple[str, str]]:
    """The operators without a translator, each with its domain."""
    opsets = opsets_of(model)
    return {
        (domain_of(node), node.op_type)
        for node in every_node(model.graph)
        if find(node.op_type, domain_of(node), opset_of(node, opsets)) is None
    }


def _with_body(domain: str, operator: str, opset: int) -> defs.OpSchema | None:
    """The schema of an operator that ONNX defines by a function body; None for others."""
    if not has_schema(operator, domain, opset):
        return None
    schema = defs.get_schema(operator, opset, domain)
    # The type stubs of onnx lack both attributes.
    lists = ("function_opset_versions", "context_dependent_function_opset_versions")
    return schema if any(getattr(schema, name) for name in lists) else None


def _expanded(model: onnx.ModelProto, operator: tuple[str, str], where: str) -> onnx.ModelProto:
    """The model with an operator replaced by its function body; unchanged if no body can be translated."""
    schema = _with_body(*operator, opsets_of(model).get(operator[0], 1))
    if schema is None:
        return model
    calls = sum((domain_of(node), node.op_type) == operator for node in every_node(model.graph))
    if calls * _NODES_OF_A_SCHEMA_FUNCTION > MAX_INLINED_NODES:
        allowed = MAX_INLINED_NODES // _NODES_OF_A_SCHEMA_FUNCTION
        raise ConversionError(
            f"{where}: it has {calls} nodes of {schema.name}, which is a function; at most {allowed} can be inlined"
        )
    if not _all_have_inputs(model, schema):
        # The builder of the body would read missing inputs; the check of nodes reports them.
        return model
    try:
        expanded = inliner.inline_selected_functions(_prepared(model, schema), [operator], inline_schema_functions=True)
    except Exception:
        # C++, as above; the operator is then reported as one without a translator.
        return model
    carry_marks(model, expanded)
    before = _untranslated(model)
    for inner in sorted(_untranslated(expanded) - before):
        expanded = _expanded(expanded, inner, where)
    return expanded if _untranslated(expanded) < before else model


def _all_have_inputs(model: onnx.ModelProto, schema: defs.OpSchema) -> bool:
    """Whether all nodes of an operator have its minimum numbers of inputs and outputs."""
    nodes = [
        node for node in every_node(model.graph) if (domain_of(node), node.op_type) == (schema.domain, schema.name)
    ]
    return all(len(node.input) >= schema.min_input and len(node.output) >= schema.min_output for node in nodes)


def _prepared(model: onnx.ModelProto, schema: defs.OpSchema) -> onnx.ModelProto:
    """The model prepared for the inlining of an operator's bodies.

    Default attributes are written out: bodies refer to them, and the inliner drops them otherwise. Initializers become
    value_info, the only place apart from inputs where the inliner finds types.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for graph in every_graph(copy.graph):
        if isinstance(graph, onnx.GraphProto):
            typed = {info.name for info in (*graph.input, *graph.value_info)}
            fixed = (tensor for tensor in graph.initializer if tensor.name not in typed)
            graph.value_info.extend(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims) for tensor in fixed
            )
    for node in every_node(copy.graph):
        if (domain_of(node), node.op_type) != (schema.domain, schema.name):
            continue
        given = {attribute.name for attribute in node.attribute}
        defaults = (attribute.default_value for name, attribute in schema.attributes.items() if name not in given)
        node.attribute.extend(default for default in defaults if default.name)
    return copy
