"""irexec validate with several files, folders, stdin, ignored codes and many findings."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from irexec.analysis.codes import CODES
from irexec.cli.main import run

ROOT = Path(__file__).parent.parent.parent
DIGITS = ROOT / "samples" / "digits"
IRS = ROOT / "tests" / "data" / "openvino"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a model, one with a damaged model in it, and a file of another kind."""
    (tmp_path / "inner").mkdir()
    for name, where in (("classifier", tmp_path), ("damaged", tmp_path / "inner")):
        for suffix in (".xml", ".bin"):
            shutil.copy(DIGITS / f"{name}{suffix}", where)
    (tmp_path / "notes.txt").write_text("<net/>")
    return tmp_path


def _said(capsys: Capture, *arguments: object, code: int) -> str:
    assert run(["validate", *map(str, arguments)]) == code
    return capsys.readouterr().out


def test_the_summary_names_the_path_as_given(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(DIGITS)
    assert _said(capsys, "damaged.xml", code=1).endswith("\ndamaged.xml: 9 errors, 1 warning\n")
    assert _said(capsys, "classifier.xml", code=0) == "classifier.xml: no findings\n"


def test_folders_are_searched(folder: Path, capsys: Capture) -> None:
    lines = _said(capsys, folder, code=1).splitlines()
    assert lines[0] == f"{folder / 'classifier.xml'}: no findings"
    assert lines[-2:] == [f"{folder / 'inner' / 'damaged.xml'}: 9 errors, 1 warning", "2 files: 9 errors, 1 warning"]


def test_several_files(folder: Path, capsys: Capture) -> None:
    text = _said(capsys, folder / "classifier.xml", IRS / "loop.xml", code=0)
    assert text == f"{folder / 'classifier.xml'}: no findings\n{IRS / 'loop.xml'}: no findings\n2 files: no findings\n"


def test_one_unreadable_file_does_not_hide_the_others(folder: Path, capsys: Capture) -> None:
    (folder / "inner" / "other.xml").write_text("<project/>")
    assert run(["validate", str(folder)]) == 3
    out, err = capsys.readouterr()
    assert "2 files" not in out
    assert out.endswith("3 files: 9 errors, 1 warning, 1 not readable\n")
    assert out.splitlines()[-2].startswith(str(folder / "inner" / "other.xml"))
    assert err == ""
    assert run(["validate", "--quiet", str(folder / "classifier.xml"), str(folder / "inner" / "other.xml")]) == 3
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"error: {folder / 'inner' / 'other.xml'}")


def test_codes_are_ignored(capsys: Capture) -> None:
    codes = ["IR302", "ir103", "IR013", "IR107", "IR203", "IR401", "IR202", "IR204"]
    options = [word for code in codes for word in ("--ignore", code)]
    text = _said(capsys, DIGITS / "damaged.xml", *options, code=1)
    assert "IR011" in text
    assert text.endswith("damaged.xml: 1 error, 9 ignored\n")
    text = _said(capsys, DIGITS / "damaged.xml", *options, "--ignore", "IR011", code=0)
    assert text.endswith("damaged.xml: 10 ignored\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ignore", "IR899", DIGITS / "damaged.xml"], "there is no finding code 'IR899'"),
        (["--bin", DIGITS / "damaged.bin", DIGITS / "damaged.xml", DIGITS / "classifier.xml"], "--bin is for a single model"),
        ([], "MODEL..."),
        (["--json", "--format", "sarif", DIGITS / "damaged.xml"], "--format sarif and --json both say what is printed"),
        (["--format", "table", "--json", DIGITS / "damaged.xml"], "--format table and --json both say what is printed"),
        (["--json", "--explain", DIGITS / "damaged.xml"], "--explain is for the table, not for --format json"),
        ([ROOT / "tests" / "data" / "onnx"], "contains no .xml"),
    ],
)  # fmt: skip
def test_wrong_usage(arguments: list[object], message: str, capsys: Capture) -> None:
    assert run(["validate", *map(str, arguments)]) == 2
    assert message in capsys.readouterr().err


def _stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_stdin(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    _stdin(monkeypatch, (DIGITS / "damaged.xml").read_bytes())
    text = _said(capsys, "-", "--bin", DIGITS / "damaged.bin", code=1)
    assert text.endswith("\nstdin: 9 errors, 1 warning\n")


def test_stdin_without_weights_is_checked(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    _stdin(monkeypatch, (DIGITS / "damaged.xml").read_bytes())
    document = json.loads(_said(capsys, "-", "--json", code=1))
    assert {"IR022", "IR103", "IR011"} <= {finding["code"] for finding in document["findings"]}
    assert document["models"][0]["model"] == "-"


def test_json_of_many(folder: Path, capsys: Capture) -> None:
    document = json.loads(_said(capsys, folder, "--json", code=1))
    assert document["models"] == [
        {"model": str(folder / "classifier.xml"), "counts": {}, "ignored": 0, "known": 0, "error": None},
        {"model": str(folder / "inner" / "damaged.xml"), "counts": {"error": 9, "warning": 1}, "ignored": 0, "known": 0, "error": None},
    ]  # fmt: skip
    assert {finding["model"] for finding in document["findings"]} == {str(folder / "inner" / "damaged.xml")}
    assert len(document["findings"]) == 10


@pytest.mark.slow
def test_thousands_of_findings_are_cut_in_the_table_alone(tmp_path: Path, capsys: Capture) -> None:
    layers = "".join(f'<layer id="{i}" name="l{i}" type="ReLU"/>\n' for i in range(12_000))
    (tmp_path / "m.xml").write_text(f'<net name="n" version="11"><layers>{layers}</layers><edges/></net>')
    lines = _said(capsys, tmp_path / "m.xml", code=1).splitlines()
    assert len(lines) == 10_005
    assert lines[-3:] == [
        "... and 2,002 more findings; --json gives all of them",
        "",
        f"{tmp_path / 'm.xml'}: 12,002 errors",
    ]
    assert len(json.loads(_said(capsys, tmp_path / "m.xml", "--json", code=1))["findings"]) == 12_002


def test_only_new_findings_fail_with_a_baseline(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    path = folder / "inner" / "damaged.xml"
    known = tmp_path / "known.json"
    known.write_text(_said(capsys, folder, "--json", code=1))
    assert _said(capsys, folder, "--baseline", known, code=0).endswith("2 files: 10 known\n")
    path.write_text(path.read_text().replace('type="Softmax"', 'type="Softmaxx"').replace("SoftMax", "SoftMaxx"))
    text = _said(capsys, folder, "--baseline", known, code=1)
    assert "1 error" in text
    assert "known" in text
    document = json.loads(_said(capsys, folder, "--baseline", known, "--json", code=1))
    assert {finding["layer_type"] for finding in document["findings"]} == {"SoftMaxx"}


def test_a_baseline_names_what_no_longer_occurs(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    known = tmp_path / "known.json"
    known.write_text(_said(capsys, folder, "--json", code=1))
    for suffix in (".xml", ".bin"):
        shutil.copy(DIGITS / f"classifier{suffix}", folder / "inner" / f"damaged{suffix}")
    assert run(["validate", str(folder), "--baseline", str(known)]) == 0
    assert capsys.readouterr().err == f"note: 10 findings of {known} no longer occur\n"


@pytest.mark.slow
def test_several_processes_print_the_same(folder: Path, capsys: Capture) -> None:
    assert _said(capsys, folder, "--jobs", 2, code=1) == _said(capsys, folder, code=1)


def test_junit_has_times(folder: Path, capsys: Capture) -> None:
    from xml.etree import ElementTree

    root = ElementTree.fromstring(_said(capsys, folder, "--format", "junit", code=1))
    suites = root.findall("testsuite")
    assert float(root.get("time", "nan")) == pytest.approx(sum(float(suite.get("time", "nan")) for suite in suites))
    for suite in suites:
        total = float(suite.get("time", "nan"))
        assert total > 0
        cases = suite.findall("testcase")
        assert sum(float(case.get("time", "nan")) for case in cases) == pytest.approx(total, abs=0.001 * len(cases))


# irexec explain, and the table of finding codes behind it.


def test_a_code_is_explained(capsys: Capture) -> None:
    assert run(["explain", "ir103"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("IR103 missing attribute (error)\nA required attribute is missing.\n")
    assert "Example:\n  <layer " in text
    assert "Repair: Write the attribute" in text


@pytest.mark.parametrize("width", [40, 80])
def test_sentences_are_wrapped_at_words(width: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert run(["explain", "IR103"]) == 0
    unlimited = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["explain", "IR103"]) == 0
    text = capsys.readouterr().out
    assert text.split() == unlimited.split()
    assert max(len(line) for line in text.splitlines() if not line.startswith("  ")) <= width


def test_without_a_code_all_are_listed(capsys: Capture) -> None:
    assert run(["explain"]) == 0
    text = capsys.readouterr().out
    assert all(code in text for code in CODES)


def test_as_json(capsys: Capture) -> None:
    assert run(["explain", "IR201", "IR103", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["code"] for row in document["codes"]] == ["IR201", "IR103"]
    assert set(document["codes"][0]) == {"code", "name", "severity", "meaning", "example", "repair"}


@pytest.mark.parametrize(
    ("name", "expected"), [("IR118", "similar codes are IR110, IR911"), ("nonsense", "irexec explain lists all codes")]
)
def test_an_unknown_code_is_wrong_usage(name: str, expected: str, capsys: Capture) -> None:
    assert run(["explain", name]) == 2
    err = capsys.readouterr().err
    assert f"there is no finding code {name!r}" in err
    assert expected in err


@pytest.mark.parametrize("row", CODES.values(), ids=lambda row: row.code)
def test_a_row_is_complete(row) -> None:
    assert re.fullmatch(r"(IR|ON)\d{3,4}", row.code)
    assert row.name == row.name.lower() or ".bin" in row.name or row.code.startswith("ON")
    assert not row.meaning.endswith(".")
    assert row.repair.endswith((".", "..."))
    if row.code.startswith("IR"):
        ElementTree.fromstring(f"<example>{row.example}</example>")
