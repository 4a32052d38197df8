"""Rows of images between RGB and the layouts of video."""

from __future__ import annotations

import itertools

import numpy as np

from irexec.testing import Row, Typed, case, facts_case, random, refuses, typed
from tests.support.cases import emptied


def _bytes(*shape: int, kind: str = "u8", seed: int = 0) -> Typed:
    return typed(kind, random("i32", *shape, low=0, high=256, seed=seed).array)


_PARTS = {"NV12": [(2, 2, 3, 2)], "I420": [(2, 2, 3, 1)] * 2}
_ENDS = typed("u8", [[[[0], [255]], [[16], [235]], [[0], [255]]]])


def _from(layout: str, to: str) -> list[Row]:
    type, parts = f"{layout}to{to}", _PARTS[layout]
    return [
        case(type, 8, _bytes(2, 6, 6, 1), id="one plane"),
        case(type, 8, _bytes(1, 3, 2, 1), id="four pixels"),
        case(type, 8, _bytes(2, 4, 6, 1), *(_bytes(*part, seed=i) for i, part in enumerate(parts)), id="planes"),
        case(type, 8, _ENDS, id="beyond the ends"),
        case(type, 8, _bytes(1, 6, 4, 1, kind="f32"), id="f32"),
        case(type, 8, _bytes(2, 4, 6, 1, kind="f32"), *(_bytes(*part, kind="f32", seed=i) for i, part in enumerate(parts)), id="planes f32"),
        case(type, 8, _bytes(1, 6, 4, 1, kind="f16"), id="f16"),
        case(type, 8, _bytes(1, 6, 4, 1, kind="bf16"), id="bf16"),
        facts_case(type, 8, "u8[?,720,640,1]", id="dynamic batch"),
        facts_case(type, 8, "u8[?,?,2..640,1]", gives="u8[?,?,2..640,3]", id="dynamic"),
        facts_case(type, 8, "f32[...]", gives="f32[?,?,?,3]", id="rank unknown"),
        facts_case(type, 8, "u8[?,480,?,1]", *(f"u8[1,?,320,{part[3]}]" for part in parts), id="dynamic planes"),
        refuses(type, 8, "u8[1,721,640,1]", says="the height 721 is not a multiple of 3", id="height"),
        refuses(type, 8, "u8[1,6,3,1]", says="is not a multiple of 2", id="odd width"),
        refuses(type, 8, "u8[1,6,4,3]", says="expected 1", id="channels"),
        refuses(type, 8, "i32[1,6,4,1]", says="arg_y has element type i32, expected u8 or a floating-point type", id="i32"),
        refuses(type, 8, "u8[6,4,1]", says="rank 3", id="rank"),
        refuses(
            type,
            8,
            "u8[1,480,640,1]",
            *(f"u8[1,240,300,{part[3]}]" for part in parts),
            says="the planes do not match: sizes 640 and 600 differ",
            id="planes of other sizes",
        ),
    ]  # fmt: skip


def _nv12(image: np.ndarray, blue_first: bool, single: bool) -> object:
    """The definition, a pixel at a time; OpenVINO 2026.4 infers the shapes and has no kernel."""
    batch, height, width, _ = image.shape
    whole = image.dtype.kind == "u"

    def cut(value: float) -> float:
        return min(max(float(np.floor(value + 0.5)) if whole else value, 0.0), 255.0)

    y, uv = np.zeros((batch, height, width, 1)), np.zeros((batch, height // 2, width // 2, 2))
    for n, i, j in itertools.product(range(batch), range(height), range(width)):
        r, g, b = (float(v) for v in (image[n, i, j, ::-1] if blue_first else image[n, i, j]))
        y[n, i, j, 0] = cut(0.257 * r + 0.504 * g + 0.098 * b + 16)
        uv[n, i // 2, j // 2, 0] += cut(-0.148 * r - 0.291 * g + 0.439 * b + 128) / 4
        uv[n, i // 2, j // 2, 1] += cut(0.439 * r - 0.368 * g - 0.071 * b + 128) / 4
    uv = np.vectorize(cut)(uv)
    if single:
        return np.concatenate([y, uv.reshape(batch, height // 2, width, 1)], 1).astype(image.dtype)
    return y.astype(image.dtype), uv.astype(image.dtype)


def _to(order: str) -> list[Row]:
    type, blue_first = f"{order}toNV12", order == "BGR"
    rows: list[Row] = []
    for kind, single in itertools.product(("u8", "f32"), (True, False)):
        image = _bytes(2, 4, 6, 3, kind=kind)
        rows.append(
            case(
                type,
                17,
                image,
                single_plane=single,
                gives=_nv12(image.array, blue_first, single),
                id=f"{kind} {single}",
            )
        )
    ends = typed("u8", np.array(list(itertools.product((0, 255), repeat=3))).reshape(1, 2, 4, 3))
    half = _bytes(1, 2, 2, 3, kind="f16")
    return [
        *rows,
        case(type, 17, ends, gives=_nv12(ends.array, blue_first, True), id="ends"),
        case(type, 17, half, gives=np.asarray(_nv12(half.array.astype(np.float32), blue_first, True)).astype(np.float16), id="f16"),
        facts_case(type, 17, "u8[?,480,2..640,3]", gives="u8[?,720,2..640,1]", id="dynamic"),
        facts_case(type, 17, "u8[?,480,640,3]", single_plane=False, id="two planes"),
        facts_case(type, 17, "f32[...]", gives="f32[?,?,?,1]", id="rank unknown"),
        refuses(type, 17, "u8[1,3,4,3]", says="is not a multiple of 2", id="height"),
        refuses(type, 17, "u8[1,4,3,3]", says="is not a multiple of 2", id="width"),
        refuses(type, 17, "u8[1,4,4,1]", says="expected 3", id="channels"),
        refuses(type, 17, "i8[1,4,4,3]", says="data has element type i8, expected u8 or a floating-point type", id="i8"),
    ]  # fmt: skip


ROWS: list[Row] = (
    [row for layout in ("NV12", "I420") for to in ("RGB", "BGR") for row in _from(layout, to)] + _to("RGB") + _to("BGR")
)
# Video holds no NaN, and infinities are cut to its ends: of both planes as of one.
for layout, to in itertools.product(("NV12", "I420"), ("RGB", "BGR")):
    ROWS += emptied(ROWS, f"{layout}to{to}")
for order in ("RGB", "BGR"):
    half = _bytes(1, 2, 4, 3, kind="bf16")
    expected = typed("bf16", _nv12(half.array, order == "BGR", True))
    ROWS += [
        case(f"{order}toNV12", 17, half, gives=expected, id="bf16"),
        case(
            f"{order}toNV12",
            17,
            np.zeros((0, 2, 4, 3), np.uint8),
            gives=np.zeros((0, 3, 4, 1), np.uint8),
            id="no images",
        ),
    ]
