"""Who may import whom, read from the imports themselves, those inside functions too."""

from __future__ import annotations

import ast
import sys
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
_LAYERS["__main__"] = {"cli"}
_ONLY = {
    "lxml": ("irexec/io/",),
    "click": ("irexec/cli/",),
    "rich": ("irexec/cli/",),
    "PIL": ("irexec/tools/pictures.py",),
    "onnx": ("converters/onnx/",),
    "onnxruntime": ("converters/onnx/verify.py",),
    "google": ("converters/onnx/",),
}
_FILES = sorted([*(_ROOT / "irexec").rglob("*.py"), *(_ROOT / "converters").rglob("*.py")])


def _imports(source: str) -> Iterator[tuple[str, bool]]:
    """Every module imported, and whether a function imports it when it is called."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    late = {id(node) for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in late
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module is None:
                yield "." * node.level + (node.module or ""), id(node) in late
            elif node.module == "irexec":
                for alias in node.names:
                    yield f"irexec.{alias.name}", id(node) in late
            else:
                yield node.module, id(node) in late


def _layer(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in _LAYERS else "__init__"


def _objections(name: str, source: str) -> Iterator[str]:
    """What is wrong with the imports of the file of this name."""
    here = "converters" if name.startswith("converters") else _layer(name.removesuffix(".py").replace("/", "."))
    allowed = {"errors", "ir", "analysis", "io", "__init__"} if here == "converters" else _LAYERS[here] | {here}
    for module, late in _imports(source):
        package = module.split(".")[0]
        if package == "irexec":
            if _layer(module) not in allowed:
                yield f"{name} ({here}) imports {module} ({_layer(module)})"
        elif package == "converters":
            if here != "converters" and not (name == "irexec/cli/convert.py" and late):
                yield f"{name} imports {module}"
        elif package not in _EVERYWHERE and not name.startswith(_ONLY.get(package, ()) or "nowhere"):
            yield f"{name} imports {module}"


_EVERYWHERE = sys.stdlib_module_names | {"numpy"}


@pytest.mark.parametrize("path", _FILES, ids=lambda path: str(path.relative_to(_ROOT)))
def test_imports(path: Path) -> None:
    assert list(_objections(path.relative_to(_ROOT).as_posix(), path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("irexec/kernels/gemm.py", "from irexec.ir.dims import Dim"),
        ("irexec/kernels/gemm.py", "from scipy.linalg import blas"),
        ("irexec/kernels/gemm.py", "from .windows import strided"),
        ("irexec/kernels/gemm.py", "from irexec import ops"),
        ("irexec/ir/graph.py", "def load():\n    from lxml import etree"),
        ("irexec/io/reader.py", "import irexec.ops.registry"),
        ("irexec/ops/gather.py", "def facts():\n    from irexec.analysis.propagate import propagate"),
        ("irexec/tools/profile.py", "import rich.table"),
        ("irexec/runtime/session.py", "import irexec.cli.main"),
        ("irexec/analysis/validate.py", "import onnx"),
        ("irexec/cli/convert.py", "import converters"),
        ("irexec/cli/convert.py", "if True:\n    import converters"),
        ("irexec/cli/validate.py", "def run():\n    import converters"),
        ("converters/__init__.py", "import onnx"),
        ("converters/onnx/verify.py", "from irexec.ops.registry import resolve"),
        ("converters/onnx/verify.py", "import openvino"),
    ],
)
def test_a_wrong_import_is_seen(name: str, source: str) -> None:
    assert len(list(_objections(name, source))) == 1


def test_a_converter_may_be_imported_when_it_is_asked_for() -> None:
    assert list(_objections("irexec/cli/convert.py", "def run():\n    import converters")) == []


def test_the_top_level_is_what_it_is_said_to_be() -> None:
    found = {path.name for path in _ROOT.iterdir() if not path.name.startswith(".") and path.name not in _LEFT_BY_TOOLS}
    assert found == {"pyproject.toml", "README.md", "LICENSE", "irexec", "converters", "tests", "samples"}


_LEFT_BY_TOOLS = {"build", "dist", "irexec.egg-info", "__pycache__"}
