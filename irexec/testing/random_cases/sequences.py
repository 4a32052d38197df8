"""Random models of connectionist temporal classification."""

from __future__ import annotations

import numpy as np

from irexec.testing import Case, typed
from irexec.testing.case_generator import CaseGenerator, Table, model

RANDOM_CASES = Table()


@RANDOM_CASES.row(("CTCGreedyDecoder", 1))
def greedy(gen: CaseGenerator, type: str, since: int) -> Case:
    steps, batch, classes = gen.size(1, 9), gen.size(1, 4), gen.size(2, 5)
    kind = gen.pick("f32", "f32", "f16")
    mask = np.arange(steps)[:, None] < gen.rng.integers(0, steps + 1, batch)
    return model(
        type,
        since,
        gen.distinct([steps, batch, classes], kind),
        typed(kind, mask),
        ctc_merge_repeated=gen.pick(True, False),
    )


@RANDOM_CASES.row(("CTCGreedyDecoderSeqLen", 6))
def greedy_lengths(gen: CaseGenerator, type: str, since: int) -> Case:
    batch, steps, classes = gen.size(1, 4), gen.size(1, 9), gen.size(2, 5)
    kind = gen.pick("i32", "i64")
    blank = typed(kind, gen.pick(gen.size(0, classes - 1), [gen.size(0, classes - 1)])) if gen.chance() else None
    return model(
        type,
        since,
        gen.distinct([batch, steps, classes], gen.pick("f32", "f16")),
        gen.tensor([batch], kind, 0, steps),
        blank,
        merge_repeated=gen.pick(True, False),
        classes_index_type=gen.pick("i32", "i64"),
        sequence_length_type=gen.pick("i32", "i64"),
    )


@RANDOM_CASES.row(("CTCLoss", 4))
def loss(gen: CaseGenerator, type: str, since: int) -> Case:
    """Sequences of at least one step and one label: the plugin reads beside its memory otherwise."""
    batch, steps, classes = gen.size(1, 3), gen.size(1, 8), gen.size(2, 5)
    kind, last = gen.pick("i32", "i64"), classes - 1
    lengths = gen.rng.integers(1, steps + 1, batch)
    counts = [gen.size(1, int(length)) for length in lengths]
    blank = typed(kind, last) if gen.chance() else None
    return model(
        type,
        since,
        gen.tensor([batch, steps, classes], gen.pick("f32", "f16"), -3, 3),
        typed(kind, lengths),
        typed(kind, gen.rng.integers(0, last, (batch, steps))),
        typed(kind, counts),
        blank,
        preprocess_collapse_repeated=gen.chance(),
        ctc_merge_repeated=gen.chance(),
        unique=gen.chance(),
    )
