"""Validation in several processes: the same reports in the same order, also if a process dies."""

from __future__ import annotations

import os
import shutil
import signal
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

from irexec.tools import validation
from irexec.tools.validation import FileReport, report_always, reports
from tests.support.paths import DIGITS, IRS

FILES = [str(DIGITS / "classifier.xml"), str(DIGITS / "damaged.xml"), str(IRS / "loop.xml"), "missing.xml"]


def test_the_same_reports_in_the_same_order() -> None:
    assert list(reports(FILES, 2)) == [report_always(path) for path in FILES]


def test_options_reach_the_processes() -> None:
    (first, _) = reports(FILES[1:3], 2, ignore={"IR302"})
    assert first.ignored == 1


def test_a_file_that_is_given_twice_has_two_reports() -> None:
    found = list(reports([FILES[1], FILES[0], FILES[1]], 2))
    assert found[0] == found[2] != found[1]


def _die(path: str, options: dict[str, Any]) -> Any:
    if Path(path).name == "dies.xml":
        os.kill(os.getpid(), signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    return report_always(path), []


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
