"""What no row can show: a size that is not known is assumed to be 1, and then is not."""

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.dtypes.elements import F32
from irexec.errors import NodeError
from irexec.ir.dims import ANY


def _squeezed(since: int, optimize: bool) -> irexec.CompiledModel:
    builder = Builder("squeeze")
    data = builder.parameter(F32, (ANY, 2), "data")
    squeezed = builder.emit("Squeeze", data, np.array([0]), version=since)
    assert builder.fact(squeezed).shape == (2,)
    builder.result(squeezed)
    return irexec.compile_model(builder.model(), optimize=optimize)


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("since", [1, 15])
def test_an_axis_of_another_size_contradicts_what_was_inferred(since: int, optimize: bool) -> None:
    compiled = _squeezed(since, optimize)
    assert compiled([np.zeros((1, 2), np.float32)])[0].shape == (2,)
    # OpenVINO's plugin refuses it as well.
    with pytest.raises(
        NodeError,
        match=r"\(Squeeze of .*\): the result has shape \[3,2\], \[2\] was inferred before its inputs were known",
    ):
        compiled([np.zeros((3, 2), np.float32)])


@pytest.mark.parametrize("optimize", [False, True])
def test_so_it_does_where_the_size_is_known_only_in_the_run(optimize: bool) -> None:
    builder = Builder("squeeze")
    indices = builder.emit("NonZero", builder.parameter(F32, (4,), "data"))
    builder.result(builder.emit("Squeeze", indices, np.array([1]), version=1))
    compiled = irexec.compile_model(builder.model(), optimize=optimize)
    assert compiled([np.array([0, 0, 5, 0], np.float32)])[0].tolist() == [2]
    with pytest.raises(
        NodeError, match=r"the result has shape \[1,2\], \[1\] was inferred before its inputs were known"
    ):
        compiled([np.array([0, 3, 5, 0], np.float32)])
