"""Random graphs: the table of coverage, the choice of kernels, and the arrays beside a graph."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.backend import linear
from irexec.errors import OpError
from irexec.runtime.compiled_model import CompiledModel
from tests.graphs.choices import any_kernels, short_blocks
from tests.graphs.growth import Growth
from tests.graphs.kinds import KINDS
from tests.graphs.making import Made, make
from tests.graphs.statistics import Coverage


def _product() -> irexec.Model:
    builder = Builder("product")
    x = builder.parameter("f32", [4, 8], "x")
    builder.result(builder.emit("MatMul", x, np.ones((8, 6), np.float32)))
    return builder.model()


@pytest.mark.slow
def test_the_table_names_what_comes_up_and_what_does_not() -> None:
    coverage = Coverage()
    for seed in range(3):
        coverage.add(make(seed), seed)
    lines = list(coverage.lines(every=True))
    assert lines[0] == "3 graphs"
    topics = [line.strip().partition(":")[0] for line in lines if line.startswith("\n")]
    assert topics == list(Coverage.known())
    for topic in ("operation versions", "element types", "kernel classes", "kinds of graphs"):
        assert 0 < len(coverage.counts[topic]) <= len(Coverage.known()[topic])
        assert set(coverage.counts[topic]) <= set(Coverage.known()[topic])
    assert sum(line.startswith("   none") for line in lines) >= 3


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("a size of 0", False),
        ("a constant as the second operand", True),
        ("a constant as the first operand", False),
        ("a Loop", False),
    ],
)
def test_kinds(name: str, holds: bool) -> None:
    assert KINDS[name](Made(_product(), [[np.ones((4, 8), np.float32)]])) is holds


def test_kernels_are_chosen_at_random() -> None:
    def algorithms() -> str:
        return " ".join(step.algorithm for step in CompiledModel(_product(), threads=1).plan.steps)

    found = set()
    for seed in range(20):
        with any_kernels(seed):
            found.add(algorithms())
    assert len(found) > 1
    assert len({algorithms() for _ in range(3)}) == 1


def test_blocks_are_short_while_the_context_lasts() -> None:
    limits = []
    for seed in (1, 2):
        with short_blocks(seed):
            limits.append(linear._DIRECT_LIMIT)
    assert max(limits) < linear._DIRECT_LIMIT
    assert limits[0] != limits[1]


# Steps of a random graph: the arrays beside the graph are those of its operations.


def test_an_absent_input_before_the_last_is_refused() -> None:
    """It would not be clear which input the next one is."""
    g = Growth(np.random.default_rng(0))
    data = g.constant(np.float32([[1], [2]]), "f32")
    indices = g.constant(np.array([0, 1]), "i64")
    with pytest.raises(OpError, match="lacks an input before its last"):
        g.one("EmbeddingSegmentsSum", data, indices, indices, g.constant_i64(2), None, data)


def test_trailing_inputs_may_be_absent() -> None:
    g = Growth(np.random.default_rng(0))
    made = g.one("Swish", g.constant(np.float32([0, 100]), "f32"), None)
    assert made.array.tolist() == [0, 100]
