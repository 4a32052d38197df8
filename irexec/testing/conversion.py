"""Conversion from ONNX against a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irexec.analysis.model import Model
from irexec.api import compile_model, validate
from irexec.errors import InputError
from irexec.reading import convert
from irexec.testing.laws import assert_same
from irexec.testing.rows import Case, Typed, read_attributes


def check_conversion(
    row: Case, domain: str, type: str, *, opset: int = 1, attributes: Mapping[str, Any] | None = None
) -> Model:
    """Convert an ONNX operator, run it, and assert the results of a row; the converted model is returned.

    An ONNX model of one node is converted and run, with inputs and with initializers.

    Args:
        row: inputs and expected outputs of the node.
        domain, type, opset: the operator.
        attributes: attributes of the ONNX node; those of the row unless given.

    Raises:
        InputError: the row has no expected outputs, or ONNX lacks a type of its inputs.
        ConversionError: the model cannot be converted, or the package onnx is not installed.
    """
    if row.gives is None:
        raise InputError(f"the row {row.id} has no expected outputs")
    if attributes is None:
        attributes = row.definition.ungrouped(read_attributes(row.definition, row.attributes))
    converted = None
    for first_constant in (None, 1, 0):
        content = _onnx_model(row, domain, type, opset, attributes, first_constant)
        converted = convert(content)
        errors = [finding for finding in validate(converted) if finding.severity == "error"]
        assert not errors, f"the converted model has {errors}"
        fed = [x.array for x in row.inputs[:first_constant]]
        assert_same(list(compile_model(converted)(fed).values()), row.gives, row)
    assert converted is not None
    return converted


def _onnx_model(
    row: Case, domain: str, type: str, opset: int, attributes: Mapping[str, Any], first_constant: int | None
) -> bytes:
    """An ONNX file of one node; inputs from ``first_constant`` on are initializers."""
    from onnx import helper

    names = [f"input{i}" for i in range(len(row.inputs))]
    outputs = [f"output{i}" for i in range(len(row.gives or ()))]
    node = helper.make_node(type, names, outputs, domain=domain, **attributes)
    fed = list(zip(names, row.inputs, strict=True))[:first_constant]
    constants = [] if first_constant is None else list(zip(names, row.inputs, strict=True))[first_constant:]
    graph = helper.make_graph(
        [node],
        "row",
        [helper.make_tensor_value_info(name, _onnx_type(x), x.array.shape) for name, x in fed],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [_tensor(name, x) for name, x in constants],
    )
    imports = [helper.make_opsetid("", 18)] if domain else []
    model = helper.make_model(graph, opset_imports=[*imports, helper.make_opsetid(domain, opset)], ir_version=9)
    return bytes(model.SerializeToString())


def _onnx_type(x: Typed) -> int:
    if x.element.onnx is None:
        raise InputError(f"ONNX has no element type {x.element}")
    return x.element.onnx.number


def _tensor(name: str, x: Typed) -> Any:
    from onnx import helper

    values = [text.encode() for text in x.array.flat] if x.array.dtype == object else x.array.ravel().tolist()
    return helper.make_tensor(name, _onnx_type(x), x.array.shape, values)
