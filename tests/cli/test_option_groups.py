"""Option groups: what arrives of them, what --help shows; one grammar for shapes."""

from __future__ import annotations

import importlib
import inspect
import json

import click
import pytest

from irexec.cli.commands import COMMANDS, GROUPS
from irexec.cli.main import run
from irexec.cli.values import SHAPE, shapes_by_name
from irexec.ir.dims import Dim
from tests.cli.calling import Capture, stdout
from tests.support.paths import DIGITS

_MOST = 14


def _command(name: str) -> click.Command:
    found: click.Command = getattr(importlib.import_module(f"irexec.cli.{name}"), name)
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_groups_and_not_every_option_by_itself(name: str) -> None:
    function = inspect.unwrap(_command(name).callback)  # type: ignore[arg-type]
    parameters = inspect.signature(function).parameters.values()
    assert len(parameters) <= _MOST
    assert not [p for p in parameters if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_two_options_share_a_parameter_or_a_flag(name: str) -> None:
    parameters = _command(name).params
    names = [parameter.name for parameter in parameters]
    flags = [flag for parameter in parameters for flag in parameter.opts]
    assert len(set(names)) == len(names)
    assert len(set(flags)) == len(flags)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_in_the_help_once_at_80_columns(
    name: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = stdout(capsys, name, "--help")
    assert max(map(len, text.splitlines())) <= 80
    text = text[text.index("\nOptions:\n") :]
    for parameter in _command(name).params:
        if isinstance(parameter, click.Option):
            lines = [line for line in text.splitlines() if line.lstrip().startswith(parameter.opts[0])]
            assert len([line for line in lines if line.split()[0].rstrip(",") == parameter.opts[0]]) == 1


def test_groups_have_headings(capsys: Capture) -> None:
    text = stdout(capsys, "infer", "--help")
    headings = [line.rstrip(":") for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == [
        "Options", "Inputs", "Steps and state", "Weights", "Images", "Results", "Tolerance", "Trap", "Computation",
        "Limits",
    ]  # fmt: skip


def test_the_list_of_commands_is_grouped(capsys: Capture) -> None:
    text = stdout(capsys, "--help")
    positions = [text.index(f"\n{heading}:\n") for heading in GROUPS]
    assert positions == sorted(positions)
    for name, summary in COMMANDS.items():
        assert f"  {name}" in text
        assert summary in " ".join(text.split())


# One grammar for shapes on the command line.


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
