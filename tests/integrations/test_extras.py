"""What is said where a library cannot be imported, and that pyproject.toml and it agree on the Pythons that have a package."""

from __future__ import annotations

import sys
import tomllib

import pytest

from irexec.integrations import tensors
from tests.support.paths import ROOT


@pytest.mark.parametrize(("library", "extra"), [("ray", "ray"), ("kserve", "serve")])
def test_the_markers_of_the_extras(library: str, extra: str) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"][extra]
    major, minor = tensors.TOO_NEW[library]
    assert any(each.startswith(library) for each in declared)
    assert all(each.endswith(f"; python_version < '{major}.{minor}'") for each in declared)


@pytest.mark.parametrize(
    ("library", "python", "error", "message"),
    [
        ("kserve", (3, 13, 1), ModuleNotFoundError(name="kserve"), "this needs kserve, which is not installed: pip install 'irexec[serve]'"),
        ("kserve", (3, 14, 0), ModuleNotFoundError(name="kserve"), "this needs kserve, which has no package for Python 3.14: use Python 3.11 to 3.13"),
        ("ray", (3, 14, 0), ModuleNotFoundError(name="ray"), "this needs ray, which is not installed: pip install 'irexec[ray]'"),
        ("ray", (3, 15, 0), ModuleNotFoundError(name="ray"), "this needs ray, which has no package for Python 3.15: use Python 3.11 to 3.14"),
        ("kserve", (3, 14, 0), ImportError("no symbol x"), "kserve is installed, and cannot be imported: no symbol x"),
    ],
)  # fmt: skip
def test_what_is_said(
    library: str, python: tuple[int, ...], error: ImportError, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", python)
    monkeypatch.setattr(tensors, "find_spec", lambda name: None)
    assert str(tensors.not_importable(library, {"kserve": "serve"}.get(library, "ray"), error)) == message


def test_a_library_that_needs_another_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 12))
    monkeypatch.setattr(tensors, "find_spec", lambda name: object())
    error = tensors.not_importable("ray", "ray", ModuleNotFoundError(name="pandas"))
    assert str(error) == "this needs ray with pandas, which is not installed: pip install 'irexec[ray]'"
