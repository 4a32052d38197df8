"""Models written as ONNX, run in ONNX Runtime, and where that lacks a kernel in the reference evaluator of onnx."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

onnxruntime = pytest.importorskip("onnxruntime")

_CARRIERS = {
    **dict.fromkeys((TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2, TensorProto.FLOAT4E2M1,
                     TensorProto.FLOAT8E8M0), TensorProto.FLOAT),
    **dict.fromkeys((TensorProto.UINT4, TensorProto.UINT2), TensorProto.UINT8),
    **dict.fromkeys((TensorProto.INT4, TensorProto.INT2), TensorProto.INT8),
}  # fmt: skip
# What ONNX Runtime says of an operator or type that it has no kernel for.
_NO_KERNEL = ("NOT_IMPLEMENTED", "INVALID_GRAPH", "is not a registered function/op", "Type Error", "Locale::Locale")


def run_onnx(model: onnx.ModelProto, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], str]:
    """The outputs for arrays in the carriers of IR, and the runtime that gave them."""
    carried = with_carriers(model)
    feeds = {info.name: array for info, array in zip(carried.graph.input, arrays, strict=True)}
    try:
        return _in_onnxruntime(carried, feeds), "onnxruntime"
    except Exception as error:
        # The classes of ONNX Runtime's errors have no common base but Exception.
        if not any(text in str(error) for text in _NO_KERNEL):
            raise
        return _in_reference(carried, feeds), "onnx"


def _in_onnxruntime(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    # As written: products of bytes saturate on processors without VNNI.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def _in_reference(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    from onnx.reference import ReferenceEvaluator

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [np.asarray(x) for x in ReferenceEvaluator(model).run(None, feeds)]


def with_carriers(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with inputs and outputs of the types that NumPy has, and a Cast at each that it lacks."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    graph = found.graph
    before, after = list[Any](), list[Any]()
    for info in graph.input:
        kind = info.type.tensor_type.elem_type
        if kind in _CARRIERS:
            name, info.name = info.name, f"{info.name}/carried"
            before.append(helper.make_node("Cast", [info.name], [name], to=kind))
            info.type.tensor_type.elem_type = _CARRIERS[kind]
    for info in graph.output:
        kind = info.type.tensor_type.elem_type
        if kind in _CARRIERS:
            name, info.name = info.name, f"{info.name}/carried"
            after.append(helper.make_node("Cast", [name], [info.name], to=_CARRIERS[kind]))
            info.type.tensor_type.elem_type = _CARRIERS[kind]
    nodes = [*before, *graph.node, *after]
    del graph.node[:]
    graph.node.extend(nodes)
    return found
