"""Rows of the Fourier transforms."""

from __future__ import annotations

import itertools

import numpy as np

from irexec.testing import Row, case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import emptied


def _complex_rows(type: str) -> list[Row]:
    row = Operation(type, 7)
    return [
        row(random("f32", 8, 2), [0], id="one axis"),
        row(random("f32", 7, 2), [-1], id="negative axis, odd size"),
        row(random("f32", 2, 4, 5, 2), [1, 2], id="two axes"),
        row(random("f32", 2, 4, 5, 2), [-1, 0], id="unordered axes"),
        row(random("f32", 3, 4, 5, 2), [2, 0, 1], id="all axes"),
        row(random("f32", 4, 5, 2), [1, 0], [3, -1], id="cut and left as it is"),
        row(random("f32", 4, 5, 2), [0, 1], [6, 8], id="filled with zeros"),
        row(random("f32", 3, 4, 5, 2), [2, 0], [2, 5], id="cut and filled"),
        row(
            random("f32", 2, 3, 2), typed("i64", np.zeros(0)), gives=random("f32", 2, 3, 2), id="no axes"
        ),  # the definition
        row(random("f16", 2, 6, 2), [1], id="f16"),
        row(random("bf16", 6, 2), [0], id="bf16"),
        row(random("f32", 6, 2), typed("i32", [0]), typed("i32", [4]), id="i32 axes and sizes"),
        row(random("f32", 1, 1, 2), [0, 1], id="single numbers"),
        row(random("f32", 2, 0, 3, 2), [2], gives=np.zeros((2, 0, 3, 2), np.float32), id="empty"),
        row(random("f32", 16, 16, 2, seed=3), [0, 1], id="powers of two"),
        row.facts("f32[?,2..5,4,2]", "i64[2]", id="axes unknown"),
        row.facts("f32[?,2..5,4,2]", [0, 1], id="no sizes"),
        row.facts("f32[?,2..5,4,2]", [2, 1], [7, -1], id="sizes known"),
        row.facts("f32[?,2..5,4,2]", [2, 1], "i64[2]", id="sizes unknown"),
        row.facts("f32[...]", [0], id="rank unknown"),
        row.refuses(random("f32", 4, 2), [1], says="out of range", id="axis of the pairs"),
        row.refuses(random("f32", 4, 3, 2), [0, -2], says="twice", id="axis twice"),
        row.refuses(random("f32", 4, 3), [0], says="expected 2", id="no pairs"),
        row.refuses(random("f32", 2), [0], says="rank 1", id="rank"),
        row.refuses(random("f32", 4, 4, 2), [0], [1, 2], says="axes has 1 elements, signal_size has 2", id="sizes of another length"),
        row.refuses(random("f32", 4, 4, 2), [0], [-2], says="signal_size is -2", id="negative size"),
        row.refuses(random("i32", 4, 2), [0], says="data has element type i32, expected a floating-point type", id="integers"),
    ]  # fmt: skip


def _real_rows(type: str, pair: tuple[int, ...]) -> list[Row]:
    """``pair`` is (2,) where the data are complex."""
    return [
        case(type, 9, random("f32", 8, *pair), [0], id="one axis"),
        case(type, 9, random("f32", 7, *pair), [-1], id="negative axis, odd size"),
        case(type, 9, random("f32", 2, 4, 5, *pair), [1, 2], id="two axes"),
        case(type, 9, random("f32", 2, 4, 5, *pair), [-1, 0], id="unordered axes"),
        case(type, 9, random("f32", 3, 4, 5, *pair), [2, 0, 1], id="all axes"),
        case(type, 9, random("f32", 3, 4, 6, *pair), [2, 0], [4, 2], id="both cut"),
        case(type, 9, random("f32", 4, 6, *pair), [0, 1], [4, 5], id="cut to an odd size"),
        case(type, 9, random("f16", 2, 6, *pair), [1], id="f16"),
        case(type, 9, random("bf16", 6, *pair), [0], id="bf16"),
        case(type, 9, random("f32", 6, *pair), typed("i32", [0]), typed("i32", [4]), id="i32 axes and sizes"),
        facts_case(type, 9, ("f32[?,2..5,4]", "f32[?,2..5,4,2]")[len(pair)], "i64[2]", id="axes unknown"),
        facts_case(type, 9, ("f32[?,2..5,4]", "f32[?,2..5,4,2]")[len(pair)], [0, 1], id="no sizes"),
        facts_case(type, 9, ("f32[?,2..5,4]", "f32[?,2..5,4,2]")[len(pair)], [2, 1], [7, -1], id="sizes known"),
        facts_case(type, 9, "f32[...]", [0], id="rank unknown"),
        refuses(type, 9, random("f32", 4, 3, *pair), [0, -2], says="twice", id="axis twice"),
        refuses(type, 9, random("f32", 4, *pair), [1], says="out of range", id="axis"),
        refuses(type, 9, random("f32", 4, *pair), typed("i64", np.zeros(0)), says="axes is empty", id="no axes"),
    ]


_A = random("f32", 5, 2).array


def _wave(rows: int, columns: int, sign: int) -> np.ndarray:
    """The matrix of the definition, rows of a transform of ``columns`` points."""
    return np.exp(sign * 2j * np.pi * np.outer(np.arange(rows), np.arange(columns)) / columns)


def _mirrored(half: np.ndarray, size: int) -> np.ndarray:
    """The whole of a transform of real numbers from the half along the last axis, conjugate backwards along both."""
    back = np.conj(np.roll(half[::-1, ::-1], 1, 0))[:, -size // 2 : -1] if size % 2 == 0 else None
    return np.concatenate([half, back], 1)


def _padded(rows: int) -> np.ndarray:
    return np.concatenate([_A, np.zeros((rows - len(_A), 2), np.float32)])


# OpenVINO 2026.4 throws at a -1 in the signal_size of RDFT and IRDFT: rows by the definition.
_B = random("f32", 4, 6).array
_LEFT = _wave(3, 3, -1) @ _B[:3] @ _wave(4, 6, -1).T
_C = random("f32", 4, 4, 2, seed=1).array
_BACK = (
    _wave(3, 3, 1)
    / 3
    @ _mirrored(_wave(3, 3, -1) @ (_wave(3, 3, 1) @ (_C[:3] @ [1, 1j])) / 3, 6)
    @ (_wave(6, 6, 1) / 6)
).real

rdft = Operation("RDFT", 9)
# The CPU plugin gives garbage where signal_size is above the dimension: the same rows on data filled by hand.
_ABOVE: list[Row] = [
    rdft(_B, [0, 1], [3, -1], gives=typed("f32", np.stack([_LEFT.real, _LEFT.imag], -1)), id="cut and left as it is"),
    case("IRDFT", 9, _C, [0, 1], [3, -1], gives=typed("f32", _BACK), id="cut and left as it is"),
    rdft(_A[:, 0].copy(), [0], [8], gives=typed("f32", np.stack([(z := np.fft.rfft(_A[:, 0], 8)).real, z.imag], 1)), id="filled"),
    case("IRDFT", 9, _A, [0], [12], gives=typed("f32", np.fft.irfft(_padded(7) @ [1, 1j], 12)), id="filled"),
    case("IRDFT", 9, _A[:1], [0], gives=np.zeros(0, np.float32), id="a single number leaves none"),
    case("IRDFT", 9, _A[:1], [0], [1], gives=_A[:1, 0].copy(), id="one number of one"),
]  # fmt: skip

_SIGNAL, _WINDOW = random("f32", 2, 56), typed("f32", np.hanning(13)[1:12])


def _scalar(number: int) -> np.ndarray:
    return np.array(number, np.int64)


stft = Operation("STFT", 15, transpose_frames=False)
_STFT: list[Row] = [
    *(
        stft(
            _SIGNAL,
            _WINDOW,
            _scalar(size),
            _scalar(step),
            transpose_frames=swap,
            id=f"frame {size} step {step} transposed {swap}",
        )
        for size, step, swap in itertools.product((11, 16), (3, 20), (False, True))
    ),
    stft(random("f32", 56), _WINDOW, _scalar(11), _scalar(3), id="one signal"),
    stft(random("f32", 3, 16), random("f32", 16), _scalar(16), _scalar(1), transpose_frames=True, id="a single frame"),
    stft(random("f16", 1, 24), random("f16", 8), _scalar(8), _scalar(4), id="f16"),
    stft(random("bf16", 1, 24), random("bf16", 8), _scalar(8), _scalar(4), id="bf16"),
    stft(_SIGNAL, _WINDOW, typed("i32", 12), typed("i32", 5), id="i32 sizes"),
    stft.facts("f32[?,40..56]", "f32[7]", _scalar(11), _scalar(3), id="bounded signal"),
    stft.facts("f32[?,48]", "f32[?]", _scalar(11), _scalar(3), transpose_frames=True, id="transposed"),
    stft.facts("f32[2,48]", "f32[7]", "i64[]", "i64[]", transpose_frames=True, id="frames unknown"),
    stft.facts("f32[...]", "f32[7]", _scalar(11), _scalar(3), transpose_frames=True, gives="f32[...]", id="rank unknown"),
    stft.refuses(random("f32", 2, 8), random("f32", 4), _scalar(9), _scalar(3), says="larger than", id="frame"),
    stft.refuses(random("f32", 2, 8), random("f32", 5), _scalar(4), _scalar(3), says="window has 5", id="window"),
    stft.refuses(random("f32", 2, 8), random("f32", 4), _scalar(4), _scalar(0), says="frame_step is 0", id="step"),
    stft.refuses(random("f32", 2, 2, 8), random("f32", 4), _scalar(4), _scalar(1), says="rank 3", id="rank"),
]  # fmt: skip

_BINS = random("f32", 2, 6, 16, 2)
istft = Operation("ISTFT", 16, center=True, normalized=False)
_ISTFT: list[Row] = [
    *(
        istft(
            _BINS, _WINDOW, _scalar(11), _scalar(3), center=center, normalized=normalized, id=f"{center} {normalized}"
        )
        for center, normalized in itertools.product((False, True), repeat=2)
    ),
    *(
        istft(_BINS, _WINDOW, _scalar(11), _scalar(3), _scalar(n), center=c, id=f"length {n} center {c}")
        for n, c in itertools.product((40, 56, 64), (False, True))
    ),
    istft(random("f32", 6, 16, 2), _WINDOW, _scalar(11), _scalar(4), center=False, id="one signal"),
    istft(random("f32", 6, 16, 2), _WINDOW, _scalar(11), _scalar(4), [50], normalized=True, id="length in a vector"),
    istft(random("f32", 1, 9, 4, 2), random("f32", 7, low=0.5), _scalar(16), _scalar(20), center=False, id="gaps"),
    istft(random("f16", 1, 5, 4, 2), random("f16", 8, low=0.5), _scalar(8), _scalar(4), id="f16"),
    istft(random("bf16", 1, 5, 4, 2), random("bf16", 8, low=0.5), _scalar(8), _scalar(4), id="bf16"),
    istft.facts("f32[?,6,10..20,2]", "f32[7]", _scalar(11), _scalar(3), center=False, id="bounded frames"),
    istft.facts("f32[?,6,10..20,2]", "f32[7]", _scalar(11), _scalar(3), id="bounded and centred"),
    istft.facts("f32[4,6,16,2]", "f32[7]", _scalar(11), "i64[]", id="step unknown"),
    istft.facts("f32[4,6,16,2]", "f32[7]", _scalar(11), _scalar(3), "i64[]", id="length unknown"),
    istft.facts("f32[...]", "f32[7]", _scalar(11), _scalar(3), id="rank unknown"),
    istft.refuses(random("f32", 6, 2), _WINDOW, _scalar(11), _scalar(3), says="rank 2", id="rank"),
    istft.refuses(random("f32", 7, 4, 2), _WINDOW, _scalar(11), _scalar(3), says="data has 7 points per frame, expected 6 for frame_size 11", id="results"),
]  # fmt: skip

ROWS: list[Row] = [
    *_complex_rows("DFT"), *_complex_rows("IDFT"), *_real_rows("RDFT", ()), *_real_rows("IRDFT", (2,)), *_ABOVE,
    *_STFT, *_ISTFT,
]  # fmt: skip
ROWS += [
    rdft(np.zeros((0, 4, 5), np.float32), [1, 2], gives=np.zeros((0, 4, 3, 2), np.float32), id="no signals"),
    case(
        "IRDFT", 9, np.zeros((0, 4, 5, 2), np.float32), [1, 2], gives=np.zeros((0, 4, 8), np.float32), id="no signals"
    ),
    *emptied(ROWS, "STFT", "ISTFT"),
]
