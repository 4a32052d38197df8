"""Settings in .irexec.toml and pyproject.toml: which file counts, what can be set, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from irexec.cli.main import run
from irexec.cli.option_groups import KEYS, VARIABLE
from tests.cli.calling import Capture
from tests.support.paths import DIGITS


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for suffix in (".xml", ".bin"):
        shutil.copy(DIGITS / f"damaged{suffix}", tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


def _summary(capsys: Capture, *arguments: str, code: int = 1) -> str:
    assert run(["validate", "damaged.xml", *arguments]) == code
    return capsys.readouterr().out.splitlines()[-1]


def _error(capsys: Capture, *arguments: str) -> str:
    assert run([*(arguments or ("validate", "damaged.xml"))]) == 2
    return capsys.readouterr().err


def test_options_have_the_defaults_of_the_file(folder: Path, capsys: Capture) -> None:
    assert _summary(capsys) == "damaged.xml: 9 errors, 1 warning"
    (folder / ".irexec.toml").write_text('[validate]\nignore = ["IR302", "IR103"]\n')
    assert _summary(capsys) == "damaged.xml: 8 errors, 2 ignored"


def test_the_command_line_replaces_a_setting(folder: Path, capsys: Capture) -> None:
    (folder / ".irexec.toml").write_text('[validate]\nignore = ["IR302", "IR103"]\n')
    assert _summary(capsys, "--ignore", "IR401") == "damaged.xml: 8 errors, 1 warning, 1 ignored"


def test_one_value_stands_for_a_list(folder: Path, capsys: Capture) -> None:
    (folder / ".irexec.toml").write_text('[validate]\nignore = "IR302"\n')
    assert _summary(capsys) == "damaged.xml: 9 errors, 1 ignored"


def test_pyproject_has_the_same_tables(folder: Path, capsys: Capture) -> None:
    (folder / "pyproject.toml").write_text('[tool.irexec.validate]\nignore = "IR302"\n')
    assert _summary(capsys) == "damaged.xml: 9 errors, 1 ignored"
    (folder / ".irexec.toml").write_text('[validate]\nignore = ["IR302", "IR103"]\n')
    assert _summary(capsys) == "damaged.xml: 8 errors, 2 ignored"


def test_a_pyproject_without_settings_is_not_in_the_way(folder: Path, capsys: Capture) -> None:
    (folder / ".irexec.toml").write_text('[validate]\nignore = "IR302"\n')
    inner = folder / "inner"
    (inner / "pyproject.toml").write_text('[project]\nname = "irexec-models"\n')
    for suffix in (".xml", ".bin"):
        shutil.copy(DIGITS / f"damaged{suffix}", inner)
    import os

    os.chdir(inner)
    assert _summary(capsys) == "damaged.xml: 9 errors, 1 ignored"


def test_the_search_ends_at_the_root_of_the_repository(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (folder / ".irexec.toml").write_text('[validate]\nignore = "IR302"\n')
    (folder / "inner" / ".git").mkdir()
    monkeypatch.chdir(folder / "inner")
    assert run(["validate", "../damaged.xml"]) == 1
    assert capsys.readouterr().out.endswith("9 errors, 1 warning\n")


def test_the_variable_names_another_file_or_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (folder / ".irexec.toml").write_text('[validate]\nignore = "IR302"\n')
    (folder / "other.toml").write_text('[validate]\nignore = "IR103"\n')
    monkeypatch.setenv(VARIABLE, "other.toml")
    assert _summary(capsys) == "damaged.xml: 8 errors, 1 warning, 1 ignored"
    monkeypatch.setenv(VARIABLE, "")
    assert _summary(capsys) == "damaged.xml: 9 errors, 1 warning"
    monkeypatch.setenv(VARIABLE, "missing.toml")
    assert "missing.toml: No such file or directory" in _error(capsys)


def test_paths_are_relative_to_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert run(["validate", "damaged.xml", "--json"]) == 1
    (folder / "findings.json").write_text(capsys.readouterr().out.replace('"damaged.xml"', '"../damaged.xml"'))
    (folder / ".irexec.toml").write_text('[validate]\nbaseline = "findings.json"\n')
    monkeypatch.chdir(folder / "inner")
    assert run(["validate", "../damaged.xml"]) == 0
    assert capsys.readouterr().out == "../damaged.xml: 10 known\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "not TOML: Invalid value"),
        ("[validat]", "[validat] cannot be set; there are [validate], [diff]"),
        ("validate = 1", "validate is not a table of options"),
        ("[validate]\nouput = 1", "[validate] ouput cannot be set; there are weights, portability, for, ignore"),
        ('[reduce]\ncheck = "rm -r x"', "[reduce] cannot be set; there are [validate], [diff]"),
        ('[infer]\noutput = "x.npz"', "[infer] cannot be set"),
        ('[validate]\njobs = "x"', "[validate] jobs: 'x' is not a valid integer range"),
        ("[validate]\njobs = 0", "[validate] jobs: 0 is not in the range 1<=x<=256"),
        ("[validate]\njobs = [1, 2]", "[validate] jobs is [1, 2], expected one value"),
        ("[validate]\nweights = 1", "[validate] weights is 1, expected true or false"),
        ("[validate]\nignore = [true]", "[validate] ignore is [True], expected text or a number"),
        ('[validate]\nbaseline = ""', "'' is not a path"),
        ('[validate]\nignore = "IR899"', "there is no finding code 'IR899'"),
    ],
)
def test_wrong_settings_are_wrong_usage(text: str, message: str, folder: Path, capsys: Capture) -> None:
    (folder / ".irexec.toml").write_text(text)
    error = _error(capsys)
    assert message in error.replace(" is not an integer", " is not a valid integer range")
    assert error.count("\n") == 1


def test_help_needs_no_valid_settings(folder: Path) -> None:
    (folder / ".irexec.toml").write_text("[wrong]")
    assert run(["validate", "--help"]) == 0


def test_nothing_that_writes_or_runs_can_be_set() -> None:
    keys = {key for names in KEYS.values() for key in names}
    assert not keys & {"output", "check", "dump-layers", "save-inputs", "trace", "record-range"}


def test_diff_has_settings_too(folder: Path, capsys: Capture) -> None:
    text = (folder / "damaged.xml").read_text().replace('name="relu1"', 'name="other"')
    (folder / "renamed.xml").write_text(text)
    shutil.copy(folder / "damaged.bin", folder / "renamed.bin")
    (folder / ".irexec.toml").write_text('[diff]\nignore = ["names", "tensor-names"]\n')
    assert run(["diff", "damaged.xml", "renamed.xml"]) == 0
