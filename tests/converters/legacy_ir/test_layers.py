"""Each layer type: the file of one layer runs and gives what NumPy gives; validate finds nothing in it."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from tests.converters.legacy_ir import (
    convolution_rows,
    detection_rows,
    elementwise_rows,
    normalization_rows,
    recurrence_rows,
    shape_rows,
)
from tests.converters.legacy_ir.rows import Row

ROWS: list[Row] = [
    *convolution_rows.ROWS,
    *elementwise_rows.ROWS,
    *shape_rows.ROWS,
    *normalization_rows.ROWS,
    *recurrence_rows.ROWS,
    *detection_rows.ROWS,
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.type}: {row.name}")
def test_a_layer_gives_its_values(row: Row) -> None:
    file, inputs = row.file()
    model = irexec.read_model(file.text, file.data)
    assert [finding for finding in irexec.validate(model) if finding.severity != "info"] == []
    outputs = irexec.infer(model, inputs)
    names = ["y"] if len(row.gives) == 1 else [f"y.{index}" for index in range(len(row.gives))]
    for name, expected in zip(names, row.gives, strict=True):
        assert outputs[name].shape == expected.shape
        np.testing.assert_allclose(outputs[name], expected, rtol=1e-4, atol=1e-5)
