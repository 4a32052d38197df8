"""Jobs: every source and format, failures, and resuming after any interruption."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irexec import InputError, ModelError, UnsupportedError
from irexec.tools.batch import pool
from irexec.tools.batch.items import Item
from irexec.tools.batch.parts import FORMATS, BatchJob, PartRunner, PartTask
from irexec.tools.batch.pool import Processes
from irexec.tools.batch.run import BatchOptions, BatchWatch, run_job
from tests.support.tiers import some
from tests.tools.batch import models
from tests.tools.batch.models import EXPECTED, ITEMS, InThisProcess, Stopped, run


def test_npz(tmp_path: Path, model: str, source: str) -> None:
    report = run(model, [source], tmp_path / "out.npz", batch_size=3)
    with np.load(tmp_path / "out.npz") as found:
        assert sorted(found) == ["item", "y"]
        np.testing.assert_array_equal(found["y"], EXPECTED)
        assert found["item"].tolist() == [f"{source}[{i}]" for i in range(20)]
    assert (report.items, report.done, report.failed, report.waiting, report.batch_size) == (20, 20, 0, 0, 3)
    assert not (tmp_path / "out.npz.parts").exists()


def test_npy_and_jsonl(tmp_path: Path, model: str, source: str) -> None:
    run(model, [source], tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), EXPECTED)
    run(model, [source], tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert lines == [{"item": f"{source}[{i}]", "y": row} for i, row in enumerate(EXPECTED.tolist())]


def test_parquet_in_and_out(tmp_path: Path, model: str, source: str) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(
        arrow.table({"n": list(range(20)), "values": ITEMS.tolist()}), tmp_path / "in.parquet", row_group_size=7
    )
    with pytest.raises(InputError, match="has the columns n, values: choose one with --column"):
        run(model, [str(tmp_path / "in.parquet")], tmp_path / "out.parquet")
    run(model, [str(tmp_path / "in.parquet")], tmp_path / "out.parquet", column="values")
    table = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert table["y"] == EXPECTED.tolist()
    assert table["error"] == [None] * 20


@pytest.mark.parametrize("form", some(FORMATS, ["npz", "jsonl"]))
@pytest.mark.sampled(2)
def test_two_processes_write_what_one_does(tmp_path: Path, model: str, source: str, form: str) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    outputs = [tmp_path / f"{jobs}.{form}" for jobs in (1, 2)]
    for jobs, output in enumerate(outputs, 1):
        run(model, [source], output, jobs=jobs, batch_size=2, engine=Processes)
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_a_folder_of_parts(tmp_path: Path, model: str, source: str) -> None:
    run(model, [source], tmp_path / "out", form="npy", batch_size=8)
    parts = sorted((tmp_path / "out").iterdir())
    assert [part.name for part in parts] == ["part-000000.npy", "part-000001.npy", "part-000002.npy"]
    np.testing.assert_array_equal(np.concatenate([np.load(part) for part in parts]), EXPECTED)


@pytest.mark.slow
@pytest.mark.parametrize("after", some([1, 4, 19], [4]))
def test_a_job_that_ended_continues(tmp_path: Path, model: str, source: str, after: int) -> None:
    whole, ended = tmp_path / "whole.npz", tmp_path / "ended.npz"
    run(model, [source], whole, batch_size=1)
    seen: list[int] = []

    def stop(part: Any) -> None:
        seen.append(part.number)
        if len(seen) == after:
            raise Stopped

    with pytest.raises(Stopped):
        run(model, [source], ended, BatchWatch(part=stop), batch_size=1, jobs=1, engine=Processes)
    again: list[int] = []
    report = run(
        model, [source], ended, BatchWatch(part=lambda part: again.append(part.number)), batch_size=1, resume=True
    )
    assert not set(seen) & set(again)
    assert (report.resumed, report.done) == (len(seen), 20)
    assert ended.read_bytes() == whole.read_bytes()
    # Once more there is nothing to do.
    assert run(model, [source], ended, batch_size=1, resume=True).resumed == 20


def test_a_part_that_was_deleted_is_done_again(tmp_path: Path, model: str, source: str) -> None:
    run(model, [source], tmp_path / "out", form="npy", batch_size=4)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    (tmp_path / "out" / "part-000002.npy").unlink()
    assert run(model, [source], tmp_path / "out", form="npy", batch_size=4, resume=True).resumed == 16
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_without_pillow_no_job_of_images_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = models.twice_plus_one(tmp_path, [-1, 1, 2, 2])
    (tmp_path / "1.png").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(UnsupportedError, match="images need Pillow"):
        run(model, [str(tmp_path / "1.png")], tmp_path / "out.npz", engine=Processes)
    assert not (tmp_path / "out.npz.sqlite").exists()


def test_failures_have_a_reason_and_no_row(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    from PIL import Image

    model = models.twice_plus_one(tmp_path, [-1, 1, 2, 2])
    for i in (0, 2):
        Image.fromarray(np.full((2, 2), i, np.uint8)).save(tmp_path / f"{i}.png")
    (tmp_path / "1.png").write_bytes(b"no image")
    failures: list[tuple[str, str]] = []
    report = run(
        model,
        [str(tmp_path / "*.png")],
        tmp_path / "out.npz",
        BatchWatch(part=lambda part: failures.extend(part.failures)),
    )
    assert (report.done, report.failed) == (2, 1)
    assert [name for name, _ in failures] == [str(tmp_path / "1.png")]
    assert "not a readable image" in failures[0][1]
    with np.load(tmp_path / "out.npz") as found:
        assert found["y"][:, 0, 0, 0].tolist() == [1, 5]
    rows = sqlite3.connect(report.manifest).execute("SELECT name, state, part, row FROM items ORDER BY id").fetchall()
    assert [(state, row) for _, state, _, row in rows] == [("done", 0), ("failed", None), ("done", 1)]


def test_one_item_that_does_not_fit_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    model = models.twice_plus_one(tmp_path, [-1, "1..4"])
    np.savez(tmp_path / "a.npz", x=np.ones((3, 4), np.float32))
    np.savez(tmp_path / "b.npz", x=np.ones((2, 5), np.float32))
    np.savez(tmp_path / "c.npz", x=np.ones((1, 2), np.float32))
    report = run(model, [str(tmp_path / f"{name}.npz") for name in "abc"], tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert (report.done, report.failed) == (4, 2)
    assert [len(line["y"]) if "y" in line else line["error"][:40] for line in lines][:3] == [4, 4, 4]
    assert all("has shape [1,5], the model expects" in line["error"] for line in lines[3:5])
    assert lines[5]["y"] == [3, 3]


def test_results_of_different_shapes(tmp_path: Path) -> None:
    model = models.twice_plus_one(tmp_path, [-1, "1..4"])
    for name, size in (("a", 2), ("b", 3)):
        np.save(tmp_path / f"{name}.npy", np.zeros((2, size), np.float32))
    sources = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    run(model, sources, tmp_path / "out.npz", batch_size=1)
    with np.load(tmp_path / "out.npz") as found:
        assert {name: array.shape for name, array in found.items()} == {
            "item": (4,), "y/0": (2,), "y/1": (2,), "y/2": (3,), "y/3": (3,),
        }  # fmt: skip
    with pytest.raises(InputError, match=r"a \.npy takes results of one shape"):
        run(model, sources, tmp_path / "out.npy", batch_size=1)


def test_stop_at_the_first_error(tmp_path: Path, model: str, source: str) -> None:
    np.save(tmp_path / "wrong.npy", np.zeros((1, 9), np.float32))
    report = run(model, [str(tmp_path / "wrong.npy"), source], tmp_path / "out.jsonl", errors="stop", batch_size=1)
    assert report.failed == 1
    assert report.waiting > 0
    assert (
        run(
            model,
            [str(tmp_path / "wrong.npy"), source],
            tmp_path / "out.jsonl",
            errors="stop",
            batch_size=1,
            resume=True,
        ).done
        == 20
    )


def test_classes(tmp_path: Path, model: str) -> None:
    np.save(tmp_path / "x.npy", np.array([[0, 5, 1], [9, 1, 2]], np.float32))
    run(model, [str(tmp_path / "x.npy")], tmp_path / "out.jsonl", topk=2, labels=("cat", "dog", "owl"))
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(line["y.class"], line["y.score"], line["y.label"]) for line in lines] == [
        ([1, 2], [11, 3], ["dog", "owl"]),
        ([0, 2], [19, 5], ["cat", "owl"]),
    ]


@pytest.mark.slow
def test_classes_of_every_pixel(tmp_path: Path) -> None:
    """There are as many rows as pixels: here more than ``infer --topk`` would list."""
    model = models.twice_plus_one(tmp_path, [-1, 3, 700, 800])
    np.save(
        tmp_path / "x.npy", np.arange(3, dtype=np.float32).reshape(1, 3, 1, 1) * np.ones((1, 3, 700, 800), np.float32)
    )
    run(model, [str(tmp_path / "x.npy")], tmp_path / "out.npz", topk=2, labels=("cat", "dog", "owl"))
    with np.load(tmp_path / "out.npz") as found:
        np.testing.assert_array_equal(found["y.class"], np.broadcast_to([2, 1], (1, 560_000, 2)))
        np.testing.assert_array_equal(found["y.score"], np.broadcast_to([5, 3], (1, 560_000, 2)))
        np.testing.assert_array_equal(found["y.label"], np.broadcast_to(["owl", "dog"], (1, 560_000, 2)))


def test_lists_limits_and_order(tmp_path: Path, model: str, source: str) -> None:
    (tmp_path / "list.txt").write_text("items.npy\n\n")
    assert run(model, [str(tmp_path / "list.txt")], tmp_path / "a.npy", limit=3).items == 3
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), EXPECTED[:3])
    run(model, [source], tmp_path / "b.npy", shuffle_seed=5)
    found = np.load(tmp_path / "b.npy")
    assert not np.array_equal(found, EXPECTED)
    np.testing.assert_array_equal(np.sort(found, axis=0), EXPECTED)


def test_a_stored_archive_and_a_compressed_one(tmp_path: Path, model: str) -> None:
    np.savez(tmp_path / "stored.npz", x=ITEMS)
    np.savez_compressed(tmp_path / "compressed.npz", x=np.asfortranarray(ITEMS))
    run(model, [str(tmp_path / "stored.npz"), str(tmp_path / "compressed.npz")], tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), np.concatenate([EXPECTED, EXPECTED]))


def test_sources_that_are_none(tmp_path: Path, model: str) -> None:
    for name in ("missing.npy", "missing/"):
        with pytest.raises(ModelError, match="no such file or folder"):
            run(model, [str(tmp_path / name)], tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: has no \.png"):
        run(model, [str(tmp_path / "empty")], tmp_path / "out")
    with pytest.raises(InputError, match=r"\*\.png: matches no \.png"):
        run(model, [str(tmp_path / "*.png")], tmp_path / "out")
    (tmp_path / "names.txt").write_text("zero\n")
    with pytest.raises(InputError, match=r"names\.txt: the path .*zero is not a \.png"):
        run(model, [str(tmp_path / "names.txt")], tmp_path / "out")
    np.save(tmp_path / "scalar.npy", np.float32(1))
    with pytest.raises(ModelError, match="is a scalar, expected items along the first axis"):
        run(model, [str(tmp_path / "scalar.npy")], tmp_path / "out")


def test_a_job_without_an_engine_leaves_nothing(tmp_path: Path, model: str, source: str) -> None:
    def refuse(job: BatchJob, count: int | None) -> Any:
        raise InputError("there is no cluster")

    def begun() -> list[str]:
        return sorted(path.name for path in tmp_path.iterdir())

    before = begun()
    job, options = BatchJob(model=model), BatchOptions(output=str(tmp_path / "out.npz"), jobs=1)
    with pytest.raises(InputError, match="there is no cluster"):
        run_job([source], job, options, engine=refuse)
    assert begun() == before
    damaged = tmp_path / "damaged.txt"
    damaged.write_text("missing.png\nitems.npy\n")
    run_job([source, str(damaged)], replace(job, batch_size=1), replace(options, errors="stop"), engine=InThisProcess)
    kept = begun()
    with pytest.raises(InputError, match="there is no cluster"):
        run_job([source, str(damaged)], replace(job, batch_size=1), replace(options, resume=True), engine=refuse)
    assert begun() == kept


@pytest.mark.slow
def test_processes_do_not_wait_for_the_disk(
    tmp_path: Path, model: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(pool, "flush_file", lambda path: flushed.append(path.name))
    run(model, [source], tmp_path / "out", batch_size=8, jobs=1, engine=Processes)
    assert (
        sorted(flushed)
        == sorted(path.name for path in (tmp_path / "out").iterdir())
        == [f"part-00000{i}.npz" for i in range(3)]
    )


@pytest.mark.parametrize(("flushes", "count"), [(True, 1), (False, 0)])
def test_a_part_is_flushed_where_it_is_written_or_by_the_command(
    flushes: bool, count: int, tmp_path: Path, model: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(os, "fsync", calls.append)
    task = PartTask(0, tmp_path / "part.npy", (Item(source, "arrays", 0),))
    assert PartRunner(BatchJob(model=model, form="npy"), flushes=flushes)(task).is_flushed is flushes
    assert len(calls) == count
    np.testing.assert_array_equal(np.load(task.file), EXPECTED[:1])


def test_a_disk_that_is_full_when_it_is_flushed_ends_the_job(
    tmp_path: Path, model: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pool, "flush_file", full)
    with pytest.raises(ModelError, match="cannot be written: No space left on device"):
        run(model, [source], tmp_path / "out.npz", jobs=1, engine=Processes)
    monkeypatch.undo()
    assert run(model, [source], tmp_path / "out.npz", resume=True).done == 20
