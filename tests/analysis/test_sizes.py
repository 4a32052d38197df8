"""No size of a shape is beyond 64 bits: not one that is inferred, and not one that is read or written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.analysis.model import Model
from irexec.errors import OpError
from irexec.ir.dims import Dim, check_sizes
from irexec.ir.shape_text import as_shape, parse_shape, write_shape

HUGE = (1 << 63) - 1
_CONCAT = (
    '<net name="n" version="11"><layers>'
    '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="{size}" element_type="f32"/>'
    '<output><port id="0" precision="FP32"><dim>{size}</dim></port></output></layer>'
    '<layer id="1" name="twice" type="Concat" version="opset1"><data axis="0"/>'
    '<input><port id="0"><dim>{size}</dim></port><port id="1"><dim>{size}</dim></port></input>'
    '<output><port id="2" precision="FP32"><dim>{size}</dim></port></output></layer>'
    '<layer id="2" name="y" type="Result" version="opset1"><input><port id="0"><dim>{size}</dim></port></input></layer></layers>'
    '<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="0" from-port="0" to-layer="1" to-port="1"/>'
    '<edge from-layer="1" from-port="2" to-layer="2" to-port="0"/></edges></net>'
)


def test_a_size_that_is_inferred_is_a_finding() -> None:
    model = Model.of(io.read_text(_CONCAT.format(size=HUGE), b""))
    says = f"the result would have shape [{2 * HUGE}], of which size {2 * HUGE} is larger than 2**63 - 1"
    assert [(f.layer_name, f.code) for f in irexec.validate(model) if says in f.message] == [("twice", "IR107")]
    with pytest.raises(irexec.NodeError, match=r"larger than 2\*\*63 - 1"):
        irexec.compile_model(model)


def test_a_negative_size() -> None:
    with pytest.raises(OpError, match=r"^the result would have shape \[3,-1\], of which size -1 is negative$"):
        check_sizes((3, -1))
    check_sizes((HUGE, Dim(-1, 4), Dim(3, None)))


def test_an_empty_array_that_numpy_does_not_have() -> None:
    check_sizes((0, HUGE >> 5, Dim(-1, 4), Dim(1, None)))
    with pytest.raises(OpError, match="empty, but with other sizes that are too large for an array"):
        check_sizes((0, HUGE, Dim(-1, 4), Dim(3, None)))
    with pytest.raises(ValueError, match=r"too (big|large)|[mM]aximum"):
        np.empty((0, HUGE, 3), dtype=np.float64)


@pytest.mark.parametrize("text", ["9223372036854775808", "1..9223372036854775808", "9223372036854775808.."])
def test_a_size_that_is_read(text: str) -> None:
    assert parse_shape(text.replace("808", "807")) is not None
    with pytest.raises(OpError, match=r"is not a size: the largest is 2\*\*63 - 1$"):
        parse_shape(text)


@pytest.mark.parametrize("size", [HUGE + 1, (0, HUGE + 1), str(HUGE + 1)])
def test_a_size_that_a_caller_gives(size: Any) -> None:
    with pytest.raises(OpError, match=r"is not a size: the largest is 2\*\*63 - 1$"):
        as_shape([size])


def test_a_bound_that_cannot_be_read_again_is_not_written() -> None:
    assert write_shape((Dim(2, HUGE), Dim(2, HUGE + 1), Dim(0, 1 << 70))) == f"2..{HUGE},2..,?"
