"""Random models of connectionist temporal classification."""

from __future__ import annotations

import numpy as np

from tests.oracle.draw import Draw, Table, model
from tests.support.cases import Case, typed

DRAWS = Table()


@DRAWS.row(("CTCGreedyDecoder", 1))
def greedy(d: Draw, type: str, since: int) -> Case:
    steps, batch, classes = d.size(1, 9), d.size(1, 4), d.size(2, 5)
    kind = d.pick("f32", "f32", "f16")
    mask = np.arange(steps)[:, None] < d.rng.integers(0, steps + 1, batch)
    return model(type, since, d.distinct([steps, batch, classes], kind), typed(kind, mask), ctc_merge_repeated=d.pick(True, False))


@DRAWS.row(("CTCGreedyDecoderSeqLen", 6))
def greedy_lengths(d: Draw, type: str, since: int) -> Case:
    batch, steps, classes = d.size(1, 4), d.size(1, 9), d.size(2, 5)
    kind = d.pick("i32", "i64")
    blank = typed(kind, d.pick(d.size(0, classes - 1), [d.size(0, classes - 1)])) if d.chance() else None
    return model(
        type, since, d.distinct([batch, steps, classes], d.pick("f32", "f16")), d.tensor([batch], kind, 0, steps), blank,
        merge_repeated=d.pick(True, False), classes_index_type=d.pick("i32", "i64"), sequence_length_type=d.pick("i32", "i64"),
    )  # fmt: skip


@DRAWS.row(("CTCLoss", 4))
def loss(d: Draw, type: str, since: int) -> Case:
    """Sequences of at least one step and one label: the plugin reads beside its memory otherwise."""
    batch, steps, classes = d.size(1, 3), d.size(1, 8), d.size(2, 5)
    kind, last = d.pick("i32", "i64"), classes - 1
    lengths = d.rng.integers(1, steps + 1, batch)
    counts = [d.size(1, int(length)) for length in lengths]
    blank = typed(kind, last) if d.chance() else None
    return model(
        type, since, d.tensor([batch, steps, classes], d.pick("f32", "f16"), -3, 3), typed(kind, lengths),
        typed(kind, d.rng.integers(0, last, (batch, steps))), typed(kind, counts), blank,
        preprocess_collapse_repeated=d.chance(), ctc_merge_repeated=d.chance(), unique=d.chance(),
    )  # fmt: skip
