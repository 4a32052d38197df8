"""A detector of voices as Silero VAD is exported, a branch with an LSTM for each sampling rate, comes back from IR as ONNX."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import converters
from tests.support.exported import run_onnx
from tests.support.onnx_models import model_of

HIDDEN, RATES = 4, {16000: 32, 8000: 16}
"""The size of the state, and the length of a frame by sampling rate."""
_SPECTRA = {
    "Conv": """
        wave = Unsqueeze (padded, ONE)
        parts = Conv <strides = [8]> (wave, BASIS_{rate})
        squares = Mul (parts, parts)
        real, imaginary = Split <axis = 1, num_outputs = 2> (squares)
        power = Add (real, imaginary)""",
    "STFT": """
        wave = Unsqueeze (padded, TWO)
        parts = STFT <onesided = 1> (wave, HOP, WINDOW_{rate}, LENGTH_{rate})
        squares = Mul (parts, parts)
        by_frame = ReduceSum <keepdims = 0> (squares, THREE)
        power = Transpose <perm = [0, 2, 1]> (by_frame)""",
}
_REST = """
        magnitude = Sqrt (power)
        frames = Conv <pads = [1, 1], strides = [2]> (magnitude, KERNEL_{rate}, OFFSET)
        active = Relu (frames)
        steps = Transpose <perm = [2, 0, 1]> (active)
        hidden, cell = Split <axis = 0, num_outputs = 2> (state)
        outputs, last_hidden, last_cell = LSTM <hidden_size = 4> (steps, W, R, BIAS, , hidden, cell)
        next_{rate} = Concat <axis = 0> (last_hidden, last_cell)
        logits = ReduceMean <keepdims = 0> (outputs, ZERO)
        heads = Shape <start = 1, end = 2> (logits)
        is_one = Equal (heads, ONE)
        features = If (is_one) <
            then_branch = squeezing () => (squeezed) {{ squeezed = Squeeze (logits, ONE) }},
            else_branch = keeping () => (kept) {{ kept = ReduceMean <keepdims = 0> (logits, ONE) }}
        >
        y_{rate} = Sigmoid (features)"""


def _model(spectrum: str, sizes: str) -> onnx.ModelProto:
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> np.ndarray:
        return rng.uniform(-0.5, 0.5, shape).astype(np.float32)

    text = 'padded = Pad <mode = "reflect"> (x, PADS)' + _SPECTRA[spectrum] + _REST
    branches = [
        f"{side}_branch = at_{rate} () => (y_{rate}, next_{rate}) {{ {text.format(rate=rate)} }}"
        for side, rate in zip(("then", "else"), RATES, strict=True)
    ]
    batch = sizes.split(",")[0]
    constants = {
        "PADS": [0, 0, 0, 8], "HOP": 8, "RATE": 16000, "ZERO": [0], "ONE": [1], "TWO": [2], "THREE": [3],
        **{f"LENGTH_{rate}": length for rate, length in RATES.items()},
    }  # fmt: skip
    weights = {"OFFSET": floats(HIDDEN), "BIAS": floats(1, 8 * HIDDEN), "W": floats(1, 4 * HIDDEN, HIDDEN)}
    for rate, length in RATES.items():
        weights[f"WINDOW_{rate}"] = np.hanning(length).astype(np.float32)
        weights[f"BASIS_{rate}"] = floats(length + 2, 1, length)
        weights[f"KERNEL_{rate}"] = floats(HIDDEN, length // 2 + 1, 3)
    return model_of(
        f"(float[{sizes}] x, float[2,{batch},{HIDDEN}] state, int64 rate) => (float y, float next)"
        f" {{ is_wide = Equal (rate, RATE) y, next = If (is_wide) <{', '.join(branches)}> }}",
        18, R=floats(1, 4 * HIDDEN, HIDDEN), **weights,
        **{name: np.asarray(value, np.int64) for name, value in constants.items()},
    )  # fmt: skip


@pytest.mark.parametrize("sizes", ["B,N", "1,N", "1,128"])
@pytest.mark.parametrize("spectrum", _SPECTRA)
def test_branches_by_sampling_rate_survive(spectrum: str, sizes: str) -> None:
    before = _model(spectrum, sizes)
    after = converters.to_onnx(converters.convert(before))
    onnx.checker.check_model(after, full_check=True)
    rng, batch = np.random.default_rng(1), 1 if sizes[0] == "1" else 2
    for rate in RATES:
        state = np.zeros([2, batch, HIDDEN], np.float32)
        for _ in range(2):
            inputs = [rng.standard_normal([batch, 128]).astype(np.float32), state, np.array(rate)]
            (old, state), (new, found) = (run_onnx(model, inputs)[0] for model in (before, after))
            np.testing.assert_allclose(new, old, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(found, state, rtol=1e-4, atol=1e-5)
