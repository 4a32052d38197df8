"""Remarks that the sweep accepts for a difference of values."""

from __future__ import annotations

from irexec import Model, opset
from irexec.authoring.downgrade import downgrade
from tests.release_sweep.sweep import _excuses


def test_a_remark_that_says_a_failure_is_not_an_excuse() -> None:
    data, k = opset.parameter("8", "f32", "data"), opset.parameter([], "i32", "k")
    found = downgrade(Model([opset.topk(data, k, axis=0, mode="max", sort="value")[0]], [data, k]), "2023.3")
    assert any("fails for a k of 0" in remark.message for remark in found.remarks)
    assert _excuses(found) == ""


def test_a_remark_of_other_values_is_an_excuse_for_what_depends_on_it() -> None:
    data, indices = opset.parameter("8", "f32", "data"), opset.parameter("2,1", "i32", "indices")
    found = downgrade(Model([opset.gather_nd(data, indices)], [data, indices]), "2023.3")
    assert _excuses(found) == "IR907"
    # The same remarks of a model whose output does not read the layer.
    result = found.model.results[0]
    result.ports[0].source = found.model.parameters[0].outputs[0]
    assert _excuses(found) == ""
