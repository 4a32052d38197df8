"""Malformed models are refused with a ConversionError of one line, whatever is wrong with them."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper

import converters
import irexec
from tests.support.onnx_models import model_of

_WRONG_VALUES = [
    3, -7, 2**62, 1.5, float("nan"), "abc", b"\xff\xfe", [1, 2, 3, 4, 5, 6, 7], [-9], [0.5], [2**62], ["x"], [0, 0, 0, 0], 0, -1,
    helper.make_tensor("t", TensorProto.FLOAT, [2], [1.0, 2.0]),
]  # fmt: skip
_SHAPES = [[], [0], [3], [2, 0, 3], [5, 5, 5, 5, 5, 5], None]
_TYPES = [
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.BOOL,
    TensorProto.STRING,
    TensorProto.FLOAT16,
    TensorProto.BFLOAT16,
]

# Graphs of one node, with attributes and inputs of many types.
_GRAPHS = {
    "Conv": "(float[1,2,6,6] x, float[4,1,3,3] w, float[4] b) => (float y) { y = Conv <group = 2, strides = [2, 1], dilations = [1, 2], "
    "pads = [1, 1, 1, 1], kernel_shape = [3, 3]> (x, w, b) }",
    "ConvTranspose": "(float[1,2,4,4] x, float[2,1,3,3] w) => (float y) { y = ConvTranspose <group = 2, strides = [2, 2], "
    'output_shape = [8, 8], output_padding = [1, 1], auto_pad = "SAME_UPPER"> (x, w) }',
    "DeformConv": "(float[1,1,3,3] x, float[1,1,2,2] w, float[1,8,2,2] o, float[1] b) => (float y) "
    "{ y = DeformConv <kernel_shape = [2, 2], offset_group = 1, group = 1> (x, w, o, b) }",
    "MaxPool": "(float[1,1,6,6] x) => (float y, int64 i) { y, i = MaxPool <kernel_shape = [3, 2], ceil_mode = 1, storage_order = 1, "
    "strides = [2, 2], pads = [1, 0, 1, 0]> (x) }",
    "AveragePool": "(float[1,1,6,6] x) => (float y) { y = AveragePool <kernel_shape = [3, 2], ceil_mode = 1, count_include_pad = 1, "
    "strides = [2, 2], pads = [1, 0, 1, 0]> (x) }",
    "LpPool": '(float[1,1,6,6] x) => (float y) { y = LpPool <kernel_shape = [3, 2], ceil_mode = 1, p = 2, auto_pad = "VALID"> (x) }',
    "Resize": '(float[1,1,4,4] x, float[4] roi, float[2] s) => (float y) { y = Resize <mode = "cubic", axes = [2, 3], antialias = 1, '
    'coordinate_transformation_mode = "tf_crop_and_resize", cubic_coeff_a = -0.5> (x, roi, s) }',
    "Pad": '(float[2,3] x, int64[2] p, float v, int64[1] a) => (float y) { y = Pad <mode = "wrap"> (x, p, v, a) }',
    "Slice": "(float[4,5] x, int64[1] a, int64[1] b) => (float y) { y = Slice (x, a, b) }",
    "Split": "(float[6] x) => (float y, float z) { y, z = Split <axis = 0, num_outputs = 2> (x) }",
    "Gemm": "(float[2,3] x, float[3,4] w, float[4] c) => (float y) { y = Gemm <alpha = 0.5, beta = 2.0, transA = 0> (x, w, c) }",
    "ReduceSum": "(float[2,3] x, int64[1] a) => (float y) { y = ReduceSum <keepdims = 0, noop_with_empty_axes = 1> (x, a) }",
    "TopK": "(float[4] x, int64[1] k) => (float y, int64 i) { y, i = TopK <axis = 0, largest = 0> (x, k) }",
    "OneHot": "(int64[3] x, int64 d, float[2] v) => (float y) { y = OneHot <axis = 1> (x, d, v) }",
    "GatherND": "(float[2,3] x, int64[2,1] i) => (float y) { y = GatherND <batch_dims = 1> (x, i) }",
    "Cast": "(float[2] x) => (int64 y) { y = Cast <to = 7, saturate = 1> (x) }",
    "Max": "(float[2] x, float[2] z) => (float y) { y = Max (x, z) }",
    "ConstantOfShape": "(int64[2] x) => (float y) { y = ConstantOfShape <value = float[1] {1}> (x) }",
    "LayerNormalization": "(float[2,3] x, float[3] s, float[3] b) => (float y) { y = LayerNormalization <axis = -1, epsilon = 0.1> (x, s, b) }",
    "GroupNormalization": "(float[1,4,2] x, float[4] s, float[4] b) => (float y) { y = GroupNormalization <num_groups = 2> (x, s, b) }",
    "BatchNormalization": "(float[1,2,3] x, float[2] s, float[2] b, float[2] m, float[2] v) => (float y, float n, float o) "
    "{ y, n, o = BatchNormalization <training_mode = 1, momentum = 0.5> (x, s, b, m, v) }",
    "QuantizeLinear": "(float[2,4] x, float[2,2] s, int8[2,2] z) => (int8 y) { y = QuantizeLinear <axis = 1, block_size = 2> (x, s, z) }",
    "QLinearMatMul": "(uint8[2,3] x, float s, uint8 z, uint8[3,2] w, float t, uint8 v, float u, uint8 q) => (uint8 y) "
    "{ y = QLinearMatMul (x, s, z, w, t, v, u, q) }",
    "QLinearConv": "(uint8[1,1,4,4] x, float s, uint8 z, uint8[1,1,2,2] w, float t, uint8 v, float u, uint8 q, int32[1] b) => (uint8 y) "
    "{ y = QLinearConv <strides = [1, 2]> (x, s, z, w, t, v, u, q, b) }",
    "channels-last Conv": "(float[1,6,6,2] x, float[4,2,3,3] w) => (float y) "
    '{ y = com.ms.internal.nhwc.Conv <activation = "Clip", activation_params = [0.0, 1.0]> (x, w) }',
}  # fmt: skip


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def _damaged(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    """The model with one wrong attribute or input."""
    node = model.graph.node[0]
    for i, attribute in enumerate(node.attribute):
        for value in _WRONG_VALUES:
            copy = _copy(model)
            copy.graph.node[0].attribute[i].CopyFrom(helper.make_attribute(attribute.name, value))
            yield copy
    for i in range(len(node.input)):
        copy = _copy(model)
        copy.graph.node[0].input[i] = ""
        yield copy
        for shape in _SHAPES:
            for kind in (model.graph.input[i].type.tensor_type.elem_type, *_TYPES):
                copy = _copy(model)
                copy.graph.input[i].CopyFrom(helper.make_tensor_value_info(node.input[i], kind, shape))
                yield copy


def _convert(model: onnx.ModelProto | Path) -> None:
    """Raises no exception but a ConversionError, which is caught."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            converters.convert(model)
        except irexec.ConversionError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("name", _GRAPHS)
def test_one_wrong_attribute_or_input(name: str) -> None:
    model = model_of(_GRAPHS[name], 21)
    converters.convert(model)
    for damaged in _damaged(model):
        _convert(damaged)


@pytest.mark.parametrize("text", [b"MatMul", b"tested", b"hidden", b"rows"])
def test_names_that_are_not_text(tmp_path: Path, text: bytes) -> None:
    model = model_of(
        "(float[rows,3] x) => (float y) { hidden = MatMul (x, w) y = Relu (hidden) }", w=np.ones((3, 4), np.float32)
    )
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString().replace(text, b"\xff" * len(text), 1))
    with pytest.raises(irexec.ConversionError, match="not an ONNX model: a name in it is not UTF-8 text"):
        converters.convert(path)


def test_random_bytes(tmp_path: Path) -> None:
    graph = "(float[2,3] x) => (float y) { a = MatMul (x, w) b = Add (a, c) y = Softmax <axis = 1> (b) }"
    content = model_of(graph, w=np.ones((3, 4), np.float32), c=np.ones(4, np.float32)).SerializeToString()
    generator, path = random.Random(1), tmp_path / "m.onnx"
    for _ in range(600):
        damaged = bytearray(content)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        path.write_bytes(bytes(damaged))
        _convert(path)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        (helper.make_attribute("axis", 1.5), "node 'n' .*: attribute 'axis' is of type FLOAT, expected INT"),
        (helper.make_attribute("axis", [1]), "node 'n' .*: attribute 'axis' is of type INTS, expected INT"),
        (
            AttributeProto(name="axis", ref_attr_name="outer", type=AttributeProto.INT),
            "attribute 'axis' refers to an attribute of a function",
        ),
        (helper.make_attribute("axes", 1), "attribute 'axes' is unknown"),
    ],
)
def test_attributes_that_contradict_the_schema(attribute: AttributeProto, message: str) -> None:
    model = model_of("(float[2,3] x) => (float y) { [n] y = Softmax (x) }")
    model.graph.node[0].attribute.append(attribute)
    with pytest.raises(irexec.ConversionError, match=message):
        converters.convert(model)


def test_attributes_without_a_type_in_files_of_ir_version_1() -> None:
    model = model_of("(float[2,3] x) => (float y) { y = Softmax (x) }", 1)
    model.graph.node[0].attribute.append(AttributeProto(name="axis", i=0))
    result = irexec.compile_model(converters.convert(model))([np.zeros((2, 3), np.float32)])[0]
    np.testing.assert_allclose(result, np.full((2, 3), 1 / 6), rtol=1e-6)
