"""Who may import whom, read from the imports themselves, those inside functions too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent
_LAYERS = {
    "errors": set(),
    "ir": {"errors"},
    "io": {"errors", "ir"},
    "kernels": {"errors"},
    "ops": {"errors", "ir", "kernels"},
    "analysis": {"errors", "ir", "kernels", "ops"},
    "compile": {"errors", "ir", "kernels", "ops", "analysis"},
    "runtime": {"errors", "ir", "kernels", "ops", "analysis", "compile"},
    "tools": {"errors", "ir", "kernels", "ops", "analysis", "compile", "runtime"},
}
# The public functions over io, and what stands above them.
_LAYERS["api"] = {"errors", "ir", "io", "analysis"}
_LAYERS["cli"] = set(_LAYERS) | {"__init__"}
_LAYERS["__init__"] = set(_LAYERS) - {"cli"}
_ONLY = {
    "lxml": ("irexec/io/",),
    "click": ("irexec/cli/",),
    "rich": ("irexec/cli/",),
    "PIL": ("irexec/tools/pictures.py",),
    "onnx": ("converters/onnx/",),
    "onnxruntime": ("converters/onnx/verify.py",),
    "google": ("converters/onnx/",),
    "openvino": (),
}
_FILES = sorted([*(_ROOT / "irexec").rglob("*.py"), *(_ROOT / "converters").rglob("*.py")])


def _imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every module imported, and whether that is at the top of the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in top
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "irexec":
                for alias in node.names:
                    yield f"irexec.{alias.name}", id(node) in top
            else:
                yield node.module, id(node) in top


def _layer(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in _LAYERS else "__init__"


@pytest.mark.parametrize("path", _FILES, ids=lambda path: str(path.relative_to(_ROOT)))
def test_imports(path: Path) -> None:
    name = path.relative_to(_ROOT).as_posix()
    here = "converters" if name.startswith("converters") else _layer(name.removesuffix(".py").replace("/", "."))
    for module, at_top in _imports(path):
        package = module.split(".")[0]
        if package in _ONLY:
            assert name.startswith(_ONLY[package]) if _ONLY[package] else False, f"{name} imports {module}"
        if package == "irexec":
            there = _layer(module)
            allowed = {"errors", "ir", "analysis", "io", "__init__"} if here == "converters" else _LAYERS[here] | {here}
            assert there in allowed, f"{name} ({here}) imports {module} ({there})"
        if package == "converters" and here != "converters":
            assert name == "irexec/cli/convert.py", f"{name} imports {module}"
            assert not at_top, f"{name} imports {module} outside a function"


def test_the_top_level_is_what_it_is_said_to_be() -> None:
    found = {path.name for path in _ROOT.iterdir() if not path.name.startswith(".") and path.name not in _LEFT_BY_TOOLS}
    assert found == {"pyproject.toml", "README.md", "LICENSE", "irexec", "converters", "tests", "samples"}


_LEFT_BY_TOOLS = {"build", "dist", "irexec.egg-info", "__pycache__"}
