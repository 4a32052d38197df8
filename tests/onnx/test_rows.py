"""The rows of operators that the suite lacks, ONNX to IR text to numbers, beside ONNX Runtime's recorded answers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import converters
import irexec
from irexec import io
from irexec.ir.dims import ANY
from tests.onnx.rows import ROWS, Row

_GOLDENS = np.load(Path(__file__).parent.parent / "data" / "onnx_rows.npz")


def test_ids_are_unique() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
@pytest.mark.parametrize("optimize", [False, True], ids=["plain", "fast"])
def test_row(row: Row, optimize: bool) -> None:
    read = io.read_text(*io.write_text(converters.convert(row.model())))
    assert [finding for finding in irexec.validate(read) if finding.severity == "error"] == []
    _compare(row, irexec.compile_model(read, optimize=optimize)(row.fed))


# What is said of a size without which an operator cannot be translated.
_UNKNOWN = "known|neither 1 nor 2 numbers"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_row_of_unknown_sizes(row: Row) -> None:
    """With no size of any input known the results are the same, unless one is needed, which is then said."""
    model = row.model()
    inputs = {info.name: tuple(ANY for _ in info.type.tensor_type.shape.dim) for info in model.graph.input}
    try:
        converted = converters.convert(model, inputs=inputs)
    except irexec.ConversionError as error:
        assert re.search(_UNKNOWN, str(error)), error
        return
    _compare(row, irexec.compile_model(converted)(row.fed))


def _compare(row: Row, results: irexec.Outputs) -> None:
    names = [f"y{i}" for i, wanted in enumerate(row.outputs) if wanted]
    assert len(results) == len(names)
    for name, result in zip(names[: row.compared], results.values(), strict=False):
        expected = _GOLDENS[f"{row.id}|{name}"]
        if expected.dtype.kind == "U":
            assert result.tolist() == expected.tolist()
            continue
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        kind = np.bool_ if expected.dtype == np.bool_ else np.float64
        np.testing.assert_allclose(result.astype(kind), expected.astype(kind), rtol=1e-4, atol=row.tolerance)
