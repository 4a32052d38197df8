"""Long sequences are judged step by step, from the hidden states that an array holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irexec.bounds import ARITHMETICS, Interval
from irexec.testing import Case, case
from irexec.testing.laws import kernel, read_only
from tests.bounds.rows import row_bounds

_STEPS, _SIZE, _FEATURES = 50, 24, 10
_GATES = {"LSTMSequence": 4, "GRUSequence": 3, "RNNSequence": 1}


def _row(type: str, bias: float = 1.0) -> Case:
    rng = np.random.default_rng(1)

    def array(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (rng.standard_normal(shape) * scale).astype(np.float32)

    rows = _GATES[type] * _SIZE
    states = [array(2, 2, _SIZE) for _ in range(2 if type.startswith("LSTM") else 1)]
    weights = (array(2, rows, _FEATURES, scale=0.3), array(2, rows, _SIZE, scale=0.3))
    more: dict[str, Any] = {"hidden_size": _SIZE, "direction": "bidirectional"}
    lengths = np.array([_STEPS, _STEPS - 9], np.int32)
    offset = array(2, rows) * np.float32(bias)
    return case(type, 5, array(2, _STEPS, _FEATURES), *states, lengths, *weights, offset, id="a", **more)


@pytest.mark.parametrize("name", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("type", _GATES)
def test_a_state_that_does_not_follow_from_the_one_before_is_outside(type: str, name: str) -> None:
    row, of = _row(type), ARITHMETICS[name]
    bound = row_bounds(row, of)[0]
    assert isinstance(bound, Interval)
    right = kernel(row, read_only(row))[0]
    rounded = of.nearest(right)
    assert not bound.outside(right).any()
    assert not bound.outside(rounded).any()
    wrong = right.copy()
    wrong[0, 0, 30, 5] += 0.4
    outside = bound.outside(wrong)
    assert outside[0, 0, 30, 5]
    assert not outside[0, 0, :30].any() and not outside[1].any() and not outside[0, 1].any()


@pytest.mark.parametrize("type", _GATES)
def test_a_sequence_without_its_bias_is_outside(type: str) -> None:
    bound = row_bounds(_row(type), ARITHMETICS["f32"])[0]
    assert isinstance(bound, Interval)
    other = _row(type, 0.99)
    outside = bound.outside(kernel(other, read_only(other))[0])
    assert outside[0].mean() > 0.9
    assert not outside[1, 0, _STEPS - 9 :].any()
