"""infer --dump-layers: what a dump replaces, and what it leaves alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irexec.tools.run import result_files as dumping
from tests.cli.infer.running import CLASSIFIER, Capture, contents, infer
from tests.support.paths import IRS


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
