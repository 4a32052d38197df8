"""The table of mutations fits the source as it is now, and the command sees what catches a mutation and what does not."""

from __future__ import annotations

import ast
import shlex
from pathlib import Path

import pytest

from tests.fuzz import targets
from tests.mutations import __main__ as command
from tests.mutations.catching import Catcher, catchers_of, run
from tests.mutations.mutation import Mutation
from tests.mutations.table import MUTATIONS
from tests.support.paths import ROOT


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[mutation.name for mutation in MUTATIONS])
def test_it_can_be_applied(mutation: Mutation) -> None:
    before = (ROOT / mutation.file).read_text("utf-8")
    after = mutation.applied(before)
    assert after != before if mutation.is_native else ast.dump(ast.parse(after)) != ast.dump(ast.parse(before))
    assert catchers_of(mutation)
    for selection in mutation.tests:
        paths = [word.partition("::")[0] for word in shlex.split(selection) if word.startswith("tests")]
        assert paths
        assert all((ROOT / path).exists() for path in paths)


def test_names_are_unique() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


def test_random_graphs_should_catch_three_of_ten() -> None:
    assert "graphs" in targets.TARGETS
    # Random graphs have no products of integers, and none with many compressed weights; tools run none.
    others = (
        "test_native_integers", "test_native_quantised", "test_compressed", "test_dynamic_quantization",
        "tests/tools/",
    )  # fmt: skip
    drawn = [mutation for mutation in MUTATIONS if not any(name in "".join(mutation.tests) for name in others)]
    assert 10 * sum(mutation.graphs > 0 for mutation in drawn) >= 3 * len(drawn) >= 132


@pytest.mark.parametrize("old", ["nowhere", "e"])
def test_a_text_that_is_not_there_once_is_an_error(old: str) -> None:
    with pytest.raises(ValueError, match="expected once"):
        Mutation("m", "f.py", old, "").applied("once or here")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        pytest.param("def test_it(): assert 1 + 1 == 2", "missed", marks=pytest.mark.slow),
        ("def test_it(): assert 1 + 1 == 3", "caught"),
        pytest.param("import a_module_that_does_not_exist", "broken", marks=pytest.mark.slow),
        ("", "broken"),
    ],
)
def test_a_run_of_tests(text: str, verdict: str, tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(text)
    outcome = run(Catcher(f"{tmp_path / 'test_one.py'} --hypothesis-profile=default"), tmp_path)
    assert outcome.verdict == verdict, outcome.text
    assert verdict != "caught" or outcome.text.endswith("test_one.py::test_it")


@pytest.mark.slow
def test_a_mutation_that_survives_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, tests = "irexec/messages.py", ("tests/test_messages.py --hypothesis-profile=default",)
    caught = Mutation("wrong", file, "ascii(found[0])[1:-1]", "ascii(found[0])", tests)
    equal = Mutation("equal", file, "tail = limit // 3", "tail = (limit // 3)", tests)
    absent = Mutation("absent", file, "a text that is not there", "", tests)
    monkeypatch.setattr(command, "MUTATIONS", (caught, equal, absent))
    assert command.main(["--workers", "2"]) == 1
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["wrong", tests[0]]
    assert lines[1] == ["equal", "SURVIVED"]
    assert lines[2][0] == "absent" and "occurs 0 times" in lines[2][1]
    assert " ".join(lines[3]) == "1 of 3 caught: 1 by tests, 0 by random graphs"
