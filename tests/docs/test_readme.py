"""README.md in a package: relative links and images become addresses of the repository."""

from __future__ import annotations

import re
import runpy
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.support.paths import ROOT

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
