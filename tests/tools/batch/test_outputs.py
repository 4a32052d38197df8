"""Outputs of batch jobs: .csv, softmax, addresses, and the output of an earlier job."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from irexec.errors import InputError
from irexec.tools.batch.manifest import Manifest, assemble
from irexec.tools.batch.parts import BatchJob, ItemRow, write_part
from irexec.tools.batch.run import BatchOutput
from irexec.tools.run.results import predictions

JOB = BatchJob(model="m.xml", form="jsonl")


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_csv_has_a_column_for_each_element(tmp_path: Path) -> None:
    rows = [
        ItemRow(
            'a,"b"\n.png',
            {"y": np.array([[0.1, np.nan]], np.float32), "n": np.array(7), "t": np.array(["x,y"], object)},
        ),
        ItemRow("bad", error="not an image"),
    ]
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
