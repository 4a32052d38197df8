"""Connectionist temporal classification: CTCGreedyDecoder, CTCGreedyDecoderSeqLen, CTCLoss."""

from __future__ import annotations

from typing import Any

import numpy as np

from converters.ir_to_onnx.bodies import loop
from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.shape import as_i64
from converters.ir_to_onnx.registry import composed
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F64, I64


def _class_count(ctx: ExportContext, data: Tensor) -> Tensor:
    """The size of the last axis, a scalar."""
    return ctx.reshape(ctx.slice(ctx.shape_of(data), -1, None, 0), [])


def _blank(ctx: ExportContext, data: Tensor, index: Tensor | None) -> Tensor:
    if index is not None:
        return ctx.reshape(as_i64(ctx, index), [])
    return ctx.emit("Sub", _class_count(ctx, data), ctx.constant(1))


def _steps_below(ctx: ExportContext, like: Tensor, lengths: Tensor) -> Tensor:
    """Whether a step (batch, steps) is before the end of its sequence; ``like`` has these sizes."""
    steps = ctx.reshape(ctx.slice(ctx.shape_of(like), 1, 2, 0), [])
    number = ctx.emit("Range", ctx.constant(0), steps, ctx.constant(1))
    return ctx.emit("Less", number, ctx.unsqueeze(as_i64(ctx, lengths), 1))


def _changes(ctx: ExportContext, values: Tensor) -> Tensor:
    """Whether a value (batch, steps) differs from the one before it; the first one of a row does."""
    rest = ctx.emit("Equal", ctx.slice(values, 1, None, 1), ctx.slice(values, 0, -1, 1))
    same = ctx.emit("Pad", ctx.cast(rest, I64), ctx.ints(0, 1, 0, 0))
    return ctx.emit("Equal", same, ctx.constant(0))


def _to_front(ctx: ExportContext, values: Tensor, keep: Tensor, fill: int) -> tuple[Tensor, Tensor]:
    """The kept values of each row (batch, steps) at its front, padded with ``fill``, and their number (batch)."""
    kept = ctx.cast(keep, I64)
    sizes = ctx.shape_of(values)
    # Values that are left out go to a column that is cut off.
    last = ctx.slice(sizes, 1, 2, 0)
    places = ctx.where(keep, ctx.emit("Sub", ctx.emit("CumSum", kept, ctx.constant(1)), ctx.ints(1)), last)
    wide = ctx.emit("Expand", ctx.constant(fill), ctx.emit("Add", sizes, ctx.ints(0, 1)))
    moved = ctx.emit("ScatterElements", wide, places, values, axis=1)
    return ctx.slice(moved, 0, -1, 1), ctx.reduce("ReduceSum", kept, [1])


def _decoded(ctx: ExportContext, classes: Tensor, valid: Tensor, blank: Tensor, merge: bool) -> tuple[Tensor, Tensor]:
    keep = ctx.emit("And", valid, ctx.emit("Not", ctx.emit("Equal", classes, blank)))
    if merge:
        keep = ctx.emit("And", keep, _changes(ctx, classes))
    return _to_front(ctx, classes, keep, -1)


@composed("CTCGreedyDecoder")
def ctc_greedy_decoder(ctx: ExportContext, data: Tensor, sequence_mask: Tensor, *, ctc_merge_repeated: bool) -> Tensor:
    """ArgMax, comparisons with the class before and the blank, CumSum of the mask, ScatterElements."""
    classes = ctx.transpose(ctx.emit("ArgMax", data, axis=2, keepdims=0), [1, 0])
    ended = ctx.cast(ctx.emit("Equal", sequence_mask, ctx.scalar(0, sequence_mask)), I64)
    valid = ctx.emit("Equal", ctx.emit("CumSum", ended, ctx.constant(0)), ctx.constant(0))
    decoded, _ = _decoded(ctx, classes, ctx.transpose(valid, [1, 0]), _blank(ctx, data, None), ctc_merge_repeated)
    return ctx.unsqueeze(ctx.cast(decoded, data.element), 2, 3)


@composed("CTCGreedyDecoderSeqLen")
def ctc_greedy_decoder_seq_len(
    ctx: ExportContext, data: Tensor, sequence_length: Tensor, blank_index: Tensor | None = None, *,
    merge_repeated: bool, **types: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    """ArgMax, comparisons with the class before, the blank and the length, CumSum, ScatterElements."""
    classes = ctx.emit("ArgMax", data, axis=2, keepdims=0)
    valid = _steps_below(ctx, data, sequence_length)
    return _decoded(ctx, classes, valid, _blank(ctx, data, blank_index), merge_repeated)


@composed("CTCLoss")
def ctc_loss(
    ctx: ExportContext, logits: Tensor, logit_length: Tensor, labels: Tensor, label_length: Tensor,
    blank_index: Tensor | None = None, *, preprocess_collapse_repeated: bool, ctc_merge_repeated: bool, unique: bool,
) -> Tensor:  # fmt: skip
    """LogSoftmax in f64, and a Loop over the steps, which adds the probabilities of paths by ReduceLogSumExp."""
    targets = as_i64(ctx, labels)
    keep = _steps_below(ctx, targets, label_length)
    if unique:
        keep = ctx.emit("And", keep, _first_of_equal(ctx, targets))
    elif preprocess_collapse_repeated:
        keep = ctx.emit("And", keep, _changes(ctx, targets))
    targets, counts = _to_front(ctx, targets, keep, 0)
    scores = ctx.emit("LogSoftmax", ctx.cast(logits, F64), axis=2)
    states = _with_blanks(ctx, targets, _blank(ctx, logits, blank_index))
    forward = _forward(ctx, scores, as_i64(ctx, logit_length), states, ctc_merge_repeated)
    return ctx.cast(_minus_log_probability(ctx, forward, counts), logits.element)


def _first_of_equal(ctx: ExportContext, values: Tensor) -> Tensor:
    """Whether no value before is equal, of (batch, steps)."""
    same = ctx.cast(ctx.emit("Equal", ctx.unsqueeze(values, 2), ctx.unsqueeze(values, 1)), I64)
    before = ctx.emit("Trilu", same, ctx.constant(-1), upper=0)
    return ctx.emit("Equal", ctx.reduce("ReduceSum", before, [2]), ctx.constant(0))


def _with_blanks(ctx: ExportContext, labels: Tensor, blank: Tensor) -> Tensor:
    """Labels (batch, n) with blanks before, between and after them: (batch, 2 * n + 1)."""
    blanks = ctx.emit("Expand", blank, ctx.emit("Shape", labels))
    pairs = ctx.emit("Concat", ctx.unsqueeze(blanks, 2), ctx.unsqueeze(labels, 2), axis=2)
    flat = ctx.emit(
        "Reshape",
        pairs,
        ctx.emit("Mul", ctx.emit("Shape", labels), ctx.ints(1, 2)),
        allowzero=1 if ctx.opset >= 14 else None,
    )
    first = ctx.emit("Expand", blank, ctx.concat(_batch(ctx, labels), ctx.ints(1)))
    return ctx.emit("Concat", flat, first, axis=1)


def _forward(ctx: ExportContext, scores: Tensor, lengths: Tensor, states: Tensor, merge: bool) -> Tensor:
    """The logarithms of the probabilities of all paths that end in each state (batch, 2 + states).

    Two states come in front, which a path that has begun cannot be in; the second is that before the first step.
    """
    never, zero = ctx.constant(-np.inf, F64), ctx.constant(0, F64)
    count = ctx.reshape(ctx.slice(ctx.emit("Shape", states), 1, 2, 0), [])
    number = ctx.emit("Range", ctx.constant(0), count, ctx.constant(1))
    is_label = ctx.emit("Equal", ctx.emit("Mod", number, ctx.constant(2)), ctx.constant(1))
    stays = zero if merge else ctx.where(is_label, never, zero)
    may_skip = ctx.emit("And", is_label, ctx.emit("Greater", number, ctx.constant(1)))
    if merge:
        shifted = ctx.emit("Pad", states, ctx.ints(0, 2, 0, -2))
        may_skip = ctx.emit("And", may_skip, ctx.emit("Not", ctx.emit("Equal", states, shifted)))
    skips = ctx.where(may_skip, zero, never)
    lead = ctx.emit("Pad", ctx.emit("Expand", zero, ctx.concat(_batch(ctx, states), ctx.ints(1))),
                    ctx.ints(0, 1, 0, 0), never)  # fmt: skip
    rest = ctx.emit("Expand", never, ctx.emit("Shape", states))
    start = ctx.emit("Concat", lead, rest, axis=1)
    steps = ctx.emit("ReduceMax", ctx.emit("Concat", lengths, ctx.ints(0), axis=0), keepdims=0)

    def step(inner: ExportContext, t: Tensor, forward: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        ways = [
            inner.emit("Add", inner.slice(forward, 2, None, 1), stays),
            inner.slice(forward, 1, -1, 1),
            # A path begins with the first blank, or skips it.
            inner.emit("Add", inner.slice(forward, 0, -2, 1), skips),
        ]
        first = inner.where(inner.emit("Equal", t, inner.constant(0)), inner.slice(forward, 1, 2, 1), never)
        ways.append(inner.where(inner.emit("Equal", number, inner.constant(1)), first, never))
        together = inner.emit("Concat", *(inner.unsqueeze(_like(inner, way, states), 0) for way in ways), axis=0)
        own = inner.emit("GatherElements", inner.emit("Gather", scores, t, axis=1), states, axis=1)
        moved = inner.emit("Add", inner.reduce("ReduceLogSumExp", together, [0]), own)
        after = inner.emit("Pad", moved, inner.ints(0, 2, 0, 0), never)
        is_running = inner.unsqueeze(inner.emit("Greater", lengths, t), 1)
        return [inner.where(is_running, after, forward)], []

    (found,), _ = loop(ctx, steps, [start], step)
    return found


def _batch(ctx: ExportContext, data: Tensor) -> Tensor:
    return ctx.slice(ctx.emit("Shape", data), 0, 1, 0)


def _like(ctx: ExportContext, data: Tensor, other: Tensor) -> Tensor:
    return ctx.emit("Expand", data, ctx.emit("Shape", other))


def _minus_log_probability(ctx: ExportContext, forward: Tensor, counts: Tensor) -> Tensor:
    """A path ends with the last label or the blank after it; before any step it is in the second state."""
    count = ctx.unsqueeze(counts, 1)
    last = ctx.emit("Add", ctx.emit("Mul", count, ctx.ints(2)), ctx.ints(1))
    places = ctx.emit("Concat", ctx.emit("Add", last, ctx.ints(1)), last, axis=1)
    ends = ctx.emit("GatherElements", forward, places, axis=1)
    return ctx.emit("Neg", ctx.reduce("ReduceLogSumExp", ends, [1]))
