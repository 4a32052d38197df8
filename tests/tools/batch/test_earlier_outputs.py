"""Outputs that exist: of earlier jobs, of another job, of the user."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irexec import InputError, IrexecError
from irexec.tools.batch.items import EarlierOutputs
from irexec.tools.batch.parts import BatchJob
from irexec.tools.batch.predictor import PredictorOptions
from irexec.tools.batch.run import BatchOptions, BatchWatch, run_job
from irexec.tools.images import ImageOptions
from tests.tools.batch import models
from tests.tools.batch.engines import InThisProcess
from tests.tools.batch.running import Stopped, run


@pytest.mark.parametrize("output", ["out.npz", "out"])
@pytest.mark.parametrize("pattern", ["", "**/*.np?"])
def test_the_output_among_the_sources_is_no_item(
    tmp_path: Path, model: str, source: str, output: str, pattern: str
) -> None:
    def stop(part: Any) -> None:
        raise Stopped

    sources = [f"{tmp_path}/{pattern}"]
    with pytest.raises(Stopped):
        run(model, sources, tmp_path / output, BatchWatch(part=stop), batch_size=2)
    assert run(model, sources, tmp_path / output, batch_size=2, resume=True).items == 20
    assert run(model, sources, tmp_path / output, batch_size=2, resume=True).resumed == 20


@pytest.mark.parametrize("pattern", ["", "**/*.np?"])
def test_outputs_of_earlier_jobs_are_no_items(
    tmp_path: Path, model: str, source: str, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(part: Any) -> None:
        raise Stopped

    monkeypatch.chdir(tmp_path)
    run(model, [source], tmp_path / "scores.npy")
    run(model, [source], tmp_path / "folder" / "parts", form="npy")
    with pytest.raises(Stopped):
        run(model, [source], tmp_path / "ended.npy", BatchWatch(part=stop), batch_size=2)
    notes: list[str] = []
    first = f"./{pattern}"
    assert run(model, [first], tmp_path / "out.npz", BatchWatch(note=notes.append)).items == 20
    # ended.npy does not exist, its parts do.
    assert notes == [
        f"{first}: left out what earlier jobs have written: ended.npy.parts, {Path('folder', 'parts')}, scores.npy"
    ]
    # What is named is wanted: the file, and the folder.
    assert run(model, ["scores.npy"], tmp_path / "file.npz").items == 20
    assert run(model, [f"folder/parts/{pattern}"], tmp_path / "folder.npz").items == 20
    # A database of something else beside a file does not make it an output.
    Path("items.npy.sqlite").write_bytes(b"SQLite format 3\0" + bytes(100))
    assert run(model, [first], tmp_path / "again.npz").items == 20


@pytest.mark.parametrize("output", [".", "..", "/", "a/.."])
def test_an_output_without_a_name_is_refused(output: str, model: str, source: str) -> None:
    with pytest.raises(InputError, match="does not end in the name of a file or folder"):
        run(model, [source], Path(output))


def test_nothing_of_the_user_is_overwritten(tmp_path: Path, model: str, source: str) -> None:
    (tmp_path / "out.npz").write_bytes(b"mine")
    with pytest.raises(InputError, match="exists: name another output"):
        run(model, [source], tmp_path / "out.npz")
    with pytest.raises(InputError, match="exists, and there is no"):
        run(model, [source], tmp_path / "out.npz", resume=True)
    assert (tmp_path / "out.npz").read_bytes() == b"mine"
    (tmp_path / "x.npz.sqlite").write_bytes(b"SQLite format 3\0 not at all" * 100)
    with pytest.raises(InputError, match="is not a manifest"):
        run(model, [source], tmp_path / "x.npz", resume=True)


@pytest.mark.parametrize(
    ("change", "option"),
    [("DELETE FROM job WHERE key = 'softmax'", "softmax"), ("INSERT INTO job VALUES ('top', '5')", "top")],
)
def test_a_manifest_with_options_of_another_version_is_refused(
    change: str, option: str, tmp_path: Path, model: str, source: str
) -> None:
    run(model, [source], tmp_path / "x.npz")
    with closing(sqlite3.connect(tmp_path / "x.npz.sqlite")) as database:
        database.execute(change)
        database.commit()
    text = (
        rf"x.npz.sqlite: was written by another version of irexec, with other options \({option}\): name another output"
    )
    with pytest.raises(InputError, match=text):
        run(model, [source], tmp_path / "x.npz", resume=True)


def test_the_output_of_a_manifest_without_an_id_is_no_item(tmp_path: Path, model: str, source: str) -> None:
    """The first manifests had no application id."""
    run(model, [source], tmp_path / "x.npy")
    assert EarlierOutputs(str(tmp_path)).has(str(tmp_path / "x.npy"))
    with closing(sqlite3.connect(tmp_path / "x.npy.sqlite")) as database:
        database.execute("PRAGMA application_id=0")
        database.commit()
        database.execute("PRAGMA journal_mode=DELETE")
    assert EarlierOutputs(str(tmp_path)).has(str(tmp_path / "x.npy"))
    with closing(sqlite3.connect(tmp_path / "items.npy.sqlite")) as database:
        database.execute("CREATE TABLE items (name TEXT)")
        database.commit()
    assert not EarlierOutputs(str(tmp_path)).has(source)


def test_a_database_of_another_program_is_not_written_to(tmp_path: Path, model: str, source: str) -> None:
    with closing(sqlite3.connect(tmp_path / "x.npz.sqlite")) as database:
        database.execute("CREATE TABLE job (key TEXT, value TEXT)")
        database.commit()
    before = (tmp_path / "x.npz.sqlite").read_bytes()
    with pytest.raises(InputError, match="is not a manifest that this irexec batch has written"):
        run(model, [source], tmp_path / "x.npz", resume=True)
    assert (tmp_path / "x.npz.sqlite").read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM job WHERE key = 'part_size'",
        *(f"UPDATE job SET value = {value} WHERE key = 'part_size'" for value in ("0", "-1", "'x'", "NULL", "'٣'")),
    ],
)
def test_a_manifest_with_a_wrong_size_of_parts(tmp_path: Path, model: str, source: str, change: str) -> None:
    report = run(model, [source], tmp_path / "x.npz")
    with closing(sqlite3.connect(report.manifest)) as database:
        database.execute(change)
        database.commit()
    with pytest.raises(InputError, match="is damaged: its part_size is"):
        run(model, [source], tmp_path / "x.npz", resume=True)


def test_a_manifest_with_parts_that_the_job_does_not_have(tmp_path: Path, model: str, source: str) -> None:
    report = run(model, [source], tmp_path / "x.npz")
    with closing(sqlite3.connect(report.manifest)) as database:
        database.executemany("INSERT INTO parts VALUES (?)", [(-1,), (1 << 62,)])
        database.commit()
    assert run(model, [source], tmp_path / "x.npz", resume=True).resumed == 20


@pytest.mark.parametrize("output, was_there", [("out.npz", False), ("out", False), ("out", True)])
def test_a_model_that_does_not_compile_leaves_nothing(tmp_path: Path, output: str, was_there: bool) -> None:
    np.save(tmp_path / "items.npy", np.zeros((2, 1, 28, 28), np.float32))
    before = [tmp_path / "items.npy"]
    if was_there:
        (tmp_path / output).mkdir()
        before.append(tmp_path / output)
    with pytest.raises(IrexecError, match="layer 999, which does not exist"):
        run("samples/digits/damaged.xml", [str(tmp_path / "items.npy")], tmp_path / output)
    assert sorted(tmp_path.rglob("*")) == sorted(before)


def test_the_name_of_a_folder_has_no_suffix_or_ends_in_a_slash(tmp_path: Path, model: str, source: str) -> None:
    job = BatchJob(model=model)
    with pytest.raises(
        InputError,
        match=r"\.tsv is none of \.npz, \.npy, \.parquet, \.jsonl, \.csv; for a folder of this name write .*out\.tsv/",
    ):
        run_job([source], job, BatchOptions(output=str(tmp_path / "out.tsv"), jobs=1))
    run_job([source], job, BatchOptions(output=f"{tmp_path / 'out.v2'}/"), engine=InThisProcess)
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out.v2", "out.v2.sqlite"]
    run_job([source], job, BatchOptions(output=str(tmp_path / "out.v2"), resume=True), engine=InThisProcess)


@pytest.mark.parametrize(
    "change, says",
    [
        ({"batch_size": 3}, "batch_size was 2, and is 3"),
        ({"limit": 4}, "there were 20 items, and are 4|item 4 was"),
        ({"image": ImageOptions(bgr=True)}, "image was"),
        ({"predictor": PredictorOptions(tensors=("x",))}, "tensors was"),
        ({"topk": 2}, "topk was null, and is 2"),
    ],
)
def test_another_job_does_not_go_on_with_it(
    tmp_path: Path, model: str, source: str, change: dict[str, Any], says: str
) -> None:
    run(model, [source], tmp_path / "out", batch_size=2)
    with pytest.raises(InputError, match=rf"was begun as another job: .*({says})"):
        run(model, [source], tmp_path / "out", **{"batch_size": 2, **change}, resume=True)


def test_another_model_does_not_go_on_with_it(tmp_path: Path, model: str, source: str) -> None:
    run(model, [source], tmp_path / "out")
    models.twice_plus_one(tmp_path, ["1..", 3])
    with pytest.raises(InputError, match="was begun as another job: model was"):
        run(model, [source], tmp_path / "out", resume=True)


def test_two_runs_do_not_write_one_output(tmp_path: Path, model: str, source: str) -> None:
    def again(part: Any) -> None:
        with pytest.raises(InputError, match="another run writes this output"):
            run(model, [source], tmp_path / "out", resume=True)
        raise Stopped

    with pytest.raises(Stopped):
        run(model, [source], tmp_path / "out", BatchWatch(part=again))
