"""Rows of ONNX operators that the backend suite does not cover; the results of ONNX Runtime are in tests/data/onnx."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

MICROSOFT = "com.microsoft"
ML = "ai.onnx.ml"
OPSET = 21


@dataclass(frozen=True)
class Fixed:
    """An input that is an initializer."""

    array: np.ndarray


@dataclass(frozen=True)
class Row:
    """A model of one node."""

    id: str
    operator: str
    domain: str
    opset: int
    inputs: tuple[np.ndarray | Fixed | None, ...]
    outputs: tuple[bool, ...]
    attributes: dict[str, Any]
    tolerance: float
    compared: int
    ml: int

    @property
    def feeds(self) -> dict[str, np.ndarray]:
        return {f"x{i}": x for i, x in enumerate(self.inputs) if isinstance(x, np.ndarray)}

    def model(self) -> onnx.ModelProto:
        names = ["" if x is None else f"x{i}" for i, x in enumerate(self.inputs)]
        results = [f"y{i}" if reference else "" for i, reference in enumerate(self.outputs)]
        node = helper.make_node(self.operator, names, results, "node", domain=self.domain, **self.attributes)
        fixed = [
            onnx.numpy_helper.from_array(x.array, f"x{i}") for i, x in enumerate(self.inputs) if isinstance(x, Fixed)
        ]
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in self.feeds.items()
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in results if name]
        graph = helper.make_graph([node], "row", infos, outputs, fixed)
        return helper.make_model(
            graph,
            opset_imports=[
                helper.make_opsetid("", self.opset),
                helper.make_opsetid(MICROSOFT, 1),
                helper.make_opsetid(ML, self.ml),
                *([helper.make_opsetid(self.domain, 1)] if self.domain not in ("", MICROSOFT, ML) else []),
            ],
            # The version of the time; ONNX 1.23 writes none below 3.
            ir_version=3 if self.opset < 10 else 10,
        )


def row(
    operator: str, *inputs: np.ndarray | Fixed | None, id: str = "plain", domain: str = MICROSOFT, model_opset: int = OPSET,
    outputs: tuple[bool, ...] = (True,), tolerance: float = 1e-5, compared: int = 9, ml: int = 0,
    **attributes: Any,
) -> Row:  # fmt: skip
    """``compared``: the number of outputs that are compared; unused entries of a cache are not defined. ``ml``: the opset of ai.onnx.ml."""
    ml = ml or (4 if operator == "LabelEncoder" else 3)
    return Row(f"{operator}: {id}", operator, domain, model_opset, inputs, outputs, attributes, tolerance, compared, ml)


def f32(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    generator = np.random.Generator(np.random.PCG64(zlib.crc32(repr((shape, seed)).encode())))
    return generator.uniform(low, high, shape).astype(np.float32)


def ints(dtype: str, *shape: int, low: int, high: int, seed: int = 0) -> np.ndarray:
    generator = np.random.Generator(np.random.PCG64(zlib.crc32(repr((dtype, shape, seed)).encode())))
    return generator.integers(low, high, shape).astype(dtype)


def u8(*shape: int, seed: int = 0) -> np.ndarray:
    return ints("uint8", *shape, low=0, high=256, seed=seed)


def i8(*shape: int, seed: int = 0) -> np.ndarray:
    return ints("int8", *shape, low=-128, high=128, seed=seed)


def scalar(number: float) -> np.ndarray:
    return np.array(number, np.float32)


def zero(number: int, dtype: str = "uint8") -> np.ndarray:
    return np.array(number, dtype)


def i32(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def i64(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


# fmt: off
_PRODUCTS = [
    row("FusedMatMul", f32(2, 3, 4), f32(2, 4, 5), alpha=0.5),
    row("FusedMatMul", f32(2, 4, 3), f32(2, 5, 4), id="both transposed", transA=1, transB=1),
    row("FusedMatMul", f32(3, 2, 4), f32(4, 2, 5), id="batch behind", transBatchA=1, transBatchB=1),
    row("FusedMatMul", f32(4, 2, 3), f32(4, 2, 5), id="batch last and transposed", transA=1, transBatchA=1, transBatchB=1),
    row("FusedMatMul", f32(4), f32(4, 5), id="vector", transA=1),
    row("TransposeMatMul", f32(2, 4, 3), f32(2, 4, 5), transA=1),
    row("FusedGemm", f32(2, 3), f32(3, 4), f32(4), activation="Relu"),
    row("FusedGemm", f32(3, 2), f32(4, 3), id="leaky", activation="LeakyRelu", activation_alpha=0.2, transA=1, transB=1, alpha=2.0),
    row("FusedGemm", f32(2, 3), f32(3, 4), f32(2, 4), id="hard", activation="HardSigmoid", activation_alpha=0.2, activation_beta=0.5, beta=3.0),
    row("FusedGemm", f32(2, 3), f32(3, 4), f32(1, 4), id="tanh", activation="Tanh"),
    row("FusedGemm", f32(2, 3), f32(3, 4), f32(1, 4), id="sigmoid", activation="Sigmoid"),
    row("Gelu", f32(3, 4, low=-4, high=4)),
    row("BiasGelu", f32(3, 4, low=-4, high=4), f32(4)),
    row("FastGelu", f32(3, 4, low=-4, high=4)),
    row("FastGelu", f32(2, 3, 4, low=-4, high=4), f32(4), id="bias"),
    row("QuickGelu", f32(3, 4, low=-4, high=4)),
    row("QuickGelu", f32(3, 4, low=-4, high=4), id="alpha", alpha=0.5),
    row("ExpandDims", f32(3, 4), Fixed(i32(1).reshape(()))),
    row("Inverse", f32(2, 3, 3)),
    row("Trilu", f32(2, 3, 4), Fixed(i64(1).reshape(())), upper=0),
]
_NORMALISATION = [
    row("SkipLayerNormalization", f32(2, 3, 8), f32(2, 3, 8, seed=1), f32(8), f32(8, seed=1)),
    row("SkipLayerNormalization", f32(2, 3, 8), f32(2, 3, 8, seed=1), f32(8), f32(8, seed=1), f32(8, seed=2), id="sum too",
        outputs=(True, False, False, True), epsilon=1e-3),
    row("SkipLayerNormalization", f32(2, 3, 8), f32(3, 8, seed=1), f32(8), id="skip stretched"),
    row("SkipSimplifiedLayerNormalization", f32(2, 3, 8), f32(2, 3, 8, seed=1), f32(8)),
    row("SkipSimplifiedLayerNormalization", f32(2, 3, 8), f32(2, 3, 8, seed=1), f32(8), f32(8, seed=2), id="sum too", outputs=(True, False, False, True)),
    row("SimplifiedLayerNormalization", f32(2, 3, 8), f32(8), domain=""),
    row("SimplifiedLayerNormalization", f32(2, 3, 8), f32(3, 8), domain="", id="axis", axis=1, epsilon=1e-3),
    row("LayerNormalization", f32(2, 3, 8), f32(8), f32(8, seed=1), domain="", model_opset=13, outputs=(True, True, True)),
    row("EmbedLayerNormalization", i32(1, 3, 2, 0, 1, 1).reshape(2, 3), None, f32(4, 8), f32(5, 8), None, f32(8), f32(8, seed=1), outputs=(True, True)),
    row("EmbedLayerNormalization", i32(1, 3, 2, 0, 1, 1).reshape(2, 3), i32(0, 0, 1, 1, 0, 1).reshape(2, 3), f32(4, 8), f32(5, 8),
        f32(2, 8), f32(8), f32(8, seed=1), i32(1, 1, 1, 1, 1, 0).reshape(2, 3), i32(2, 1, 0, 4, 3, 2).reshape(2, 3), id="all",
        outputs=(True, True, True)),
]  # fmt: skip
_X, _W, _B = f32(2, 4, 8), f32(8, 24), f32(24)
_PAST = f32(2, 2, 2, 3, 4)
_Q, _K, _V = f32(2, 3, 8), f32(2, 5, 8, seed=1), f32(2, 5, 8, seed=2)
_ATTENTION = [
    row("Attention", _X, _W, _B, num_heads=2),
    row("Attention", _X, _W, _B, id="causal", num_heads=2, unidirectional=1, scale=0.3),
    row("Attention", _X, _W, _B, i32(4, 2), id="lengths", num_heads=2),
    row("Attention", _X, _W, _B, i32(4, 3, 0, 1), id="ends and starts", num_heads=2),
    row("Attention", _X, _W, _B, i32(1, 1, 1, 0, 1, 0, 1, 1).reshape(2, 4), id="raw mask", num_heads=2),
    row("Attention", _X, _W, _B, ints("int32", 2, 4, 4, low=0, high=2), id="mask for each query", num_heads=2),
    row("Attention", _X, f32(8, 20), f32(20), id="values of their own size", num_heads=2, qkv_hidden_sizes=[8, 8, 4]),
    row("Attention", _X, _W, _B, None, _PAST, id="past", num_heads=2, outputs=(True, True)),
    row("Attention", _X, _W, _B, None, _PAST, id="past and causal", num_heads=2, unidirectional=1, outputs=(True, True)),
    row("Attention", _X, _W, _B, None, None, f32(2, 2, 4, 4), id="bias of the scores", num_heads=2),
    row("MultiHeadAttention", _Q, _K, _V, num_heads=2),
    row("MultiHeadAttention", _Q, _K, _V, f32(24), id="bias", num_heads=2, scale=0.2),
    row("MultiHeadAttention", _Q, _K, _V, None, i32(5, 2), id="lengths", num_heads=2),
    row("MultiHeadAttention", _Q, _K, _V, None, ints("int32", 2, 5, low=0, high=2), id="mask", num_heads=2),
    row("MultiHeadAttention", _Q, _K, _V, None, None, f32(1, 2, 3, 5), id="bias of the scores", num_heads=2),
    row("MultiHeadAttention", _Q, f32(2, 2, 5, 4), f32(2, 2, 5, 4, seed=1), id="keys with heads", num_heads=2),
    row("MultiHeadAttention", _Q, f32(2, 3, 8, seed=3), f32(2, 3, 8, seed=4), None, None, None, f32(2, 2, 2, 4), f32(2, 2, 2, 4, seed=1),
        id="past", num_heads=2, outputs=(True, True, True)),
    row("MultiHeadAttention", _Q, f32(2, 3, 8, seed=3), f32(2, 3, 8, seed=4), None, None, None, f32(2, 2, 2, 4), f32(2, 2, 2, 4, seed=1),
        id="past and causal", num_heads=2, unidirectional=1, outputs=(True, True, True)),
    row("RotaryEmbedding", f32(2, 3, 8), i64(0), f32(6, 2), f32(6, 2, seed=1), id="all in one line", num_heads=2),
    row("RotaryEmbedding", f32(2, 3, 8), i64(2), f32(6, 2), f32(6, 2, seed=1), id="offset"),
    row("RotaryEmbedding", f32(2, 3, 8), i64(0, 1, 2, 3, 4, 5).reshape(2, 3), f32(6, 2), f32(6, 2, seed=1), id="position ids", interleaved=1),
    row("RotaryEmbedding", f32(2, 2, 3, 8), i64(0, 1, 2, 3, 4, 5).reshape(2, 3), f32(6, 4), f32(6, 4, seed=1), id="with heads"),
    row("RotaryEmbedding", f32(2, 3, 16), i64(0, 1, 2, 3, 4, 5).reshape(2, 3), f32(6, 2), f32(6, 2, seed=1), id="part", num_heads=2, rotary_embedding_dim=4),
]  # fmt: skip
_GQ, _GK, _GV = f32(2, 3, 64), f32(2, 3, 32, seed=1), f32(2, 3, 32, seed=2)
_ONE = f32(2, 1, 64), f32(2, 1, 32, seed=1), f32(2, 1, 32, seed=2)
_CACHE = f32(2, 2, 5, 16), f32(2, 2, 5, 16, seed=1)
_GROUPED = {"num_heads": 4, "kv_num_heads": 2, "outputs": (True, True, True)}
_COS, _SIN = f32(16, 8), f32(16, 8, seed=1)
_GROUPS = [
    row("GroupQueryAttention", _GQ, _GK, _GV, None, None, i32(2, 2), Fixed(i32(3)), id="prompt", **_GROUPED),
    row("GroupQueryAttention", f32(2, 3, 128), None, None, None, None, i32(2, 2), Fixed(i32(3)), id="packed", **_GROUPED),
    row("GroupQueryAttention", _GQ, _GK, _GV, f32(2, 2, 0, 16), f32(2, 2, 0, 16), i32(2, 2), i32(3), _COS, _SIN, id="prompt with an empty past",
        do_rotary=1, **_GROUPED),
    row("GroupQueryAttention", *_ONE, *_CACHE, i32(5, 5), Fixed(i32(6)), id="one more", **_GROUPED),
    row("GroupQueryAttention", *_ONE, f32(2, 2, 8, 16), f32(2, 2, 8, 16, seed=1), i32(5, 5), Fixed(i32(6)), id="room in the cache", compared=1, **_GROUPED),
    row("GroupQueryAttention", *_ONE, *_CACHE, i32(5, 5), Fixed(i32(6)), id="window", local_window_size=3, scale=0.4, **_GROUPED),
    row("GroupQueryAttention", *_ONE, *_CACHE, i32(5, 5), Fixed(i32(6)), id="softcap", softcap=0.5, **_GROUPED),
    row("GroupQueryAttention", _GQ, _GK, _GV, None, None, i32(2, 2), Fixed(i32(3)), _COS, _SIN, id="rotary prompt", do_rotary=1, **_GROUPED),
    row("GroupQueryAttention", *_ONE, *_CACHE, i32(5, 5), Fixed(i32(6)), _COS, _SIN, id="rotary", do_rotary=1, rotary_interleaved=1, **_GROUPED),
    row("GroupQueryAttention", *_ONE, *_CACHE, i32(5, 3), Fixed(i32(6)), _COS, _SIN, id="lengths differ", do_rotary=1, compared=1, **_GROUPED),
]  # fmt: skip
_S, _T, _R = scalar(0.02), scalar(0.03), scalar(0.05)
_Z, _ZT, _ZR = zero(120), zero(130), zero(128)
_QUANTISED = [
    row("QuantizeLinear", f32(3, 4, high=3), _S, _Z),
    row("DequantizeLinear", u8(3, 4), _S, _Z),
    row("QLinearAdd", u8(2, 3), _S, _Z, u8(2, 3, seed=1), _T, _ZT, _R, _ZR, tolerance=1),
    row("QLinearAdd", i8(2, 3), _S, zero(3, "int8"), i8(3, seed=1), _T, zero(-3, "int8"), _R, zero(1, "int8"), id="i8 stretched", tolerance=1),
    row("QLinearMul", u8(2, 3), _S, _Z, u8(2, 3, seed=1), _T, _ZT, _R, _ZR, tolerance=1),
    row("QLinearSigmoid", u8(2, 3), Fixed(_S), Fixed(_Z), Fixed(scalar(1 / 256)), Fixed(zero(0)), tolerance=1),
    row("QLinearLeakyRelu", u8(2, 3), Fixed(_S), Fixed(_Z), Fixed(_T), Fixed(_ZT), alpha=0.1, tolerance=1),
    row("QLinearSoftmax", u8(2, 5), Fixed(_S), Fixed(_Z), Fixed(scalar(1 / 256)), Fixed(zero(0)), axis=-1, opset=13, tolerance=1),
    row("QLinearGlobalAveragePool", u8(2, 3, 4, 4), _S, _Z, _T, _ZT, tolerance=1),
    row("QLinearGlobalAveragePool", u8(2, 4, 4, 3), _S, _Z, _T, _ZT, id="channels last", channels_last=1, tolerance=1),
    row("QLinearAveragePool", u8(2, 3, 4, 4), _S, _Z, _T, _ZT, kernel_shape=[2, 2], strides=[2, 2], tolerance=1),
    row("QLinearAveragePool", u8(2, 4, 4, 3), _S, _Z, _T, _ZT, id="channels last", kernel_shape=[3, 3], pads=[1, 1, 1, 1], channels_last=1, tolerance=1),
    row("QLinearConcat", _R, _ZR, u8(2, 3), Fixed(_S), Fixed(_Z), u8(2, 1), Fixed(_T), Fixed(_ZT), axis=1, tolerance=1),
    row("QLinearWhere", ints("bool", 2, 3, low=0, high=2), u8(2, 3), Fixed(_S), Fixed(_Z), u8(2, 3, seed=1), Fixed(_T), Fixed(_ZT), Fixed(_R),
        Fixed(_ZR), tolerance=1),
    row("QLinearConv", u8(1, 5, 5, 2), _S, _Z, Fixed(u8(3, 2, 3, 3)), Fixed(_T), Fixed(_ZT), _R, _ZR, Fixed(ints("int32", 3, low=-99, high=99)),
        id="channels last", channels_last=1, tolerance=1),
    row("QGemm", u8(2, 3), _S, _Z, u8(3, 4), _T, _ZT, ints("int32", 4, low=-99, high=99), _R, _ZR, tolerance=1),
    row("QGemm", u8(2, 3), _S, _Z, u8(4, 3), _T, _ZT, id="floats", transB=1, alpha=0.5),
    row("MatMulIntegerToFloat", u8(2, 3), u8(3, 4), _S, _T, _Z, _ZT, f32(4)),
    row("MatMulIntegerToFloat", u8(2, 3), i8(3, 4), _S, f32(4, low=0.01), id="scale for each column"),
    row("DynamicQuantizeMatMul", f32(2, 3), Fixed(u8(3, 4)), Fixed(_T), Fixed(_ZT), tolerance=1e-3),
    row("MatMulNBits", f32(2, 32), Fixed(u8(3, 2, 8)), Fixed(f32(6)), K=32, N=3, bits=4, block_size=16),
    row("MatMulNBits", f32(2, 3, 40), Fixed(u8(3, 3, 8)), Fixed(f32(9)), Fixed(u8(6)), None, Fixed(f32(3)), id="zero points and bias",
        K=40, N=3, bits=4, block_size=16, tolerance=1e-4),
    row("MatMulNBits", f32(2, 32), Fixed(u8(3, 2, 16)), Fixed(f32(6)), id="eight bits", K=32, N=3, bits=8, block_size=16, tolerance=1e-4),
]  # fmt: skip
_BOXES = np.array([[0, 0, 0, 7, 7], [1, 2, 1, 5, 6], [0, 3, 3, 3, 3]], np.float32)
_ONNX = [
    row("MaxRoiPool", f32(2, 3, 8, 8), _BOXES, domain="", pooled_shape=[2, 3]),
    row("MaxRoiPool", f32(2, 3, 8, 8), _BOXES, domain="", id="scale", pooled_shape=[2, 2], spatial_scale=0.5),
    row("RoiAlign", f32(2, 3, 8, 8), _BOXES[:2, 1:], i64(1, 0), domain="", id="adaptive", output_height=2, output_width=3),
    row("RoiAlign", f32(2, 3, 8, 8), _BOXES[:2, 1:], i64(1, 0), domain="", id="maximum, adaptive", mode="max", output_height=2, output_width=3,
        spatial_scale=0.7, coordinate_transformation_mode="output_half_pixel"),
    row("RoiAlign", f32(2, 3, 8, 8), _BOXES[:2, 1:], i64(1, 0), domain="", model_opset=10, id="of opset 10", output_height=2, output_width=2,
        sampling_ratio=2, spatial_scale=0.5),
    row("Einsum", f32(2, 3), f32(3, 4), domain="", id="spaces, implicit", equation=" ij , jk "),
    row("Einsum", f32(2, 3, 3), domain="", id="diagonal", equation="...ii->...i"),
    row("Det", f32(4, 5, 5), domain="", id="five"),
    row("Det", np.array([[0, 1], [1, 0]], np.float32), domain="", id="first pivot 0"),
    row("Det", np.zeros((3, 3), np.float32), domain="", id="singular"),
    row("GridSample", f32(1, 2, 3, 4, 5), f32(1, 2, 2, 3, 3, low=-1.6, high=1.6), domain="", id="volume, border, nearest", mode="nearest",
        padding_mode="border"),
    row("GridSample", f32(1, 2, 3, 4, 5), f32(1, 2, 2, 3, 3, low=-1.6, high=1.6), domain="", id="volume, reflected", padding_mode="reflection"),
    row("GridSample", f32(1, 2, 3, 4, 5), f32(1, 2, 2, 3, 3, low=-1.6, high=1.6), domain="", id="volume, reflected at corners",
        padding_mode="reflection", align_corners=1),
    row("DFT", f32(2, 5, 2), None, Fixed(i64(-2).reshape(())), domain="", id="of complex numbers", tolerance=1e-4),
    row("DFT", f32(2, 5, 1).astype("f8"), None, Fixed(i64(1).reshape(())), domain="", id="in f64, which IR has not", tolerance=1e-6),
    row("DFT", f32(2, 6, 1), Fixed(i64(4).reshape(())), Fixed(i64(1).reshape(())), domain="", id="shortened", tolerance=1e-4),
    row("DFT", f32(2, 6, 1), Fixed(i64(9).reshape(())), Fixed(i64(1).reshape(())), domain="", id="lengthened, its half", onesided=1, tolerance=1e-4),
    row("STFT", f32(1, 20, 1), Fixed(i64(4).reshape(())), None, Fixed(i64(8).reshape(())), domain="", id="without a window", tolerance=1e-4),
    row("STFT", f32(1, 20, 2), Fixed(i64(3).reshape(())), f32(6), domain="", id="of complex numbers", onesided=0, tolerance=1e-4),
    row("Celu", f32(7, low=-3, high=3), domain="", id="negative alpha", alpha=-1.5),
    row("Celu", f32(7, low=-3, high=3), domain="", id="positive alpha", alpha=1.5),
    row("Shrink", f32(7, low=-3, high=3), domain="", id="both conditions hold", lambd=-1.0, bias=0.7),
    row("LeakyRelu", scalar(-2.0), domain="", id="a scalar", alpha=0.1),
    row("LayerNormalization", f32(2, 3, 8).astype(np.float64), f32(8).astype(np.float64), domain="", id="f64", outputs=(True, True, True)),
    row("Flatten", np.zeros((2, 0, 3, 2), np.float32), domain="", id="no element", axis=2),
    row("Softmax", np.zeros((2, 0, 3, 2), np.float32), domain="", id="no element, old", axis=2, model_opset=11),
    row("Compress", f32(2, 5), np.array([True, False, True]), domain="", id="short condition", axis=1),
    row("Unique", ints("int64", 3, 3, low=0, high=2), domain="", id="rows", axis=0, outputs=(True, True, True, True)),
    row("ReverseSequence", f32(4, 3, 2), i64(4, 1, 2), domain="", id="time first"),
    row("Col2Im", f32(1, 12, 4), Fixed(i64(4, 4)), Fixed(i64(2, 2)), domain="", id="images", strides=[2, 2]),
    row("MaxUnpool", f32(1, 1, 2, 2), i64(5, 7, 13, 15).reshape(1, 1, 2, 2), domain="", kernel_shape=[2, 2], strides=[2, 2]),
    row("NonMaxSuppression", np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11]]], np.float32), f32(1, 2, 3), domain="", id="defaults"),
    row("NonMaxSuppression", np.array([[[0.5, 0.5, 1, 1], [0.5, 0.6, 1, 1], [0.5, 10.5, 1, 1]]], np.float32), f32(1, 2, 3), Fixed(i64(3)),
        Fixed(np.array([0.5], np.float32)), domain="", id="centres", center_point_box=1),
]  # fmt: skip
_QX, _QW = u8(2, 4, 8), Fixed(u8(8, 24))
_MORE = [
    row("GatherBlockQuantized", Fixed(u8(6, 16)), i64(3, 0, 5, 1).reshape(2, 2), Fixed(f32(6, 2)), bits=4, block_size=16, quantize_axis=1),
    row("GatherBlockQuantized", Fixed(u8(6, 24)), i64(3, 0), Fixed(f32(6, 3)), Fixed(u8(6, 2)), id="zero points", bits=4, block_size=16, quantize_axis=1),
    row("GatherBlockQuantized", Fixed(u8(6, 32)), i64(3, 0), Fixed(f32(6, 2)), id="eight bits", bits=8, block_size=16, quantize_axis=1),
    row("QAttention", _QX, _QW, Fixed(_B), Fixed(scalar(0.01)), Fixed(scalar(0.01)), i32(4, 2), Fixed(zero(120)), Fixed(zero(130)), num_heads=2),
    row("QAttention", _QX, _QW, Fixed(_B), Fixed(scalar(0.01)), Fixed(scalar(0.01)), None, Fixed(zero(120)), Fixed(zero(130)), _PAST,
        id="past, causal", num_heads=2, unidirectional=1, outputs=(True, True)),
    row("NhwcMaxPool", u8(1, 5, 5, 3), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    row("MatMulInteger16", ints("int16", 2, 3, low=-999, high=999), ints("int16", 3, 4, low=-999, high=999)),
    row("CDist", f32(3, 4), f32(5, 4), metric="euclidean", tolerance=1e-4),
    row("CDist", f32(3, 4), f32(5, 4), id="squares", metric="sqeuclidean", tolerance=1e-4),
    row("Range", Fixed(np.array(2, np.float32)), Fixed(np.array(9, np.float32)), Fixed(np.array(2, np.float32))),
    row("GatherND", f32(2, 3, 4), i64(1, 2, 0, 1).reshape(2, 2)),
    row("Unique", np.array([2, 1, 1, 3, 2], np.float32), outputs=(True, True, True)),
    row("Pad", f32(2, 3), Fixed(i64(1, 0, 0, 2)), Fixed(np.array([0.5], np.float32))),
    row("Pad", f32(3, 4), i64(-1, 2, 2, -1), domain="", id="wrap what negative pads leave", mode="wrap"),
    row("Pad", f32(3, 4), Fixed(i64(-1, -2, 3, 3)), domain="", id="wrap several times what negative pads leave", mode="wrap"),
    row("GridSample", f32(1, 2, 4, 4), f32(1, 3, 3, 2, low=-1.3, high=1.3), padding_mode="border"),
]  # fmt: skip
_COEFFICIENTS = f32(12).tolist()


def _vectors(kernel: str, offset: float = 0.0) -> dict[str, Any]:
    """Six support vectors of four features."""
    return {"support_vectors": (f32(24, seed=2) + offset).tolist(), "kernel_type": kernel, "kernel_params": [0.3, 0.1, 3.0]}


def _trees(kind: str, ids: list[int], *, mode: str = "BRANCH_LEQ", low: float = -1.0) -> dict[str, Any]:
    """Three trees of two levels; each leaf has one weight, the trees are for ``ids`` in turn."""
    nodes = [(tree, node) for tree in range(3) for node in range(7)]
    leaves = [(tree, node) for tree, node in nodes if node > 2]
    return {
        "nodes_treeids": [tree for tree, _ in nodes], "nodes_nodeids": [node for _, node in nodes],
        "nodes_featureids": [0 if node > 2 else (tree + node) % 4 for tree, node in nodes],
        "nodes_values": [0.0 if node > 2 else value for (_, node), value in zip(nodes, f32(21, seed=5).tolist(), strict=True)],
        "nodes_modes": ["LEAF" if node > 2 else mode for _, node in nodes],
        "nodes_truenodeids": [0 if node > 2 else 2 * node + 1 for _, node in nodes],
        "nodes_falsenodeids": [0 if node > 2 else 2 * node + 2 for _, node in nodes],
        f"{kind}_treeids": [tree for tree, _ in leaves], f"{kind}_nodeids": [node for _, node in leaves],
        f"{kind}_ids": [ids[tree % len(ids)] for tree, _ in leaves], f"{kind}_weights": f32(12, seed=6, low=low).tolist(),
    }


_MISSING = np.array([[0.5, np.nan, -0.2, 0.1], [np.nan, 0.3, 0.9, np.nan]], np.float32)
_LEARNING = [
    row("TreeEnsembleRegressor", f32(5, 4), domain=ML, n_targets=1, **_trees("target", [0])),
    row("TreeEnsembleRegressor", f32(5, 4), domain=ML, id="two targets, greater", n_targets=2, base_values=[0.5, -0.5],
        **_trees("target", [0, 1], mode="BRANCH_GT")),
    row("TreeEnsembleRegressor", f32(5, 4), domain=ML, id="mean", n_targets=1, aggregate_function="AVERAGE", **_trees("target", [0])),
    row("TreeEnsembleRegressor", f32(5, 4), domain=ML, id="maximum", n_targets=1, aggregate_function="MAX", **_trees("target", [0])),
    row("TreeEnsembleRegressor", _MISSING, domain=ML, id="missing", n_targets=1, nodes_missing_value_tracks_true=[1, 0] * 10 + [1], **_trees("target", [0])),
    row("TreeEnsembleClassifier", f32(5, 4), domain=ML, outputs=(True, True), classlabels_int64s=[4, 7, 9], **_trees("class", [0, 1, 2])),
    row("TreeEnsembleClassifier", f32(5, 4), domain=ML, id="softmax, texts", outputs=(True, True), classlabels_strings=["a", "b", "c"],
        post_transform="SOFTMAX", **_trees("class", [0, 1, 2])),
    row("TreeEnsembleClassifier", f32(5, 4), domain=ML, id="two classes, one score", outputs=(True, True), classlabels_int64s=[0, 1],
        post_transform="LOGISTIC", **_trees("class", [0])),
    row("TreeEnsembleClassifier", f32(5, 4), domain=ML, id="two classes, one probability", outputs=(True, True), classlabels_int64s=[0, 1],
        **_trees("class", [0], low=0.0)),
    row("TreeEnsembleClassifier", f32(5, 4), domain=ML, id="two classes, their base", outputs=(True, True), classlabels_int64s=[0, 1],
        base_values=[0.25], **_trees("class", [0])),
    row("LinearRegressor", f32(3, 4), domain=ML, coefficients=_COEFFICIENTS, intercepts=[0.1, 0.2, 0.3], targets=3),
    row("LinearClassifier", f32(5, 4), domain=ML, outputs=(True, True), coefficients=_COEFFICIENTS, intercepts=[0.1, 0.2, 0.3],
        classlabels_ints=[3, 5, 8], post_transform="SOFTMAX"),
    row("LinearClassifier", f32(5, 4), domain=ML, id="texts", outputs=(True, True), coefficients=_COEFFICIENTS, intercepts=[0.1, 0.2, 0.3],
        classlabels_strings=["a", "b", "c"], post_transform="LOGISTIC"),
    row("LinearClassifier", f32(5, 4), domain=ML, id="one score", outputs=(True, True), coefficients=_COEFFICIENTS[:4], intercepts=[0.1],
        classlabels_ints=[0, 1], post_transform="LOGISTIC"),
    row("LinearClassifier", f32(5, 4), domain=ML, id="one score as it is", outputs=(True, True), coefficients=_COEFFICIENTS[:4],
        intercepts=[0.1], classlabels_ints=[0, 1]),
    *[row("SVMRegressor", f32(5, 4), domain=ML, id=kernel, **_vectors(kernel), coefficients=f32(6).tolist(), n_supports=6, rho=[0.3])
      for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID")],
    row("SVMRegressor", f32(5, 4) + 1000, domain=ML, id="far from 0", **_vectors("RBF", 1000), coefficients=f32(6).tolist(), n_supports=6,
        rho=[0.3], tolerance=1e-3),
    row("SVMRegressor", f32(5, 4), domain=ML, id="one class", **_vectors("RBF"), coefficients=f32(6).tolist(), n_supports=6, rho=[-0.1], one_class=1),
    row("SVMRegressor", f32(5, 4), domain=ML, id="no vectors", kernel_params=[0.0, 0.0, 0.0], coefficients=f32(4).tolist(), rho=[0.3], post_transform="LOGISTIC"),
    *[row("SVMClassifier", f32(9, 4, low=-2, high=2), domain=ML, id=f"three classes, {kernel}, {transform}", outputs=(True, True), **_vectors(kernel),
          coefficients=f32(12, seed=3).tolist(), vectors_per_class=[1, 3, 2], rho=[0.1, -0.2, 0.3], classlabels_ints=[4, 7, 9], post_transform=transform)
      for kernel, transform in (("LINEAR", "NONE"), ("POLY", "SOFTMAX"), ("RBF", "LOGISTIC"), ("SIGMOID", "SOFTMAX_ZERO"))],
    *[row("SVMClassifier", f32(9, 4, low=-2, high=2), domain=ML, id=f"two classes, {transform}", outputs=(True, True), **_vectors("LINEAR"),
          coefficients=f32(6, seed=3).tolist(), vectors_per_class=[4, 2], rho=[0.1], classlabels_strings=["a", "b"], post_transform=transform)
      for transform in ("NONE", "LOGISTIC")],
    *[row("SVMClassifier", f32(9, 4, low=-2, high=2), domain=ML, id=f"two classes, coefficients of one sign, rho {rho}", outputs=(True, True),
          **_vectors("RBF"), coefficients=f32(6, low=0.1).tolist(), vectors_per_class=[4, 2], rho=[rho], classlabels_ints=[4, 7])
      for rho in (-1.0, -0.5)],
    *[row("SVMClassifier", f32(9, 4, low=-2, high=2), domain=ML, id=f"probabilities of {len(counts)} classes, {transform}", outputs=(True, True),
          **_vectors("RBF"), coefficients=f32(6 * (len(counts) - 1), seed=3).tolist(), vectors_per_class=counts, rho=f32(pairs, seed=1).tolist(),
          prob_a=f32(pairs, seed=2, low=-3, high=-1).tolist(), prob_b=f32(pairs).tolist(), classlabels_ints=list(range(len(counts))),
          post_transform=transform)
      for counts, pairs, transform in (([4, 2], 1, "NONE"), ([1, 3, 2], 3, "NONE"), ([1, 2, 1, 2], 6, "SOFTMAX"))],
    row("Scaler", f32(3, 4), domain=ML, offset=[0.1, 0.2, 0.3, 0.4], scale=[1.0, 2.0, 3.0, 4.0]),
    row("Scaler", ints("int64", 3, 4, low=0, high=9), domain=ML, id="integers", offset=[0.5], scale=[2.0]),
    *[row("Normalizer", np.array([[1, -3, 2], [0, 0, 0]], np.float32), domain=ML, id=norm, norm=norm) for norm in ("MAX", "L1", "L2")],
    row("Imputer", _MISSING, domain=ML, imputed_value_floats=[1.0, 2.0, 3.0, 4.0], replaced_value_float=float("nan")),
    row("Imputer", i64(1, 0, 2).reshape(1, 3), domain=ML, id="integers", imputed_value_int64s=[9], replaced_value_int64=0),
    row("FeatureVectorizer", f32(3, 2), f32(3, 1), domain=ML, inputdimensions=[2, 1]),
    row("FeatureVectorizer", f32(1, 2), f32(3), domain=ML, id="a vector is a row", inputdimensions=[2, 3]),
    row("FeatureVectorizer", f32(3, 2), f32(3, 1), f32(3, 2, 2), domain=ML, id="cut, filled and flattened", inputdimensions=[1, 2, 4]),
    row("LabelEncoder", i64(3, 1, 7), domain=ML, keys_int64s=[1, 3], values_floats=[0.5, 1.5], default_float=-2.0),
    row("LabelEncoder", np.array([np.nan, 1.5, 2.0], np.float32), domain=ML, id="texts of floats", keys_floats=[float("nan"), 1.5],
        values_strings=["none", "some"]),
    row("OneHotEncoder", i64(3, 1, 7), domain=ML, cats_int64s=[1, 3, 5]),
    row("Binarizer", f32(3, 4), domain=ML, threshold=0.25),
    row("ArrayFeatureExtractor", f32(5), i64(3, 0).reshape(1, 2), domain=ML, id="vector"),
]  # fmt: skip
# fmt: on
ROWS: list[Row] = [*_PRODUCTS, *_NORMALISATION, *_ATTENTION, *_GROUPS, *_QUANTISED, *_ONNX, *_LEARNING, *_MORE]


# Rows of operators on strings, labels and categories; see tests.onnx.rows.


def strings(*values: object) -> np.ndarray:
    return np.array(list(values), object)


_WORDS = strings(["a", "b", "a", "c"], ["c", "é", "b", "a"])
_POOL = {
    "min_gram_length": 1, "max_gram_length": 2, "ngram_counts": [0, 3], "ngram_indexes": [0, 1, 2, 4, 3],
    "pool_strings": ["a", "é", "c", "a", "b", "b", "a"],
}  # fmt: skip
_TOKENS = {"pad_value": "#", "mincharnum": 1}


def _tensor(kind: int, *values: object) -> TensorProto:
    return helper.make_tensor("t", kind, [len(values)], list(values))


# fmt: off
STRING_ROWS: list[Row] = [
    row("StringConcat", strings("a", "é", ""), strings(["x"], ["ö"]), domain="", id="broadcast"),
    row("StringSplit", strings("a b c", "x", "d  e"), domain="", outputs=(True, True), delimiter=" "),
    row("StringSplit", strings(["a--b-c--d", "--x"]), domain="", id="one split", outputs=(True, True), delimiter="--", maxsplit=1),
    row("RegexFullMatch", strings(["abc", "ABC1"], ["", "é"]), domain="", pattern="(?i)[a-c]*|\\pL"),
    *[row("StringNormalizer", strings("Monday", "tuesday", "TUESDAY", "Straße", "éÀ"), domain="", id=f"{case}, {sensitive}",
          case_change_action=case, is_case_sensitive=sensitive, stopwords=["tuesday"], locale="C.UTF-8")
      for case in ("NONE", "LOWER", "UPPER") for sensitive in (0, 1)],
    row("StringNormalizer", strings(["monday", "Monday"]), domain="", id="nothing is left", case_change_action="LOWER", stopwords=["monday"], locale="C.UTF-8"),
    *[row("TfIdfVectorizer", _WORDS, domain="", id=f"strings, {mode}", mode=mode, max_skip_count=1, weights=[0.5, 2.0, 1.0, 1.5, 3.0], **_POOL)
      for mode in ("TF", "IDF", "TFIDF")],
    row("TfIdfVectorizer", _WORDS[0], domain="", id="a vector of strings", mode="TF", max_skip_count=0, **_POOL),
    row("Cast", strings("1.5", "-2e3", "NaN", "INF", "-INF"), domain="", id="strings to floats", to=TensorProto.FLOAT),
    row("Cast", strings("12", "-7"), domain="", id="strings to integers", to=TensorProto.INT64),
    row("Cast", strings("1", "0"), domain="", id="strings to booleans", to=TensorProto.BOOL),
    row("Cast", np.array([1, 1 / 3, 1e10, 1e-7, 123456.789, np.nan, -np.inf, -0.0], np.float32), domain="", id="floats to strings", to=TensorProto.STRING),
    row("Cast", np.array([1 / 3, 1e300]), domain="", id="doubles to strings", to=TensorProto.STRING),
    row("Cast", np.array([1 / 3, 65504], np.float16), domain="", id="halves to strings", to=TensorProto.STRING),
    row("Cast", i64(7, -2**40), domain="", id="integers to strings", to=TensorProto.STRING),
    row("Cast", np.array([True, False]), domain="", id="booleans to strings", to=TensorProto.STRING),
    row("LabelEncoder", strings(["a", "b"], ["z", "a"]), domain=ML, id="strings to strings", keys_strings=["a", "b"], values_strings=["x", "y"],
        default_string="none"),
    row("LabelEncoder", strings("a", "b", "z"), domain=ML, id="strings to floats", keys_strings=["a", "b"], values_floats=[0.5, 0.25], default_float=7.0),
    row("LabelEncoder", strings("a", "b", "z"), domain=ML, id="the first of equal strings", keys_strings=["a", "b", "a"], values_int64s=[10, 20, 30]),
    row("LabelEncoder", i64(1, 2, 9), domain=ML, id="the first of equal integers", keys_int64s=[1, 2, 1], values_int64s=[10, 20, 30]),
    row("LabelEncoder", np.array([1, np.nan, 3], np.float32), domain=ML, id="NaN before opset 4", ml=2, keys_floats=[1.0, float("nan")],
        values_int64s=[10, 20]),
    row("LabelEncoder", np.array([1, np.nan, -0.0], np.float32), domain=ML, id="NaN and -0", keys_floats=[0.0, float("nan")], values_strings=["zero", "nan"]),
    row("LabelEncoder", strings("a", "b", "z"), domain=ML, id="tensors", keys_tensor=_tensor(8, b"a", b"b"),
        values_tensor=_tensor(11, 0.5, 1.5), default_tensor=_tensor(11, -1.0)),
    row("LabelEncoder", strings("a", "b", "z"), domain=ML, id="version 1, strings", ml=1, classes_strings=["b", "a"], default_int64=-5),
    row("LabelEncoder", i64(0, 1, 2, -1), domain=ML, id="version 1, integers", ml=1, classes_strings=["b", "a"], default_string="none"),
    row("CategoryMapper", strings(["a", "b", "z"]), domain=ML, id="strings", cats_strings=["a", "b", "a"], cats_int64s=[5, 6, 7], default_int64=-5),
    row("CategoryMapper", i64(5, 6, 9), domain=ML, id="integers", cats_strings=["a", "b", "c"], cats_int64s=[5, 6, 5], default_string="none"),
    row("OneHotEncoder", strings("a", "b", "z"), domain=ML, id="strings", cats_strings=["b", "a"]),
    row("OneHotEncoder", strings(["a", "b"]), domain=ML, id="the last of equal strings", cats_strings=["a", "b", "a"]),
    row("OneHotEncoder", f32(2, 2, low=0, high=3), domain=ML, id="floats", cats_int64s=[0, 1, 2]),
    row("Tokenizer", strings("ab c,d", "", "xyz"), domain=MICROSOFT, id="separators", mark=0, separators=[" ", ","], **_TOKENS),
    row("Tokenizer", strings("ab c,d", "", "xyz"), domain=MICROSOFT, id="marks", mark=1, separators=[" ", ","], **_TOKENS),
    row("Tokenizer", strings("ab é", ""), domain=MICROSOFT, id="characters", mark=1, separators=[""], **_TOKENS),
    row("Tokenizer", strings(["ab c,d", "q"], ["xyz", "é ö"]), domain=MICROSOFT, id="long tokens", mark=0, separators=[" "], pad_value="", mincharnum=2),
    row("Tokenizer", strings("a1b22c", "x"), domain=MICROSOFT, id="expressions", mark=0, separators=["[0-9]", "[0-9]+"], **_TOKENS),
    row("Tokenizer", strings("abcbcd"), domain=MICROSOFT, id="the first separator first", mark=0, separators=["cb", "bc"], **_TOKENS),
    row("Tokenizer", strings("ab c,d", "xyz"), domain=MICROSOFT, id="tokens", mark=1, tokenexp="[a-z]+|,", **_TOKENS),
    row("Tokenizer", strings("", " "), domain=MICROSOFT, id="no tokens", mark=1, separators=[" "], **_TOKENS),
]  # fmt: skip
