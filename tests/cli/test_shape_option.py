"""One grammar for shapes on the command line."""

from __future__ import annotations

import json

import click
import pytest

from irexec.cli.main import run
from irexec.cli.values import SHAPE, shapes_by_name
from irexec.ir.dims import Dim
from tests.support.paths import DIGITS

CLASSIFIER = DIGITS / "classifier.xml"
SIZES = (1, 3, Dim(), Dim(2, 8))


@pytest.mark.parametrize(
    ("text", "name", "shape"),
    [
        ("x[1,3,?,2..8]", "x", SIZES),
        ("x=1,3,?,2..8", "x", SIZES),
        ("x=[1,3,?,2..8]", "x", SIZES),
        ("1,3,-1,2..8", None, SIZES),
        ("[1,3,?,2..8]", None, SIZES),
        (" x [ 1, 3 , ? , 2..8 ] ", "x", SIZES),
        ("a[0]:0[2]", "a[0]:0", (2,)),
        ("a[0]:0=2", "a[0]:0", (2,)),
        ("a=b=2", "a=b", (2,)),
        ("a=b[2]", "a=b", (2,)),
        ("x[]", "x", ()),
        ("x[...]", "x", None),
        ("x=...", "x", None),
        ("7", None, (7,)),
    ],
)
def test_forms(text: str, name: str | None, shape: object) -> None:
    assert SHAPE.convert(text, None, None) == ((name, shape),)


@pytest.mark.parametrize("text", ["x[1],y[2,?]", " x [1] , y[2,?]", "x=[1],y=[2,?]"])
def test_several_in_one_option(text: str) -> None:
    assert SHAPE.convert(text, None, None) == (("x", (1,)), ("y", (2, Dim())))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "'x' is not a size"),
        ("x[1", "is not of the form NAME"),
        ("1,2]", "is not of the form NAME"),
        ("[1,2", "is not of the form NAME"),
        ("x=", "is not of the form NAME"),
        ("", "has no sizes"),
        ("x[1,b]", "'b' is not a size"),
        ("x[2..1]", "'2..1' is not a size"),
        ("=1,2", "is not of the form NAME"),
        ("x=1,,2", "'' is not a size"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(click.BadParameter, match=message):
        SHAPE.convert(text, None, None)


def test_shapes_need_distinct_names() -> None:
    shape = SHAPE.convert
    assert shapes_by_name([shape("x[1]", None, None), shape("y=?", None, None)], "--input") == {
        "x": (1,),
        "y": (Dim(),),
    }
    with pytest.raises(click.BadParameter, match="the shape of 'x' is given twice"):
        shapes_by_name([shape("x[1]", None, None), shape("x=2", None, None)], "--input")
    with pytest.raises(click.BadParameter, match="a shape has no name"):
        shapes_by_name([shape("1,2", None, None)], "--input")


@pytest.mark.parametrize("text", ["3,1,8,8", "[3,1,8,8]", "image=3,1,8,8", "image[3,1,8,8]", "0=3,1,8,8", "0[3,1,8,8]"])
def test_infer_takes_every_form(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["infer", str(CLASSIFIER), "-i", "random", "--shape", text, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"][0]["shape"] == [3, 10]


@pytest.mark.parametrize("text", ["image[1,2,8,8]", "image[1,a]", "nowhere[1]", "[1],[2]"])
def test_a_wrong_shape_is_wrong_usage(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["infer", str(CLASSIFIER), "-i", "random", "--shape", text]) == 2
    assert capsys.readouterr().err.count("\n") == 1
