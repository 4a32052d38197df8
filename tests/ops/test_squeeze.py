"""What no row can show: a size that is not known is taken for 1, and then is not."""

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.dtypes.elements import F32
from irexec.ir.dims import ANY


@pytest.mark.parametrize("since", [1, 15])
@pytest.mark.parametrize("rows", [1, 3])
def test_an_axis_of_another_size_stays(since: int, rows: int) -> None:
    builder = Builder("squeeze")
    data = builder.parameter(F32, (ANY, 2), "data")
    squeezed = builder.emit("Squeeze", data, np.array([0]), version=since)
    assert builder.fact(squeezed).shape == (2,)
    builder.result(squeezed)
    array = np.zeros((rows, 2), np.float32)
    assert irexec.compile_model(builder.model())([array])[0].shape == ((2,) if rows == 1 else (3, 2))
