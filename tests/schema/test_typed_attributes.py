"""Attributes that have their type already: the builder stores them beside their texts, and nothing parses the texts."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import irexec
from irexec.analysis.attributes import typed_attributes
from irexec.errors import NodeError
from irexec.schema import attributes
from irexec.schema.attributes import write_attribute
from irexec.schema.registry import resolve
from irexec.testing import Case
from tests.support.cases import families

_TEXTS = {
    (row.type, row.since): row.attributes for rows in families().values() for row in rows if isinstance(row, Case)
}


@pytest.mark.parametrize("operation", _TEXTS, ids=lambda operation: f"{operation[0]}-{operation[1]}")
def test_values_are_what_their_texts_are_read_as(operation: tuple[str, int | str]) -> None:
    type, since = operation
    definition = resolve(type, f"opset{since}" if isinstance(since, int) else since)
    typed = definition.ungrouped(definition.parse(_TEXTS[operation]).require())
    values = {a.name: typed[a.parameter] for a in definition.attributes if typed.get(a.parameter) is not None}
    texts = {name: write_attribute(value) for name, value in values.items()}
    assert definition.parse(values) == definition.parse(texts)


def test_the_builder_parses_no_text() -> None:
    builder = irexec.Builder()
    x = builder.parameter("f32", (1, 3, 8, 8), "x")
    unread = mock.Mock(side_effect=AssertionError("a text is parsed"))
    with mock.patch.object(attributes, "_integer_of_any_size", unread):
        y = builder.emit("MaxPool", x, version=1, kernel=(2, 2), strides=[2, 2], pads_begin=(0, 0), pads_end=(0, 0))
        (windows,) = typed_attributes(y.node, resolve("MaxPool", "opset1")).values.values()
    assert (windows.kernel, windows.strides) == ((2, 2), (2, 2))
    assert y.node.attributes["strides"] == "2, 2"


# The value that is given, and the value that its text has in IR: a float of NumPy is written with its own digits.
@pytest.mark.parametrize(
    ("given", "text", "expected"),
    [(6, "6", 6.0), (np.float32(0.1), "0.1", 0.1), ("1e2", "1e2", 100.0), (-0.0, "0", 0.0), (6.5, "6.5", 6.5)],
)
def test_a_value_of_another_type_is_read_as_its_text(given: object, text: str, expected: float) -> None:
    builder = irexec.Builder()
    node = builder.emit("Clamp", builder.parameter("f32", (2,), "x"), min=given, max=1000.0).node
    value = typed_attributes(node, resolve("Clamp", "opset1")).values["min"]
    assert node.attributes["min"] == text
    assert (value, np.signbit(value)) == (expected, False)


@pytest.mark.parametrize(
    ("type", "wrong", "message"),
    [
        ("Softmax", {"axis": True}, "attribute 'axis': 'true' is not an integer"),
        ("Softmax", {"axis": 1.5}, "attribute 'axis': '1.5' is not an integer"),
        ("Softmax", {"axis": 1 << 70}, "attribute 'axis': '1180591620717411303424' is not an integer of 64 bits"),
        ("Elu", {"alpha": "much"}, "attribute 'alpha': 'much' is not a number"),
        ("Gelu", {"approximation_mode": "exact"}, "attribute 'approximation_mode': 'exact' is not one of erf, tanh"),
    ],
)
def test_a_wrong_value_is_refused(type: str, wrong: dict[str, object], message: str) -> None:
    builder = irexec.Builder()
    x = builder.parameter("f32", (2, 3), "x")
    with pytest.raises(NodeError) as refused:
        builder.emit(type, x, **wrong)
    assert message in str(refused.value)
    assert len(builder.graph.nodes) == 1
