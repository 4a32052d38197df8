"""A sample of the sweep, against the recorded answers of ONNX Runtime or of the references."""

from __future__ import annotations

import pytest

import converters
import irexec
from irexec.ir.dims import ANY
from tests.contrib_sweep.case import Arrays
from tests.contrib_sweep.record import SAMPLE, recorded
from tests.contrib_sweep.sweep import DRAWS, converted_answer, difference, digest, drawn

_ANSWERS = recorded()


def test_each_operator_has_answers() -> None:
    counts = dict.fromkeys(DRAWS, 0)
    for name, _, _ in _ANSWERS:
        counts[name] += 1
    assert {name: count for name, count in counts.items() if count != SAMPLE} == {}


@pytest.mark.parametrize("key", _ANSWERS, ids=lambda key: f"{key[0]} {key[1]}")
def test_recorded_case(key: tuple[str, int, str]) -> None:
    name, number, asked = key
    case = drawn(name, number)
    assert digest(case) == asked, "the case has changed: run python -m tests.contrib_sweep.record"
    model, results = converted_answer(case)
    assert [str(finding) for finding in irexec.validate(model) if finding.severity == "error"] == []
    expected: Arrays = _ANSWERS[key]
    assert difference(case, results, expected) == ""


@pytest.mark.parametrize("key", _ANSWERS, ids=lambda key: f"{key[0]} {key[1]}")
@pytest.mark.sampled(2)
def test_case_of_unknown_sizes(key: tuple[str, int, str]) -> None:
    """With all input sizes dynamic the results are the same, or the message says which size must be known."""
    case = drawn(key[0], key[1])
    model = case.row.model()
    inputs = {info.name: tuple(ANY for _ in info.type.tensor_type.shape.dim) for info in model.graph.input}
    try:
        converted = converters.convert(model, inputs=inputs)
    except irexec.ConversionError as error:
        assert "known" in str(error), error
        return
    results = list(irexec.compile_model(converted)(case.row.feeds).values())
    assert difference(case, results, _ANSWERS[key]) == ""
