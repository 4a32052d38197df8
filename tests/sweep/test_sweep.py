"""The harness of random cases: what is counted, what fails, what is run again, and a process that dies."""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.sweep import __main__ as sweep
from tests.sweep import running
from tests.sweep.kind import Case, Kind, Outcome


class Odd(Kind):
    """Odd numbers fail; case 4 of "b" raises."""

    cases = 6

    def names(self) -> list[str]:
        """Two names."""
        return ["a", "b"]

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """The parity of each number."""

        def case(number: int) -> Iterator[Outcome]:
            if (name, number) == ("b", 4):
                raise ArithmeticError("four")
            yield Outcome("odd" if number % 2 else "even", f"{name}{number}", fails=bool(number % 2))

        yield case


class Crashing(Kind):
    """Case 1 ends its process, and case 3 after another program was asked."""

    cases = 5
    is_isolated = True

    def names(self) -> list[str]:
        """One name."""
        return ["a"]

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """The numbers."""

        def case(number: int) -> Iterator[Outcome]:
            if number == 3:
                self.asking()
            if number % 2:
                os._exit(1)
            yield Outcome("done")

        yield case


@pytest.fixture(autouse=True)
def _kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Odd, Crashing):
        monkeypatch.setitem(sweep.KINDS, kind.__name__, f"{__name__}:{kind.__name__}")


def test_failing_cases_are_named_and_run_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert sweep.main(["Odd", "--json", str(tmp_path / "all.json")]) == 1
    text = capsys.readouterr().out
    assert "--only a --case 3: odd: a3\n" in text and "ArithmeticError: four" in text and "7 of 12 fail" in text
    rows = json.loads((tmp_path / "all.json").read_text())
    assert [row["kind"] for row in rows if row["name"] == "b"] == ["even", "odd", "even", "odd", "raised", "odd"]
    assert sweep.main(["Odd", "--only", "a", "--case", "3"]) == 1
    assert "1 of 1 fail" in capsys.readouterr().out
    assert sweep.main(["Odd", "--only", "b", "--seed", "2", "--cases", "1"]) == 0


@pytest.mark.slow
def test_a_process_that_dies_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep.main(["Crashing"]) == 1
    assert "a: 1 OpenVINO cannot, 3 done, 1 lost" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["Odd", "--only", "c"], ["Odd", "--cases", "2", "--seconds", "1"]])
def test_wrong_words_are_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        sweep.main(words)


def test_there_are_cases_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    milliseconds = itertools.count()
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: next(milliseconds) / 1000))
    assert sweep.main(["Odd", "--only", "a", "--seed", "2", "--seconds", "0"]) == 0
    kind = Odd(argparse.Namespace(seconds=0.05, case=None, seed=0, cases=3))
    assert [name for name, _, found in running.run(kind, kind.names()) if len(list(found)) > 1] == ["a", "b"]


@pytest.mark.parametrize("path", sweep.KINDS.values())
def test_each_kind_has_a_module(path: str) -> None:
    """Not imported: some need OpenVINO."""
    module, _, name = path.partition(":")
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    assert f"\nclass {name or 'Sweep'}(Kind):\n" in Path(spec.origin).read_text("utf-8")
