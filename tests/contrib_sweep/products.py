"""Random cases of products with packed weights, and of channels-last convolutions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from converters.onnx.ops.com_microsoft.products import FORMATS
from tests.contrib_sweep.case import Arrays, ContribCase, Draw, Input, chance, floats, node, one_of, runtime_answer
from tests.onnx.rows import Fixed, Row


def _weights(rng: np.random.Generator, rows: int, columns: int, block: int, bits: int) -> tuple[Fixed, Fixed]:
    blocks = -(-columns // block)
    scales = rng.random((rows, blocks)).astype(np.float32) * 0.1
    return Fixed(rng.integers(0, 256, (rows, blocks, block * bits // 8)).astype(np.uint8)), Fixed(scales)


def _separately(
    x: np.ndarray, skip: Any, norm: Any, parts: list[tuple[Fixed, Fixed, Any]], epsilon: float, **sizes: Any
) -> Arrays:
    """ONNX Runtime's MatMulNBits of the normalized data, and the sum before the norm."""
    total = x if skip is None else x + skip
    normal = total if norm is None else total / np.sqrt((total**2).mean(-1, keepdims=True) + epsilon) * norm
    products = [
        runtime_answer(node("MatMulNBits", [normal.astype(np.float32), w, s, None, None, b], N=len(s.array), **sizes))[0] for w, s, b in parts
    ]  # fmt: skip
    return [*products, total]


def _n_bits(rng: np.random.Generator, name: str) -> ContribCase:
    depth, wide, keys, block, bits = (
        64, int(rng.integers(1, 6)), int(rng.integers(1, 6)), int(one_of(rng, 16, 32)), int(one_of(rng, 4, 8)),
    )  # fmt: skip
    x = floats(rng, 2, depth)
    norm = floats(rng, depth) if name == "MatMulNBitsQkv" or chance(rng) else None
    skip = floats(rng, 2, depth) if norm is not None and chance(rng) else None
    counts = [wide, keys, keys] if name == "MatMulNBitsQkv" else [wide, wide]
    parts = [
        (*_weights(rng, count, depth, block, bits), floats(rng, count) if chance(rng) else None) for count in counts
    ]
    flat: list[Input] = [x, skip, norm, *(piece for part in parts for piece in part)]
    sizes = {"K": depth, "block_size": block, "bits": bits}
    if name == "MatMulNBitsQkv":
        row = node(name, flat, 4, Nq=wide, Nkv=keys, **sizes)
        return ContribCase(row, lambda: _separately(x, skip, norm, parts, 1e-6, **sizes), tolerance=1e-3)
    row = node(name, flat, 2, N=wide, activation="silu", **sizes)

    def reference() -> Arrays:
        gate, up, total = _separately(x, skip, norm, parts, 1e-5, **sizes)
        return [gate / (1 + np.exp(-gate)) * up, total]

    return ContribCase(row, reference, tolerance=1e-3)


def fp8_weight(rng: np.random.Generator) -> ContribCase:
    """Weights in f8e4m3, data in f16 or rounded too."""
    rows, depth, block = int(rng.integers(1, 6)), int(rng.integers(1, 40)), int(one_of(rng, 8, 16))
    x, w = floats(rng, 3, depth, dtype=np.float16), floats(rng, rows, depth, scale=8).astype(ml_dtypes.float8_e4m3fn)
    scales = rng.random((rows, -(-depth // block))).astype(np.float32)
    own = np.array(0.01, np.float32) if chance(rng) else None
    bias = floats(rng, rows, dtype=np.float16) if chance(rng) else None

    def reference() -> Arrays:
        weights = w.astype(np.float32) * scales[:, np.arange(depth) // block]
        data = x.astype(np.float32)
        if own is not None:
            # IR rounds f32 to f8 by way of f16.
            data = (data / own).clip(-448, 448).astype(np.float16).astype(ml_dtypes.float8_e4m3fn).astype(
                np.float32
            ) * own
        return [(data @ weights.T + (0 if bias is None else bias.astype(np.float32))).astype(np.float16)]

    return ContribCase(
        node("MatMulBlockQuantizedFp8Weight", [x, Fixed(w), scales, own, bias], block_size=block), reference
    )


_FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def fp4_weight(rng: np.random.Generator) -> ContribCase:
    """Codes of 4 bits, low halves first, with scales of f8."""
    rows, half, block = int(rng.integers(1, 6)), int(rng.integers(1, 24)), int(one_of(rng, 8, 16))
    x, codes = floats(rng, 3, 2 * half, dtype=np.float16), rng.integers(0, 256, (rows, half)).astype(np.uint8)
    scales = (rng.random((rows, -(-2 * half // block))) + 0.1).astype(ml_dtypes.float8_e4m3fn)
    whole = np.array(0.3, np.float32)
    bias = floats(rng, rows, dtype=np.float16) if chance(rng) else None

    def reference() -> Arrays:
        values = _FP4[np.stack([codes & 15, codes >> 4], -1).reshape(rows, -1)]
        weights = (values * scales.astype(np.float32)[:, np.arange(2 * half) // block] * whole).astype(np.float16)
        y = (x.astype(np.float32) @ weights.astype(np.float32).T).astype(np.float16)
        return [y if bias is None else y + bias]

    inputs: list[Input] = [x, Fixed(codes), Fixed(scales.view(np.uint8)), Fixed(whole), None, bias]
    return ContribCase(node("MatMulBlockQuantizedFp4Weight", inputs, block_size=block), reference)


def gemm_float8(rng: np.random.Generator) -> ContribCase:
    """Floats of 8 bits with scales, and plain ones."""
    rows, depth, columns = (int(n) for n in rng.integers(1, 6, 3))
    kind = one_of(rng, np.float32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
    x, y = floats(rng, rows, depth).astype(kind), floats(rng, columns, depth).astype(kind)
    scales = [np.array([s], np.float32) if kind is not np.float32 else None for s in (0.5, 2.0)]
    bias = floats(rng, columns) if chance(rng) else None
    alpha, beta, activation = 0.5, float(one_of(rng, 0.0, 2.0)), one_of(rng, "NONE", "RELU")

    def reference() -> Arrays:
        left, right = (
            side.astype(np.float32) * (1 if scale is None else scale)
            for side, scale in zip((x, y), scales, strict=True)
        )
        product = alpha * left @ right.T + (0 if bias is None else beta * bias)
        return [(np.maximum(product, 0) if activation == "RELU" else product).astype(np.float32)]

    row = node(
        "GemmFloat8",
        [Fixed(x), Fixed(y), bias, *scales],
        transB=1,
        alpha=alpha,
        beta=beta,
        activation=activation,
        dtype=1,
    )
    return ContribCase(row, reference)


def fp_q4(rng: np.random.Generator) -> ContribCase:
    """Each layout of blocks."""
    kind, rows, columns = int(rng.integers(0, 2)), int(one_of(rng, 32, 96, 100)), int(rng.integers(1, 6))
    block, header = 32, 4 + kind
    blocks = -(-rows // block)
    data = rng.integers(0, 256, (columns, blocks, header + block // 2)).astype(np.uint8)
    data[..., :4] = (rng.random((columns, blocks, 1)) * 0.1 + 0.01).astype(np.float32).view(np.uint8)
    if kind == 1:
        data[..., 4] &= 15
    inputs: list[Input] = [floats(rng, 3, rows), Fixed(data.ravel()), Fixed(np.array([rows, columns]))]
    return ContribCase(node("MatMulFpQ4", inputs, blk_quant_type=kind))


def _convolution(rng: np.random.Generator, name: str) -> ContribCase:
    """ONNX Runtime's FusedConv of the transposed data."""
    group, each, outputs = int(one_of(rng, 1, 2)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    x = floats(rng, 2, group * each, 5, 6)
    w = floats(rng, group * outputs, each, 3, 2)
    bias = floats(rng, group * outputs) if chance(rng) else None
    attributes: dict[str, Any] = {
        "group": group, "strides": [int(n) for n in rng.integers(1, 3, 2)], "pads": [int(n) for n in rng.integers(0, 2, 4)],
        "dilations": one_of(rng, None, [2, 1]),
    }  # fmt: skip
    fused: dict[str, Any] = {"activation": one_of(rng, "Relu", "Tanh")} if name == "NhwcFusedConv" else {}
    weights = w if fused else np.moveaxis(w, 1, -1).copy()
    row = node(name, [np.moveaxis(x, 1, -1).copy(), weights, bias], **attributes, **fused)

    def reference() -> Arrays:
        plain = replace_domain(node("Conv", [x, w, bias], **attributes))
        y = runtime_answer(node("FusedConv", [x, w, bias], **attributes, **fused) if fused else plain)[0]
        return [np.moveaxis(y, 1, -1)]

    return ContribCase(row, reference)


def replace_domain(row: Any) -> Any:
    """The node in the domain ai.onnx."""
    return type(row)(**{**row.__dict__, "domain": ""})


def unfold(rng: np.random.Generator) -> ContribCase:
    """Every axis, overlapping and apart."""
    shape = tuple(int(n) for n in rng.integers(3, 7, int(rng.integers(1, 4))))
    row = node(
        "UnfoldTensor", [floats(rng, *shape)], size=int(rng.integers(1, 4)), step=int(rng.integers(1, 4)),
        dim=int(rng.integers(-len(shape), len(shape))),
    )  # fmt: skip
    return ContribCase(row)


def mul_integer(rng: np.random.Generator) -> ContribCase:
    """u8 and i8, with and without zero points."""
    kind = one_of(rng, np.uint8, np.int8)
    x, y = (rng.integers(0, 100, shape).astype(kind) for shape in ((2, 3), (3,)))
    zeros = [np.array(7, kind) if chance(rng) else None for _ in range(2)]

    def reference() -> Arrays:
        left, right = (a.astype(np.int32) - (0 if z is None else int(z)) for a, z in zip((x, y), zeros, strict=True))
        return [left * right]

    return ContribCase(node("MulInteger", [x, zeros[0], y, zeros[1]]), reference)


def reduce_sum_integer(rng: np.random.Generator) -> ContribCase:
    """u8 and i8."""
    kind, keep = one_of(rng, np.uint8, np.int8), int(chance(rng))
    x = rng.integers(0, 100, (2, 3, 4)).astype(kind)
    axis = int(rng.integers(-3, 3))
    wide = np.uint32 if kind is np.uint8 else np.int32
    return ContribCase(
        node("ReduceSumInteger", [x], axes=[axis], keepdims=keep),
        lambda: [x.sum(axis, dtype=wide, keepdims=bool(keep))],
    )


def _of_gguf(rng: np.random.Generator, kind: int, rows: int, columns: int) -> np.ndarray:
    """Random bytes of a matrix, with finite factors."""
    if kind not in FORMATS:
        numbers = floats(rng, rows, columns)
        array = numbers if kind == 0 else numbers.astype(np.float16 if kind == 1 else ml_dtypes.bfloat16)
        return array.view(np.uint8).reshape(rows, -1)
    count, size, _ = FORMATS[kind]
    blocks = rng.integers(0, 256, (rows, columns // count, size)).astype(np.uint8)
    for at in {13: (0, 2), 14: (208,)}.get(kind, (0,)):
        blocks[..., at : at + 2] = floats(rng, rows, columns // count, 1, scale=0.01, dtype=np.float16).view(np.uint8)
    return blocks.reshape(rows, -1)


def _gathered(kind: int, data: np.ndarray, columns: int, index: np.ndarray) -> Row:
    return node("GatherPacked", [Fixed(data), index], packed_type=kind, K=columns, output_dtype=1)


def gather_packed(rng: np.random.Generator) -> ContribCase:
    """Rows in each format of GGUF that the kernel and the converter have."""
    kind, rows, columns = int(one_of(rng, 0, 1, 30, *FORMATS)), int(rng.integers(1, 6)), 256 * int(rng.integers(1, 3))
    index = rng.integers(-1, rows + 1, tuple(rng.integers(1, 4, int(rng.integers(1, 3)))))
    return ContribCase(_gathered(kind, _of_gguf(rng, kind, rows, columns), columns, index), tolerance=1e-6)


def matmul_packed(rng: np.random.Generator) -> ContribCase:
    """A product with the rows that GatherPacked gives."""
    kind, rows, columns = int(one_of(rng, *FORMATS)), int(rng.integers(1, 6)), 256
    data, x, form = _of_gguf(rng, kind, rows, columns), floats(rng, 3, columns), one_of(rng, None, "silu", "relu2")

    def reference() -> Arrays:
        (weights,) = runtime_answer(_gathered(kind, data, columns, np.arange(rows)))
        y = x.astype(np.float64) @ weights.T.astype(np.float64)
        done = {"silu": lambda: y / (1 + np.exp(-y)), "relu2": lambda: np.maximum(y, 0) ** 2}.get(form or "", lambda: y)
        return [done().astype(np.float32)]

    row = node("MatMulPacked", [x, Fixed(data)], packed_type=kind, K=columns, N=rows, activation_type=form)
    return ContribCase(row, reference)


def qlora(rng: np.random.Generator) -> ContribCase:
    """ONNX Runtime's MatMulNBits of the weights and, in a row, of both parts of the adapter."""
    depth, wide, rank, block, bits = 64, int(rng.integers(1, 6)), int(rng.integers(0, 20)), 16, int(one_of(rng, 4, 8))
    x, base = floats(rng, 2, depth), _weights(rng, wide, depth, 32, 4)
    down, up = _weights(rng, rank, depth, block, bits), _weights(rng, wide, max(rank, 1), block, bits)

    def reference() -> Arrays:
        def product(data: np.ndarray, of: tuple[Fixed, Fixed], size: int, count: int) -> np.ndarray:
            sizes = {"K": data.shape[1], "N": len(of[1].array), "block_size": size, "bits": count}
            return runtime_answer(node("MatMulNBits", [data, *of], **sizes))[0]

        y = product(x, base, 32, 4)
        return [y + product(product(x, down, block, bits), up, block, bits) if rank else y]

    sizes = {"K": depth, "N": wide, "bits": 4, "block_size": 32, "lora_bits": bits, "lora_block_size": block}
    return ContribCase(node("MatMulNBitsQLoRA", [x, *base, *down, *up], **sizes), reference, tolerance=1e-3)


DRAWS: dict[str, Draw] = {
    "GatherPacked": gather_packed, "MatMulPacked": matmul_packed, "MatMulNBitsQLoRA": qlora,
    "MatMulNBitsMlp": lambda rng: _n_bits(rng, "MatMulNBitsMlp"), "MatMulNBitsQkv": lambda rng: _n_bits(rng, "MatMulNBitsQkv"),
    "MatMulBlockQuantizedFp8Weight": fp8_weight, "MatMulBlockQuantizedFp4Weight": fp4_weight,
    "GemmFloat8": gemm_float8, "MatMulFpQ4": fp_q4,
    "NhwcConv": lambda rng: _convolution(rng, "NhwcConv"), "NhwcFusedConv": lambda rng: _convolution(rng, "NhwcFusedConv"),
    "UnfoldTensor": unfold, "MulInteger": mul_integer, "ReduceSumInteger": reduce_sum_integer,
}  # fmt: skip
