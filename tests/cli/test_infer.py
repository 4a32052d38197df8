"""``irexec infer``: one run whatever is asked for, and nothing of the user's overwritten."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import irexec
from irexec import tools
from irexec.analysis import attributes
from irexec.cli.main import run
from irexec.dtypes.elements import F32
from irexec.runtime.session import Session
from irexec.schema.opdef import OpDef

DIGITS = Path(__file__).parent.parent.parent / "samples" / "digits"
IRS = Path(__file__).parent.parent / "data" / "openvino"
CLASSIFIER = DIGITS / "classifier.xml"
Capture = pytest.CaptureFixture[str]


def infer(capsys: Capture, *arguments: object, code: int = 0) -> tuple[str, str]:
    """What the command writes to stdout and stderr."""
    assert run(["infer", *map(str, arguments)]) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out, err


def values(capsys: Capture, *arguments: object, code: int = 0) -> dict:
    """The JSON document."""
    return json.loads(infer(capsys, *arguments, "--json", code=code)[0])


# One run

COUNTER = """<?xml version="1.0"?>
<net name="counter" version="11"><layers>
<layer id="0" name="start" type="Const" version="opset1"><data element_type="f32" shape="1" offset="0" size="4"/>
 <output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>
<layer id="1" name="read" type="ReadValue" version="opset6"><data variable_id="n" variable_type="f32" variable_shape="1"/>
 <input><port id="0"><dim>1</dim></port></input><output><port id="1" precision="FP32"><dim>1</dim></port></output></layer>
<layer id="2" name="one" type="Const" version="opset1"><data element_type="f32" shape="1" offset="4" size="4"/>
 <output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>
<layer id="3" name="next" type="Add" version="opset1"><data auto_broadcast="numpy"/>
 <input><port id="0"><dim>1</dim></port><port id="1"><dim>1</dim></port></input>
 <output><port id="2" precision="FP32" names="count"><dim>1</dim></port></output></layer>
<layer id="4" name="write" type="Assign" version="opset6"><data variable_id="n" variable_type="f32" variable_shape="1"/>
 <input><port id="0"><dim>1</dim></port></input></layer>
<layer id="5" name="y" type="Result" version="opset1"><input><port id="0"><dim>1</dim></port></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="3" to-port="0"/>
<edge from-layer="2" from-port="0" to-layer="3" to-port="1"/><edge from-layer="3" from-port="2" to-layer="4" to-port="0"/>
<edge from-layer="3" from-port="2" to-layer="5" to-port="0"/>
</edges></net>"""


def _counter(folder: Path) -> Path:
    """A model that counts its runs: the first gives 1."""
    (folder / "counter.xml").write_text(COUNTER)
    (folder / "counter.bin").write_bytes(np.array([0, 1], np.float32).tobytes())
    return folder / "counter.xml"


def _random(folder: Path) -> Path:
    """A model whose result differs from run to run: RandomUniform with no seed."""
    builder = irexec.Builder("m")
    low, high = builder.constant(np.float32(0)), builder.constant(np.float32(1))
    noise = builder.emit("RandomUniform", builder.constant([3]), low, high, output_type=F32, global_seed=0, op_seed=0)
    builder.result(builder.emit("Relu", noise, names=["y"]))
    irexec.save_model(builder.model(), folder / "m.xml")
    return folder / "m.xml"


@pytest.mark.parametrize("model", [_counter, _random])
def test_everything_that_is_asked_for_comes_from_one_run(
    model: Callable[[Path], Path], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, runs = model(tmp_path), []
    original = Session._run
    monkeypatch.setattr(Session, "_run", lambda self, *given, **limits: runs.append(given) or original(self, *given, **limits))
    name = "count" if model is _counter else "y"
    np.savez(tmp_path / "reference.npz", **{name: np.array([1] if model is _counter else [0, 0, 0], np.float32)})
    options = ["-o", tmp_path / "out.npz", "--all", "--dump-layers", tmp_path / "dump", "--assert", tmp_path / "reference.npz"]
    document = values(capsys, path, *options, "--topk", 1, "--atol", 2)
    assert len(runs) == 1
    shown = next(line for line in document["outputs"] if line["name"] == name)
    saved = np.load(tmp_path / "out.npz")[name]
    entry = next(e for e in json.loads((tmp_path / "dump" / "index.json").read_text())["tensors"] if e["name"] == name)
    np.testing.assert_array_equal(saved, np.load(tmp_path / "dump" / entry["file"]))
    assert shown["first"] == pytest.approx(saved.tolist())
    assert document["topk"][0]["score"] == pytest.approx(saved.max())
    (agreement,) = document["assert"]
    assert agreement["largest"] == pytest.approx(np.abs(saved - (1 if model is _counter else 0)).max())
    if model is _counter:
        assert saved.tolist() == [1]


def test_no_attribute_is_parsed_twice(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: Counter[int] = Counter()
    kept = []
    original = OpDef.parse

    def counted(self: OpDef, texts: dict[str, str]) -> object:
        # The dictionary is kept, so that its id stays that of one layer.
        kept.append(texts)
        parsed[id(texts)] += 1
        return original(self, texts)

    monkeypatch.setattr(OpDef, "parse", counted)
    attributes._shared.cache_clear()
    infer(capsys, CLASSIFIER, "-i", "random", "--all", "--strict", "--topk", 1)
    written = {(node.type, node.version, *node.attributes.items()) for node in irexec.read_model(CLASSIFIER).nodes}
    assert set(parsed.values()) == {1}
    assert len(parsed) == len(written)


# What may be written

WRONG_OUTPUTS = [
    "model.xml",
    "model.bin",
    "out.json",
    "out.npy",
    "out",
    ".",
    "folder.npz",
    "input.npz",
    "link.npz",
    "reference.npz",
    "device.npz",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model, an input, a reference, and what is in the way of an output."""
    for suffix in (".xml", ".bin"):
        shutil.copy(CLASSIFIER.with_suffix(suffix), tmp_path / f"model{suffix}")
    np.savez(tmp_path / "input.npz", image=np.zeros((1, 1, 8, 8), np.float32))
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "link.npz").symlink_to(tmp_path / "model.bin")
    (tmp_path / "device.npz").symlink_to("/dev/null")
    np.savez(tmp_path / "reference.npz", probabilities=np.full((1, 10), 0.1, np.float32))
    return tmp_path


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


@pytest.mark.parametrize("name", WRONG_OUTPUTS)
def test_results_are_not_written_over_anything_else(name: str, folder: Path, capsys: Capture) -> None:
    before = _contents(folder)
    source, reference = folder / "input.npz", folder / "reference.npz"
    _, err = infer(capsys, folder / "model.xml", "-i", source, "--assert", reference, "--atol", 1, "-o", folder / name, code=2)
    assert err.startswith("error: -o ") and err.count("\n") == 1
    assert _contents(folder) == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["model.xml", "-i", "cycle.npz", "--dump-layers", "dump"], 3),
        (["model.xml", "-i", "cycle.npz", "-o", "results.npz"], 3),
        (["cycle.xml", "-i", "random", "-o", "results.npz"], 3),
        (["model.xml", "-i", "random", "-o", "cycle.npz"], 2),
        (["model.xml", "-i", "random", "--dump-layers", "cycle/dump"], 3),
    ],
)
def test_links_in_a_cycle(arguments: list[str], code: int, folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for name in ("cycle", "cycle.npz", "cycle.xml"):
        Path(name).symlink_to(name)
    before = sorted(folder.iterdir())
    _, err = infer(capsys, *arguments, code=code)
    assert err.startswith("error: ") and "cycle" in err and err.count("\n") == 1
    assert sorted(folder.iterdir()) == before


def test_weights_of_another_name_are_not_written_over(folder: Path, capsys: Capture) -> None:
    (folder / "model.bin").rename(folder / "weights.npz")
    _, err = infer(capsys, folder / "model.xml", "--bin", folder / "weights.npz", "-i", "random", "-o", folder / "weights.npz", code=2)
    assert "is the model's weights, which would be overwritten" in err


def test_results_may_replace_those_of_an_earlier_run(folder: Path, capsys: Capture) -> None:
    for seed in (1, 2):
        infer(capsys, folder / "model.xml", "-i", "random", "--seed", seed, "-o", folder / "out.npz")
    infer(capsys, folder / "model.xml", "-i", "random", "--seed", 2, "--assert", folder / "out.npz")


# What is compared


def test_tensor_names_come_first_and_what_is_not_common_is_listed(folder: Path, capsys: Capture) -> None:
    """IRs of other converters call their layers otherwise; tensor names stay."""
    path = folder / "model.xml"
    infer(capsys, path, "-i", "random", "--all", "-o", folder / "all.npz")
    text = path.read_text().replace('name="relu1" type', 'name="Relu_17" type')
    assert text.count("Relu_17") == 1
    (folder / "renamed.xml").write_text(text)
    shutil.copy(folder / "model.bin", folder / "renamed.bin")
    saved = dict(np.load(folder / "all.npz"))
    saved["nowhere"] = saved.pop("conv3")
    np.savez(folder / "all.npz", **saved)
    document = values(capsys, folder / "renamed.xml", "-i", "random", "--all", "--assert", folder / "all.npz")
    assert all(entry["agrees"] for entry in document["assert"])
    assert document["only_in_reference"] == ["nowhere"]
    assert document["only_in_results"] == ["conv3"]
    text, _ = infer(capsys, folder / "renamed.xml", "-i", "random", "--all", "--assert", folder / "all.npz")
    assert "only in the reference: nowhere" in text and "only in the results: conv3" in text


def test_nothing_in_common_is_wrong_usage(folder: Path, capsys: Capture) -> None:
    np.savez(folder / "other.npz", a=np.zeros(1), b=np.zeros(1))
    _, err = infer(capsys, folder / "model.xml", "-i", "random", "--assert", folder / "other.npz", code=2)
    assert "no array of" in err and "(a, b) has the name of a tensor or layer" in err


def test_a_mismatch_is_exit_code_1(folder: Path, capsys: Capture) -> None:
    assert "differs" in infer(capsys, folder / "model.xml", "-i", "random", "--assert", folder / "reference.npz", code=1)[0]


# Unknown layers


@pytest.fixture
def unknown(tmp_path: Path) -> Path:
    """The convolutions with a layer that nobody knows behind the first of them."""
    source = IRS / "convolutions.xml"
    text = source.read_text()
    at = text.index('type="ReLU"')
    (tmp_path / "m.xml").write_text(text[:at] + 'type="MyAct"' + text[at + len('type="ReLU"') :])
    shutil.copy(source.with_suffix(".bin"), tmp_path / "m.bin")
    return tmp_path / "m.xml"


def test_an_unknown_layer_blocks_only_what_depends_on_it(unknown: Path, capsys: Capture) -> None:
    expected = values(capsys, IRS / "convolutions.xml", "-i", "random", "--tensor", "Convolution_3")
    assert run(["infer", str(unknown), "-i", "random", "--tensor", "Convolution_3", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == expected
    assert "warning: layer" in err and "MyAct" in err and "nothing that is asked for depends on it" in err
    for arguments in ([], ["--tensor", "Relu_6"], ["--all"], ["--dump-layers", unknown.parent / "dump"]):
        _, err = infer(capsys, unknown, "-i", "random", *arguments, code=4)
        assert "MyAct of opset1 is not supported" in err and err.count("\n") == 1


def test_a_reference_with_more_than_can_be_run(unknown: Path, capsys: Capture) -> None:
    infer(capsys, IRS / "convolutions.xml", "-i", "random", "--all", "-o", unknown.parent / "all.npz")
    document = values(capsys, unknown, "-i", "random", "--tensor", "Convolution_3", "--assert", unknown.parent / "all.npz")
    assert [entry["name"] for entry in document["assert"]] == ["Convolution_3", "Add_5"]
    assert "Relu_6" in document["only_in_reference"]


# Dumps


def test_a_second_dump_takes_the_place_of_the_first(tmp_path: Path, capsys: Capture) -> None:
    dump = tmp_path / "dump"
    infer(capsys, IRS / "convolutions.xml", "-i", "random", "--dump-layers", dump)
    infer(capsys, CLASSIFIER, "-i", "random", "--dump-layers", dump)
    listed = {entry["file"] for entry in json.loads((dump / "index.json").read_text())["tensors"]}
    assert {path.name for path in dump.iterdir()} == {*listed, "index.json"}
    assert [path.name for path in tmp_path.iterdir()] == ["dump"]


def _planted_file(folder: Path) -> Path:
    (folder / "dump").mkdir()
    (folder / "dump" / "thesis.txt").write_text("years of work")
    return folder / "dump"


def _planted_index(folder: Path) -> Path:
    """An index of ours that lists a file that is not."""
    dump = _planted_file(folder)
    (dump / "index.json").write_text(json.dumps({"schema": 1, "tensors": [{"file": "thesis.txt"}]}))
    return dump


def _link_to_folder(folder: Path) -> Path:
    (_planted_file(folder)).rename(folder / "elsewhere")
    (folder / "dump").symlink_to(folder / "elsewhere")
    return folder / "dump"


def _file(folder: Path) -> Path:
    (folder / "dump").write_text("years of work")
    return folder / "dump"


@pytest.mark.parametrize("plant", [_planted_file, _planted_index, _link_to_folder, _file])
def test_a_dump_takes_the_place_of_nothing_else(plant: Callable[[Path], Path], tmp_path: Path, capsys: Capture) -> None:
    dump = plant(tmp_path)
    _, err = infer(capsys, CLASSIFIER, "-i", "random", "--dump-layers", dump, code=2)
    assert err.count("\n") == 1
    assert "years of work" in {path.read_text() for path in tmp_path.rglob("*") if path.is_file() and path.name != "index.json"}


def test_a_file_that_comes_while_a_dump_is_written_is_kept(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = tmp_path / "dump"
    infer(capsys, CLASSIFIER, "-i", "random", "--dump-layers", dump)
    before, saved = _contents(dump), np.save

    def plant(*arguments: Any, **options: Any) -> None:
        (dump / "thesis.txt").write_text("years of work")
        saved(*arguments, **options)

    monkeypatch.setattr(tools.dump.np, "save", plant)
    _, err = infer(capsys, CLASSIFIER, "-i", "random", "--seed", 1, "--dump-layers", dump, code=2)
    assert "has files that --dump-layers has not written" in err
    (dump / "thesis.txt").unlink()
    assert _contents(dump) == before
    assert [path.name for path in tmp_path.iterdir()] == ["dump"]


def test_a_dump_follows_no_links(tmp_path: Path, capsys: Capture) -> None:
    dump = tmp_path / "dump"
    infer(capsys, CLASSIFIER, "-i", "random", "--dump-layers", dump)
    (tmp_path / "thesis.txt").write_text("years of work")
    for path in dump.glob("*.npy"):
        path.unlink()
        path.symlink_to(tmp_path / "thesis.txt")
    infer(capsys, CLASSIFIER, "-i", "random", "--dump-layers", dump)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    assert not any(path.is_symlink() for path in dump.iterdir())


def test_a_dump_that_fails_leaves_the_earlier_one(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = tmp_path / "dump"
    infer(capsys, CLASSIFIER, "-i", "random", "--dump-layers", dump)
    before = _contents(dump)
    saved = np.save
    written = []

    def full(file: object, *arguments: object, **options: object) -> None:
        written.append(file)
        if len(written) > 2:
            raise OSError(28, "No space left on device")
        saved(file, *arguments, **options)

    monkeypatch.setattr(tools.dump.np, "save", full)
    _, err = infer(capsys, CLASSIFIER, "-i", "random", "--seed", 1, "--dump-layers", dump, code=3)
    assert err == f"error: {dump}: cannot be written: No space left on device\n"
    assert _contents(dump) == before
    assert [path.name for path in tmp_path.iterdir()] == ["dump"]


def test_a_dump_does_not_replace_a_folder_with_an_input(tmp_path: Path, capsys: Capture) -> None:
    dump = tmp_path / "dump"
    infer(capsys, CLASSIFIER, "-i", "random", "--dump-layers", dump)
    source = next(dump.glob("*.npy"))
    _, err = infer(capsys, CLASSIFIER, "-i", source, "--dump-layers", dump, code=2)
    assert "is an input" in err
    _, err = infer(capsys, CLASSIFIER, "-i", "random", "--dump-layers", dump, "-o", dump / "out.npz", code=2)
    assert "is the output" in err


# Inputs


@pytest.mark.parametrize(("source", "expected"), [("zeros", 0), ("ones", 1)])
def test_constant_inputs(source: str, expected: float, capsys: Capture) -> None:
    (line,) = values(capsys, CLASSIFIER, "-i", source, "--tensor", "image")["outputs"]
    assert (line["min"], line["max"], line["shape"]) == (expected, expected, [1, 1, 8, 8])


def test_sizes_that_are_not_known_are_1_or_as_small_as_may_be(tmp_path: Path, capsys: Capture) -> None:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter(F32, (irexec.Dim(), 3, irexec.Dim(2, 5)), "x")), "y")
    irexec.save_model(builder.model(), tmp_path / "m.xml")
    out, err = infer(capsys, tmp_path / "m.xml", "-i", "random", "--json")
    assert json.loads(out)["outputs"][0]["shape"] == [1, 3, 2]
    assert err.startswith("note: input x: f32[?,3,2..5] gets the shape [1,3,2]: ") and err.count("\n") == 1
    _, err = infer(capsys, tmp_path / "m.xml", "-i", "random", "--shape", "1,3,2")
    assert err == ""


def _stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("option", ["-", "image=-"])
@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_arrays_come_from_standard_input(option: str, kind: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer, array = io.BytesIO(), np.full((1, 1, 8, 8), 0.5, np.float32)
    np.save(buffer, array) if kind == "npy" else np.savez(buffer, image=array)
    _stdin(monkeypatch, buffer.getvalue())
    (line,) = values(capsys, CLASSIFIER, "-i", option, "--tensor", "image")["outputs"]
    assert (line["min"], line["max"]) == (0.5, 0.5)


def test_standard_input_that_is_no_array(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    _stdin(monkeypatch, b"hello")
    assert "standard input: not a readable .npy" in infer(capsys, CLASSIFIER, "-i", "-", code=3)[1]
    assert "-i - is given twice" in infer(capsys, CLASSIFIER, "-i", "-", "-i", "a=-", code=2)[1]


def test_a_pipe_is_read_once(tmp_path: Path, capsys: Capture) -> None:
    np.save(tmp_path / "x.npy", np.full((1, 1, 8, 8), 0.5, np.float32))
    reading, writing = os.pipe()
    os.write(writing, (tmp_path / "x.npy").read_bytes())
    os.close(writing)
    (line,) = values(capsys, CLASSIFIER, "-i", f"/dev/fd/{reading}", "--tensor", "image")["outputs"]
    os.close(reading)
    assert line["mean"] == 0.5


def test_a_file_of_another_kind(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "v.mp4").write_bytes(b"\0\0\0\x20ftyp")
    _, err = infer(capsys, CLASSIFIER, "-i", tmp_path / "v.mp4", code=3)
    assert "not a readable .npy, .npz or image (.png, .jpg" in err


# Progress


def test_a_note_stays_whole_while_progress_is_shown(tmp_path: Path) -> None:
    """On a terminal of 80 columns; a note is one line, which the terminal itself may wrap."""
    import pty

    Image.fromarray(np.zeros((1, 2), np.uint8)).save(tmp_path / "wide.png")
    main, terminal = pty.openpty()
    words = [sys.executable, "-m", "irexec", "infer", str(CLASSIFIER), "-i", str(tmp_path / "wide.png"), "--json"]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=terminal, env=environment, check=True)
    os.close(terminal)
    with open(main, "rb", buffering=0) as screen:
        shown = screen.read(1 << 16).decode()
    assert json.loads(done.stdout)["outputs"]
    assert "running" in shown
    assert "wide.png is stretched from 2x1 to 8x8; --resize fit or crop keeps the proportions\r\n" in shown


def test_strict_without_weights_names_the_file(tmp_path: Path, capsys: Capture) -> None:
    """The finding belongs to no line and no layer."""
    path = shutil.copy(CLASSIFIER, tmp_path / "m.xml")
    text = infer(capsys, path, "-i", "zeros", "--strict", code=3)
    assert "m.xml: IR022 m.bin does not exist; the contents of 7 constants are unknown" in str(text)
