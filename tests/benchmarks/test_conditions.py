"""A quota that cannot be set is an error that names every attempt, never a measurement without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks import conditions


def test_no_controller(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(conditions, "_CGROUPS", tmp_path)
    with (
        pytest.raises(conditions.QuotaUnavailable, match=r"version 2: no cpu controller; version 1: no cpu controller"),
        conditions.cpu_quota(1),
    ):
        pass


def test_group_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file is where the group's directory would have its parent."""
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory\n")
    (tmp_path / "group").write_text("")
    monkeypatch.setattr(conditions, "_CGROUPS", tmp_path)
    monkeypatch.setattr(conditions, "_group_of_this_process", lambda controller: "group")
    with pytest.raises(conditions.QuotaUnavailable, match=r"version 2: .*Not a directory"), conditions.cpu_quota(1):
        pass
