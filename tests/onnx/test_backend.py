"""The ONNX backend suite: every node test of an operator that the converter translates, converted and run.

The onnx wheel holds the tests as code, not as files; collecting them takes a few seconds, once a session.
"""

from __future__ import annotations

import functools
import re
import warnings
from typing import Any

import numpy as np
import onnx
import pytest

import converters
import irexec
from converters.onnx.tensors import array_of, element_of
from irexec import io
from tests.support.casts import only_defined

# Operators of which every test must pass.
_ALL_OF = ("conv", "convtranspose", "deform_conv")

# Tests whose expected outputs are random values of NumPy: only shapes and types are compared.
_RANDOM = re.compile(r"test_(bernoulli|training_dropout(_default)?(_mask)?$)")
# Two units in the last place of a type that is coarser than the suite's tolerance: expanded functions round after every step.
_COARSE = {"bf16": 1.6e-2, "f16": 2e-3}


@functools.cache
def _cases() -> dict[str, Any]:
    from onnx.backend.test.case import node

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return {case.name: case for case in node.collect_testcases(None)}


def _in_scope(model: onnx.ModelProto) -> bool:
    from converters.onnx.translate import unsupported_nodes

    if any(not info.type.HasField("tensor_type") for info in [*model.graph.input, *model.graph.output]):
        return False
    return not unsupported_nodes(model)


def _why_not(case: Any) -> str | None:
    """Why a test cannot pass, from the types in its model."""
    try:
        for info in [*case.model.graph.input, *case.model.graph.output]:
            element_of(info.type.tensor_type.elem_type)
    except irexec.UnsupportedError as error:
        return str(error)
    return None


def _names() -> list[str]:
    return sorted(name for name, case in _cases().items() if _in_scope(case.model))


def _run(case: Any) -> None:
    inputs, expected = case.data_sets[0]
    read = io.read_text(*io.write_text(converters.convert(case.model)))
    assert [finding for finding in irexec.validate(read) if finding.severity == "error"] == []
    inputs_ = [_carried(port, value) for port, value in zip(irexec.Model.of(read).inputs, inputs, strict=False)]
    results = list(irexec.compile_model(read)(inputs_).values())
    assert len(results) == len(expected)
    kinds = [str(port.element) for port in irexec.Model.of(read).outputs]
    for result, expected_value, element in zip(results, expected, kinds, strict=True):
        expected_value = (
            array_of(expected_value)[0] if isinstance(expected_value, onnx.TensorProto) else np.asarray(expected_value)
        )
        if expected_value.dtype == object or expected_value.dtype.kind in "US":
            np.testing.assert_array_equal(result.astype(str), expected_value.astype(str))
            continue
        typed = (
            expected_value.astype(np.float32)
            if expected_value.dtype.kind == "V" or expected_value.dtype.name not in np.sctypeDict
            else expected_value
        )
        assert result.shape == typed.shape
        if _RANDOM.match(case.name):
            assert result.dtype == typed.dtype
            continue
        kind = result.dtype if result.dtype == np.bool_ else np.float64
        result, typed = only_defined(case.name, element, inputs_[0] if inputs_ else result, result, typed)
        rtol = max(case.rtol, _COARSE.get(element, 0))
        np.testing.assert_allclose(result.astype(kind), typed.astype(kind), rtol=rtol, atol=max(case.atol, 1e-7))


def _carried(port: irexec.Port, value: Any) -> np.ndarray:
    array = array_of(value)[0] if isinstance(value, onnx.TensorProto) else np.asarray(value)
    assert port.element is not None
    return array.astype(str).astype(object) if port.element.kind == "string" else array.astype(port.element.carrier)


@pytest.mark.parametrize("name", _names())
@pytest.mark.sampled(6)
def test_backend(name: str) -> None:
    case = _cases()[name]
    reason = _why_not(case)
    if reason is None:
        _run(case)
        return
    with pytest.raises((irexec.ConversionError, irexec.UnsupportedError)):
        _run(case)


# Operators, by domain, whose tests are left out because the converter has no translation of them, nor of their bodies.
_OUT_OF_SCOPE = {"": {"ImageDecoder"}, "ai.onnx.preview.training": {"Adagrad", "Adam", "Momentum"}}


@pytest.mark.slow
def test_what_is_out_of_scope() -> None:
    """The operators that are left out are listed: a lost translator would otherwise remove its own tests."""
    from converters.onnx.translate import unsupported_nodes

    ours = set(_names())
    models = [case.model for name, case in _cases().items() if name not in ours]
    tensors = [
        m for m in models if all(info.type.HasField("tensor_type") for info in [*m.graph.input, *m.graph.output])
    ]
    operators = {
        re.findall(r"\(ai\.onnx(?:\.(\S+))?\.(\w+) of opset", text)[0]
        for model in tensors
        for text in unsupported_nodes(model)
    }
    assert operators <= {
        (domain.removeprefix("ai.onnx").lstrip("."), name) for domain, names in _OUT_OF_SCOPE.items() for name in names
    }


@pytest.mark.slow
def test_convolutions_are_all_in_scope() -> None:
    expected_value = [
        name
        for name in _cases()
        if any(
            name.startswith(f"test_{prefix}")
            for prefix in ("basic_conv", "conv_", "convtranspose", "basic_deform", "deform_conv", "convinteger")
        )
    ]
    assert set(expected_value) <= set(_names())
