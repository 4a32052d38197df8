"""Bounds have power: faults planted in the results of rows lie outside, and other implementations inside."""

from __future__ import annotations

import pytest

from irexec.conformance.running import cases
from irexec.testing.random_cases import random_cases
from tests.bounds.opponents import Opponents, Tally, judge

_FAMILIES = {
    "deformable convolution": ("DeformableConvolution",),
    "normalization": ("MVN", "GroupNormalization", "NormalizeL2", "GRN", "LRN", "BatchNormInference"),
    "attention": ("ScaledDotProductAttention", "Softmax", "LogSoftmax"),
    "recurrence": ("LSTMCell", "GRUCell", "RNNCell", "LSTMSequence", "GRUSequence", "RNNSequence"),
    "quantization": ("FakeQuantize", "FakeConvert"),
    "resampling": ("Interpolate", "GridSample"),
    "transforms": ("DFT", "IDFT", "RDFT", "IRDFT", "STFT", "ISTFT"),
    "gathering": ("Einsum", "EmbeddingBagOffsetsSum", "EmbeddingSegmentsSum", "EmbeddingBagPacked", "SegmentMax",
                  "ScatterUpdate", "ScatterElementsUpdate", "ScatterNDUpdate"),
    "functions": ("Swish", "Power", "Tan", "Cosh", "ErfInv", "Mod", "FloorMod", "Round", "ReduceL2", "ReduceProd"),
}  # fmt: skip


@pytest.mark.parametrize("family", _FAMILIES)
def test_planted_faults_are_outside_and_other_arithmetics_inside(family: str) -> None:
    tally = Tally()
    pairs = [pair for pair in sorted(random_cases()) if pair[0] in _FAMILIES[family]]
    assert {type for type, _ in pairs} == set(_FAMILIES[family])
    for row in cases(pairs, 100, 6):
        judge(row, Opponents(["reference", "emulated", "half"]), tally)
    assert not [verdict for verdict in tally.verdicts if "outside" in verdict]
    assert tally.found.total() >= 0.95 * tally.planted.total() > 20
