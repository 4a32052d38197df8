"""The lowest values of element types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from irexec.dtypes.elements import ELEMENTS, element, lowest


@pytest.mark.parametrize("one", [one for one in ELEMENTS if one.extension is not None], ids=str)
def test_it_is_that_of_ml_dtypes(one: object) -> None:
    kind = element(str(one))
    dtype = np.dtype(getattr(ml_dtypes, kind.extension)) if hasattr(ml_dtypes, kind.extension or "") else None
    if dtype is None:
        pytest.skip("ml_dtypes does not have it")
    limits = ml_dtypes.finfo(dtype) if kind.is_float else ml_dtypes.iinfo(dtype)
    assert lowest(kind) == float(limits.min)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("f16", -65504),
        ("f32", float(np.finfo(np.float32).min)),
        ("i8", -128),
        ("u8", 0),
        ("i64", -(2**63)),
        ("u3", 0),
        ("nf4", -1),
    ],
)
def test_others(name: str, value: float) -> None:
    assert lowest(element(name)) == value
