"""Outputs of batch jobs: formats, addresses, outputs that exist, and the manifest of a job that is resumed."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irexec import IrexecError
from irexec.errors import InputError
from irexec.tools.batch.items import EarlierOutputs, Items
from irexec.tools.batch.manifest import Manifest, assemble
from irexec.tools.batch.parts import BatchJob, ItemRow, write_part
from irexec.tools.batch.predictor import PredictorOptions
from irexec.tools.batch.run import BatchOptions, BatchOutput, BatchWatch, run_job
from irexec.tools.images import ImageOptions
from irexec.tools.run.results import predictions
from tests.tools.batch import models
from tests.tools.batch.models import InThisProcess, Stopped, run

JOB = BatchJob(model="m.xml", form="jsonl")


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_csv_has_a_column_for_each_element(tmp_path: Path) -> None:
    rows = [
        ItemRow('a,"b"\n.png', {"y": np.array([[0.1, np.nan]], np.float32), "n": np.array(7), "t": np.array(["x,y"], object)}),
        ItemRow("bad", error="not an image"),
    ]  # fmt: skip
    assert write_part(tmp_path / "p.csv", rows, "csv") == [0, 1]
    assert _read(tmp_path / "p.csv") == [
        {"item": 'a,"b"\n.png', "y[0,0]": "0.1", "y[0,1]": "nan", "n": "7", "t[0]": "x,y", "error": ""},
        {"item": "bad", "y[0,0]": "", "y[0,1]": "", "n": "", "t[0]": "", "error": "not an image"},
    ]


def test_parts_of_different_columns_become_one_csv(tmp_path: Path) -> None:
    parts = [tmp_path / f"{n}.csv" for n in range(3)]
    write_part(parts[0], [ItemRow("a", error="bad")], "csv")
    write_part(parts[1], [ItemRow("b", {"y": np.array([1, 2])})], "csv")
    write_part(parts[2], [ItemRow("c", {"y": np.array([3, 4, 5])})], "csv")
    assemble(tmp_path / "all.csv", parts, "csv")
    assert _read(tmp_path / "all.csv") == [
        {"item": "a", "y[0]": "", "y[1]": "", "y[2]": "", "error": "bad"},
        {"item": "b", "y[0]": "1", "y[1]": "2", "y[2]": "", "error": ""},
        {"item": "c", "y[0]": "3", "y[1]": "4", "y[2]": "5", "error": ""},
    ]


def test_values_of_f64_keep_their_bits_in_a_csv(tmp_path: Path) -> None:
    value = np.array([np.pi * 1e-300])
    write_part(tmp_path / "p.csv", [ItemRow("a", {"y": value})], "csv")
    assert float(_read(tmp_path / "p.csv")[0]["y[0]"]) == value[0]


def test_large_results_are_refused_in_a_csv(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"at most 10,000 elements, 'y' has 10,001"):
        write_part(tmp_path / "p.csv", [ItemRow("a", {"y": np.zeros(10_001)})], "csv")
    with pytest.raises(InputError, match="'error' has the name"):
        write_part(tmp_path / "p.csv", [ItemRow("a", {"error": np.zeros(1)})], "csv")


@pytest.mark.parametrize("output", ["s3://bucket/x.jsonl", "gs://b/x", "file:///tmp/x.npz", "hdfs+x://b"])
def test_addresses_are_not_local_folders(output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="is an address: results are written to a local file"):
        BatchOutput(output, JOB)
    assert list(tmp_path.iterdir()) == []


def test_a_path_of_windows_is_not_an_address(tmp_path: Path) -> None:
    assert BatchOutput("C:\\x\\y.jsonl", JOB).file is not None


def _started(path: Path, states: dict[str, int]) -> None:
    """The manifest of a job whose items are in these states."""
    items = [state for state, count in states.items() for _ in range(count)]

    class Names(list):  # type: ignore[type-arg]
        pass

    with_names = Names(type("I", (), {"name": str(n)})() for n in range(len(items)))
    manifest = Manifest(path)
    manifest.begin({}, with_names, 2)  # type: ignore[arg-type]
    manifest._db.executemany("UPDATE items SET state = ? WHERE id = ?", [(s, i) for i, s in enumerate(items)])
    manifest.close()


def _refused(output: Path) -> str:
    with pytest.raises(InputError) as found, BatchOutput(str(output), JOB).open(False):
        pass
    return str(found.value)


def test_a_job_that_was_interrupted_is_named_with_its_counts(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    _started(tmp_path / "out.jsonl.sqlite", {"done": 3, "failed": 1, "waiting": 6})
    assert _refused(output) == (
        f"a job that writes {output} was started (4 of 10 items done): --resume continues it, --restart starts anew"
    )


def test_a_job_that_is_complete_is_named_so(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    output.write_text("{}")
    _started(tmp_path / "out.jsonl.sqlite", {"done": 2})
    assert (
        _refused(output)
        == f"-o {output} is the output of a complete job (2 items): --restart replaces it, or name another"
    )


def test_restart_deletes_what_the_job_has_written_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    for name in ("part-000000.jsonl", "part-000001.jsonl", "notes.txt", "part-x.jsonl"):
        (folder / name).write_text(name)
    _started(tmp_path / "out.sqlite", {"done": 2})
    BatchOutput(str(folder), JOB).discard()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    assert sorted(path.name for path in folder.iterdir()) == ["notes.txt", "part-x.jsonl"]


def test_restart_deletes_a_file_and_its_parts(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("{}")
    (tmp_path / "out.jsonl.parts").mkdir()
    (tmp_path / "out.jsonl.parts" / "part-000000.jsonl").write_text("{}")
    _started(tmp_path / "out.jsonl.sqlite", {"done": 1, "waiting": 1})
    BatchOutput(str(tmp_path / "out.jsonl"), JOB).discard()
    assert list(tmp_path.iterdir()) == []


def test_restart_deletes_no_file_of_others(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("mine")
    with pytest.raises(InputError, match="exists and has no manifest"):
        BatchOutput(str(tmp_path / "out.jsonl"), JOB).discard()
    (tmp_path / "out.jsonl.sqlite").write_text("mine too")
    with pytest.raises(InputError, match="is not a manifest"):
        BatchOutput(str(tmp_path / "out.jsonl"), JOB).discard()
    assert (tmp_path / "out.jsonl").read_text() == "mine"


def test_restart_without_an_earlier_job_does_nothing(tmp_path: Path) -> None:
    BatchOutput(str(tmp_path / "out.jsonl"), JOB).discard()
    assert list(tmp_path.iterdir()) == []


def test_softmax_of_scores() -> None:
    values = np.array([[1.0, 3.0, 2.0]], np.float32)
    powers = np.exp(np.array([1.0, 3.0, 2.0]))
    found = predictions({"y": values}, 3, softmax=True)
    assert [one.index for one in found] == [1, 2, 0]
    assert [one.score for one in found] == pytest.approx([powers[k] / powers.sum() for k in (1, 2, 0)])


def test_softmax_of_large_values_and_of_another_axis() -> None:
    values = np.array([[[1e30, 0.0]], [[1e30, np.log(3.0)]]], np.float64)
    found = predictions({"y": values}, 1, axis=0, softmax=True)
    assert [(one.position, one.score) for one in found] == [((0,), 0.5), ((1,), pytest.approx(0.75))] or [
        one.score for one in found
    ] == pytest.approx([0.5, 0.75])


def test_softmax_decides_whether_a_job_is_the_same() -> None:
    one, other = BatchJob(model="m.xml", topk=1), BatchJob(model="m.xml", topk=1, softmax=True)
    assert json.loads(one.described()["softmax"]) is False
    assert one.described() != other.described()


# Outputs that exist: of earlier jobs, of another job, of the user.


@pytest.mark.parametrize("output", ["out.npz", "out"])
@pytest.mark.parametrize("pattern", ["", "**/*.np?"])
def test_the_output_among_the_sources_is_not_an_item(
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
def test_outputs_of_earlier_jobs_are_not_items(
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


def test_the_output_of_a_manifest_without_an_id_is_not_an_item(tmp_path: Path, model: str, source: str) -> None:
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
def test_another_job_does_not_continue_it(
    tmp_path: Path, model: str, source: str, change: dict[str, Any], says: str
) -> None:
    run(model, [source], tmp_path / "out", batch_size=2)
    with pytest.raises(InputError, match=rf"was begun as another job: .*({says})"):
        run(model, [source], tmp_path / "out", **{"batch_size": 2, **change}, resume=True)


def test_another_model_does_not_continue_it(tmp_path: Path, model: str, source: str) -> None:
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


# Manifests: whether the items of a job that is resumed are those it was begun with.


_BEGUN = Items([("a.npy", "arrays", 3), ("b.png", "image", 1)])


@pytest.fixture
def manifest(tmp_path: Path) -> Iterator[Manifest]:
    """That of a job of four items."""
    opened = Manifest(tmp_path / "out.sqlite")
    opened.begin({}, _BEGUN, 2)
    yield opened
    opened.close()


def test_the_same_items(manifest: Manifest) -> None:
    assert manifest.same_items(_BEGUN) == ""


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([("a.npy", "arrays", 3), ("b.png", "image", 1), ("c.png", "image", 1)], "there were 4 items, and are 5"),
        ([("a.npy", "arrays", 4), ("b.png", "image", 1)], "item 3 was b.png, and is a.npy[3]"),
        ([("a.npy", "arrays", 3)], "item 3 was b.png, and is nothing"),
        ([("b.png", "image", 1), ("a.npy", "arrays", 3)], "item 0 was a.npy[0], and is b.png"),
        ([], "item 0 was a.npy[0], and is nothing"),
    ],
    ids=["one more at the end", "one more in the middle", "one less", "another order", "none"],
)
def test_other_items(items: list, says: str, manifest: Manifest) -> None:
    assert manifest.same_items(Items(items)) == says
