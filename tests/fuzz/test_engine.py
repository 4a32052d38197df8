"""The fuzzer finds what is planted, groups it, makes it small and replays it; its earlier findings end as they should."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz import __main__ as command
from tests.fuzz import targets
from tests.fuzz.__main__ import main
from tests.fuzz.case import Case, read_case, write_case
from tests.fuzz.pool import Pool
from tests.fuzz.shrink import minimise, parts, smaller_arguments, smaller_bytes, smaller_npz
from tests.fuzz.worker import Job, Settings
from tests.support.tiers import some

_LAYER = '<layer id="{0}" name="l{0}" type="{1}" version="opset1"><data alpha="1"/></layer>'
_VALIDATE = "irexec/analysis/validate.py:validate"


def _case(*types: str) -> Case:
    layers = "".join(_LAYER.format(i, type) for i, type in enumerate(types))
    text = f'<net name="n" version="11"><layers>{layers}</layers><edges/></net>'
    return Case("xml", {"m.xml": text.encode(), "m.bin": b""}, {"seed": 0, "optimize": True, "commands": []})


@pytest.mark.parametrize(
    ("plant", "kind", "what"),
    [
        ("exception", "exception", "ZeroDivisionError"),
        ("warning", "warning", "RuntimeWarning"),
        ("loop", "hang", "processor time"),
        ("loop_in_c", "hang", "did not stop itself"),
        ("memory", "memory", "MemoryError"),
        ("crash", "crash", "SIGABRT"),
        ("file", "audit", "open"),
        ("output", "output", "text on stdout"),
    ],
)
@pytest.mark.sampled(3)
def test_each_kind_of_fault_is_found(plant: str, kind: str, what: str) -> None:
    # The second process of a pool imports in its first job.
    settings = Settings(2, 256 << 20, grace=2, plant=f"tests.fuzz.planted:{plant}")
    with Pool(1, settings) as pool:
        assert pool.one(Job("xml", case=_case("Relu"))).findings == ()
        result = pool.one(Job("xml", case=_case("Elu")))
        assert (kind, what) in [(finding.kind, finding.what) for finding in result.findings], result.findings
        if kind != "output":
            assert {finding.where for finding in result.findings} == {_VALIDATE}
        # The process continues, or another one does.
        assert pool.one(Job("xml", case=_case("Relu"))).findings == ()


@pytest.mark.slow
def test_a_fault_is_grouped_minimised_and_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant = ["--plant", "tests.fuzz.planted:exception"]
    assert (
        main(
            ["--target", "xml", "--seed", "3", "--cases", "45", "--output", str(tmp_path), "--minimise", "150", *plant]
        )
        == 1
    )
    (path,) = tmp_path.glob("*ZeroDivisionError*.case")
    case = read_case(path.read_text("utf-8"))
    assert case.files["m.xml"].count(b"<layer ") == 1
    assert b'type="Elu"' in case.files["m.xml"]
    assert "m.bin" not in case.files
    assert capsys.readouterr().out.count("ZeroDivisionError") == 2
    assert main(["--replay", str(path), *plant]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().out
    assert main(["--replay", str(path)]) == 0
    assert "no finding" in capsys.readouterr().out


@pytest.mark.slow
def test_the_log_of_a_run_has_its_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--target", "inputs", "--cases", "3", "--workers", "1", "--output", str(tmp_path)]
    monkeypatch.setattr(command, "_EVERY", 0.0)
    assert main(words) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" cases ")[0] for line in lines] == [f"so far inputs {count}" for count in (1, 2, 3)]
    assert all(line.endswith("0 groups of findings") for line in lines)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", targets.TARGETS)
def test_seed_and_number_give_a_case(name: str) -> None:
    for number in range(3):
        text = write_case(targets.generate(name, 1, number))
        assert text == write_case(targets.generate(name, 1, number))
        assert write_case(read_case(text)) == text
    assert write_case(targets.generate(name, 1, 0)) != write_case(targets.generate(name, 2, 0))


@pytest.mark.slow
def test_findings_do_not_depend_on_the_number_of_workers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for workers in ("1", "2"):
        folder = tmp_path / workers
        words = [
            "--target", "inputs", "--cases", "24", "--workers", workers, "--minimise", "0", "--output", str(folder),
        ]  # fmt: skip
        main([*words, "--plant", "tests.fuzz.planted:frequent_exception"])
        # The log of a run as short as this one has no progress.
        assert "so far" not in capsys.readouterr().err
        found.append({path.name: path.read_text("utf-8") for path in folder.iterdir()})
    assert found[0]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "data",
    [
        b"", b"a\nb", b"a\n", b"--- x\n", b"\xff\x00", bytes(5000), b"\r\n", "\u202e".encode(),
        bytes(range(256)) + bytes(13),
    ],
)  # fmt: skip
def test_a_file_is_kept_as_it_is(data: bytes) -> None:
    case = Case("xml", {"m.xml": data, "a b\n.bin": b"x"}, {"a": [1.5, float("inf"), "é\n"], "b": None})
    again = read_case(write_case(case, "a comment\nof two lines"))
    assert (again.target, again.files, again.arguments) == (case.target, case.files, case.arguments)


def test_the_smallest_is_found() -> None:
    case = Case("xml", {}, {"values": list(range(40)), "more": "abcdef"})
    small, used = minimise(case, lambda other: {7, 31} <= set(other.arguments["values"]), smaller_arguments)
    assert small.arguments == {"values": [7, 31], "more": ""}
    assert used < 200
    assert minimise(case, lambda other: True, smaller_arguments, runs=1)[1] == 1


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_that_cannot_be_read_become_smaller_as_bytes(method: int) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("a.npy", bytes(range(256)) * 4)
    data = bytearray(file.getvalue())
    start = 30 + len("a.npy")
    data[start + 4 : start + 20] = b"\xff" * 16
    assert next(smaller_npz(bytes(data))) == bytes(data)[len(data) // 2 :]


def test_parts_are_smaller() -> None:
    assert list(parts("abcd")) == ["cd", "ab", "bcd", "acd", "abd", "abc"]
    assert list(parts([])) == []
    assert list(smaller_bytes(b"\x00\x01"))[-1] == b"\x00\x00"


# What the fuzzer has found, and what was mended: each of the cases ends as it should.


_CASES = sorted((Path(__file__).parent / "regressions").glob("*.case"))


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, Settings()) as found:
        yield found


@pytest.mark.parametrize("path", _CASES, ids=lambda path: path.stem)
@pytest.mark.sampled(8)
def test_nothing_is_found_again(path: Path, pool: Pool) -> None:
    case = read_case(path.read_text("utf-8"))
    assert pool.one(Job(case.target, case=case)).findings == ()


# A few odd inputs of every kind in every run of the tests; ``python -m tests.fuzz --target inputs`` goes through all of
# them.


@pytest.mark.slow
@pytest.mark.parametrize("cases", some([30, 120], [30]))
def test_odd_inputs_end_in_a_result_or_in_a_sentence(cases: int, pool: Pool) -> None:
    results = [pool.one(Job("inputs", seed=1, number=number)) for number in range(cases)]
    assert {number: list(map(str, result.findings)) for number, result in enumerate(results) if result.findings} == {}
