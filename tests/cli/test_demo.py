"""irexec demo: the files, the commands that it runs, and those that it names."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path

import pytest

import irexec
from irexec.cli import demo
from irexec.cli.main import run
from tests.cli.calling import Capture, stderr, stdout
from tests.support.paths import DIGITS, ROOT


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_runs_three_commands_and_names_others(folder: Path, capsys: Capture) -> None:
    text = stdout(capsys, "demo")
    assert text.startswith("irexec-demo: 6 files\n")
    assert "> irexec validate irexec-demo/classifier.xml\nirexec-demo/classifier.xml: no findings\n" in text
    assert "first divergence: 'conv3/Convolution'" in text
    assert "pads_begin: (1, 1) in A, (0, 0) in B" in text
    commands = [line.split("  # ")[0].strip() for line in text[text.index("next:") :].splitlines()[1:]]
    assert len(commands) == 5
    for line in commands:
        assert run(shlex.split(line)[1:]) <= 1
    assert {path.name for path in (folder / "irexec-demo").iterdir()} >= {"min.xml", "graph.html", "faulty.xml"}


def test_without_pillow_inputs_are_random(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    document = json.loads(stdout(capsys, "demo", "--json"))
    assert any("infer" in line and "-i random" in line for line in document["commands"])
    assert not any(".png" in line for line in document["commands"])


def test_a_second_time_writes_nothing_and_an_edited_file_stays(folder: Path, capsys: Capture) -> None:
    stdout(capsys, "demo", "--json")
    made = folder / "irexec-demo" / "faulty.xml"
    before = made.stat().st_mtime_ns
    stdout(capsys, "demo", "--json")
    assert made.stat().st_mtime_ns == before
    made.write_text("mine")
    assert "exists with other contents: irexec demo FOLDER writes into another folder" in stderr(capsys, "demo")
    assert made.read_text() == "mine"


def test_a_folder_with_a_space(capsys: Capture) -> None:
    assert "> irexec validate 'my demo/classifier.xml'" in stdout(capsys, "demo", "my demo")


def test_a_file_in_place_of_the_folder(folder: Path, capsys: Capture) -> None:
    (folder / "irexec-demo").write_text("")
    assert "irexec-demo is not a folder" in stderr(capsys, "demo")


def test_the_wheel_has_the_samples_where_the_package_looks_for_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    package = folder / "site" / "irexec"
    (package / "cli").mkdir(parents=True)
    monkeypatch.setattr(demo, "__file__", str(package / "cli" / "demo.py"))
    for source, target in settings["force-include"].items():
        (folder / "site" / target).parent.mkdir(exist_ok=True)
        (folder / "site" / target).write_bytes((ROOT / source).read_bytes())
    assert demo.samples_folder() == package / "samples"
    assert len(demo.write_demo("out").files) == 6


def test_samples_that_are_not_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "samples_folder", lambda: folder)
    with pytest.raises(irexec.InputError, match=r"the samples are not installed: .*classifier\.xml"):
        demo.write_demo("out")
    assert not (folder / "out").exists()


def test_the_faulty_model_differs_in_one_layer() -> None:
    made = demo.write_demo("out")
    found = irexec.diff(DIGITS / "classifier.xml", made.path("faulty.xml"))
    (layer,) = found.layers
    assert [change.what for change in layer.changes] == ["pads_begin", "pads_end"]
