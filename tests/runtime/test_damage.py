"""Damage that shows only when a model runs: a sentence with the location, never an exception of NumPy."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.compile.steps import ReferenceCall
from irexec.dtypes.elements import F32
from irexec.errors import OpError
from irexec.ops.control import _output
from irexec.runtime.arenas import Arenas
from irexec.runtime.execute import run
from irexec.schema.bodies import Slice, Wiring
from irexec.schema.registry import newest
from irexec.tools.run.input_sources import random_array
from tests.support.paths import IRS


@pytest.mark.parametrize(
    ("ir", "pattern", "instead", "says"),
    [
        ("tensor_iterator", 'stride="1"', 'stride="7"', "port map: iteration 1 takes 7..8 of axis 1 of size 4"),
        ("tensor_iterator", 'start="0"', 'start="-5"', "port map: iteration 0 takes -1..0 of axis 1 of size 4"),
        ("loop", ' purpose="execution_condition"', "", "port map: iteration 3 takes -1..0 of axis 0 of size 3"),
        (
            "operations/opset_16",
            r'strides="[^"]*"',
            'strides="99999999999999999999"',
            "'99999999999999999999' is not an integer of 64 bits",
        ),
        (
            "operations/detection",
            r'keep_top_k="[^"]*"',
            'keep_top_k="99999999999999999999"',
            "'99999999999999999999' is not an integer of 64 bits",
        ),
    ],
)
def test_a_run_says_what_is_wrong(ir: str, pattern: str, instead: str, says: str, tmp_path: Path) -> None:
    text, changes = re.subn(pattern, instead, (IRS / f"{ir}.xml").read_text())
    assert changes
    (tmp_path / "m.xml").write_text(text)
    shutil.copy((IRS / f"{ir}.xml").with_suffix(".bin"), tmp_path / "m.bin")
    with pytest.raises(irexec.NodeError, match=re.escape(says)):
        compiled = irexec.compile_model(irexec.read_model(tmp_path / "m.xml"))
        compiled([random_array(port, 0) for port in compiled.inputs])


def test_a_condition_of_a_wrong_rank() -> None:
    text = (
        (IRS / "branch.xml")
        .read_bytes()
        .replace(b'shape="" element_type="boolean"', b'shape="..." element_type="boolean"')
    )
    model = irexec.compile_model(io.read_text(text, (IRS / "branch.bin").read_bytes()))
    x = np.ones((2, 3), np.float32)
    with pytest.raises(irexec.NodeError, match="cond has rank 2, expected 0, or 1 with a single element"):
        model({"x": x, "y": x, "c": np.zeros((1, 1), np.bool_)})


@pytest.mark.parametrize("count", [0, 2])
def test_kernels_refuse_conditions_that_are_not_one_element(count: int) -> None:
    """Inside a body the shape of a condition may be known only when the kernel runs."""
    condition, trips = np.zeros(count, np.bool_), np.zeros(count, np.int64)
    for type, inputs, bodies, name in (
        ("If", (condition,), ("then_body", "else_body"), "cond"),
        ("Loop", (np.array(1), condition), ("body",), "execution_condition"),
        ("Loop", (trips, np.array(True)), ("body",), "trip_count"),
    ):
        with pytest.raises(OpError, match=f"{name} has {count} elements, expected 1"):
            newest(type)(*inputs, **dict.fromkeys(bodies))


def test_iterations_that_do_not_go_together() -> None:
    wiring = Wiring(
        sources=[], backs=[], outputs=[(0, Slice(axis=-1, start=0, end=-1, stride=1, part=1))], condition=None
    )
    parts = [np.zeros((2, 1)), np.zeros((2, 5)), np.zeros((3, 1))]
    with pytest.raises(
        OpError,
        match=re.escape(
            "iterations give shapes [2, 1] and [2, 5] and [3, 1], which cannot be concatenated along axis 1"
        ),
    ):
        _output(None, wiring, 0, None, parts, ())


def test_an_error_in_irexec_itself_says_where_it_was() -> None:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter(F32, (2,), "x"), name="here"))
    plan = irexec.compile_model(builder.model(), optimize=False).program.plan((), None)

    def broken(*_: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError("no reason")

    steps = [dataclasses.replace(step, call=ReferenceCall(broken)) for step in plan.steps]
    with pytest.raises(ZeroDivisionError) as caught:
        run(dataclasses.replace(plan, steps=steps), [np.zeros(2, np.float32)], {}, Arenas())
    assert caught.value.__notes__ == ["in layer 1 'here' (Relu of opset1)"]
