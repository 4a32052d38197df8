"""Connectionist temporal classification: CTCGreedyDecoder, CTCGreedyDecoderSeqLen, CTCLoss."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import element
from irexec.errors import OpError, check
from irexec.ir.facts import Fact
from irexec.ir.integers import integer
from irexec.reference import ctc
from irexec.schema.inputs import FloatTensor, IntegerElement, IntegerScalar, IntegerTensor, Rank
from irexec.schema.registry import op
from irexec.schema.shape_rules import sizes_of, unify_elements, unify_sizes

Probabilities = Annotated[FloatTensor, Rank(3)]
Lengths = Annotated[IntegerTensor, Rank(1)]
Labels = Annotated[IntegerTensor, Rank(2)]
IndexType = Literal["i32", "i64"]


@op("CTCGreedyDecoder", since=1)
def ctc_greedy_decoder_1(
    data: Probabilities, sequence_mask: Annotated[FloatTensor, Rank(2)], *, ctc_merge_repeated: bool = True
) -> np.ndarray:
    """The most probable class of each step without blanks, (steps, batch, classes) to (batch, steps, 1, 1), padded with
    -1.

    The blank is the last class; a sequence ends at the first 0 of its mask (steps, batch). Source: CTCGreedyDecoder-1.
    """
    classes = data.argmax(2).T if data.shape[2] else np.zeros(data.shape[1::-1], np.int64)
    valid = np.logical_and.accumulate(sequence_mask != 0, 0).T
    decoded, _ = ctc.decode(classes, valid, data.shape[2] - 1, ctc_merge_repeated)
    return decoded.astype(data.dtype)[:, :, None, None]


@ctc_greedy_decoder_1.shape_rule
def _ctc_greedy_decoder_1_shapes(data: Fact, sequence_mask: Fact) -> Fact:
    element = unify_elements(data, sequence_mask)
    (steps, batch, _), (mask_steps, mask_batch) = sizes_of(data, 3, "data"), sizes_of(sequence_mask, 2, "sequence_mask")
    return Fact(
        element, (unify_sizes("batch", batch, mask_batch), unify_sizes("number of steps", steps, mask_steps), 1, 1)
    )


@op("CTCGreedyDecoderSeqLen", since=6)
def ctc_greedy_decoder_seq_len_6(
    data: Probabilities,
    sequence_length: Lengths,
    blank_index: IntegerElement | None = None,
    *,
    merge_repeated: bool = True,
    classes_index_type: IndexType = "i32",
    sequence_length_type: IndexType = "i32",
) -> tuple[np.ndarray, np.ndarray]:
    """The most probable class of each step without blanks, (batch, steps, classes) to (batch, steps), and their number
    (batch).

    Rows are padded with -1. The blank is the last class by default. Source: CTCGreedyDecoderSeqLen-6.
    """
    batch, steps, class_count = data.shape
    _check_lengths(sequence_length, steps, "sequence_length")
    classes = data.argmax(2) if class_count else np.zeros((batch, steps), np.int64)
    valid = np.arange(steps) < sequence_length[:, None]
    decoded, counts = ctc.decode(classes, valid, _blank(blank_index, class_count), merge_repeated)
    return decoded.astype(element(classes_index_type).carrier), counts.astype(element(sequence_length_type).carrier)


def _blank(index: np.ndarray | None, classes: int) -> int:
    return classes - 1 if index is None else integer(index, "index")


def _check_lengths(lengths: np.ndarray, maximum: int, name: str) -> None:
    wrong = lengths[(lengths < 0) | (lengths > maximum)]
    if wrong.size:
        raise OpError(f"{name} has {int(wrong[0])}, expected 0 to {maximum}")


@ctc_greedy_decoder_seq_len_6.shape_rule
def _ctc_greedy_decoder_seq_len_6_shapes(
    data: Fact,
    sequence_length: Fact,
    blank_index: Fact | None = None,
    *,
    classes_index_type: IndexType,
    sequence_length_type: IndexType,
) -> tuple[Fact, Fact]:
    (batch, steps, _), (lengths,) = sizes_of(data, 3, "data"), sizes_of(sequence_length, 1, "sequence_length")
    batch = unify_sizes("batch", batch, lengths)
    return Fact(element(classes_index_type), (batch, steps)), Fact(element(sequence_length_type), (batch,))


@op("CTCLoss", since=4, widen=True, tolerance=1e-5)
def ctc_loss_4(
    logits: Probabilities,
    logit_length: Lengths,
    labels: Labels,
    label_length: Lengths,
    blank_index: IntegerScalar | None = None,
    *,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    unique: bool = False,
) -> np.ndarray:
    """Minus the logarithm of the probability that the logits read as the labels, (batch, steps, classes) to (batch).

    Where no path does, it is infinite. ``unique`` keeps the first of equal labels, ``preprocess_collapse_repeated``
    one of consecutive equal ones. Source: CTCLoss-4.
    """
    steps, classes = logits.shape[1:]
    _check_lengths(logit_length, steps, "logit_length")
    _check_lengths(label_length, steps, "label_length")
    blank = _blank(blank_index, classes)
    found, counts = ctc.targets(labels.astype(np.int64), label_length, preprocess_collapse_repeated, unique)
    found = found[:, : int(counts.max(initial=0))]
    inside = (found >= 0) & (found < classes)
    check(bool(inside.all()) and 0 <= blank < classes, f"a label or the blank {blank} is not one of {classes} classes")
    return ctc.loss(logits, logit_length, found, counts, blank, ctc_merge_repeated).astype(logits.dtype)


@ctc_loss_4.shape_rule
def _ctc_loss_4_shapes(
    logits: Fact, logit_length: Fact, labels: Fact, label_length: Fact, blank_index: Fact | None = None
) -> Fact:
    (batch, steps, _), (rows, columns) = sizes_of(logits, 3, "logits"), sizes_of(labels, 2, "labels")
    unify_sizes("number of steps", steps, columns)
    lengths = (*sizes_of(logit_length, 1, "logit_length"), *sizes_of(label_length, 1, "label_length"))
    batch = unify_sizes("batch", batch, rows, *lengths)
    return Fact(logits.element, (batch,))
