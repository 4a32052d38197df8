"""Rows of recurrent cells and sequences."""

from tests.support.cases import case, facts_case, random, refuses, typed

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
    ROWS += [
        case("LSTMCell", since, X, H, C, *parts(4, 4), **SIZE, id="defaults"),
        case("LSTMCell", since, X, H, C, *parts(4, 4), **SIZE, clip="0.3", id="clip"),
        case("LSTMCell", since, X, H, C, *parts(4, 4), **SIZE, activations="sigmoid, relu, tanh", id="activations"),
        facts_case("LSTMCell", since, "f32[?,2]", "f32[1..4,3]", "f32[?,3]", "f32[12,2]", "f32[12,3]", "f32[12]", **SIZE, id="dynamic"),
        refuses(
            "LSTMCell",
            since,
            "f32[2,2]",
            "f32[2,4]",
            "f32[2,3]",
            "f32[12,2]",
            "f32[12,3]",
            "f32[12]",
            **SIZE,
            says="sizes 4 and 3",
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
for direction in ("forward", "reverse", "bidirectional"):
    count = 2 if direction == "bidirectional" else 1
    HS, CS = random("f32", B, count, S, seed=1), random("f32", B, count, S, seed=2)
    # OpenVINO's reader has no defaults for the activations of sequences.
    texts = SIZE | {"direction": direction}
    lstm, gru, rnn = (texts | {"activations": names} for names in ("sigmoid, tanh, tanh", "sigmoid, tanh", "tanh"))
    ROWS += [
        case("LSTMSequence", 5, XS, HS, CS, LENGTHS, *stacked(4, 4, count), **lstm, id=direction),
        case("GRUSequence", 5, XS, HS, LENGTHS, *stacked(3, 3, count), **gru, id=direction),
        case(
            "GRUSequence",
            5,
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
    facts_case(
        "LSTMSequence", 5, "f32[?,2..7,2]", "f32[?,1,3]", "f32[?,1,3]", "i32[?]", "f32[1,12,2]", "f32[1,12,3]", "f32[1,12]", **FORWARD,
        id="dynamic",
    ),
    facts_case("GRUSequence", 5, "f32[?,2..7,2]", "f32[?,1,3]", "i32[?]", "f32[1,9,2]", "f32[1,9,3]", "f32[1,9]", **FORWARD, id="dynamic"),
    facts_case("RNNSequence", 5, "f32[?,2..7,2]", "f32[?,1,3]", "i32[?]", "f32[1,3,2]", "f32[1,3,3]", "f32[1,3]", **FORWARD, id="dynamic"),
    refuses(
        "GRUSequence", 5, "f32[2,4,2]", "f32[2,2,3]", "i32[2]", "f32[1,9,2]", "f32[1,9,3]", "f32[1,9]", **FORWARD, says="sizes 2 and 1 differ",
        id="states of two directions",
    ),
]  # fmt: skip
