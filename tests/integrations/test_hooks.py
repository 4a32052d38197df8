"""The hooks for pre-commit and the GitHub Action, as far as they run without either."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import irexec
from irexec.cli.main import run
from irexec.integrations.changed_models import changed, report
from tests.support.paths import DIGITS, ROOT

yaml = pytest.importorskip("yaml")


def _git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(("git", *identity, *words), cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """A repository with a model in a folder, and its commit."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    (tmp_path / "models").mkdir()
    for suffix in (".xml", ".bin"):
        shutil.copy(DIGITS / f"classifier{suffix}", tmp_path / "models")
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-q", "-m", "a model")
    monkeypatch.chdir(tmp_path)
    return tmp_path, _git(tmp_path, "rev-parse", "HEAD")


def test_changes_since_a_commit(repository: tuple[Path, str]) -> None:
    folder, commit = repository
    path = folder / "models" / "classifier.xml"
    assert changed(commit, ["models"]) == []
    model = irexec.read_model(path)
    with model.edit() as editor:
        editor.rename("image", "picture")
    model.save(path, overwrite=True)
    model.save(folder / "models" / "new.xml")
    _git(folder, "add", ".")
    text = "\n".join(report(commit, ["models"]))
    assert f"### `{commit[:9]}:models/classifier.xml` → `models/classifier.xml`" in text
    assert "picture" in text
    assert "### `models/new.xml`\n\nadded" in text
    path.unlink()
    assert "### `models/classifier.xml`\n\nremoved" in "\n".join(report(commit, ["models"]))


def test_a_changed_bin_is_a_change_of_its_model(repository: tuple[Path, str]) -> None:
    folder, commit = repository
    weights = folder / "models" / "classifier.bin"
    data = bytearray(weights.read_bytes())
    data[3] ^= 0x40
    weights.write_bytes(data)
    assert changed(commit, ["models"]) == [str(Path("models", "classifier.xml"))]
    words = [sys.executable, "-m", "irexec.integrations.changed_models", commit, "models"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "values" in done.stdout


def test_the_hooks_are_commands() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    for hook in hooks:
        program, *words = shlex.split(hook["entry"])
        assert program == "irexec"
        assert run([*words, "--help"]) == 0
        # A commit of a model without findings and without tests.
        assert run([*words, str(DIGITS / "classifier.xml")]) == 0
    assert run(["test", str(DIGITS / "classifier.xml")]) == 2
    assert run(["validate", "--quiet", str(DIGITS / "damaged.xml"), str(DIGITS / "classifier.xml")]) == 1


def test_the_action_calls_what_exists() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash"
        for line in step["run"].splitlines():
            if line.strip().startswith("irexec "):
                assert line.split()[1] == "validate"
        used = {name for name in action["inputs"] if f"inputs.{name}" in str(step)}
        assert used or "inputs" not in str(step)
    everything = str(action["runs"])
    assert all(f"inputs.{name}" in everything for name in action["inputs"])


def _program(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    file.chmod(0o755)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_the_steps_of_the_action_run(repository: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every step but the installation, in a repository with a changed and a damaged model; gh records its arguments."""
    folder, commit = repository
    model = irexec.read_model(folder / "models" / "classifier.xml")
    with model.edit() as editor:
        editor.rename("image", "picture")
    model.save(folder / "models" / "classifier.xml", overwrite=True)
    for suffix in (".xml", ".bin"):
        shutil.copy(DIGITS / f"damaged{suffix}", folder / "models")
    room = tmp_path_factory.mktemp("runner")
    _program(room, "gh", f'echo "$@" >> {room}/gh.log')
    _program(room, "irexec", f'exec {sys.executable} -m irexec "$@"')
    _program(room, "python", f'exec {sys.executable} "$@"')
    known = {
        "inputs.models": "models", "inputs.options": "--ignore IR302", "inputs.comment": "true",
        "github.event.pull_request.base.sha": commit, "github.event.pull_request.number": "7", "github.token": "none",
    }  # fmt: skip
    runner = {
        "PATH": f"{room}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "RUNNER_TEMP": str(room),
        "GITHUB_STEP_SUMMARY": str(room / "summary.md"), "GITHUB_REPOSITORY": "a/b", "GITHUB_SHA": commit,
        "GITHUB_REF": "refs/pull/7/merge",
    }  # fmt: skip
    codes, printed = {}, {}
    for step in yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"]:
        if step["name"] == "install":
            continue
        variables = {name: known[text.strip("${} ")] for name, text in step["env"].items()}
        # As GitHub runs "shell: bash".
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(words, env={**os.environ, **runner, **variables}, capture_output=True, text=True)
        codes[step["name"]], printed[step["name"]] = done.returncode, done.stdout + done.stderr
    assert codes == {
        "compare changed models with those of the base": 0, "upload findings": 0, "validate": 1,
    }, printed  # fmt: skip
    assert "::error file=models/damaged.xml,line=26" in printed["validate"] and "IR302" not in printed["validate"]
    summary = (room / "summary.md").read_text("utf-8")
    assert ":models/classifier.xml` → `models/classifier.xml`" in summary and "picture" in summary
    assert '"results"' in (room / "irexec.sarif").read_text("utf-8")
    calls = (room / "gh.log").read_text("utf-8")
    assert "pr comment 7 --body-file" in calls and "repos/a/b/code-scanning/sarifs" in calls
