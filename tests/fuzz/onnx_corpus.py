"""ONNX models to start from: those of the onnx package, rows of the tests of the converter, and some that neither has."""

from __future__ import annotations

import functools
import random
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.support.paths import ROOT

_LARGEST = 6000
_SUITES = Path(onnx.__file__).parent / "backend" / "test" / "data"
_FLOAT, _INT64 = TensorProto.FLOAT, TensorProto.INT64


@functools.cache
def models() -> tuple[bytes, ...]:
    """Every model, those of a kind together."""
    return (*_nodes(), *_files(), *_rows(), *(model.SerializeToString(deterministic=True) for model in _own()))


def model(rng: random.Random) -> onnx.ModelProto:
    """Some model; the few that are made here as often as all others."""
    own = len(_own())
    found = models()
    return onnx.ModelProto.FromString(found[-1 - rng.randrange(own)] if rng.random() < 0.25 else rng.choice(found))


def _nodes() -> list[bytes]:
    """The tests of each operator."""
    from onnx.backend.test.case import node

    state = np.random.get_state()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        np.random.seed(0)
        cases = sorted(node.collect_testcases(None), key=lambda case: case.name)
    np.random.set_state(state)
    texts = [case.model.SerializeToString(deterministic=True) for case in cases]
    return [text for text in texts if len(text) <= _LARGEST]


def _files() -> list[bytes]:
    paths = [
        path
        for suite in ("pytorch-operator", "pytorch-converted", "simple")
        for path in sorted((_SUITES / suite).glob("*/model.onnx"))
    ]
    return [path.read_bytes() for path in paths if path.stat().st_size <= _LARGEST] + [
        (ROOT / "samples/digits/denoiser.onnx").read_bytes()
    ]


def _rows() -> list[bytes]:
    from tests.onnx.rows import ROWS, STRING_ROWS

    texts = [row.model().SerializeToString(deterministic=True) for row in (*ROWS, *STRING_ROWS)]
    return [text for text in texts if len(text) <= _LARGEST]


@functools.cache
def _own() -> list[onnx.ModelProto]:
    return [_functions(), _external(), _sparse(), _forest(), _loop(), _resize(), _lstm(), _strings()]


def _model(
    nodes: list[onnx.NodeProto],
    inputs: Mapping[str, tuple[int, list[int | str]]],
    tensors: Sequence[TensorProto] = (),
    opset: int = 20,
) -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name="y")], list(tensors))
    made = onnx.ModelProto(ir_version=9, graph=graph)
    made.opset_import.extend(
        [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 5), helper.make_opsetid("local", 1)]
    )
    return made


def _functions() -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    made = _model([helper.make_node("f0", ["x"], ["y"], domain="local", alpha=0.5)], {"x": (_FLOAT, [2])})
    for i in range(4):
        scaled = helper.make_node("LeakyRelu", ["x"], ["a"])
        scaled.attribute.append(
            onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="alpha")
        )
        calls = [
            scaled,
            helper.make_node(f"f{i + 1}", ["a"], ["b"], domain="local"),
            helper.make_node("Add", ["a", "b"], ["y"]),
        ]
        body = calls if i < 3 else [helper.make_node("Relu", ["x"], ["y"])]
        made.functions.append(
            helper.make_function("local", f"f{i}", ["x"], ["y"], body, opsets, ["alpha"] if i < 3 else [])
        )
    return made


def _external() -> onnx.ModelProto:
    tensor = TensorProto(name="w", data_type=_FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", "0"), ("length", "8")):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return _model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": (_FLOAT, [2])}, [tensor])


def _sparse() -> onnx.ModelProto:
    made = _model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": (_FLOAT, [3, 3])})
    sparse = onnx.SparseTensorProto(dims=[3, 3])
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([1, 5]), ""))
    made.graph.sparse_initializer.append(sparse)
    return made


def _forest() -> onnx.ModelProto:
    def tensor(values: list[float], kind: type) -> TensorProto:
        return numpy_helper.from_array(np.array(values, kind), "t")

    node = helper.make_node(
        "TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, aggregate_function=1, post_transform=0, tree_roots=[0], nodes_modes=tensor([0, 0], np.uint8),
        nodes_featureids=[0, 1], nodes_splits=tensor([1, 2], np.float32), nodes_trueleafs=[0, 1], nodes_falseleafs=[1, 1], nodes_truenodeids=[1, 0],
        nodes_falsenodeids=[1, 1], leaf_targetids=[0, 0], leaf_weights=tensor([1, 2], np.float32),
    )  # fmt: skip
    return _model([node], {"x": (_FLOAT, [1, 2])})


def _loop() -> onnx.ModelProto:
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["a", "x"], ["b"]), helper.make_node("Identity", ["b"], ["s"])], "body",
        [helper.make_tensor_value_info("i", _INT64, []), helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("a", _FLOAT, [2])],
        [helper.make_tensor_value_info("d", TensorProto.BOOL, []), helper.make_tensor_value_info("b", _FLOAT, [2]), helper.make_tensor_value_info("s", _FLOAT, [2])],
    )  # fmt: skip
    trips = numpy_helper.from_array(np.array(3), "trips")
    condition = helper.make_node("Greater", ["m", "z"], ["p"])
    branches = {
        name: helper.make_graph([helper.make_node(op, ["l"], [name])], name, [], [onnx.ValueInfoProto(name=name)])
        for name, op in (("then_branch", "Relu"), ("else_branch", "Neg"))
    }
    nodes = [
        helper.make_node("Loop", ["trips", "", "x"], ["l", "scan"], body=body), helper.make_node("ReduceMax", ["scan"], ["m"], keepdims=0), condition,
        helper.make_node("If", ["p"], ["y"], **branches),
    ]  # fmt: skip
    return _model(nodes, {"x": (_FLOAT, [2])}, [trips, numpy_helper.from_array(np.float32(0), "z")])


def _resize() -> onnx.ModelProto:
    return _model(
        [helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear")],
        {"x": (_FLOAT, [1, "c", "h", 4]), "s": (_FLOAT, [4])},
    )


def _lstm() -> onnx.ModelProto:
    weights = [numpy_helper.from_array(np.ones((1, 8, 2), np.float32), name) for name in ("w", "r")]
    return _model(
        [helper.make_node("LSTM", ["x", "w", "r", "", "l"], ["a", "y"], hidden_size=2)],
        {"x": (_FLOAT, ["t", 1, 2]), "l": (TensorProto.INT32, [1])},
        weights,
    )


def _strings() -> onnx.ModelProto:
    tensor = helper.make_tensor("w", TensorProto.STRING, [2], [b"a", b"\xff"])
    return _model([helper.make_node("Concat", ["x", "w"], ["y"], axis=0)], {"x": (TensorProto.STRING, ["n"])}, [tensor])
