"""Operators that the backend suite lacks: converted, written, read and run, against recorded results of their runtimes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import converters
import irexec
from irexec import io
from irexec.ir.dims import ANY
from tests.onnx.rows import ROWS as NUMERIC_ROWS
from tests.onnx.rows import STRING_ROWS, Row
from tests.onnx.runtime_rows import RUNTIME_ROWS
from tests.support.tiers import some

ROWS = [*NUMERIC_ROWS, *STRING_ROWS, *RUNTIME_ROWS]
_GOLDENS = np.load(Path(__file__).parent.parent / "data" / "onnx_rows.npz")


def test_ids_are_unique() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
@pytest.mark.parametrize("optimize", some([False, True], [True]), ids=["reference", "fast"])
def test_row(row: Row, optimize: bool) -> None:
    read = io.read_text(*io.write_text(converters.convert(row.model())))
    assert [finding for finding in irexec.validate(read) if finding.severity == "error"] == []
    _compare(row, irexec.compile_model(read, optimize=optimize)(row.feeds))


# Part of every message about a size that an operator needs to be translated.
_UNKNOWN = "known"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
@pytest.mark.sampled(12)
def test_row_of_unknown_sizes(row: Row) -> None:
    """With all input sizes dynamic the results are the same, or the message says which size must be known."""
    model = row.model()
    inputs = {info.name: tuple(ANY for _ in info.type.tensor_type.shape.dim) for info in model.graph.input}
    try:
        converted = converters.convert(model, inputs=inputs)
    except irexec.ConversionError as error:
        assert re.search(_UNKNOWN, str(error)), error
        return
    _compare(row, irexec.compile_model(converted)(row.feeds))


def _compare(row: Row, results: irexec.Outputs) -> None:
    names = [f"y{i}" for i, reference in enumerate(row.outputs) if reference]
    assert len(results) == len(names)
    for name, result in zip(names[: row.compared], results.values(), strict=False):
        expected = _GOLDENS[f"{row.id}|{name}"]
        if expected.dtype.kind == "U":
            assert result.tolist() == expected.tolist()
            continue
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        kind = np.bool_ if expected.dtype == np.bool_ else np.float64
        np.testing.assert_allclose(result.astype(kind), expected.astype(kind), rtol=1e-4, atol=row.tolerance)
