"""Types and shapes of values: those that a model declares, those that onnx infers, and sizes that are known only in a run."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

import converters
import irexec
from converters.onnx import inference
from converters.onnx.inference import infer_shapes
from irexec.errors import ConversionError, EngineError, RunTimeoutError
from tests.support.onnx_models import model_of


def _warnings(model: onnx.ModelProto, **options: Any) -> list[str]:
    found: list[str] = []
    converters.convert(model, warn=found.append, **options)
    return found


def _checker_accepts(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except onnx.shape_inference.InferenceError:
        return False
    return True


RELU = "y = Relu (x)"
CONTRADICTIONS = {
    "a size": ("(float[2,4] x) => (float[2,7] y)", RELU, ["output 'y' is declared as f32[2,7], but its node produces f32[2,4]"]),
    "a rank": ("(float[2,4] x) => (float[8] y)", RELU, ["output 'y' is declared as f32[8], but its node produces f32[2,4]"]),
    "an element type": ("(float[2] x) => (int64[2] y)", RELU, ["output 'y' is declared as i64[2], but its node produces f32[2]"]),
    "two outputs": (
        "(float[2] x) => (float[3] y, float[4] z)",
        "y = Relu (x) z = Neg (y)",
        ["output 'y' is declared as f32[3], but its node produces f32[2]", "output 'z' is declared as f32[4], but its node produces f32[2]"],
    ),
    "a value between nodes": (
        "(float[2] x) => (float[2] y) <float[9] t>",
        "t = Neg (x) y = Relu (t)",
        ["value 't' is declared as f32[9], but its node produces f32[2]"],
    ),
}  # fmt: skip
AGREEMENTS = {
    "the same": ("(float[2,4] x) => (float[2,4] y)", RELU),
    "less is declared than is known": ("(float[2,4] x) => (float[n,m] y)", RELU),
    "more is declared than is known": ("(float[n,m] x) => (float[2,4] y)", RELU),
    "symbols have other names": ("(float[n,4] x) => (float[batch,4] y)", RELU),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions(name: str) -> None:
    signature, nodes, expected = CONTRADICTIONS[name]
    model = model_of(f"{signature} {{ {nodes} }}")
    assert not _checker_accepts(model)
    assert _warnings(model) == expected
    with pytest.raises(irexec.ConversionError) as caught:
        converters.convert(model, strict=True)
    assert str(caught.value) == f"the model contradicts itself: {'; '.join(expected)}"
    assert not caught.value.unsupported


@pytest.mark.parametrize("name", AGREEMENTS)
def test_agreements(name: str) -> None:
    signature, nodes = AGREEMENTS[name]
    model = model_of(f"{signature} {{ {nodes} }}")
    assert _checker_accepts(model)
    assert _warnings(model, strict=True) == []


def test_the_converted_shape_is_the_one_that_the_node_gives() -> None:
    model = model_of("(float[2,4] x) => (float[2,7] y) { y = Relu (x) }")
    with pytest.warns(UserWarning, match=r"output 'y' is declared as f32\[2,7\], but its node produces f32\[2,4\]"):
        converted = converters.convert(model)
    assert str(converted.outputs[0]) == "y: f32[2,4]"


def test_undeclared_type_or_shape_is_not_compared() -> None:
    model = model_of("(float[2] x) => (float[2] y) { y = Relu (x) }")
    for info in (helper.make_tensor_value_info("y", TensorProto.FLOAT, None), onnx.ValueInfoProto(name="y")):
        model.graph.output[0].CopyFrom(info)
        assert _warnings(model) == []
    model.graph.value_info.append(helper.make_tensor_value_info("unused", TensorProto.FLOAT, [7]))
    assert _warnings(model) == []


def test_shapes_given_for_inputs() -> None:
    """Other input shapes than declared make the declared shapes of the other values obsolete; more exact ones do not."""
    model = model_of("(float[1,4] x, float[n] z) => (float[1,5] y) { y = Relu (x) }")
    assert _warnings(model, inputs={"x": (2, 4)}) == []
    assert len(_warnings(model, inputs={"z": (3,)})) == 1


def test_expected_shape_of_a_constant_output() -> None:
    model = model_of("() => (float[3] y) { y = Identity (w) }", w=np.ones(2, np.float32))
    assert _warnings(model) == ["output 'y' is declared as f32[3], but its node produces f32[2]"]


# What the shape inference of the package onnx says, and models on which it crashes or does not end.


HEADER = '<ir_version: 10, opset_import: ["" : 20, "local" : 1]>'
PLAIN = 'agraph (float[2,3] x, float[3,4] y) => (float[N,M] z) {{ z = Einsum <equation = "{}"> (x, y) }}'
CALL = (
    'agraph (float[2,3] x, float[3,4] y) => (float[N,M] z) {{ z = local.Product <terms = "{}"> (x, y) }}'
    '<domain: "local", opset_import: ["" : 20]> Product <terms> (x, y) => (z) {{ z = Einsum <equation: string = @terms> (x, y) }}'
)
WITHOUT = 'agraph (float[2,3] x) => (float[2,3] z) {{ z = local.Own <equation = "{}"> (x) }}'


@pytest.mark.parametrize("text", [PLAIN, CALL])
@pytest.mark.parametrize(
    "equation", ["i.j,jk->ik", "ij..,jk->ik", "ij,j-k", "ij,jk-", "_ij,jk", "ij,j\tk->ik", "ij;jk"]
)
def test_an_equation_that_is_never_read_to_its_end(text: str, equation: str) -> None:
    model = parser.parse_model(HEADER + text.format(equation))
    with pytest.raises(ConversionError, match=r"Einsum: equation .* has terms of other characters than letters"):
        infer_shapes(model)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("equation", ["ij,jk->ik", " i j , j k -> i k ", "ij,jk", "...ij,...jk->...ik"])
def test_shapes_of_an_equation(equation: str) -> None:
    model = infer_shapes(parser.parse_model(HEADER + PLAIN.format(equation)))
    assert helper.printable_value_info(model.graph.output[0]) == "%z[FLOAT, 2x4]"


def test_an_attribute_of_the_same_name_elsewhere() -> None:
    infer_shapes(parser.parse_model(HEADER + WITHOUT.format("i.j")))


def test_what_the_package_refuses() -> None:
    model = parser.parse_model(
        f"{HEADER} agraph (float[2,3] x, float[4,5] y) => (float[N,M] z) {{ z = MatMul (x, y) }}"
    )
    with pytest.raises(ConversionError, match="Incompatible dimensions"):
        infer_shapes(model, strict=True)


@pytest.mark.slow
def test_a_crash_ends_a_process_of_its_own() -> None:
    """onnx 1.23 aborts for a Split of more outputs than num_outputs; one that does not may infer the shapes."""
    text = f"{HEADER} agraph (float[4] x) => (float[2] a) {{ a, b, c = Split <num_outputs = 2> (x) }}"
    with contextlib.suppress(EngineError, ConversionError):
        infer_shapes(parser.parse_model(text))
    assert infer_shapes(parser.parse_model(HEADER + PLAIN.format("ij,jk->ik"))).graph.output


@pytest.mark.slow
def test_after_a_minute_it_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "_READABLE", re.compile(b".*"))
    monkeypatch.setattr(inference, "_SECONDS", 0.5)
    with pytest.raises(RunTimeoutError):
        infer_shapes(parser.parse_model(HEADER + PLAIN.format("i.j,jk->ik")))
    monkeypatch.setattr(inference, "_SECONDS", 60.0)
    assert infer_shapes(parser.parse_model(HEADER + PLAIN.format("ij,jk->ik"))).graph.output


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.slow
def test_after_a_fork() -> None:
    """The child does not speak with the process of its parent, and does not end it."""
    model = parser.parse_model(HEADER + PLAIN.format("ij,jk->ik"))
    infer_shapes(model)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if infer_shapes(model).graph.output else 1
            inference._process.stop()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert infer_shapes(model).graph.output


# Operators whose weights or heads have sizes that are known only when the model runs.


ROWS = {
    "Conv": (
        "(float[1,4,9,9] x, float[M,C,H,W] w) => (float[N,M,A,B] y) { y = Conv <strides = [2, 1], pads = [1, 0, 1, 0]> (x, w) }",
        [(1, 4, 9, 9), (6, 4, 3, 2)],
    ),
    "Conv of groups": (
        '(float[1,4,9] x, float[M,C,K] w, float[M] b) => (float[N,M,A] y) { y = Conv <group = 2, auto_pad = "SAME_UPPER"> (x, w, b) }',
        [(1, 4, 9), (6, 2, 3), (6,)],
    ),
    "CausalConvWithState": ("(float[B,C,T] x, float[C,1,K] w) => (float[B,C,T] y) { y = CausalConvWithState (x, w) }", [(1, 4, 9), (4, 1, 3)]),
    "CausalConvWithState, state": (
        "(float[B,C,T] x, float[C,P,K] w, float[C] b, float[B,C,S] p) => (float[B,C,S] s)" ' { y, s = CausalConvWithState <activation = "silu"> (x, w, b, p) }',
        [(2, 4, 2), (4, 1, 5), (4,), (2, 4, 4)],
    ),
    "DFT of complex values": ("(float[1,4,P] x) => (float[1,4,2] y) <int64 axis = {1}> { y = DFT (x, , axis) }", [(1, 4, 2)]),
    "DFT of real values": ("(float[1,5,P] x) => (float[1,A,2] y) <int64 axis = {1}> { y = DFT <onesided = 1> (x, , axis) }", [(1, 5, 1)]),
    "STFT": ("(float[1,16,P] x, float[4] w) => (float[1,A,B,2] y) <int64 step = {2}> { y = STFT <onesided = 0> (x, step, w) }", [(1, 16, 1), (4,)]),
    "Split into lengths of an unknown number": (
        "(float[8] x, float[S] l) => (float[A] y, float[B] z) <int64[3] c = {3, 5, 9}, int64[1] begin = {0}>"
        " { end = Shape (l) n = Slice (c, begin, end) y, z = Split (x, n) }",
        [(8,), (2,)],
    ),
    "RotaryEmbedding": (
        "(float[1,2,3,S] x, float[1,3,H] c, float[1,3,H] s) => (float[1,2,3,S] y) { y = RotaryEmbedding (x, c, s) }",
        [(1, 2, 3, 8), (1, 3, 4), (1, 3, 4)],
    ),
    "RotaryEmbedding, interleaved": (
        "(float[1,3,S] x, float[1,3,H] c, float[1,3,H] s) => (float[1,3,S] y)" " { y = RotaryEmbedding <interleaved = 1, num_heads = 2> (x, c, s) }",
        [(1, 3, 16), (1, 3, 4), (1, 3, 4)],
    ),
    "RotaryEmbedding of a part": (
        "(float[1,2,3,S] x, float[1,3,2] c, float[1,3,2] s) => (float[1,2,3,S] y)"
        " { y = RotaryEmbedding <rotary_embedding_dim = 4, interleaved = 1> (x, c, s) }",
        [(1, 2, 3, 8), (1, 3, 2), (1, 3, 2)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("graph", "shapes"), ROWS.values(), ids=ROWS)
def test_sizes_may_be_unknown(graph: str, shapes: list[tuple[int, ...]]) -> None:
    """The reference evaluator of onnx gives the same."""
    reference = pytest.importorskip("onnx.reference")
    model = model_of(graph, 27)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    names = [info.name for info in model.graph.input]
    given: Any = dict(zip(names, arrays, strict=True))
    expected = reference.ReferenceEvaluator(model).run(None, given)[0]
    np.testing.assert_allclose(
        irexec.compile_model(converters.convert(model))(given)[0], expected, rtol=1e-4, atol=1e-5
    )


AT_RUN_TIME = {
    "AveragePool, rounded up, padding counted": (
        "(float[N,2,A,B] x) => (float y) { y = AveragePool"
        " <kernel_shape = [3, 2], pads = [1, 0, 2, 1], strides = [2, 3], ceil_mode = 1, count_include_pad = 1> (x) }",
        [[(1, 2, 8, 5)], [(2, 2, 1, 1)], [(1, 2, 5, 6)], [(1, 2, 6, 7)]],
    ),
    "LpPool, rounded up": (
        "(float[N,2,A] x) => (float y)" " { y = LpPool <kernel_shape = [3], pads = [1, 2], strides = [2], ceil_mode = 1, p = 3> (x) }",
        [[(1, 2, 8)], [(2, 2, 1)], [(1, 2, 5)], [(1, 2, 6)]],
    ),
    "MaxPool, indices column by column": (
        "(float[N,2,A,B,C] x) => (int64 i) { y, i = MaxPool <kernel_shape = [2, 1, 2], storage_order = 1> (x) }",
        [[(1, 2, 3, 4, 5)], [(2, 2, 2, 1, 3)]],
    ),
    "ConvTranspose": (
        "(float[N,4,A] x, float[4,M,K] w) => (float y)" " { y = ConvTranspose <strides = [2], pads = [1, 0], output_padding = [1]> (x, w) }",
        [[(1, 4, 5), (4, 2, 3)], [(2, 4, 1), (4, 3, 4)]],
    ),
    "ConvTranspose of groups, SAME_UPPER": (
        "(float[N,4,A,B] x, float[4,M,K,L] w, float[C] b) => (float y)"
        ' { y = ConvTranspose <group = 2, strides = [2, 3], auto_pad = "SAME_UPPER"> (x, w, b) }',
        [[(1, 4, 5, 2), (4, 2, 3, 4), (4,)], [(2, 4, 1, 3), (4, 3, 4, 2), (6,)], [(1, 4, 3, 3), (4, 1, 1, 5), (2,)]],
    ),
    "ConvTranspose, SAME_LOWER": (
        '(float[N,4,A] x, float[4,M,K] w) => (float y) { y = ConvTranspose <strides = [3], auto_pad = "SAME_LOWER"> (x, w) }',
        [[(1, 4, 5), (4, 2, 4)], [(2, 4, 2), (4, 3, 1)], [(1, 4, 2), (4, 1, 6)]],
    ),
    "ConvTranspose, output_shape": (
        "(float[N,4,A] x, float[4,M,K] w) => (float y) { y = ConvTranspose <strides = [2], output_shape = [9]> (x, w) }",
        [[(1, 4, 5), (4, 2, 2)], [(2, 4, 4), (4, 3, 3)], [(1, 4, 7), (4, 1, 4)]],
    ),
    "ConvTranspose, output_shape, weights of a known size": (
        "(float[N,4,A] x, float[4,2,3] w) => (float y)" ' { y = ConvTranspose <strides = [2], output_shape = [8], auto_pad = "SAME_UPPER"> (x, w) }',
        [[(1, 4, 5), (4, 2, 3)], [(2, 4, 4), (4, 2, 3)], [(1, 4, 3), (4, 2, 3)]],
    ),
    "GRU of other functions": (
        "(float[T,B,I] x, float[D,R,I] w, float[D,R,H] r) => (float[T,D,B,H] y) {"
        ' y = GRU <hidden_size = 3, direction = "bidirectional", activations = ["Softsign", "Tanh", "Sigmoid", "Tanh"]>'
        " (x, w, r) }",
        [[(4, 2, 5), (2, 9, 5), (2, 9, 3)], [(1, 1, 2), (2, 9, 2), (2, 9, 3)]],
    ),
    "ConvInteger": (
        "(uint8[1,2,A,B] w, uint8[M,2,K,L] z) => (int32[1,M,C,D] y) { y = ConvInteger <pads = [1, 0, 0, 1]> (w, z) }",
        [[(1, 2, 4, 5), (3, 2, 2, 3)], [(1, 2, 3, 3), (1, 2, 1, 1)]],
    ),
    "Det": ("(float[N,N] x) => (float y) { y = Det (x) }", [[(1, 1)], [(2, 2)], [(5, 5)]]),
    "Det of stacks": ("(float[A,B,M,N] x) => (float[A,B] y) { y = Det (x) }", [[(2, 1, 3, 3)], [(1, 2, 4, 4)], [(2, 1, 0, 0)], [(0, 1, 2, 2)]]),
    "DequantizeLinear of blocks": (
        "(uint8[A,B] w, float[A,C] s) => (float[A,B] y) { y = DequantizeLinear <axis = 1, block_size = 4> (w, s) }",
        [[(2, 8), (2, 2)], [(3, 12), (3, 3)]],
    ),
    "MatMulNBits": (
        "(float[A,B] x, uint8[C,D,E] w, float[F] s) => (float y)" " { y = com.microsoft.MatMulNBits <K = 32, N = 3, bits = 4, block_size = 16> (x, w, s) }",
        [[(2, 32), (3, 2, 8), (6,)], [(5, 32), (3, 2, 8), (6,)]],
    ),
    "MatMulNBits with zero points": (
        "(float[A,B,C] x, uint8[D,E,F] w, float[G] s, uint8[H] z) => (float y)"
        " { y = com.microsoft.MatMulNBits <K = 40, N = 3, bits = 4, block_size = 16> (x, w, s, z) }",
        [[(2, 1, 40), (3, 3, 8), (9,), (6,)]],
    ),
    "MatMulNBits of two bits": (
        "(float[A,B] x, uint8[3,2,4] w, float[6] s) => (float y)" " { y = com.microsoft.MatMulNBits <K = 32, N = 3, bits = 2, block_size = 16> (x, w, s) }",
        [[(2, 32), (3, 2, 4), (6,)]],
    ),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("graph", "runs"), AT_RUN_TIME.values(), ids=AT_RUN_TIME)
def test_one_model_runs_with_several_sizes(graph: str, runs: list[list[tuple[int, ...]]]) -> None:
    """ONNX Runtime gives the same for each of them."""
    onnxruntime = pytest.importorskip("onnxruntime")
    model = model_of(graph, 21)
    converted = converters.convert(model)
    assert [str(finding) for finding in irexec.validate(converted) if finding.severity == "error"] == []
    compiled, session = irexec.compile_model(converted), onnxruntime.InferenceSession(model.SerializeToString())
    rng = np.random.default_rng(0)
    for shapes in runs:
        arrays = {
            info.name: rng.integers(0, 256, shape, np.uint8) if info.type.tensor_type.elem_type == TensorProto.UINT8
            else rng.standard_normal(shape).astype(np.float32)
            for info, shape in zip(model.graph.input, shapes, strict=True)
        }  # fmt: skip
        (expected,) = session.run(None, arrays)
        result = compiled(arrays)[0]
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_a_stack_of_matrices_that_are_not_square_is_refused() -> None:
    with pytest.raises(irexec.ConversionError, match="does not consist of square matrices"):
        converters.convert(model_of("(float[2,3,4] x) => (float[2] y) { y = Det (x) }"))
    model = converters.convert(model_of("(float[B,M,N] x) => (float[B] y) { y = Det (x) }"))
    with pytest.raises(irexec.IrexecError, match=r"\[2,3,4\] cannot be reshaped to \[2, 4, 4\]"):
        irexec.compile_model(model)([np.zeros((2, 3, 4), np.float32)])
