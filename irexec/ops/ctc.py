"""Connectionist temporal classification: CTCGreedyDecoder, CTCGreedyDecoderSeqLen, CTCLoss."""

from __future__ import annotations

from typing import Literal

import numpy as np

from irexec.dtypes.elements import element
from irexec.errors import OpError, check
from irexec.ir.facts import Fact
from irexec.reference import ctc
from irexec.schema.registry import op
from irexec.schema.rules import check_float, check_integers, check_scalar, same_element, sizes_of, unify_sizes

IndexType = Literal["i32", "i64"]


@op("CTCGreedyDecoder", since=1)
def ctc_greedy_decoder_1(data: np.ndarray, sequence_mask: np.ndarray, *, ctc_merge_repeated: bool = True) -> np.ndarray:
    """The most probable class of each step without blanks, (steps, batch, classes) to (batch, steps, 1, 1), -1 behind them.

    The blank is the last class; a sequence ends at the first 0 of its mask (steps, batch). Source: CTCGreedyDecoder-1.
    """
    classes = data.argmax(2).T if data.shape[2] else np.zeros(data.shape[1::-1], np.int64)
    valid = np.logical_and.accumulate(sequence_mask != 0, 0).T
    decoded, _ = ctc.decode(classes, valid, data.shape[2] - 1, ctc_merge_repeated)
    return decoded.astype(data.dtype)[:, :, None, None]


@ctc_greedy_decoder_1.shape_rule
def _ctc_greedy_decoder_1_facts(data: Fact, sequence_mask: Fact, *, ctc_merge_repeated: bool = True) -> Fact:
    check_float(data, "data")
    kind = same_element(data, sequence_mask)
    (steps, batch, _), (mask_steps, mask_batch) = sizes_of(data, 3, "data"), sizes_of(sequence_mask, 2, "sequence_mask")
    return Fact(kind, (unify_sizes("batch", batch, mask_batch), unify_sizes("number of steps", steps, mask_steps), 1, 1))


@op("CTCGreedyDecoderSeqLen", since=6)
def ctc_greedy_decoder_seq_len_6(
    data: np.ndarray,
    sequence_length: np.ndarray,
    blank_index: np.ndarray | None = None,
    *,
    merge_repeated: bool = True,
    classes_index_type: IndexType = "i32",
    sequence_length_type: IndexType = "i32",
) -> tuple[np.ndarray, np.ndarray]:
    """The most probable class of each step without blanks, (batch, steps, classes) to (batch, steps), and how many they are.

    -1 stands behind them. The blank is the last class where none is given. Source: CTCGreedyDecoderSeqLen-6.
    """
    batch, steps, many = data.shape
    _check_lengths(sequence_length, steps, "sequence_length")
    classes = data.argmax(2) if many else np.zeros((batch, steps), np.int64)
    valid = np.arange(steps) < sequence_length[:, None]
    decoded, counts = ctc.decode(classes, valid, _blank(blank_index, many), merge_repeated)
    return decoded.astype(element(classes_index_type).carrier), counts.astype(element(sequence_length_type).carrier)


def _blank(index: np.ndarray | None, classes: int) -> int:
    return classes - 1 if index is None else int(index.reshape(()))


def _check_lengths(lengths: np.ndarray, most: int, what: str) -> None:
    wrong = lengths[(lengths < 0) | (lengths > most)]
    if wrong.size:
        raise OpError(f"{what} has {int(wrong[0])}, expected 0 to {most}")


@ctc_greedy_decoder_seq_len_6.shape_rule
def _ctc_greedy_decoder_seq_len_6_facts(
    data: Fact,
    sequence_length: Fact,
    blank_index: Fact | None = None,
    *,
    merge_repeated: bool = True,
    classes_index_type: IndexType = "i32",
    sequence_length_type: IndexType = "i32",
) -> tuple[Fact, Fact]:
    check_float(data, "data")
    check_integers(sequence_length, "sequence_length")
    _check_blank(blank_index)
    (batch, steps, _), (lengths,) = sizes_of(data, 3, "data"), sizes_of(sequence_length, 1, "sequence_length")
    batch = unify_sizes("batch", batch, lengths)
    return Fact(element(classes_index_type), (batch, steps)), Fact(element(sequence_length_type), (batch,))


def _check_blank(blank_index: Fact | None) -> None:
    if blank_index is not None:
        check_integers(blank_index, "blank_index")
        check_scalar(blank_index, "blank_index")


@op("CTCLoss", since=4, widen=True, tolerance=1e-5)
def ctc_loss_4(
    logits: np.ndarray,
    logit_length: np.ndarray,
    labels: np.ndarray,
    label_length: np.ndarray,
    blank_index: np.ndarray | None = None,
    *,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    unique: bool = False,
) -> np.ndarray:
    """Minus the logarithm of the probability that the logits read as the labels, (batch, steps, classes) to (batch).

    Where no path does, it is infinite. ``unique`` leaves the first of equal labels, ``preprocess_collapse_repeated``
    one of several in a row. Source: CTCLoss-4.
    """
    steps, classes = logits.shape[1:]
    _check_lengths(logit_length, steps, "logit_length")
    _check_lengths(label_length, steps, "label_length")
    blank = _blank(blank_index, classes)
    found, counts = ctc.targets(labels.astype(np.int64), label_length, preprocess_collapse_repeated, unique)
    found = found[:, : int(counts.max(initial=0))]
    inside = (found >= 0) & (found < classes)
    check(bool(inside.all()) and 0 <= blank < classes, f"a label or the blank {blank} is none of {classes} classes")
    return ctc.loss(logits, logit_length, found, counts, blank, ctc_merge_repeated).astype(logits.dtype)


@ctc_loss_4.shape_rule
def _ctc_loss_4_facts(
    logits: Fact,
    logit_length: Fact,
    labels: Fact,
    label_length: Fact,
    blank_index: Fact | None = None,
    *,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    unique: bool = False,
) -> Fact:
    check_float(logits, "logits")
    for fact, what in ((logit_length, "logit_length"), (labels, "labels"), (label_length, "label_length")):
        check_integers(fact, what)
    _check_blank(blank_index)
    (batch, steps, _), (rows, columns) = sizes_of(logits, 3, "logits"), sizes_of(labels, 2, "labels")
    unify_sizes("number of steps", steps, columns)
    lengths = (*sizes_of(logit_length, 1, "logit_length"), *sizes_of(label_length, 1, "label_length"))
    batch = unify_sizes("batch", batch, rows, *lengths)
    return Fact(logits.element, (batch,))
