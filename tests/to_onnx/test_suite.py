"""A sample of the ONNX suite from ONNX to IR to ONNX; ``python -m tests.to_onnx.suite`` runs all of it."""

from __future__ import annotations

import functools

import pytest

from irexec.errors import ConversionError
from tests.to_onnx.suite import Case, file_tests, node_tests, outcome

_EVERY = 12


@functools.cache
def _tests() -> list[Case]:
    return [*list(node_tests())[::_EVERY], *list(file_tests())[::_EVERY]]


@pytest.mark.slow
def test_the_sample_survives() -> None:
    broken = []
    for test in _tests():
        try:
            outcome(test)
        except Exception as error:
            # Runtimes, the checker and the comparison raise classes of their own.
            broken.append(f"{test.name}: {error!r:.300}")
    refused = ("the rank of output", "the axes are computed when the model runs")
    assert not [line for line in broken if not any(text in line for text in refused)]


def test_an_output_of_unknown_rank_is_refused() -> None:
    """Its rank depends on the elements of an input, and ONNX needs it; the IR has forgotten what the model declared."""
    test = next(test for test in node_tests() if test.name == "test_reduce_log_sum_asc_axes")
    with pytest.raises(ConversionError, match="the rank of output 'reduced' is not known"):
        outcome(test)
