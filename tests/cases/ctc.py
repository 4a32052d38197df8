"""Rows of connectionist temporal classification."""

from __future__ import annotations

import itertools

import numpy as np

from irexec.testing import Row, Typed, random, typed
from tests.cases import Operation
from tests.support.cases import emptied


def _scores(path: str, classes: int = 4, kind: str = "f32") -> np.ndarray:
    """Logits (steps, classes) whose best path is the digits of ``path``."""
    return typed(
        kind, np.eye(classes)[[int(digit) for digit in path]] * 2 + random("f32", len(path), classes).array / 4
    ).array


def _batch(*paths: str) -> np.ndarray:
    return np.stack([_scores(path) for path in paths]).astype(np.float32)


# The blank is 3; of the third sequence only a part counts.
_PATHS = _batch("0013311", "3333333", "0120120")
_STEPS = np.ascontiguousarray(_PATHS.transpose(1, 0, 2))
_MASK = np.float32([[1, 1, 1]] * 4 + [[1, 1, 0]] * 2 + [[1, 0, 1]])
ctc_greedy_decoder = Operation("CTCGreedyDecoder", 1)
_GREEDY: list[Row] = [
    *(ctc_greedy_decoder(_STEPS, _MASK, ctc_merge_repeated=merge, id=f"merge {merge}") for merge in (True, False)),
    ctc_greedy_decoder(_STEPS, _MASK, id="default"),
    ctc_greedy_decoder(random("f32", 9, 4, 6), np.ones((9, 4), np.float32), id="random"),
    ctc_greedy_decoder(np.float32([[[1, 1, 0]], [[0, 2, 2]]]), np.ones((2, 1), np.float32), id="ties"),
    ctc_greedy_decoder(typed("f16", _STEPS), typed("f16", _MASK), id="f16"),
    ctc_greedy_decoder(typed("bf16", _STEPS), typed("bf16", _MASK), id="bf16"),
    ctc_greedy_decoder(np.zeros((0, 2, 3), np.float32), np.zeros((0, 2), np.float32), gives=np.zeros((2, 0, 1, 1), np.float32), id="no steps"),
    ctc_greedy_decoder.facts("f32[?,2..5,7]", "f32[20,?]", id="dynamic"),
    ctc_greedy_decoder.facts("f32[...]", "f32[20,?]", id="rank unknown"),
    ctc_greedy_decoder.refuses(_STEPS, np.ones((6, 3), np.float32), says="number of steps differs between inputs: 7 and 6", id="mask"),
    ctc_greedy_decoder.refuses(_STEPS[0], _MASK, says="data has rank 2", id="rank"),
]  # fmt: skip

_LENGTHS = typed("i32", [7, 5, 4])
ctc_greedy_decoder_seq_len = Operation("CTCGreedyDecoderSeqLen", 6)
_GREEDY_LENGTHS: list[Row] = [
    *(
        ctc_greedy_decoder_seq_len(
            _PATHS,
            typed(index, [7, 5, 4]),
            merge_repeated=merge,
            classes_index_type=index,
            sequence_length_type=other,
            id=f"merge {merge} {index} {other}",
        )
        for merge, index, other in itertools.product((True, False), ("i32", "i64"), ("i32", "i64"))
    ),
    ctc_greedy_decoder_seq_len(_PATHS, _LENGTHS, id="defaults"),
    ctc_greedy_decoder_seq_len(_PATHS, _LENGTHS, typed("i32", 1), id="another blank"),
    ctc_greedy_decoder_seq_len(_PATHS, _LENGTHS, typed("i32", [0]), id="blank in a vector"),
    ctc_greedy_decoder_seq_len(_PATHS, typed("i32", [0, 0, 7]), id="empty sequences"),
    ctc_greedy_decoder_seq_len(typed("f16", _PATHS), _LENGTHS, id="f16"),
    ctc_greedy_decoder_seq_len(typed("bf16", _PATHS), _LENGTHS, id="bf16"),
    ctc_greedy_decoder_seq_len.facts("f32[?,2..5,7]", "i64[8]", classes_index_type="i64", id="dynamic"),
    ctc_greedy_decoder_seq_len.facts("f32[...]", "i32[...]", id="ranks unknown"),
    ctc_greedy_decoder_seq_len.refuses(_PATHS, typed("i32", [7, 5]), says="batch differs between inputs: 3 and 2", id="lengths"),
    ctc_greedy_decoder_seq_len.refuses(_PATHS, [7.0, 5.0, 4.0], says="sequence_length has element type f32, expected an integer type", id="lengths of floats"),
]  # fmt: skip

_LABELS = typed("i32", [[0, 0, 1, 2, 1, 1, 0], [2, 2, 2, 2, 0, 0, 0], [1, 0, 3, 3, 3, 3, 3]])


ctc_loss = Operation("CTCLoss", 4)


def _loss(
    id: str, logits: object, logit_length: object, labels: object, label_length: object, *blank: object, **rest: object
) -> Row:
    """OpenVINO's reader does not know the default of ctc_merge_repeated, true, and so all rows say it."""
    given = {"ctc_merge_repeated": True} | rest
    return ctc_loss(logits, logit_length, labels, label_length, *blank, id=id, **given)


def _length(*values: int) -> Typed:
    return typed("i32", values)


_SEVEN, _THREE = _length(7, 7, 5), _length(4, 2, 2)
_LOSS: list[Row] = [
    *(
        _loss(
            f"collapse {c} merge {m} unique {u}",
            _PATHS,
            _SEVEN,
            _LABELS,
            _THREE,
            preprocess_collapse_repeated=c,
            ctc_merge_repeated=m,
            unique=u,
        )
        for c, m, u in itertools.product((False, True), repeat=3)
    ),
    _loss("random", random("f32", 3, 7, 4, low=-4, high=4), _SEVEN, _LABELS, _THREE),
    _loss("another blank", random("f32", 3, 7, 4), _SEVEN, typed("i32", [[0, 3, 1, 0, 0, 0, 0]] * 3), _length(3, 2, 1), typed("i32", 2)),
    _loss("i64", random("f32", 3, 7, 4), typed("i64", [7, 7, 5]), typed("i64", _LABELS.array), typed("i64", [4, 2, 2]), typed("i64", 3)),
    _loss("one label for each step", random("f32", 1, 3, 5), _length(3), typed("i32", [[0, 1, 2]]), _length(3)),
    _loss("no room for the blank between", random("f32", 1, 3, 5), _length(3), typed("i32", [[1, 1, 2]]), _length(3)),
    ctc_loss(np.zeros((1, 2, 2), np.float32), _length(2), typed("i32", [[0, 0]]), _length(1), gives=[-np.log(3 / 4)], id="default"),
    # -ln of the probability of blanks alone: three steps of four equal classes; and of nothing at all.
    _loss("no labels", np.zeros((2, 3, 4), np.float32), _length(3, 0), typed("i32", [[0] * 3] * 2), _length(0, 0), gives=[4.158883083359672, 0.0]),
    _loss("large logits", np.float32([[[1000, 0], [1000, 0]]]), _length(2), typed("i32", [[0, 0]]), _length(1), gives=[0.0]),
    _loss("f16", typed("f16", _PATHS), _SEVEN, _LABELS, _THREE),
    _loss("bf16", typed("bf16", _PATHS), _SEVEN, _LABELS, _THREE),
    _loss("long", random("f32", 2, 40, 6, seed=4), _length(40, 33), random("i32", 2, 40, low=0, high=5), _length(12, 15)),
    ctc_loss.facts("f32[?,20,128]", "i32[?]", "i32[2..5,20]", "i32[?]", gives="f32[2..5]", id="dynamic"),
    ctc_loss.facts("f32[...]", "i32[8]", "i32[...]", "i32[?]", "i32[]", id="ranks unknown"),
    ctc_loss.refuses(_PATHS, _SEVEN, typed("i32", [[0] * 6] * 3), _THREE, says="number of steps differs between inputs: 7 and 6", id="labels"),
    ctc_loss.refuses(_PATHS, _SEVEN, _LABELS, _length(1, 2), says="batch differs between inputs: 3 and 2", id="lengths"),
    ctc_loss.refuses(
        typed("i32", np.zeros((3, 7, 4))),
        _SEVEN,
        _LABELS,
        _THREE,
        says="logits has element type i32, expected a floating-point type",
        id="integers",
    ),
]  # fmt: skip

ROWS: list[Row] = [*_GREEDY, *_GREEDY_LENGTHS, *_LOSS]
ROWS += [
    *emptied(ROWS, "CTCGreedyDecoderSeqLen", inputs=(0, 1)),
    *emptied(ROWS, "CTCLoss", inputs=(0, 1, 2, 3)),
    # By the formula: what cannot happen has an infinite loss, what is NaN none.
    _loss(
        "impossible",
        np.float32([[[0, -np.inf], [0, -np.inf]]]),
        _length(2),
        typed("i32", [[1, 1]]),
        _length(1),
        typed("i32", 0),
        gives=[np.inf],
    ),
]
_TOP = np.where(np.arange(4) == 2, np.inf, _PATHS[:, :, :4]).astype(np.float32)
ROWS += [
    ctc_greedy_decoder(np.ascontiguousarray(_TOP.transpose(1, 0, 2)), _MASK, id="infinities"),
    ctc_greedy_decoder_seq_len(_TOP, _LENGTHS, id="infinities"),
]
_FIVE = random("f32", 2, 5, 4)
ROWS += [
    ctc_greedy_decoder_seq_len(_FIVE, typed("i32", [5, 3]), typed("i32", 0), id="blank 0"),
    _loss(
        "equal labels need blanks between",
        _FIVE,
        _length(5, 3),
        typed("i32", [[0, 1, 0, 0, 0], [1, 1, 1, 0, 0]]),
        _length(2, 3),
    ),
]
