"""irexec edit: steps in the order given, what it writes and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import opset
from tests.cli.calling import Capture, stderr, stdout
from tests.support.paths import DIGITS, IRS

MODEL = DIGITS / "classifier.xml"


def test_steps_are_made_in_the_order_given(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "m.xml"
    stdout(
        capsys,
        "edit",
        MODEL,
        "-o",
        target,
        "--rename",
        "conv0=first",
        "--set",
        "first/Convolution.auto_pad=explicit",
        code=2,
    )
    text = stdout(
        capsys, "edit", MODEL, "-o", target, "--rename", "conv0=a", "--add-output", "a", "--rename", "a=b", "--json"
    )
    document = json.loads(text)
    assert document["steps"] == ["rename conv0 to a", "add output a", "rename a to b"]
    assert document["model"] == str(target)
    assert [port.name for port in irexec.read_model(target).outputs] == ["probabilities", "b"]


def test_cuts_are_one_step_each(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "m.xml"
    stdout(capsys, "edit", MODEL, "-o", target, "--cut-to", "relu4", "--cut-from", "relu1", "--cut-to", "maxpool2")
    model = irexec.read_model(target)
    assert [port.name for port in model.inputs] == ["relu1"]
    assert [port.name for port in model.outputs] == ["relu4", "maxpool2"]


def test_a_tensor_is_named_by_id_and_port(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "m.xml"
    stdout(capsys, "edit", MODEL, "-o", target, "--cut-to", "6:1")
    (output,) = irexec.read_model(target).outputs
    assert (str(output.element), output.shape) == ("i64", (1, 16, 4, 4))


def test_constants_come_from_files(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "m.xml"
    np.save(tmp_path / "w.npy", np.full((16, 1, 3, 3), 2, np.int64))
    stdout(capsys, "edit", MODEL, "-o", target, "--const", f"conv0.w={tmp_path / 'w.npy'}")
    assert np.frombuffer(bytes(irexec.read_model(target)["conv0.w"].constant.raw), np.float32).tolist() == [2] * 144
    np.savez(tmp_path / "w.npz", a=np.zeros(2))
    error = stderr(capsys, "edit", MODEL, "-o", target, "--const", f"conv0.w={tmp_path / 'w.npz'}", code=3)
    assert "has arrays with names, expected a .npy" in error


def test_an_onnx_model_is_converted(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("onnx")
    target = tmp_path / "m.xml"
    stdout(capsys, "edit", DIGITS / "classifier.onnx", "-o", target, "--batch", "?")
    assert str(irexec.read_model(target).inputs[0]) == "image: f32[?,1,8,8]"


def test_layers_that_keep_their_shapes_are_notes(tmp_path: Path, capsys: Capture) -> None:
    """Five are printed, --json has all."""
    x = opset.parameter([6, 4], "f32", name="x")
    rows = [opset.slice(x, [0], [size], [1], [0], name=f"rows{size}") for size in range(1, 7)]
    flat = opset.reshape(x, np.array([24]), special_zero=False)
    irexec.Model([flat, *rows], [x]).save(tmp_path / "m.xml")
    words = ("edit", tmp_path / "m.xml", "--dry-run", "--unfreeze", "x")
    notes = json.loads(stdout(capsys, *words, "--json"))["notes"]
    assert len(notes) == 6
    lines = [line for line in stdout(capsys, *words).splitlines() if line.startswith("note: ")]
    assert lines[5:] == ["note: ... and 1 more"]
    assert lines[0].startswith("note: layer 'rows1' (Slice) keeps the shape [1,4], whatever the size of axis 0")


def test_a_name_of_an_inner_tensor_is_refused_with_its_layer() -> None:
    model = irexec.read_model(MODEL)
    model["relu1"].outputs[0].names.append("input")
    message = r"a tensor of layer 'relu1' \(Relu\) has that name; rename that first: input=input_1"
    with pytest.raises(irexec.InputError, match=message), model.edit() as g:
        g.rename("image", "input")
    with model.edit() as g:
        g.rename("input", "input_1")
        g.rename("image", "input")
    assert model.inputs[0].name == "input"


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: Capture) -> None:
    text = stdout(capsys, "edit", MODEL, "-o", tmp_path / "m.xml", "--dry-run", "--rename", "image=x")
    assert "~ 0 image -> x (Parameter)" in text
    assert text.endswith("1 step; nothing is written\n")
    assert list(tmp_path.iterdir()) == []


ERRORS = (
    (["--batch", "2"], 2, "-o names the .xml to write"),
    (["-o", "{tmp}/m.xml"], 2, "no step is given"),
    (["-o", "{tmp}/m.txt", "--batch", "2"], 2, "does not end in .xml"),
    (["-o", "{tmp}/none/m.xml", "--batch", "2"], 2, "does not exist"),
    (["-o", "{model}", "--batch", "2"], 2, "is the model, which would be overwritten"),
    (["-o", "{tmp}/m.xml", "--rename", "nowhere=x"], 2, "there is no layer or tensor 'nowhere'"),
    (["-o", "{tmp}/m.xml", "--rename", "imag=x"], 2, "similar names are 'image'"),
    (
        ["-o", "{tmp}/m.xml", "--rename", "conv0=conv3"],
        2,
        "layer 'conv0' cannot be called 'conv3': a layer has that name",
    ),
    (["-o", "{tmp}/m.xml", "--rename", "relu*=a"], 2, "would have that name, too"),
    (["-o", "{tmp}/m.xml", "--rename", "re:(=a"], 2, "is not a regular expression"),
    (["-o", "{tmp}/m.xml", "--rename", "image"], 2, "is not of the form OLD=NEW"),
    (
        ["-o", "{tmp}/m.xml", "--set", "conv0.stride=1"],
        2,
        "layer 'conv0' (Add) has no attribute 'stride'; it has auto_broadcast",
    ),
    (["-o", "{tmp}/m.xml", "--set", "conv0/Convolution.strids=1"], 2, "similar names are 'strides'"),
    (["-o", "{tmp}/m.xml", "--set", "conv0/Convolution.strides=x"], 3, "layer 2 'conv0/Convolution'"),
    (["-o", "{tmp}/m.xml", "--set", "conv0.w.shape=1"], 2, "is a Constant"),
    (["-o", "{tmp}/m.xml", "--remove", "conv0"], 0, ""),
    (["-o", "{tmp}/m.xml", "--remove", "maxpool2"], 2, "layer 'maxpool2' (MaxPool) cannot be bypassed: no input fits"),
    (["-o", "{tmp}/m.xml", "--remove", "probabilities/sink_port_0"], 2, "is the only Result"),
    (["-o", "{tmp}/m.xml", "--cut-from", "image"], 2, "is an input of the model already"),
    (["-o", "{tmp}/m.xml", "--add-output", "probabilities"], 2, "is an output of the model already"),
    (["-o", "{tmp}/m.xml", "--cut-to", "conv0", "--cut-to", "4"], 2, "'4' is named twice: it is the tensor 'conv0'"),
    (["-o", "{tmp}/m.xml", "--shape", "image[1,2,8,8]"], 3, "layer 2 'conv0/Convolution'"),
    (["-o", "{tmp}/m.xml", "--layout", ""], 2, "invalid value for '--layout': '' is not of the form"),
    (["-o", "{tmp}/m.xml", "--layout", "image="], 2, "the value is empty"),
    (["-o", "{tmp}/m.xml", "--layout", "=NHWC"], 2, "the name is empty"),
    (["-o", "{tmp}/m.xml", "--element", "image=foo"], 2, "element type 'foo' is not known"),
    (["-o", "{tmp}/m.xml", "--rt-info", "a b=c"], 2, "'a b' cannot be the name of an entry"),
)


@pytest.mark.parametrize(
    ("options", "code", "message"), ERRORS, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_errors(options: list[str], code: int, message: str, tmp_path: Path, capsys: Capture) -> None:
    model = tmp_path / "model.xml"
    for suffix in (".xml", ".bin"):
        shutil.copy(MODEL.with_suffix(suffix), model.with_suffix(suffix))
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    given = [text.format(tmp=tmp_path, model=model) for text in options]
    assert message in stderr(capsys, "edit", model, *given, code=code)
    if code:
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_layers_in_bodies(tmp_path: Path, capsys: Capture) -> None:
    source = IRS / "tensor_iterator.xml"
    owner = next(node for node in irexec.read_model(source).nodes if node.bodies)
    inner = next(node for node in owner.bodies["body"].graph.nodes if node.type == "Add")
    path = f"{owner.name}/body/{inner.name}"
    assert "only tensors outside of bodies" in stderr(
        capsys, "edit", source, "-o", tmp_path / "m.xml", "--cut-to", path
    )
    stdout(capsys, "edit", source, "-o", tmp_path / "m.xml", "--set", f"{path}.auto_broadcast=none", code=0)
    edited = irexec.read_model(tmp_path / "m.xml")
    assert edited[owner.name].bodies["body"].graph.nodes[
        [*owner.bodies["body"].graph.nodes].index(inner)
    ].attributes == {"auto_broadcast": "none"}
