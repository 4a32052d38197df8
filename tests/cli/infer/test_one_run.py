"""infer: everything comes from one run, and --dump-layers."""

from __future__ import annotations

import json
import os
import shutil
import signal
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
from irexec.analysis import attributes
from irexec.cli.main import run
from irexec.dtypes.elements import F32
from irexec.io import sources
from irexec.runtime.session import Session
from irexec.schema.opdef import OpDef
from irexec.tools.run import result_files as dumping
from tests.cli.infer.running import CLASSIFIER, Capture, contents, infer, values
from tests.support.paths import IRS

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


@pytest.mark.skipif(not hasattr(signal, "SIGBUS"), reason="nothing ends a process whose mapped file is shortened")
def test_a_file_that_is_mapped_is_noted(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    bin = CLASSIFIER.with_suffix(".bin")
    note = (
        f"note: {bin} is mapped: if another program shortens it, the system ends this one; --no-mmap reads it at once\n"
    )
    given = (CLASSIFIER, "-i", "zeros")
    assert infer(capsys, *given)[1] == ""
    monkeypatch.setattr(sources, "READ_AT_ONCE", bin.stat().st_size - 1)
    assert infer(capsys, *given)[1] == note
    assert infer(capsys, *given, "--bin", bin)[1] == note
    for options in (["--no-mmap"], ["--json"]):
        assert infer(capsys, *given, *options)[1] == ""
    assert infer(capsys, CLASSIFIER.with_suffix(".onnx"), *given[1:])[1] == ""


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
    monkeypatch.setattr(
        Session, "_run", lambda self, *given, **limits: runs.append(given) or original(self, *given, **limits)
    )
    name = "count" if model is _counter else "y"
    np.savez(tmp_path / "reference.npz", **{name: np.array([1] if model is _counter else [0, 0, 0], np.float32)})
    options = [
        "-o", tmp_path / "out.npz", "--all", "--dump-layers", tmp_path / "dump", "--assert",
        tmp_path / "reference.npz",
    ]  # fmt: skip
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


@pytest.fixture
def unknown(tmp_path: Path) -> Path:
    """The convolutions with a layer that nobody knows after the first of them."""
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
    document = values(
        capsys, unknown, "-i", "random", "--tensor", "Convolution_3", "--assert", unknown.parent / "all.npz"
    )
    assert [entry["name"] for entry in document["assert"]] == ["Convolution_3", "Add_5"]
    assert "Relu_6" in document["only_in_reference"]


@pytest.mark.slow
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


# infer --dump-layers: what a dump replaces, and what it leaves alone.


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
    assert "years of work" in {
        path.read_text() for path in tmp_path.rglob("*") if path.is_file() and path.name != "index.json"
    }


def test_a_file_that_comes_while_a_dump_is_written_is_kept(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = tmp_path / "dump"
    infer(capsys, CLASSIFIER, "-i", "random", "--dump-layers", dump)
    before, saved = contents(dump), np.save

    def plant(*arguments: Any, **options: Any) -> None:
        (dump / "thesis.txt").write_text("years of work")
        saved(*arguments, **options)

    monkeypatch.setattr(dumping.np, "save", plant)
    _, err = infer(capsys, CLASSIFIER, "-i", "random", "--seed", 1, "--dump-layers", dump, code=2)
    assert "has files that --dump-layers has not written" in err
    (dump / "thesis.txt").unlink()
    assert contents(dump) == before
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


def test_a_dump_that_fails_leaves_the_earlier_one(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = tmp_path / "dump"
    infer(capsys, CLASSIFIER, "-i", "random", "--dump-layers", dump)
    before = contents(dump)
    saved = np.save
    written = []

    def full(file: object, *arguments: object, **options: object) -> None:
        written.append(file)
        if len(written) > 2:
            raise OSError(28, "No space left on device")
        saved(file, *arguments, **options)

    monkeypatch.setattr(dumping.np, "save", full)
    _, err = infer(capsys, CLASSIFIER, "-i", "random", "--seed", 1, "--dump-layers", dump, code=3)
    assert err == f"error: {dump}: cannot be written: No space left on device\n"
    assert contents(dump) == before
    assert [path.name for path in tmp_path.iterdir()] == ["dump"]


def test_a_dump_does_not_replace_a_folder_with_an_input(tmp_path: Path, capsys: Capture) -> None:
    dump = tmp_path / "dump"
    infer(capsys, CLASSIFIER, "-i", "random", "--dump-layers", dump)
    source = next(dump.glob("*.npy"))
    _, err = infer(capsys, CLASSIFIER, "-i", source, "--dump-layers", dump, code=2)
    assert "is an input" in err
    _, err = infer(capsys, CLASSIFIER, "-i", "random", "--dump-layers", dump, "-o", dump / "out.npz", code=2)
    assert "is the output" in err
