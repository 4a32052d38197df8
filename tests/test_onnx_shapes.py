"""ONNX models that can be converted only if the shapes of their inputs are known, in every command that reads a model."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import pytest

import converters
import irexec
from irexec.analysis.model import Port
from irexec.cli import commands
from irexec.cli.main import run
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.reduce import CommandCheck, reduce
from irexec.tools.run.shapes import shapes_of_other
from tests.support.onnx_models import model_of

Capture = pytest.CaptureFixture[str]


class Row(NamedTuple):
    """A model that cannot be converted as it is, the node that is to blame, and the options with which it can."""

    graph: str
    node: str
    shapes: tuple[str, ...]
    declared: tuple[str, ...]


# How many tensors there are depends on the size of the data.
_PARTS = "s = SplitToSequence <axis = {axis}, keepdims = 1> (x) {out} = ConcatFromSequence <axis = {axis}> (s)"
_TWO_INPUTS = (
    "(float[1,1,H,W] x, float[1,1,3,3] k) => (float[1,1,A,B] y) { "
    + _PARTS.format(axis=2, out="p")
    + " y = Conv (p, k) }"
)
ROWS = {
    "two inputs": Row(_TWO_INPUTS, "SplitToSequence", ("x[1,1,4,4]", "k[1,1,3,3]"), ("x: f32[1,1,4,4]", "k: f32[1,1,3,3]")),
    "one input, without its name": Row(
        "(float[1,1,H,W] x) => (float[1,1,A,B] y) { " + _PARTS.format(axis=2, out="y") + " }",
        "SplitToSequence",
        ("[1,1,4,4]",),
        ("x: f32[1,1,4,4]",),
    ),
    "another axis": Row(
        "(float[B,1,N,N] x) => (float[B,1,M,M] y) { " + _PARTS.format(axis=3, out="y") + " }",
        "SplitToSequence",
        ("x=1,1,3,3",),
        ("x: f32[1,1,3,3]",),
    ),
}  # fmt: skip
COMMANDS = {
    "infer": "infer {model} -i random {shapes}",
    "infer --assert": "infer {model} -i random -o {folder}/r.npz {shapes}",
    "infer --trap": "infer {model} -i random --trap nan {shapes}",
    "inspect": "inspect {model} {shapes}",
    "inspect --plan": "inspect {model} --plan {shapes}",
    "inspect --cost": "inspect {model} --cost {shapes}",
    "inspect --memory": "inspect {model} --memory {shapes}",
    "validate": "validate {model} {shapes}",
    "profile": "profile {model} --runs 1 {shapes}",
    "profile --static": "profile {model} --static {shapes}",
    "bench": "bench {model} --runs 1 {shapes}",
    "graph": "graph {model} {shapes}",
    "graph --profile": "graph {model} --profile --runs 1 {shapes}",
    "report": "report {model} -o {folder}/r.html {shapes}",
    "report --profile": "report {model} -o {folder}/r.html --profile --runs 1 {shapes}",
    "compare, as A and B": "compare {model} --b-runtime reference {shapes}",
    "compare, as A": "compare {model} {ir} {shapes}",
    "compare, as B": "compare {ir} {model} {shapes}",
    "compare, recorded": "compare {recorded} {model} -i ones {shapes}",
    "judge": "judge {model} --runtime reference {shapes}",
    "diff, as A": "diff {model} {ir} {shapes}",
    "diff, as B": "diff {ir} {model} {shapes}",
    "reduce": "reduce {model} -o {folder}/min.xml --check 'test ! -e {{}}' {shapes}",
    "batch": "batch {model} {items} -o {folder}/out.npz {shapes}",
    "serve": "serve {model} --no-grpc {shapes}",
    "edit": "edit {model} -o {folder}/edited.xml --rename y=z {shapes}",
}


@pytest.fixture
def fill(tmp_path: Path) -> Callable[[str, Row], list[str]]:
    """Makes a command line of a template."""

    def filled(command: str, row: Row) -> list[str]:
        path = tmp_path / "m.onnx"
        onnx.save(model_of(row.graph), path)
        shapes: dict[str | None, str] = {}
        for text in row.shapes:
            name, _, sizes = text.replace("=", "[").rstrip("]").partition("[")
            shapes[name or None] = sizes
        model = converters.convert(path, inputs=shapes)
        irexec.save_model(model, tmp_path / "ir.xml")
        arrays = {
            port.name: np.ones([size for size in port.shape or () if isinstance(size, int)], np.float32)
            for port in model.inputs
        }
        np.savez(tmp_path / "recorded.npz", y=irexec.compile_model(model)(arrays)["y"])
        np.savez(tmp_path / "items.npz", **arrays)
        names = {
            "model": path,
            "folder": tmp_path,
            **{name: tmp_path / f"{name}.npz" for name in ("recorded", "items")},
        }
        given = " ".join(f"--shape {text}" for text in row.shapes)
        line = command.format(shapes=given, ir=tmp_path / "ir.xml", **names)
        return shlex.split(line)

    return filled


@pytest.mark.sampled(2)
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.covering(1)
def test_the_model_is_converted_with_the_shapes_that_are_given(
    fill: Callable[[str, Row], list[str]], command: str, row: Row, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    if command.startswith("serve"):
        pytest.importorskip("kserve")
        monkeypatch.setattr("irexec.integrations.open_inference.serve", lambda models, options, started: None)
    given = fill(command, row)
    bare = [text for text in given if text not in ("--shape", *row.shapes)]
    is_reported = given[0] in ("validate", "report")
    assert run(bare) == {"validate": 1, "report": 0}.get(given[0], 4)
    printed = "".join(capsys.readouterr())
    assert row.node in printed or (is_reported and "error" in printed)
    assert run(given) == 0
    printed = "".join(capsys.readouterr())
    assert "error" not in printed
    assert "not in the report" not in printed


GIVEN = {
    "infer": "infer {model} -i {items}",
    "infer, inputs in order": "infer {model} {arrays}",
    "compare": "compare {model} -i {items} --b-runtime reference",
    "compare, as A": "compare {model} {ir} -i {items}",
    "compare, as B": "compare {ir} {model} -i {items}",
    "compare, recorded": "compare {recorded} {model} -i {items}",
    "judge": "judge {model} --runtime reference -i {items}",
    "reduce": "reduce {model} -o {folder}/min.xml --check 'test ! -e {{}}' -i {items}",
    "profile": "profile {model} --runs 1 -i {items}",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("command", GIVEN.values(), ids=GIVEN)
def test_the_model_is_converted_with_the_sizes_of_the_inputs_that_are_given(
    fill: Callable[[str, Row], list[str]], command: str, row: Row, tmp_path: Path, capsys: Capture
) -> None:
    given = fill(command.replace("{arrays}", ""), row)
    if "{arrays}" in command:
        for name, array in np.load(tmp_path / "items.npz").items():
            np.save(tmp_path / f"{name}.npy", array)
            given += ["-i", str(tmp_path / f"{name}.npy")]
    assert run(given) == 0
    assert "error" not in "".join(capsys.readouterr())


def test_sizes_that_are_given_are_not_taken_from_inputs(
    fill: Callable[[str, Row], list[str]], tmp_path: Path, capsys: Capture
) -> None:
    given = fill("infer {model} -i {items}", ROWS["two inputs"])
    assert run([*given, "--shape", "x[1,1,5,5]"]) == 2
    assert "x: f32[1,1,5,5]" in capsys.readouterr().err


def test_sizes_of_arrays_and_images(fill: Callable[[str, Row], list[str]], tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image")
    row = ROWS["one input, without its name"]
    model = fill("{model}", row)[0]
    x = np.ones((1, 1, 4, 4), np.float32)
    assert compare(model, inputs={"x": x}, options=CompareOptions(b_runtime="reference")).agrees
    assert compare(model, inputs=[{"x": x}, {"x": 2 * x}], options=CompareOptions(b_runtime="reference")).agrees
    assert reduce(model, CommandCheck("test ! -e {}", 60), {"x": x}).before == 2
    images.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "x.png")
    assert run(["infer", model, "-i", str(tmp_path / "x.png")]) == 0


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_the_inputs_have_the_shapes(fill: Callable[[str, Row], list[str]], row: Row) -> None:
    model = irexec.read_model(fill("{ir}", row)[0])
    assert tuple(map(str, model.inputs)) == row.declared


def test_inputs_that_another_model_calls_otherwise(tmp_path: Path, capsys: Capture) -> None:
    """--shape has the names of A; in B they are of the same name, or of the same place among those that are left."""
    onnx.save(model_of(_TWO_INPUTS), tmp_path / "a.onnx")
    onnx.save(model_of(_TWO_INPUTS.replace(" x", " image").replace("(x", "(image")), tmp_path / "b.onnx")
    for command in ("compare", "diff"):
        code = run([command, str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx"), "--shape", "x[1,1,4,4]"])
        printed = "".join(capsys.readouterr())
        assert "error" not in printed
        assert code == (0 if command == "compare" else 1)


@pytest.mark.parametrize(
    ("shapes", "others", "expected"),
    [
        pytest.param({"x": (1,)}, [["x"], ["k"]], {"x": (1,)}, id="the same name"),
        pytest.param({"x": (1,)}, [["k"], ["image"]], {"image": (1,)}, id="what is left"),
        pytest.param({"x": (1,), "k": (2,)}, [["a"], ["b"]], {"a": (1,), "b": (2,)}, id="in order"),
        pytest.param({"x": (1,)}, [["a"], ["b"], ["c"]], {}, id="another number of inputs"),
        pytest.param({None: (1,)}, [["a"]], {None: (1,)}, id="without a name"),
        pytest.param({"x.layer": (1,)}, [["x", "y"]], {"x": (1,)}, id="another name of the same input"),
        pytest.param({"b": (1,)}, [["a"], ["b"], ["c"]], {"b": (1,)}, id="a name that only the other model has"),
    ],
)
def test_shapes_by_the_names_of_another_model(shapes: dict, others: list[list[str]], expected: dict) -> None:
    node = irexec.Builder("m").parameter("f32", (1,), "x").node
    inputs = [Port(name, (name, f"{name}.layer"), irexec.f32, None, node) for name in ("x", "k")]
    assert shapes_of_other(shapes, inputs, others) == expected


@pytest.mark.parametrize("command", ["validate", "report", "infer", "compare", "diff", "reduce", "batch", "graph"])
def test_an_input_that_does_not_exist(fill: Callable[[str, Row], list[str]], command: str, capsys: Capture) -> None:
    row = ROWS["another axis"]
    template = {"infer": "infer {model} -i random", "compare": "compare {model} {ir}", "diff": "diff {model} {ir}"}
    template |= {"report": "report {model} -o {folder}/r.html", "batch": "batch {model} {items} -o {folder}/out.npz"}
    template |= {"reduce": "reduce {model} -o {folder}/min.xml --check 'test ! -e {{}}'"}
    assert run([*fill(template.get(command, f"{command} {{model}}"), row), "--shape", "z[1,3,3]"]) == 2
    assert "input 'z' does not exist: the model has 'x'" in capsys.readouterr().err


def test_a_shape_without_a_name_for_several_inputs(fill: Callable[[str, Row], list[str]], capsys: Capture) -> None:
    assert run([*fill("infer {model} -i random", ROWS["two inputs"]), "--shape", "[1,1,4,4]"]) == 2
    assert "[1,1,4,4] needs the name of an input: the model has 'x', 'k'" in capsys.readouterr().err


def test_validate_reports_what_is_wrong_with_a_shape(tmp_path: Path, capsys: Capture) -> None:
    """A model that is right as it is, whose Reshape does not take other sizes."""
    onnx.save(
        model_of("(float[N,4] x) => (float[2,M] y) <int64[2] s = {2, 6}> { y = Reshape (x, s) }"), tmp_path / "m.onnx"
    )
    assert run(["validate", str(tmp_path / "m.onnx"), "--shape", "x[3,4]"]) == 0
    assert run(["validate", str(tmp_path / "m.onnx"), "--shape", "x[4,4]"]) == 1
    assert "IR107" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["validate", "serve"])
def test_shapes_are_for_a_single_model(fill: Callable[[str, Row], list[str]], command: str, capsys: Capture) -> None:
    row = ROWS["another axis"]
    assert run(fill(f"{command} {{model}} {{ir}} {{shapes}}", row)) == 2
    assert "--shape is for a single model, here are 2" in capsys.readouterr().err


_WITHOUT_SHAPES = (
    "convert", "ops", "explain", "demo", "extract", "join", "script", "upgrade", "conform", "bisect", "generate",
    "test", "inside",
)  # fmt: skip


def test_every_command_that_reads_a_model_is_in_the_table() -> None:
    """convert has --input in place of --shape, ops looks at the types of nodes alone, and models that are joined, cut out or scripted
    are read as they convert; upgrade takes no ONNX model, conform no model at all, bisect passes
    its shapes to compare, generate makes its inputs from a prompt, test reads them, and inside compiles the file as it is."""
    tested = {command.split()[0] for command in COMMANDS.values()}
    names = {name for name in commands.COMMANDS if name not in _WITHOUT_SHAPES}
    assert tested == names
    for name in names:
        command = getattr(importlib.import_module(f"irexec.cli.{name}"), name)
        assert "--shape" in {option for parameter in command.params for option in parameter.opts}
