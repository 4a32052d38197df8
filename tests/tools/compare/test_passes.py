"""The passes over pairs and rows: each alone, each left out, and what they say that they changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest

from irexec import Model
from irexec.ir.graph import Value
from irexec.tools.compare import CompareOptions, blame, pairing
from irexec.tools.compare.evidence import Evidence
from irexec.tools.compare.pairing import PASSES, Pass, corrected
from irexec.tools.compare.pairs import Pairs, TensorPair, first_pairs
from irexec.tools.compare.rows import Rows, compared
from irexec.tools.compare.run import PASSES as ROW_PASSES
from irexec.tools.compare.run import compared_models
from irexec.tools.observing.alone import Alone
from irexec.tools.observing.observe import Observed
from irexec.tools.observing.sides import ModelSide
from irexec.tools.run.input_sources import GivenInputs
from tests.tools.compare.models import W2, chain, changed
from tests.tools.compare.test_evidence import channels, folded, scaled

X = np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32)


@contextmanager
def opened(
    a: Model, b: Model, options: CompareOptions | None = None, x: np.ndarray = X
) -> Iterator[tuple[Evidence, Pairs]]:
    """The evidence of two models with an input, and their first pairs."""
    with ExitStack() as stack:
        evidence = compared_models(stack, a, b, GivenInputs((), [{"x": x}]), options or CompareOptions()).evidence
        assert isinstance(evidence.a, ModelSide)
        yield evidence, first_pairs(evidence.a, evidence.b, ())


def names(pairs: Pairs) -> dict[str, str]:
    return {pair.b.name: pair.a if isinstance(pair.a, str) else pair.a.name for pair in pairs.tensors}


def test_a_pass_says_what_it_changed_and_changes_nothing_else() -> None:
    with opened(channels(last=False), channels(last=True, fault=True)) as (evidence, pairs):
        before = (pairs.tensors, dict(pairs.by_b), pairs.uncompared)
        made, changes = corrected(evidence, pairs, [pairing.by_values_in_another_order])
        (change,) = changes
        assert change.name == "by_values_in_another_order"
        assert "paired" in change.text and "times = n1 (value)" in change.text
        assert names(made)["n1"] == "times" and made.orders
        assert (pairs.tensors, dict(pairs.by_b), pairs.uncompared) == before
        assert corrected(evidence, made, [pairing.by_values_in_another_order])[1] == ()


@pytest.mark.parametrize("left_out", PASSES, ids=lambda one: one.__name__)
def test_every_pass_can_be_left_out(left_out: Pass) -> None:
    """Without the pass for another order of axes, the tensor is compared with no tensor of its own values."""
    with opened(channels(last=False), channels(last=True, fault=True)) as (evidence, pairs):
        made, changes = corrected(evidence, pairs, [one for one in PASSES if one is not left_out])
        assert left_out.__name__ not in [change.name for change in changes]
        is_needed = left_out is pairing.by_values_in_another_order
        assert (names(made).get("n1") == "times") is not is_needed


def test_wrong_guesses_are_dropped_and_listed() -> None:
    """A scale that is folded into weights: the product before it has no partner."""
    with opened(scaled(), folded()) as (evidence, pairs):
        rows = compared(evidence, pairs)
        assert not rows.agree
        made, _ = corrected(evidence, pairs, [pairing.without_wrong_guesses])
        dropped = names(pairs).keys() - names(made).keys()
        assert dropped and compared(evidence, made).agree
        assert dropped <= {one.name for one in made.uncompared if one.side == "B"}


def test_no_pass_corrects_pairs_where_all_guesses_count() -> None:
    with opened(scaled(), folded(), CompareOptions(strict=True)) as (evidence, pairs):
        assert corrected(evidence, pairs)[1] == ()


def test_rows_and_trials_are_made_once_for_what_they_rest_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    original = Alone.observed_each

    def counting(self: Alone, values: Sequence[Value], *rest: Any) -> Observed:
        asked.append(len(values))
        return original(self, values, *rest)

    monkeypatch.setattr(Alone, "observed_each", counting)
    with opened(chain(), chain(w2=changed(W2)), x=X.reshape(-1)[:24].reshape(4, 6)) as (evidence, pairs):
        del asked[:]
        rows = compared(evidence, pairs)
        assert compared(evidence, pairs).found == rows.found
        first = blame.trials(evidence, rows, rows.found)
        assert first and blame.trials(evidence, rows, rows.found) == first
        count = sum(asked)
        # Another partner of an input is another basis.
        two = next(value for value in pairs.by_b if value.name == "two")
        relu = next(value for value in pairs.by_b if value.name == "relu")
        other = pairs.with_others([TensorPair(pairs.by_b[two], relu, "value")], evidence.b.positions)
        blame.trials(evidence, compared(evidence, other), rows.found)
        assert sum(asked) > count


@pytest.mark.parametrize("one", ROW_PASSES, ids=lambda one: one.__name__)
def test_a_pass_over_rows_returns_other_rows(one: Callable[[Evidence, Rows], Rows]) -> None:
    with opened(folded(), folded("weight0")) as (evidence, pairs):
        rows = compared(evidence, pairs)
        before = rows.found
        made = one(evidence, rows)
        assert rows.found is before and [found.value for found in made.found] == [found.value for found in before]
        told = [found.row.follows for found in made.found]
        assert (True in told and False in told) is (one is blame.without_followers)
