"""irexec.script: the script makes the same model again, whatever the model's names are, and overwrites nothing."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import Model, io, opset
from tests.support.networks import NAMES, unpacked
from tests.support.paths import DIGITS, IRS
from tests.support.tiers import some

# Lines that a script may have.
_LONGEST = {"resnet50": 120, "resnet50_half": 150}


def _run(script: Path, output: Path) -> Path:
    """Run a script as ``python script.py output.xml`` does."""
    before = sys.argv
    sys.argv = [str(script), str(output)]
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.argv = before
    return output


def _is_empty(diff: irexec.Diff) -> bool:
    return not (diff.model or diff.layers or diff.following or diff.unread)


def _again(model: irexec.Model | Path, folder: Path) -> irexec.Script:
    """The script of a model, which has been run and makes the same model."""
    made = irexec.script(model, folder / "made.py")
    found = irexec.diff(model, _run(folder / "made.py", folder / "again.xml"))
    assert _is_empty(found), str(found)[:2000]
    return made


def test_a_script_without_an_output_says_how_it_is_used(tmp_path: Path) -> None:
    irexec.script(DIGITS / "classifier.xml", tmp_path / "made.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["made.py"])
        with pytest.raises(SystemExit, match=r"^usage: python \S*made\.py OUTPUT\.xml$"):
            runpy.run_path(str(tmp_path / "made.py"), run_name="__main__")


@pytest.mark.parametrize("name", some(NAMES, ("scripted_loop",)))
def test_the_script_of_a_network_makes_the_same_network(name: str, tmp_path: Path) -> None:
    made = _again(unpacked(name, tmp_path), tmp_path)
    assert made.lines <= _LONGEST.get(name, made.lines)


@pytest.mark.parametrize("path", sorted(IRS.glob("*.xml")), ids=lambda path: path.stem)
def test_the_script_of_a_model_of_openvino_makes_the_same_model(path: Path, tmp_path: Path) -> None:
    _again(path, tmp_path)


def test_a_repeated_block_is_a_function_in_a_loop(tmp_path: Path) -> None:
    x = y = opset.parameter([1, 8], "f32", "x")
    for i in range(12):
        dense = opset.constant(np.full((8, 8), i, np.float32), name=f"layers.{i}.w")
        scale = opset.constant(i + 0.5, name=f"layers.{i}.scale")
        inner = opset.multiply(opset.matmul(y, dense, name=f"layers.{i}.dense"), scale, name=f"layers.{i}.scaled")
        y = opset.relu(
            opset.add(y, inner, name=f"layers.{i}.sum"), name=f"layers.{i}.relu", names=[f"{7 * i + 3}", f"hidden.{i}"]
        )
    model = Model([y], [x], name="twelve")
    made = _again(model, tmp_path)
    text = (tmp_path / "made.py").read_text("utf-8")
    assert (made.blocks, text.count("opset.matmul("), text.count("for row in")) == (1, 1, 1)
    assert 'name=f"layers.{n' in text
    assert made.lines < 50


def _named(name: str) -> Model:
    """A model in which everything has a name that is a hostile one."""
    x = opset.parameter([2, 3], "f32", "x", names=[f"{name}0"])
    weights = opset.constant(np.arange(12, dtype=np.float32).reshape(3, 4), name=f"{name}w", names=[f"{name}1"])
    values, indices = opset.topk(x @ weights, 1, axis=1, mode="max", sort="none", name=name, names=[f"{name}2"])
    indices.named(f"{name}3")
    flag = opset.constant(True)
    chosen = opset.if_(flag, lambda: opset.relu(values, name=name), lambda: values, name=f"{name}if")
    model = Model([opset.result(chosen, name=f"{name}r"), indices], [x], name=name)
    model.nodes[0].name = f"{name}x"
    return model


@pytest.mark.parametrize(
    "name",
    [
        'a"b', "a'b", "'\"", '"""', "\\", "\\\"", "a\nb", "\n\nimport os", "{x}", "{{", "f'{1}'", "#", "é\u4e2d\u6587",
        "\u202e\u2066", "\u00a0", "../../up", "/etc/passwd", "a" * 100_000, "None", "lambda", "n0", "weights", "opset",
        '", ") + __import__("os").abort() + ("', "');raise SystemExit(3)#", "%s", "\\N{DEGREE SIGN}", "\\x41",
    ],
    ids=range(28),
)  # fmt: skip
@pytest.mark.sampled(2)
def test_no_name_becomes_code(name: str, tmp_path: Path) -> None:
    model = _named(name)
    _again(model, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} <= {"made.py", "made.npz", "again.xml", "again.bin"}


@pytest.mark.parametrize("name", ['a"b', "{x}{", "'\\", "9" * 30, "\n"], ids=range(5))
def test_no_name_becomes_code_in_a_block(name: str, tmp_path: Path) -> None:
    x = y = opset.parameter([8], "f32", "x")
    for i in range(10):
        y = opset.relu(opset.exp(opset.sin(y, name=f"{name}{i}{name}s"), name=f"{name}{i}e"), name=f"{i}{name}r")
        y.named(f"{name}{i}", name * (i + 1))
    assert _again(Model([y], [x], name="m"), tmp_path).blocks == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "element", [element.name for element in irexec.dtypes.elements.ELEMENTS if element.kind != "string"]
)  # type: ignore[attr-defined]
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (5, 7)])
def test_constants_of_every_type_keep_their_bytes(element: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    kind = irexec.dtypes.elements.element(element)  # type: ignore[attr-defined]
    size = irexec.analysis.builder.packed_size_of(kind, shape)  # type: ignore[attr-defined]
    raw = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8).tobytes()
    constant = opset.packed(raw, element, shape, name="c")
    _again(Model([constant], [], name="constants"), tmp_path)
    read = irexec.read_model(tmp_path / "again.xml")["c"].constant
    assert read is not None
    assert read.raw[: len(raw)].tobytes() == raw


def test_strings_and_special_numbers(tmp_path: Path) -> None:
    texts = opset.constant(["", "a'b\"\n", "\u4e2d" * 20], name="texts")
    numbers = opset.constant(np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 0.1], np.float32), name="numbers")
    _again(Model([texts, numbers], []), tmp_path)


def test_unknown_layers_variables_and_names_that_are_not_unique(tmp_path: Path) -> None:
    x = opset.parameter([2], "f32", "x")
    (unknown,) = opset.layer("Mine", "extension", [x], {"a": "1", "axis": '"'}, ["f32[2,?]"], name="mine", names=["m"])
    total = opset.read_value(np.zeros(2, np.float32), variable_id="v", name="twice") + x
    model = Model([unknown, total], [x], sinks=[opset.assign(total, variable_id="v"), opset.exp(x)], name="odd")
    model["Add"].name = "twice"
    io.set_metadata(model, elements=['<rt_info><info name="a" value="&quot;b"/></rt_info>'])
    io.set_metadata(model["mine"], attributes={"kept": "yes"})
    model.save(tmp_path / "m.xml")
    _again(tmp_path / "m.xml", tmp_path)


def test_a_changed_line_is_the_only_difference(tmp_path: Path) -> None:
    irexec.script(DIGITS / "classifier.xml", tmp_path / "c.py")
    text = (tmp_path / "c.py").read_text("utf-8")
    changed = text.replace("opset.softmax(add_2,", "opset.softmax(add_2, axis=0,")
    assert changed != text
    (tmp_path / "c.py").write_text(changed, "utf-8")
    found = irexec.diff(DIGITS / "classifier.xml", _run(tmp_path / "c.py", tmp_path / "c.xml"))
    assert [(layer.b.name, [change.what for change in layer.changes]) for layer in found.layers] == [
        ("probabilities", ["axis"])
    ]
    assert not found.model
    assert not found.following


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    for name in ("c.npz", "c.py"):
        (tmp_path / name).write_text("mine")
        text = rf"{name} exists: --overwrite, in Python overwrite=True, replaces it$"
        with pytest.raises(irexec.InputError, match=text):
            irexec.script(DIGITS / "classifier.xml", tmp_path / "c.py")
        assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
        (tmp_path / name).unlink()
    irexec.script(DIGITS / "classifier.xml", tmp_path / "c.py")
    (tmp_path / "c.py").write_text("mine")
    irexec.script(DIGITS / "classifier.xml", tmp_path / "c.py", overwrite=True)
    assert (tmp_path / "c.py").read_text("utf-8").startswith("# The model")


def _cycle(model: Model) -> None:
    model["relu1"].ports[0].source = model["maxpool2"].outputs[0]


def _no_edge(model: Model) -> None:
    model["relu1"].ports[0].source = None


def test_weights_that_are_cut_off_are_named_with_their_layer(tmp_path: Path) -> None:
    (tmp_path / "c.xml").write_bytes((DIGITS / "classifier.xml").read_bytes())
    (tmp_path / "c.bin").write_bytes((DIGITS / "classifier.bin").read_bytes()[:1000])
    with pytest.raises(
        irexec.ModelError, match=r"the model is damaged: line 130, layer 7 'conv3.w' \(Constant\): c.bin"
    ):
        irexec.script(tmp_path / "c.xml", tmp_path / "c.py")
    assert not (tmp_path / "c.py").exists()


@pytest.mark.parametrize(
    ("damage", "message"),
    [(_cycle, "on or after a cycle$"), (_no_edge, r"^layer 5 'relu1' \(Relu\) has an input at which no edge arrives$")],
)
def test_models_that_no_script_makes(damage: Callable[[Model], None], message: str, tmp_path: Path) -> None:
    model = irexec.read_model(DIGITS / "classifier.xml")
    damage(model)
    with pytest.raises(irexec.ModelError, match=message):
        irexec.script(model, tmp_path / "c.py")
    assert list(tmp_path.iterdir()) == []


def test_the_suffix_is_that_of_a_script(tmp_path: Path) -> None:
    with pytest.raises(irexec.InputError, match=r"^'c.txt' does not end in \.py$"):
        irexec.script(DIGITS / "classifier.xml", "c.txt")
