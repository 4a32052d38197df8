"""irexec join and extract: which outputs become which inputs, which layers are taken, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import Model, opset
from irexec.cli.main import run
from tests.support.paths import DIGITS


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
        (
            ["--from", "relu1", "--to", "maxpool5"],
            ["relu1", "maxpool2", "conv3/Convolution", "conv3", "relu4", "maxpool5"],
        ),
        (["--from", "dense6"], ["dense6", "probabilities"]),
        (["--to", "conv0"], ["conv0/Convolution", "conv0"]),
        (["--from", "dense6", "--to", "conv0"], "no layer that computes is between 'dense6' and 'conv0'"),
    ],
)
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
        "join",
        str(tmp_path / "first.xml"),
        str(tmp_path / "second.xml"),
        "--map",
        "a_out=b_in",
        "-o",
        str(joined),
    ]
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
