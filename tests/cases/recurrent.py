"""Rows of recurrent cells and sequences."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation
from tests.support.cases import emptied, halves, odd

S, I, B, T = 3, 2, 2, 4
X, H, C = random("f32", B, I), random("f32", B, S, seed=1), random("f32", B, S, seed=2)


def parts(gates, biases, name="f32"):
    return [random(name, gates * S, I, seed=3), random(name, gates * S, S, seed=4), random(name, biases * S, seed=5)]


def stacked(gates, biases, count):
    return [
        random("f32", count, gates * S, I, seed=3),
        random("f32", count, gates * S, S, seed=4),
        random("f32", count, biases * S, seed=5),
    ]


SIZE = {"hidden_size": "3"}
HALF = [random("f16", B, I), random("f16", B, S, seed=1), random("f16", B, S, seed=2)]
ROWS = []
for since in (1, 4):
    row = Operation("LSTMCell", since)
    ROWS += [
        row(X, H, C, *parts(4, 4), **SIZE, id="defaults"),
        row(X, H, C, *parts(4, 4), **SIZE, clip="0.3", id="clip"),
        row(X, H, C, *parts(4, 4), **SIZE, activations="sigmoid, relu, tanh", id="activations"),
        row.facts("f32[?,2]", "f32[1..4,3]", "f32[?,3]", "f32[12,2]", "f32[12,3]", "f32[12]", **SIZE, id="dynamic"),
        row.refuses(
            "f32[2,2]",
            "f32[2,4]",
            "f32[2,3]",
            "f32[12,2]",
            "f32[12,3]",
            "f32[12]",
            **SIZE,
            says="initial_hidden_state has shape [2,4], expected [2,3]",
            id="state",
        ),
    ]
ROWS += [
    case("LSTMCell", 1, X, H, C, *parts(4, 4), **SIZE, weights_format="ifco", id="weights_format means nothing"),
    case("LSTMCell", 4, *HALF, *parts(4, 4, "f16"), **SIZE, id="f16"),
    case("GRUCell", 3, X, H, *parts(3, 3), **SIZE, id="defaults"),
    case("GRUCell", 3, X, H, *parts(3, 4), **SIZE, linear_before_reset="true", id="linear_before_reset"),
    case("GRUCell", 3, X, H, *parts(3, 3), **SIZE, clip="0.3", id="clip"),
    case("GRUCell", 3, X, H, *parts(3, 3), **SIZE, activations="relu, sigmoid", id="activations"),
    facts_case("GRUCell", 3, "f32[?,2]", "f32[1..4,3]", "f32[9,2]", "f32[9,3]", "f32[9]", **SIZE, id="dynamic"),
    refuses(
        "GRUCell",
        3,
        "f32[2,2]",
        "f32[2,3]",
        "f32[9,2]",
        "f32[9,3]",
        "f32[9]",
        **SIZE,
        activations="nosuch, tanh",
        says="'nosuch'",
        id="activation",
    ),
    case("RNNCell", 1, X, H, *parts(1, 1), **SIZE, id="defaults"),
    case("RNNCell", 1, X, H, *parts(1, 1), **SIZE, clip="0.3", activations="relu", id="clip and relu"),
    facts_case("RNNCell", 1, "f32[?,2]", "f32[1..4,3]", "f32[3,2]", "f32[3,3]", "f32[3]", **SIZE, id="dynamic"),
]
LENGTHS = typed("i32", [4, 2])
XS = random("f32", B, T, I)
lstm_sequence = Operation("LSTMSequence", 5)
gru_sequence = Operation("GRUSequence", 5)
for direction in ("forward", "reverse", "bidirectional"):
    count = 2 if direction == "bidirectional" else 1
    HS, CS = random("f32", B, count, S, seed=1), random("f32", B, count, S, seed=2)
    # OpenVINO's reader has no defaults for the activations of sequences.
    texts = SIZE | {"direction": direction}
    lstm, gru, rnn = (texts | {"activations": names} for names in ("sigmoid, tanh, tanh", "sigmoid, tanh", "tanh"))
    ROWS += [
        lstm_sequence(XS, HS, CS, LENGTHS, *stacked(4, 4, count), **lstm, id=direction),
        lstm_sequence(
            XS, HS, CS, typed("i64", [4, 4]), *stacked(4, 4, count), **lstm, id=f"{direction}, all of one length"
        ),
        gru_sequence(XS, HS, LENGTHS, *stacked(3, 3, count), **gru, id=direction),
        gru_sequence(
            XS,
            HS,
            LENGTHS,
            *stacked(3, 4, count),
            **gru,
            linear_before_reset="true",
            id=f"{direction}, linear_before_reset",
        ),
        case("RNNSequence", 5, XS, HS, LENGTHS, *stacked(1, 1, count), **rnn, id=direction),
    ]
FORWARD = SIZE | {"direction": "forward"}
ROWS += [
    lstm_sequence.facts("f32[?,2..7,2]", "f32[?,1,3]", "f32[?,1,3]", "i32[?]", "f32[1,12,2]", "f32[1,12,3]", "f32[1,12]", **FORWARD,
        id="dynamic",
    ),
    gru_sequence.facts("f32[?,2..7,2]", "f32[?,1,3]", "i32[?]", "f32[1,9,2]", "f32[1,9,3]", "f32[1,9]", **FORWARD, id="dynamic"),
    facts_case("RNNSequence", 5, "f32[?,2..7,2]", "f32[?,1,3]", "i32[?]", "f32[1,3,2]", "f32[1,3,3]", "f32[1,3]", **FORWARD, id="dynamic"),
    gru_sequence.refuses("f32[2,4,2]", "f32[2,2,3]", "i32[2]", "f32[1,9,2]", "f32[1,9,3]", "f32[1,9]", **FORWARD, says="initial_hidden_state has shape [2,2,3], expected [2,1,3]",
        id="states of two directions",
    ),
]  # fmt: skip


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _gru(w, r, before):
    """The formulas of GRUCell-3 on X and H without biases."""
    w_z, w_r, w_h = np.split(w, 3)
    r_z, r_r, r_h = np.split(r, 3)
    x, h = X.array, H.array
    z, reset = _sigmoid(x @ w_z.T + h @ r_z.T), _sigmoid(x @ w_r.T + h @ r_r.T)
    new = np.tanh(x @ w_h.T + (reset * (h @ r_h.T) if before else (reset * h) @ r_h.T))
    return (1 - z) * new + z * h


def _lstm(w, r, b, p, couples):
    """The formulas of LSTMCell-1 on X, H and C; peepholes stand as f, i, o."""
    f, i, c, o = np.split(X.array @ w.T + H.array @ r.T + b, 4, 1)
    p_f, p_i, p_o = np.split(p, 3)
    f = _sigmoid(f + p_f * C.array)
    i = 1 - f if couples else _sigmoid(i + p_i * C.array)
    cell = f * C.array + i * np.tanh(c)
    return _sigmoid(o + p_o * cell) * np.tanh(cell), cell


_W, _R, _B = (x.array for x in parts(4, 4))
_P, _NO_BIAS = random("f32", 9, seed=6), np.zeros(12, np.float32)
ROWS += [
    # The plugin knows neither peepholes nor input_forget: by the formulas.
    case("LSTMCell", 1, X, H, C, *parts(4, 4), _P, **SIZE, gives=_lstm(_W, _R, _B, _P.array, False), id="peepholes"),
    case("LSTMCell", 1, X, H, C, *parts(4, 4), _P, **SIZE, input_forget="true", gives=_lstm(_W, _R, _B, _P.array, True), id="peepholes, input_forget"),
    case("LSTMCell", 1, X, H, C, *parts(4, 4), **SIZE, input_forget="true", gives=_lstm(_W, _R, _B, np.zeros(9, np.float32), True), id="input_forget"),
    *(
        case("LSTMCell", 1, X, H, C, *parts(4, 4), **SIZE, weights_format=text, gives=_lstm(_W, _R, _B, np.zeros(9, np.float32), False), id=f"weights_format {text}")
        for text in ("icof", "ifoc", "iofc")
    ),
    # B is 0 unless given.
    *(
        case("LSTMCell", since, X, H, C, *parts(4, 4)[:2], **SIZE, gives=_lstm(_W, _R, _NO_BIAS, np.zeros(9, np.float32), False), id="no B")
        for since in (1, 4)
    ),
    case("GRUCell", 3, X, H, *parts(3, 3)[:2], **SIZE, gives=_gru(*(x.array for x in parts(3, 3)[:2]), False), id="no B"),
    case("GRUCell", 3, X, H, *parts(3, 4)[:2], **SIZE, gives=_gru(*(x.array for x in parts(3, 3)[:2]), True), linear_before_reset="true", id="no B, linear_before_reset"),
    case("RNNCell", 1, X, H, *parts(1, 1)[:2], **SIZE, gives=np.tanh(X.array @ parts(1, 1)[0].array.T + H.array @ parts(1, 1)[1].array.T), id="no B"),
    refuses("RNNCell", 1, "f32[2,2]", "f32[2,4]", "f32[3,2]", "f32[3,3]", "f32[3]", **SIZE, says="initial_hidden_state has shape [2,4], expected [2,3]", id="state"),
    refuses("RNNCell", 1, "i32[2,2]", "i32[2,3]", "i32[3,2]", "i32[3,3]", "i32[3]", **SIZE, says="x has element type i32, expected a floating-point type", id="integers"),
    lstm_sequence.refuses("f32[2,4,2]", "f32[2,1,3]", "f32[2,1,3]", "i32[3]", "f32[1,12,2]", "f32[1,12,3]", "f32[1,12]", **SIZE, direction="forward",
            says="sequence_lengths has shape [3], expected [2]", id="lengths of another batch"),
    refuses("RNNSequence", 5, "f32[2,4,2]", "f32[2,1,3]", "f32[2]", "f32[1,3,2]", "f32[1,3,3]", "f32[1,3]", **SIZE, direction="forward", says="sequence_lengths has element type f32, expected an integer type", id="lengths of floats"),
    refuses("RNNSequence", 5, "f32[2,4,2]", "f32[2,1,3]", "i32[2]", "f32[2,3,2]", "f32[2,3,3]", "f32[2,3]", **SIZE, direction="forward", says="w has shape [2,3,2], expected [1,3,2]", id="directions"),
]  # fmt: skip
_ACTS = {"LSTMSequence": "sigmoid, tanh, tanh", "GRUSequence": "sigmoid, tanh", "RNNSequence": "tanh"}
for op, gates in (("LSTMSequence", 4), ("GRUSequence", 3), ("RNNSequence", 1)):
    texts = SIZE | {"direction": "forward", "activations": _ACTS[op]}
    states = [random("f32", B, 1, S, seed=i + 1) for i in range(2 if op == "LSTMSequence" else 1)]
    # By the specification: what lies beyond a length is 0, and of no step the first state is the last.
    zeros = np.zeros((B, 1, T, S), np.float32)
    ROWS += [
        case(
            op,
            5,
            XS,
            *states,
            typed("i32", [0, 0]),
            *stacked(gates, gates, 1),
            **texts,
            gives=(zeros, *states),
            id="lengths of 0",
        ),
        case(op, 5, XS, *states, typed("i64", [4, 1]), *stacked(gates, gates, 1), **texts, id="i64 lengths"),
        case(op, 5, XS, *states, LENGTHS, *stacked(gates, gates, 1), **texts, clip="0.25", id="clip"),
    ]
# What the fast kernels treat differently: a batch of 1, more steps than one product takes, NaN beyond a sequence's length.
_LATE = typed("f32", np.where(np.arange(T)[:, None] < np.array([4, 2])[:, None, None], XS.array, np.nan))
for op, gates, more in (
    ("LSTMSequence", 4, {}),
    ("GRUSequence", 3, {}),
    ("GRUSequence", 4, {"linear_before_reset": "true"}),
    ("RNNSequence", 1, {}),
):
    for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        texts = SIZE | more | {"direction": direction, "activations": _ACTS[op]}
        first = [
            [random("f32", batch, count, S, seed=i + 1) for i in range(2 if op == "LSTMSequence" else 1)]
            for batch in (1, B)
        ]
        weights = stacked(min(gates, 3) if op == "GRUSequence" else gates, gates, count)
        label = f"{direction}{', linear_before_reset' if more else ''}"
        ROWS += [
            case(
                op,
                5,
                random("f32", 1, 3, I),
                *first[0],
                typed("i32", [3]),
                *weights,
                **texts,
                id=f"one sequence, {label}",
            ),
            case(
                op,
                5,
                random("f32", 1, 3, I),
                *first[0],
                typed("i32", [2]),
                *weights,
                **texts,
                id=f"one short sequence, {label}",
            ),
            case(
                op,
                5,
                random("f32", B, 150, I),
                *first[1],
                typed("i32", [150, 140]),
                *weights,
                **texts,
                id=f"many steps, {label}",
            ),
            case(op, 5, _LATE, *first[1], LENGTHS, *weights, **texts, id=f"NaN behind the end, {label}"),
        ]
ROWS += [
    *halves(ROWS),
    *odd(ROWS),
    *emptied(ROWS, "GRUCell", "RNNCell", inputs=(0, 1)),
    *emptied(ROWS, "LSTMCell", "GRUSequence", "RNNSequence", inputs=(0, 1, 2)),
    *emptied(ROWS, "LSTMSequence", inputs=(0, 1, 2, 3)),
]
