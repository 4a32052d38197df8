"""Which library is loaded, and the reason where none is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from irexec.native import library as loading
from irexec.native.build import BuildError, build, find_compiler
from irexec.native.library import FOLDER, Library, description, library, path_of
from irexec.native.sources import Level, is_supported, levels
from tests.support.paths import ROOT


def _described(variable: str | None) -> str:
    """The description, or the error, in another process with this IREXEC_NATIVE."""
    environment = {name: value for name, value in os.environ.items() if name != "IREXEC_NATIVE"}
    if variable is not None:
        environment["IREXEC_NATIVE"] = variable
    code = (
        "from irexec.errors import InputError\nfrom irexec.native.library import description\n"
        "try:\n    print(description())\nexcept InputError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _has_compiler() -> bool:
    try:
        find_compiler()
    except BuildError:
        return False
    return "CC" not in os.environ


PORTABLE = levels()[-1]
built = pytest.mark.skipif(not path_of(PORTABLE).is_file(), reason="the C kernels were not built")


def test_native_can_be_switched_off() -> None:
    assert _described("0") == "NumPy alone (IREXEC_NATIVE is 0)"


def test_an_unknown_level_is_an_error() -> None:
    assert _described("x86-64-v9").startswith(
        "IREXEC_NATIVE is 'x86-64-v9', and the C kernels were not built; expected"
    )


def test_a_folder_without_a_library_is_an_error(tmp_path: Path) -> None:
    assert _described(str(tmp_path)).startswith(f"IREXEC_NATIVE is {str(tmp_path)!r}, and the C kernels were not built")


@built
def test_the_best_level_is_chosen() -> None:
    best = next(level for level in levels() if is_supported(level) and path_of(level).is_file())
    assert _described(None) == _described("1") == f"C kernels for {best.name}"


@built
@pytest.mark.parametrize("level", levels(), ids=lambda level: level.name)
def test_a_level_can_be_chosen(level: Level) -> None:
    if not is_supported(level) or not path_of(level).is_file():
        pytest.skip("this processor does not have it")
    assert _described(level.name) == f"C kernels for {level.name}"


def test_a_file_that_is_not_a_library_is_not_loaded(tmp_path: Path) -> None:
    path_of(PORTABLE, tmp_path).write_bytes(b"not a library")
    assert "the C kernels cannot be loaded" in _described(str(tmp_path))


@built
def test_sources_that_changed_after_the_library_was_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """The structures of the library may be others than those of Python."""
    level = next(level for level in levels() if is_supported(level) and path_of(level).is_file())
    assert isinstance(loading._loaded(level, path_of(level)), Library)
    monkeypatch.setattr(loading, "sources_hash", lambda: 1)
    assert loading._loaded(level, path_of(level)) == (
        "the C kernels were built from other sources: python -m irexec.native.build"
    )


@pytest.mark.slow
@pytest.mark.skipif(not _has_compiler(), reason="there is no C compiler")
def test_a_library_of_other_sources_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irexec.native.build.levels", lambda machine="": (PORTABLE,))
    monkeypatch.setattr("irexec.native.build.sources_hash", lambda: 1)
    build(tmp_path, ("-O0",))
    assert "were built from other sources: python -m irexec.native.build" in _described(str(tmp_path))


def test_description_agrees_with_library() -> None:
    assert description().startswith("NumPy alone (" if library() is None else "C kernels for ")
    assert FOLDER.parent.name == "native"
