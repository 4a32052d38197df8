"""irexec edit, join and extract: what is written, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import Model, opset
from irexec.cli.main import run
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
    (["-o", "{tmp}/m.xml", "--rename", "conv0=conv3"], 2, "layer 'conv0' cannot be called 'conv3': a layer has that name"),
    (["-o", "{tmp}/m.xml", "--rename", "relu*=a"], 2, "would have that name, too"),
    (["-o", "{tmp}/m.xml", "--rename", "re:(=a"], 2, "is not a regular expression"),
    (["-o", "{tmp}/m.xml", "--rename", "image"], 2, "is not of the form OLD=NEW"),
    (["-o", "{tmp}/m.xml", "--set", "conv0.stride=1"], 2, "layer 'conv0' (Add) has no attribute 'stride'; it has auto_broadcast"),
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
)  # fmt: skip


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


# irexec join and extract: which outputs become which inputs, which layers are taken, and what is refused.


@pytest.fixture
def models(tmp_path: Path) -> tuple[str, str]:
    """2 x and -x of an input x; a - b of inputs a and b."""
    x, a, b = (opset.parameter([3], "f32", name) for name in "xab")
    first = Model([(x * 2).named("double"), (-x).named("negative")], [x])
    Model([(a - b).named("difference")], [a, b]).save(tmp_path / "second.xml")
    first.save(tmp_path / "first.xml")
    return str(tmp_path / "first.xml"), str(tmp_path / "second.xml")


@pytest.mark.parametrize(
    ("maps", "outputs"),
    [
        (["double=a", "negative=b"], {"difference": [3, 6, 9]}),
        (["negative=a", "double=b"], {"difference": [-3, -6, -9]}),
        (["double=a", "double=b"], {"negative": [-1, -2, -3], "difference": [0, 0, 0]}),
    ],
)
def test_outputs_become_inputs(
    models: tuple[str, str], maps: list[str], outputs: dict[str, list[int]], tmp_path: Path
) -> None:
    joined = tmp_path / "joined.xml"
    assert run(["join", *models, *(word for entry in maps for word in ("--map", entry)), "-o", str(joined)]) == 0
    found = irexec.infer(joined, np.float32([1, 2, 3]))
    assert {name: array.tolist() for name, array in found.items()} == outputs


def test_what_has_the_same_name_is_paired(models: tuple[str, str], tmp_path: Path) -> None:
    """As do the only output and the only input."""
    a, z = opset.parameter([3], "f32", "a"), opset.parameter([3], "f32", "z")
    Model([(a + 1).named("b"), (a * 2).named("c")], [a]).save(tmp_path / "named.xml")
    joined = irexec.join(tmp_path / "named.xml", models[1])
    assert [port.name for port in joined.inputs] == ["a", "a_1"]
    alone = irexec.join(Model([(z + 1).named("y")], [z]), Model([(a * 2).named("c")], [a]))
    assert irexec.infer(alone, np.float32([0, 1, 2]))["c"].tolist() == [2, 4, 6]


def test_an_input_that_is_not_mapped_stays_one(models: tuple[str, str], tmp_path: Path) -> None:
    joined = irexec.join(*models, {"b": "double"})
    assert [port.name for port in joined.inputs] == ["x", "a"]
    found = irexec.infer(joined, {"x": np.float32([1, 2, 3]), "a": np.float32([9, 9, 9])})
    assert found["difference"].tolist() == [7, 5, 3]


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        (["double=a", "negative=a"], "--map gives input 'a' twice: 'double' and 'negative'"),
        (["doubel=a"], "there is no output 'doubel'"),
        (["double=c"], "there is no input 'c'"),
        ([], "has the name of an input of the second; outputs double: f32[3]; negative: f32[3]; inputs a: f32[3]; b"),
    ],
)
def test_refused(
    models: tuple[str, str], maps: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for entry in maps for word in ("--map", entry)]
    assert run(["join", *models, *words, "-o", str(tmp_path / "joined.xml")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "joined.xml").exists()


@pytest.mark.parametrize(
    ("words", "layers"),
    [
        (["--from", "relu1", "--to", "maxpool5"], ["relu1", "maxpool2", "conv3/Convolution", "conv3", "relu4", "maxpool5"]),
        (["--from", "dense6"], ["dense6", "probabilities"]),
        (["--to", "conv0"], ["conv0/Convolution", "conv0"]),
        (["--from", "dense6", "--to", "conv0"], "no layer that computes is between 'dense6' and 'conv0'"),
    ],
)  # fmt: skip
def test_layers_on_the_way_are_extracted(
    words: list[str], layers: list[str] | str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["extract", str(DIGITS / "classifier.xml"), *words, "-o", str(tmp_path / "part.xml")])
    if isinstance(layers, str):
        assert code == 2 and layers in capsys.readouterr().err
        return
    part = irexec.read_model(tmp_path / "part.xml")
    assert [node.name for node in part.nodes if node.type not in ("Parameter", "Constant", "Result")] == layers


def test_a_shape_that_the_second_model_does_not_take(
    models: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x, y = opset.parameter([3], "f32", "x"), opset.parameter([2, 4], "f32", "y")
    Model([opset.matmul(y, np.ones((4, 2), np.float32)).named("z")], [y]).save(tmp_path / "third.xml")
    Model([(x * 2).named("double")], [x]).save(tmp_path / "first.xml")
    second = str(tmp_path / "third.xml")
    words = ["--map", "double=y", "-o", str(tmp_path / "joined.xml")]
    assert run(["join", models[0], second, *words]) == 2
    assert f"{second} does not take the outputs of {models[0]}: layer" in capsys.readouterr().err
    assert not (tmp_path / "joined.xml").exists()


def test_the_joined_model_takes_shapes(models: tuple[str, str], tmp_path: Path) -> None:
    joined = tmp_path / "joined.xml"
    words = ["join", *models, "--map", "double=a", "--map", "negative=b", "-o", str(joined)]
    assert run([*words, "--shape", "x[2,?]"]) == 0
    assert [str(port) for port in irexec.read_model(joined).inputs] == ["x: f32[2,?]"]


def _sum(name: str, start: float, version: int) -> Model:
    """Adds its inputs up in the variable "sum"."""
    x = opset.parameter([3], "f32", f"{name}_in")
    versions = opset.opset6 if version == 6 else opset.opset3
    options = {"variable_shape": [3], "variable_type": "f32"} if version == 6 else {}
    read = versions.read_value(np.full(3, start, np.float32), variable_id="sum", name="read", **options)
    total = (read + x).named(f"{name}_out")
    return Model([total], [x], sinks=[versions.assign(total, variable_id="sum", name="assign")])


@pytest.mark.parametrize("versions", [(6, 6), (3, 6), (6, 3)])
def test_variables_of_one_name_stay_apart(versions: tuple[int, int], tmp_path: Path) -> None:
    """Sums of sums, over several runs, beside OpenVINO and NumPy."""
    first, second = _sum("a", 10, versions[0]), _sum("b", 100, versions[1])
    for name, model in (("first", first), ("second", second)):
        model.save(tmp_path / f"{name}.xml")
    joined = tmp_path / "joined.xml"
    words = [
        "join", str(tmp_path / "first.xml"), str(tmp_path / "second.xml"), "--map", "a_out=b_in", "-o", str(joined),
    ]  # fmt: skip
    assert run(words) == 0
    model = irexec.read_model(joined)
    assert [node.attributes["variable_id"] for node in model.sinks] == ["sum", "sum_1"]
    assert [finding for finding in irexec.validate(model) if finding.severity == "error"] == []
    arrays = np.random.default_rng(0).integers(-9, 9, (4, 3)).astype(np.float32)
    expected = np.cumsum(10 + np.cumsum(arrays, 0), 0) + 100
    session = irexec.compile_model(model).session()
    found = [session(array) for array in arrays]
    assert all(np.array_equal(found[i]["b_out"], expected[i]) for i in range(4))
    ov = pytest.importorskip("openvino")
    request = ov.Core().compile_model(joined, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    theirs = [request.infer([array])["b_out"].copy() for array in arrays]
    assert np.array_equal(theirs, expected)


def test_a_model_that_is_read_is_not_overwritten(models: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    before = Path(models[1]).read_bytes()
    assert run(["join", *models, "--map", "double=a", "-o", models[1]]) == 2
    assert "would be overwritten" in capsys.readouterr().err
    assert Path(models[1]).read_bytes() == before
