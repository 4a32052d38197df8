"""Building the C kernels, and the hook that does so for a wheel; the compilers are scripts where it must be quick."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from irexec.native.build import BuildError, build, find_compiler, levels_of, main
from irexec.native.library import path_of
from irexec.native.sources import levels
from tests.support.paths import ROOT

_HOOK = ROOT / ".github" / "package" / "built_files.py"
_COMPILER = """\
import pathlib, sys
pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_text(" ".join(sys.argv))
"""


class _App:
    """The part of hatch's application that the hook uses."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def display_warning(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A compiler that writes its arguments into the file that it is to make."""
    script = tmp_path / "compiler.py"
    script.write_text(_COMPILER)
    command = f'"{Path(sys.executable).as_posix()}" "{script.as_posix()}"'
    monkeypatch.setenv("CC", command)
    return command


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What of the repository the hook reads; another module writes the stub."""
    root = tmp_path / "project"
    ignored = shutil.ignore_patterns("__pycache__", "built")
    for path in (ROOT / "irexec").glob("*.py"):
        (root / "irexec").mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / "irexec")
    for package in ("native", "ir"):
        shutil.copytree(ROOT / "irexec" / package, root / "irexec" / package, ignore=ignored)
    (root / "irexec" / "authoring").mkdir()
    (root / "irexec" / "authoring" / "operations.py").write_text("open('irexec/opset.pyi', 'w').close()")
    return root


def _run_hook(root: Path, version: str = "standard") -> tuple[dict[str, Any], list[str]]:
    """What the hook adds to the data of a wheel, and its warnings."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("built_files", _HOOK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    data: dict[str, Any] = {"artifacts": [], "force_include": {}, "pure_python": True}
    app = _App()
    module.BuiltFiles(str(root), {}, None, None, str(root), "wheel", app).initialize(version, data)
    return data, app.warnings


def test_each_level_is_compiled_with_its_options(compiler: str, tmp_path: Path) -> None:
    paths = build(tmp_path / "made")
    own = [level for level in levels() if not level.has_tiles]
    assert paths == [path_of(level, tmp_path / "made") for level in own]
    for level, path in zip(own, paths, strict=True):
        words = path.read_text().split()
        assert set(level.flags) <= set(words) and any(word.endswith("run.c") for word in words)
        assert not level.processor or f"-march={level.processor}" in words
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == sorted(path.name for path in paths)


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_all_levels_together_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    """Those of the checkout, which installing it builds."""
    monkeypatch.delenv("CC", raising=False)
    paths = {path_of(level) for level in levels()}
    try:
        if again or not all(path.exists() for path in paths):
            paths = set(build(tmp_path / "made"))
    except BuildError as error:
        pytest.skip(str(error))
    assert sum(path.stat().st_size for path in paths) < 700_000


def test_cc_names_the_compiler_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    with pytest.raises(BuildError, match=r"^the C compiler 'no-such-compiler -m64' of CC does not exist$"):
        find_compiler()
    monkeypatch.setenv("CC", f'"{Path(sys.executable).as_posix()}" -m64')
    assert find_compiler() == [Path(sys.executable).as_posix(), "-m64"]


def test_a_compiler_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = f'"{Path(sys.executable).as_posix()}" -c "import sys; sys.exit(chr(110) + chr(111))"'
    monkeypatch.setenv("CC", failing)
    with pytest.raises(BuildError, match=r"cannot compile the C kernels for .*: no$"):
        build(tmp_path / "made")
    assert list((tmp_path / "made").iterdir()) == []


def test_a_wheel_has_the_kernels_and_a_platform(compiler: str, project: Path) -> None:
    data, warnings = _run_hook(project)
    assert data["artifacts"] == [
        "/irexec/opset.pyi",
        *(f"/irexec/native/built/{path_of(level).name}" for level in levels() if not level.has_tiles),
    ]
    assert all((project / path.lstrip("/")).is_file() for path in data["artifacts"])
    assert data["tag"].startswith("py3-none-") and data["tag"] != "py3-none-any" and not data["pure_python"]
    assert data["force_include"] == {} and warnings == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("version", ["standard", "editable"])
@pytest.mark.parametrize("variable", ["CC", "PATH"])
def test_a_wheel_without_compiler_is_pure(
    project: Path, monkeypatch: pytest.MonkeyPatch, version: str, variable: str
) -> None:
    if variable == "CC":
        monkeypatch.setenv("CC", f'"{Path(sys.executable).as_posix()}" -c "raise SystemExit(1)"')
    else:
        monkeypatch.delenv("CC", raising=False)
        monkeypatch.setenv("PATH", str(project))
        monkeypatch.setenv("PATHEXT", os.environ.get("PATHEXT", ""))
    data, warnings = _run_hook(project, version)
    assert data["pure_python"] and "tag" not in data and data["artifacts"] == ["/irexec/opset.pyi"]
    (warning,) = warnings
    assert warning.startswith("irexec is built without C kernels, and computes with NumPy alone: ")
    assert "\n" not in warning


def test_a_wheel_without_the_stub_says_so(compiler: str, project: Path) -> None:
    (project / "irexec" / "authoring" / "operations.py").write_text("import nothing_of_this_name")
    data, warnings = _run_hook(project)
    assert "/irexec/opset.pyi" not in data["artifacts"] and not data["pure_python"]
    assert warnings == [
        "irexec is built without irexec/opset.pyi, which editors read: ModuleNotFoundError: No module named 'nothing_of_this_name'"
    ]


def test_some_levels_are_built(
    compiler: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built: list[str] = []
    monkeypatch.setattr("irexec.native.build._build", lambda compiler, level, folder, extra: built.append(level.name))
    assert main(["portable"]) == 0 and built == ["portable"]
    with pytest.raises(SystemExit):
        main(["x86-64-v9"])
    assert "'x86-64-v9' is not a level: expected" in capsys.readouterr().err


def test_a_cross_compiler_builds_the_levels_of_its_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    python = Path(sys.executable).as_posix()
    for machine, names in (("aarch64", ["portable"]), ("x86_64", [level.name for level in levels("x86_64")])):
        monkeypatch.setenv("CC", f'"{python}" -c "print(\'{machine}-linux-gnu\')"')
        assert [level.name for level in levels_of(find_compiler())] == names
    assert not levels("aarch64")[0].processor
