"""Known findings, and validation in several processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

from irexec.errors import InputError, ModelError
from irexec.ir.findings import Finding
from irexec.tools import validation
from irexec.tools.validation import FileReport, read_baseline, report_always, reports
from tests.support.paths import DIGITS, IRS


def _finding(code: str = "IR103", name: str | None = "a", port: int | None = None, **other: object) -> Finding:
    values = {"severity": "error", "layer_id": 1, "layer_type": "Add", "line": 5, "message": "wrong"} | other
    return Finding(code, layer_name=name, port=port, **values)  # type: ignore[arg-type]


def _baseline(folder: Path, *findings: Finding, model: str = "m.xml") -> Path:
    path = folder / "known.json"
    path.write_text(json.dumps({"schema": 1, "findings": [{"model": model, **one.as_dict()} for one in findings]}))
    return path


def _left(path: Path, *findings: Finding, model: str = "m.xml") -> tuple[list[Finding], int, int]:
    (found,), gone = read_baseline(str(path)).apply([FileReport(model, findings)])
    return list(found.findings), found.known, gone


def test_lines_ids_and_values_may_change(tmp_path: Path) -> None:
    path = _baseline(tmp_path, _finding())
    assert _left(path, _finding(line=9, layer_id=7, message="otherwise")) == ([], 1, 0)


@pytest.mark.parametrize("other", [_finding("IR104"), _finding(name="b"), _finding(port=1), _finding(name=None)])
def test_another_code_layer_or_port_is_new(other: Finding, tmp_path: Path) -> None:
    assert _left(_baseline(tmp_path, _finding()), other) == ([other], 0, 1)


def test_a_layer_without_a_name_is_known_by_its_id(tmp_path: Path) -> None:
    path = _baseline(tmp_path, _finding(name=None))
    other = _finding(name=None, layer_id=2)
    assert _left(path, _finding(name=None), other) == ([other], 1, 0)


def test_a_second_finding_of_the_same_kind_is_new(tmp_path: Path) -> None:
    first, second = _finding(), _finding(message="second")
    assert _left(_baseline(tmp_path, first), first, second) == ([second], 1, 0)


def test_paths_are_compared_without_dots(tmp_path: Path) -> None:
    path = _baseline(tmp_path, _finding(), model="./models/../models/m.xml")
    assert _left(path, _finding(), model="models/m.xml") == ([], 1, 0)
    assert _left(path, _finding(), model="models/other.xml")[1] == 0


def test_findings_of_files_and_codes_that_are_not_looked_at_are_not_gone(tmp_path: Path) -> None:
    path = _baseline(tmp_path, _finding())
    _, gone = read_baseline(str(path)).apply([FileReport("other.xml", ())])
    assert gone == 0
    _, gone = read_baseline(str(path)).apply([FileReport("m.xml", ())], {"IR103"})
    assert gone == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a document of irexec validate --json: Expecting value"),
        ("[]", "which has 'schema': 1 and 'findings'"),
        ('{"schema": 2, "findings": []}', "which has 'schema': 1 and 'findings'"),
        ('{"schema": 1}', "which has 'schema': 1 and 'findings'"),
        ('{"schema": 1, "findings": [1]}', "a finding has no valid 'model'"),
        ('{"schema": 1, "findings": [{"model": "m", "code": 3}]}', "a finding has no valid 'code'"),
    ],
)
def test_other_documents(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=message.replace("[", r"\[")):
        read_baseline(str(tmp_path / "x.json"))


def test_a_baseline_that_does_not_exist_says_how_to_write_it(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"No such file or directory; irexec validate --json > .* writes a baseline"):
        read_baseline(str(tmp_path / "none.json"))


# Validation in several processes: the same reports in the same order, also if a process dies.


FILES = [str(DIGITS / "classifier.xml"), str(DIGITS / "damaged.xml"), str(IRS / "loop.xml"), "missing.xml"]


def test_the_same_reports_in_the_same_order() -> None:
    assert list(reports(FILES, 2)) == [report_always(path) for path in FILES]


def test_options_reach_the_processes() -> None:
    (first, _) = reports(FILES[1:3], 2, ignore={"IR302"})
    assert first.ignored == 1


@pytest.mark.slow
def test_a_file_that_is_given_twice_has_two_reports() -> None:
    found = list(reports([FILES[1], FILES[0], FILES[1]], 2))
    assert found[0] == found[2] != found[1]


def _die(path: str, options: dict[str, Any]) -> Any:
    if Path(path).name == "dies.xml":
        os.kill(os.getpid(), signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    return report_always(path), []


@pytest.mark.slow
def test_a_process_that_dies_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "dies", "z"):
        for suffix in (".xml", ".bin"):
            shutil.copy(DIGITS / f"damaged{suffix}", tmp_path / f"{name}{suffix}")
    monkeypatch.setattr(validation, "_validated", _die)
    found = list(reports([str(tmp_path / f"{name}.xml") for name in ("a", "dies", "z")], 2))
    assert [len(one.findings) for one in found] == [10, 0, 10]
    assert found[1].error is not None
    assert found[1].error.startswith(f"{tmp_path / 'dies.xml'}: the process that validated it ended")


def test_one_file_needs_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(count: int) -> Any:
        raise BrokenProcessPool

    monkeypatch.setattr(validation, "_pool", refuse)
    assert isinstance(next(iter(reports(FILES[:1], 4))), FileReport)
