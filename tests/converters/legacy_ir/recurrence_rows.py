"""Rows of cells and sequences: [F, I, C, O] of LSTM, [Z, R, H] of GRU, the input part of the weights first."""

from __future__ import annotations

import numpy as np

from tests.converters.legacy_ir.rows import Row, random, row

N, T, D, H = 2, 3, 4, 5
X, H0, C0, S = random(N, D), random(N, H), random(N, H), random(N, T, D)
W4, B4 = random(4 * H, D + H), random(4 * H)
W3, B3 = random(3 * H, D + H), random(3 * H)
W1, B1 = random(H, D + H), random(H)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm(x: np.ndarray, h: np.ndarray, c: np.ndarray, clip: float = np.inf) -> list[np.ndarray]:
    """The new states."""
    gates = np.clip(np.concatenate([x, h], 1) @ W4.T + B4, -clip, clip)
    f, i, g, o = np.split(gates, 4, 1)
    new = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return [_sigmoid(o) * np.tanh(new), new]


def gru(x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The new state."""
    z, r = np.split(_sigmoid(np.concatenate([x, h], 1) @ W3[: 2 * H].T + B3[: 2 * H]), 2, 1)
    g = np.tanh(np.concatenate([x, r * h], 1) @ W3[2 * H :].T + B3[2 * H :])
    return z * h + (1 - z) * g


def gru_before(x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The new state with linear_before_reset, with the biases B4."""
    z, r = np.split(_sigmoid(np.concatenate([x, h], 1) @ W3[: 2 * H].T + B4[: 2 * H]), 2, 1)
    g = np.tanh(x @ W3[2 * H :, :D].T + B4[2 * H : 3 * H] + r * (h @ W3[2 * H :, D:].T + B4[3 * H :]))
    return z * h + (1 - z) * g


def rnn(x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The new state."""
    return np.tanh(np.concatenate([x, h], 1) @ W1.T + B1)


def _run(reverse: bool) -> list[np.ndarray]:
    h, c, found = H0, C0, {}
    for step in reversed(range(T)) if reverse else range(T):
        h, c = lstm(S[:, step], h, c)
        found[step] = h
    return [np.stack([found[step] for step in range(T)], 1), h, c]


def _gru_run() -> list[np.ndarray]:
    h, found = H0, []
    for step in range(T):
        h = gru(S[:, step], h)
        found.append(h)
    return [np.stack(found), h]


LSTM = {"weights": W4, "biases": B4}
GRU = {"weights": W3, "biases": B3}

ROWS: list[Row] = [
    row("gates", "LSTMCell", [X, H0, C0], lstm(X, H0, C0), {"hidden_size": H}, blobs=LSTM),
    row("clip", "LSTMCell", [X, H0, C0], lstm(X, H0, C0, 0.5), {"hidden_size": H, "clip": 0.5}, blobs=LSTM),
    row("gates", "GRUCell", [X, H0], gru(X, H0), {"hidden_size": H}, blobs=GRU),
    row("before reset", "GRUCell", [X, H0], gru_before(X, H0), {"hidden_size": H, "linear_before_reset": 1}, blobs={"weights": W3, "biases": B4}),
    row("tanh", "RNNCell", [X, H0], rnn(X, H0), {"hidden_size": H}, blobs={"weights": W1, "biases": B1}),
    row("relu", "RNNCell", [X, H0], np.maximum(np.concatenate([X, H0], 1) @ W1.T, 0), {"hidden_size": H, "activations": "relu"}, blobs={"weights": W1}),
    row("forward", "LSTMSequence", [S, H0, C0], _run(False), {"hidden_size": H, "axis": 1, "direction": "Forward"}, blobs=LSTM),
    row("backward", "LSTMSequence", [S, H0, C0], _run(True), {"hidden_size": H, "direction": "Backward"}, blobs=LSTM),
    row("time first", "GRUSequence", [S.swapaxes(0, 1).copy(), H0], _gru_run(), {"hidden_size": H, "axis": 0}, blobs=GRU),
]  # fmt: skip
