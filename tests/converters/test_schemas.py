"""The translators of every version of every operator have the attributes, defaults and inputs of ONNX's schema."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import defs, helper

from converters.onnx import reference
from converters.onnx.load import NEWEST_OPSET
from converters.onnx.registry import find, operators
from tests.support.onnx_models import model_of

SCHEMAS = [
    s
    for s in defs.get_all_schemas_with_history()
    if s.domain == "" and ("", s.name) in operators() and not s.deprecated
]
# Attributes for training, or for the memory of old runtimes.
IGNORED = {"consumed_inputs"}
# Attributes that are not required in the schema, but without which nothing can be computed.
NEEDED = {("LpPool", "kernel_shape"), ("Reshape", "shape")}
# Infinities in place of the largest values of f32; opset 20 renamed the mode "bilinear".
OTHER_DEFAULTS = {("Clip", "min"), ("Clip", "max"), ("GridSample", "mode")}


def test_onnx_knows_no_newer_opset() -> None:
    assert defs.onnx_opset_version() <= NEWEST_OPSET


@pytest.mark.parametrize("schema", SCHEMAS, ids=[f"{s.name}-{s.since_version}" for s in SCHEMAS])
def test_translation_follows_the_schema(schema: defs.OpSchema) -> None:
    found = find(schema.name, "", schema.since_version)
    assert found is not None
    for name in set(schema.attributes) - IGNORED:
        assert schema.attributes[name].type.name in found.attributes[name]
    needed = {
        name for name, attribute in schema.attributes.items() if attribute.required or (schema.name, name) in NEEDED
    }
    assert found.required <= needed
    maximum = None if schema.max_input > 1000 else schema.max_input
    if found.max_inputs is not None:
        assert maximum is not None
        assert found.max_inputs >= maximum
    assert found.min_inputs <= schema.min_input


@pytest.mark.parametrize("schema", SCHEMAS, ids=[f"{s.name}-{s.since_version}" for s in SCHEMAS])
def test_defaults_are_those_of_the_schema(schema: defs.OpSchema) -> None:
    found = find(schema.name, "", schema.since_version)
    assert found is not None
    defaults = {p.name: p.default for p in inspect.signature(found.function).parameters.values()}
    defaults |= {field.name: field.default for group in found.groups.values() for field in fields(group)}
    for name, attribute in schema.attributes.items():
        if name in IGNORED or not attribute.default_value.name:
            continue
        default = helper.get_attribute_value(attribute.default_value)
        default = default.decode() if isinstance(default, bytes) else default
        ours = defaults[name]
        if ours is None or (schema.name, name) in OTHER_DEFAULTS or default == "foward":
            continue
        assert ours == pytest.approx(default) if isinstance(default, float) else ours == default


# ONNX Runtime writes LayerNormalization into models of older opsets, ONNX had some operators on trial before, and
# OpenVINO has a Swish of its own.
OLDER = {"LayerNormalization", "ThresholdedRelu", "MeanVarianceNormalization", "Swish"}


@pytest.mark.parametrize("name", sorted({s.name for s in SCHEMAS}))
def test_no_translation_is_older_than_its_operator(name: str) -> None:
    first = min(s.since_version for s in defs.get_all_schemas_with_history() if s.domain == "" and s.name == name)
    assert find(name, "", first - 1) is None or name in OLDER


# Running ONNX models beside the IR.


@pytest.mark.parametrize(
    ("type", "expected"), [("Softmax", 0.25), ("LogSoftmax", np.log(0.25)), ("Hardmax", [[[1.0], [0]], [[0], [0]]])]
)
def test_the_reference_flattens_as_old_opsets_do(type: str, expected: object, tmp_path: Path) -> None:
    """Softmax-11 and its like are over all axes from 1 on: here four equal values."""
    onnx.save(model_of(f"(float[1,2,2,1] x) => (float[1,2,2,1] y) {{ y = {type}(x) }}", 11), tmp_path / "m.onnx")
    (result,) = reference.open_evaluator(tmp_path / "m.onnx")({"x": np.ones((1, 2, 2, 1), np.float32)})
    np.testing.assert_allclose(result, np.broadcast_to(np.float32(expected), (1, 2, 2, 1)), rtol=1e-6)
