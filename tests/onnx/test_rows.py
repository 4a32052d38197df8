"""The rows of operators that the suite lacks, ONNX to IR text to numbers, beside ONNX Runtime's recorded answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import converters
import irexec
from irexec import io
from tests.onnx.rows import ROWS, Row

_GOLDENS = np.load(Path(__file__).parent.parent / "data" / "onnx_rows.npz")


def test_ids_are_unique() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
@pytest.mark.parametrize("optimize", [False, True], ids=["plain", "fast"])
def test_row(row: Row, optimize: bool) -> None:
    read = io.read_text(*io.write_text(converters.convert(row.model())))
    assert [finding for finding in irexec.validate(read) if finding.severity == "error"] == []
    results = irexec.compile_model(read, optimize=optimize)(row.fed)
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
