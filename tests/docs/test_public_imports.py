"""Documentation and samples import the public API alone, so that what readers copy keeps working."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import irexec
from tests.docs.pages import blocks, pages
from tests.support.paths import ROOT, SAMPLES

# Guides for developers of irexec change its insides, and so does the extension of Sphinx that generates the reference.
_INTERNAL = "docs/development/"
_SUBMODULES = {"irexec.ray", "converters"}
_EXPORTED = {"irexec": irexec.__all__, "irexec.plugins": irexec.plugins.__all__, "converters": ["convert"]}
_EXPORTED["irexec.integrations.model_explorer.main"] = ["IrexecAdapter"]
_PAGES = [path for path in pages() if not path.relative_to(ROOT).as_posix().startswith(_INTERNAL)]
_PROGRAMS = sorted(SAMPLES.rglob("*.py"))


def _internal(source: str) -> Iterator[str]:
    """The imports, and the attributes of irexec, that are not public."""
    attributes = {f"irexec.{name}" for name in [*irexec.__all__, "ray", "__version__"]}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if not _is_public(alias.name))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("irexec", "converters"):
            public = _EXPORTED.get(node.module or "", [])
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name not in public)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "irexec":
            yield from {f"irexec.{node.attr}"} - attributes


def _is_public(module: str) -> bool:
    return module.split(".")[0] not in ("irexec", "converters") or module in {"irexec", *_SUBMODULES}


@pytest.mark.parametrize("page", _PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_import_the_public_api_alone(page: Path) -> None:
    for block in blocks(page.read_text("utf-8")):
        if block.language == "python":
            assert list(_internal(block.text)) == []


@pytest.mark.parametrize("program", _PROGRAMS, ids=lambda path: path.name)
def test_samples_import_the_public_api_alone(program: Path) -> None:
    assert list(_internal(program.read_text("utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "import irexec.tools.diff",
        "from irexec.tools.diff import diff",
        "from irexec import tools",
        "import irexec\nirexec.tools.diff",
        "import converters.onnx",
        "from converters import examine",
    ],
)
def test_an_internal_import_is_seen(source: str) -> None:
    assert list(_internal(source))
    assert not list(_internal("import irexec\nimport irexec.ray\nfrom irexec import diff\nirexec.diff(1, 2)"))
