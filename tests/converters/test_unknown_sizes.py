"""Operators whose weights or heads have sizes that are known only when the model runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import converters
import irexec
from tests.support.onnx_models import model_of

ROWS = {
    "Conv": (
        "(float[1,4,9,9] x, float[M,C,H,W] w) => (float[N,M,A,B] y) { y = Conv <strides = [2, 1], pads = [1, 0, 1, 0]> (x, w) }",
        [(1, 4, 9, 9), (6, 4, 3, 2)],
    ),
    "Conv of groups": (
        '(float[1,4,9] x, float[M,C,K] w, float[M] b) => (float[N,M,A] y) { y = Conv <group = 2, auto_pad = "SAME_UPPER"> (x, w, b) }',
        [(1, 4, 9), (6, 2, 3), (6,)],
    ),
    "CausalConvWithState": (
        "(float[B,C,T] x, float[C,1,K] w) => (float[B,C,T] y) { y = CausalConvWithState (x, w) }",
        [(1, 4, 9), (4, 1, 3)],
    ),
    "CausalConvWithState, state": (
        "(float[B,C,T] x, float[C,P,K] w, float[C] b, float[B,C,S] p) => (float[B,C,S] s)"
        ' { y, s = CausalConvWithState <activation = "silu"> (x, w, b, p) }',
        [(2, 4, 2), (4, 1, 5), (4,), (2, 4, 4)],
    ),
    "DFT of complex values": (
        "(float[1,4,P] x) => (float[1,4,2] y) <int64 axis = {1}> { y = DFT (x, , axis) }",
        [(1, 4, 2)],
    ),
    "DFT of real values": (
        "(float[1,5,P] x) => (float[1,A,2] y) <int64 axis = {1}> { y = DFT <onesided = 1> (x, , axis) }",
        [(1, 5, 1)],
    ),
    "STFT": (
        "(float[1,16,P] x, float[4] w) => (float[1,A,B,2] y) <int64 step = {2}> { y = STFT <onesided = 0> (x, step, w) }",
        [(1, 16, 1), (4,)],
    ),
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
        "(float[1,3,S] x, float[1,3,H] c, float[1,3,H] s) => (float[1,3,S] y)"
        " { y = RotaryEmbedding <interleaved = 1, num_heads = 2> (x, c, s) }",
        [(1, 3, 16), (1, 3, 4), (1, 3, 4)],
    ),
    "RotaryEmbedding of a part": (
        "(float[1,2,3,S] x, float[1,3,2] c, float[1,3,2] s) => (float[1,2,3,S] y)"
        " { y = RotaryEmbedding <rotary_embedding_dim = 4, interleaved = 1> (x, c, s) }",
        [(1, 2, 3, 8), (1, 3, 2), (1, 3, 2)],
    ),
}


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
        "(float[N,2,A] x) => (float y)"
        " { y = LpPool <kernel_shape = [3], pads = [1, 2], strides = [2], ceil_mode = 1, p = 3> (x) }",
        [[(1, 2, 8)], [(2, 2, 1)], [(1, 2, 5)], [(1, 2, 6)]],
    ),
    "MaxPool, indices column by column": (
        "(float[N,2,A,B,C] x) => (int64 i) { y, i = MaxPool <kernel_shape = [2, 1, 2], storage_order = 1> (x) }",
        [[(1, 2, 3, 4, 5)], [(2, 2, 2, 1, 3)]],
    ),
    "ConvTranspose": (
        "(float[N,4,A] x, float[4,M,K] w) => (float y)"
        " { y = ConvTranspose <strides = [2], pads = [1, 0], output_padding = [1]> (x, w) }",
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
        "(float[N,4,A] x, float[4,2,3] w) => (float y)"
        ' { y = ConvTranspose <strides = [2], output_shape = [8], auto_pad = "SAME_UPPER"> (x, w) }',
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
    "Det of stacks": (
        "(float[A,B,M,N] x) => (float[A,B] y) { y = Det (x) }",
        [[(2, 1, 3, 3)], [(1, 2, 4, 4)], [(2, 1, 0, 0)], [(0, 1, 2, 2)]],
    ),
    "DequantizeLinear of blocks": (
        "(uint8[A,B] w, float[A,C] s) => (float[A,B] y) { y = DequantizeLinear <axis = 1, block_size = 4> (w, s) }",
        [[(2, 8), (2, 2)], [(3, 12), (3, 3)]],
    ),
    "MatMulNBits": (
        "(float[A,B] x, uint8[C,D,E] w, float[F] s) => (float y)"
        " { y = com.microsoft.MatMulNBits <K = 32, N = 3, bits = 4, block_size = 16> (x, w, s) }",
        [[(2, 32), (3, 2, 8), (6,)], [(5, 32), (3, 2, 8), (6,)]],
    ),
    "MatMulNBits with zero points": (
        "(float[A,B,C] x, uint8[D,E,F] w, float[G] s, uint8[H] z) => (float y)"
        " { y = com.microsoft.MatMulNBits <K = 40, N = 3, bits = 4, block_size = 16> (x, w, s, z) }",
        [[(2, 1, 40), (3, 3, 8), (9,), (6,)]],
    ),
    "MatMulNBits of two bits": (
        "(float[A,B] x, uint8[3,2,4] w, float[6] s) => (float y)"
        " { y = com.microsoft.MatMulNBits <K = 32, N = 3, bits = 2, block_size = 16> (x, w, s) }",
        [[(2, 32), (3, 2, 4), (6,)]],
    ),
}  # fmt: skip


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
