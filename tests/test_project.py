"""The project's own files: one version, the contents of packages, workflows, and the pins of the linters."""

from __future__ import annotations

import ast
import importlib.util
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from symtable import symtable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import irexec
from tests.support.paths import ROOT
from tests.support.statements import statements

_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
_WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_in_one_place() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", irexec.__version__)
    assert "version" in _PROJECT["project"]["dynamic"]
    assert _PROJECT["tool"]["hatch"]["version"]["path"] == "irexec/__init__.py"
    assert (ROOT / "irexec/__init__.py").read_text("utf-8").count("\n__version__ = ") == 1


def test_the_linters_are_pinned_in_one_place() -> None:
    assert all("==" in pinned for pinned in _PROJECT["project"]["optional-dependencies"]["lint"])
    assert "rev:" not in (ROOT / ".pre-commit-config.yaml").read_text("utf-8")


def test_each_python_of_ci_has_a_classifier() -> None:
    classifiers = {entry.rpartition(" ")[2] for entry in _PROJECT["project"]["classifiers"] if "Python :: 3." in entry}
    tested = set(re.findall(r'"(3\.\d+)"', (ROOT / ".github/workflows/ci.yml").read_text("utf-8")))
    assert classifiers == tested


@pytest.mark.parametrize("path", _WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_jobs_end(path: Path) -> None:
    """An action's tag can be moved by whoever takes it over; a job without a limit runs for six hours."""
    text = path.read_text("utf-8")
    for used, comment in re.findall(r"uses: (\S+)(.*)", text):
        assert used.startswith("./") or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", used), used
        assert used.startswith("./") or re.fullmatch(r" # v\d+\.\d+\.\d+", comment), used
    assert text.count("runs-on:") == text.count("timeout-minutes:")


_CONTENTS = _loaded(ROOT / ".github/package/check_contents.py")
_SOURCES = {"irexec/__init__.py", "converters/__init__.py"}
_METADATA = [
    f"irexec-1.dist-info/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
]


def test_contents_of_packages() -> None:
    assert _CONTENTS.wheel_problems([*_SOURCES, *_METADATA], _SOURCES) == []
    assert _CONTENTS.wheel_problems([*_SOURCES, *_METADATA, "irexec/tools/", "irexec-1.dist-info/"], _SOURCES) == []
    assert _CONTENTS.wheel_problems(["irexec/__init__.py", "tests/x.py", *_METADATA[1:]], _SOURCES) == [
        "the wheel lacks converters/__init__.py",
        "the wheel should not have tests/x.py",
        "the wheel's metadata lack METADATA",
    ]
    archived = [f"irexec-1/{name}" for name in (*_SOURCES, "LICENSE", "README.md", "tests/x.py")]
    assert _CONTENTS.sdist_problems(archived, _SOURCES) == []
    assert _CONTENTS.sdist_problems([*archived[1:], "irexec-1/build/x"], _SOURCES) == [
        f"the sdist lacks {archived[0].partition('/')[2]}",
        "the sdist should not have build",
    ]


@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="not a checkout of git")
def test_an_sdist_may_have_every_tracked_file() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert _CONTENTS.sdist_problems([f"irexec-1/{name}" for name in [*tracked, "PKG-INFO"]], set()) == []


def test_the_recipe_for_conda_has_the_dependencies() -> None:
    recipe = (ROOT / ".github/package/conda/recipe.yaml").read_text("utf-8")
    listed = [line.strip().removeprefix("- ") for line in recipe.splitlines()]
    for dependency in _PROJECT["project"]["dependencies"]:
        assert dependency.replace(">=", " >=") in listed
    assert f"irexec = {_PROJECT['project']['scripts']['irexec']}" in listed
    assert 'version: "VERSION"' in recipe and "sha256: SHA256" in recipe


def test_the_wheel_has_the_samples_of_the_demo() -> None:
    assert "irexec/samples/classifier.xml" in _CONTENTS.sources_of(ROOT)


@pytest.mark.slow
def test_tests_import_names_that_exist() -> None:
    """An import in a function fails only when it runs, which for a slow test is once a night."""
    sources = {
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", "."): path.read_text("utf-8")
        for folder in ("irexec", "converters", "tests")
        for path in (ROOT / folder).rglob("*.py")
    }
    modules = {
        name.removesuffix(".__init__"): {
            symbol.get_name()
            for symbol in symtable(source, name, "exec").get_symbols()
            if symbol.is_assigned() or symbol.is_imported()
        }
        for name, source in sources.items()
    }
    missing = [
        f"{importer}:{node.lineno}: {node.module}.{alias.name}"
        for importer, source in sources.items()
        if importer.startswith("tests.")
        for node, _ in statements(source)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for alias in node.names
        if node.module.partition(".")[0] in ("irexec", "converters", "tests")
        and f"{node.module}.{alias.name}" not in modules
        and not {alias.name, "__getattr__"} & modules.get(node.module, set())
    ]
    assert not missing


# README.md in a package: relative links and images become addresses of the repository.


_TEXT = "[a](docs/a.md) ![p](docs/p.svg) [x](https://x.org) [t](#top) [![b](https://b.org/b)](LICENSE)"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The module of the hook, beside a stand-in for hatchling, which only a build installs."""
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    stand_in: Any = SimpleNamespace(MetadataHookInterface=object)
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", stand_in)
    return runpy.run_path(str(ROOT / ".github" / "package" / "readme.py"))


def test_links_are_those_of_the_repository(hook: dict[str, Any]) -> None:
    assert hook["absolute"](_TEXT, "https://h/r") == (
        "[a](https://h/r/blob/main/docs/a.md) ![p](https://h/r/raw/main/docs/p.svg) [x](https://x.org) [t](#top) "
        "[![b](https://b.org/b)](https://h/r/blob/main/LICENSE)"
    )


@pytest.mark.parametrize(("name", "one"), [("README.md", "docs/_static/readme.svg"), ("CHANGELOG.md", "docs/scale.md")])
def test_links_exist(name: str, one: str) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)", (ROOT / name).read_text("utf-8"))
    assert one in links
    assert [link for link in links if not (ROOT / link).is_file()] == []
