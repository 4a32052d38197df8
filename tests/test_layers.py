"""Who may import whom, read from the imports themselves: inside functions and under TYPE_CHECKING too."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.statements import statements

_LAYERS: dict[str, set[str]] = {
    "startup": set(),
    "deprecation": set(),
    "messages": set(),
    "records": set(),
    "display": {"messages", "records"},
    "errors": {"messages"},
    "dtypes": {"errors"},
    "reference": {"errors"},
    "ir": {"messages", "errors", "dtypes"},
    "io": {"errors", "dtypes", "ir"},
    "schema": {"errors", "dtypes", "ir", "reference"},
    "ops": {"errors", "dtypes", "ir", "reference", "schema"},
    # The C library: how it is built and found.
    "native": {"errors"},
    "backend": {"errors", "dtypes", "ir", "reference", "schema", "native"},
}
_LAYERS["analysis"] = {"errors", "dtypes", "ir", "reference", "schema", "ops"}
# How far a correct implementation may be from the exact result.
_LAYERS["bounds"] = {*_LAYERS["analysis"], "analysis"}
_LAYERS["opset"] = {"authoring", "schema"}
_LAYERS["plugins"] = {"ir", "schema", "backend", "analysis"}
_LAYERS["tokenizers"] = {"errors", "dtypes", "ir", "reference", "schema", "plugins"}
_LAYERS["compile"] = {*_LAYERS["analysis"], "analysis", "backend"}
# The editor writes back what the compiler has rewritten.
_LAYERS["authoring"] = {*_LAYERS["compile"], "compile", "io"}
_LAYERS["runtime"] = {*_LAYERS["compile"], "compile", "native"}
# The public functions over reading and runtime, which tools call as users do.
_LAYERS["reading"] = {"errors", "ir", "io", "analysis"}
_LAYERS["api"] = {*_LAYERS["reading"], "dtypes", "reading", "runtime"}
_LAYERS["tools"] = {*_LAYERS["runtime"], "runtime", "io", "reading", "api", "authoring", "opset", "display", "bounds"}
_LAYERS["integrations"] = {*_LAYERS["tools"], "tools"}
_LAYERS["testing"] = {*_LAYERS["tools"], "tools"}
_LAYERS["conformance"] = {*_LAYERS["tools"], "tools", "testing"}
_LAYERS["ray"] = {"tools"}
_LAYERS["cli"] = {*_LAYERS["tools"], "tools", "integrations", "conformance", "startup", "__init__"}
_LAYERS["__init__"] = {*_LAYERS["tools"], "tools", "startup", "authoring", "opset", "plugins", "testing", "conformance"}
_LAYERS["__main__"] = {"cli"}
# Objects of any layer display in a notebook: the layer says that they do (records), and the tools say how (display).
for _name in _LAYERS.keys() - {"startup", "deprecation", "messages", "records", "display", "errors"}:
    _LAYERS[_name] |= {"records", "messages"}
# The groups of tools, from the lowest on, and the groups that each may import.
_TOOLS: dict[str, set[str]] = {
    "commands": set(),
    "sections": set(),
    "operations": set(),
    "arrays": set(),
    "images": set(),
    "trapping": {"arrays"},
    "run": {"arrays", "images", "sections", "trapping"},
    "inspect": {"arrays", "operations", "run", "sections"},
    "engines": {"arrays", "commands", "run"},
    "measure": {"arrays", "engines", "images", "run"},
    "validation": {"run", "sections"},
    "finding_formats": {"validation"},
    "model_tests": {"arrays", "validation"},
    "graph": {"arrays", "images", "inspect", "measure", "run"},
    "diff": {"finding_formats", "graph"},
    "script": {"diff"},
    "observing": {"arrays", "engines", "run"},
    "compare": {"arrays", "engines", "graph", "images", "observing", "run"},
    "judge": {"arrays", "compare", "engines", "graph", "images", "observing", "run"},
    "node_data": {"compare", "inspect", "judge"},
    "sensitivity": {"compare", "engines", "images", "judge", "run"},
    "verify": {"arrays", "compare", "engines", "run"},
    "reduce": {"arrays", "commands", "compare", "engines", "observing", "run"},
    "bundling": {"arrays", "commands", "compare", "engines", "images", "judge", "observing", "reduce", "run"},
    "bisecting": {"arrays", "commands", "compare", "engines", "judge", "run"},
    "generating": {"engines", "images", "run"},
    "downgrading": {"arrays", "sections", "verify"},
    "inside": {"compare", "engines", "images", "judge", "run"},
    "joining": set(),
    "upgrading": {"arrays", "engines", "run"},
    "extracting": {"arrays", "reduce", "run"},
    "report": {"arrays", "graph", "images", "inspect", "run", "sections"},
    "batch": {"arrays", "images", "run"},
    "serving": {"batch"},
}  # fmt: skip
_CONVERTERS = {"records", "messages", "errors", "dtypes", "reference", "ir", "schema", "analysis", "io", "__init__"}

# Libraries that only these may import.
_ONLY = {
    "lxml": ("irexec/io/", "converters/legacy_ir/"),
    "click": ("irexec/cli/",),
    "rich": ("irexec/cli/",),
    "PIL": ("irexec/tools/images.py",),
    "kserve": ("irexec/integrations/open_inference.py", "irexec/integrations/tensors.py"),
    "fastapi": ("irexec/integrations/",),
    "uvicorn": ("irexec/integrations/open_inference.py", "irexec/integrations/servers.py"),
    "grpc": ("irexec/integrations/",),
    "prometheus_client": ("irexec/integrations/open_inference.py",),
    "ray": ("irexec/integrations/ray_data.py",),
    "model_explorer": ("irexec/integrations/model_explorer/",),
    "dacite": ("irexec/integrations/model_explorer/",),
    "sentencepiece": ("irexec/tokenizers/isolated_program.py",),
    "pyarrow": ("irexec/tools/batch/items.py",),
    "resvg_py": ("irexec/tools/graph/draw.py",),
    "onnx": ("converters/onnx/", "converters/ir_to_onnx/", "irexec/testing/checking.py"),
    "pytest": ("irexec/testing/checking.py",),
    "onnxruntime": ("converters/onnx/reference.py", "irexec/tools/engines/engine.py", "irexec/tools/engines/releases/program.py"),
    "openvino": ("irexec/tools/engines/engine.py", "irexec/tools/engines/releases/program.py", "irexec/tools/inside/program.py"),
    # Calls of C: the kernels, and what the system tells and Python does not.
    "ctypes": (
        "irexec/native/library.py",
        "irexec/native/structures.py",
        "irexec/tools/engines/inference_engine/worker.py",
        "irexec/backend/native/",
        "irexec/backend/calls.py",
        "irexec/backend/copies.py",
        "irexec/backend/system.py",
        "irexec/backend/threads.py",
        "irexec/tools/engines/engine.py",
        "irexec/io/files.py",
        "irexec/integrations/open_inference.py",
    ),
    "google": ("converters/onnx/", "irexec/integrations/model_extensions.py"),
}  # fmt: skip
# What imports converters: one command, what reads models, and the runtimes of .onnx files, when they are called.
_USES_CONVERTERS = (
    "irexec/cli/convert.py",
    "irexec/cli/convert_to_onnx.py",
    "irexec/cli/ops.py",
    "irexec/api.py",
    "irexec/reading.py",
    "irexec/tools/engines/engine.py",
    "irexec/tools/engines/runtimes/kinds.py",
)
# A type that a signature names, for editors and checkers: nothing imports it when irexec runs.
_TYPES_ONLY = {("irexec/records.py", "irexec.authoring.editor")}
_EVERYWHERE = sys.stdlib_module_names | {"numpy"}
_FILES = sorted([*(ROOT / "irexec").rglob("*.py"), *(ROOT / "converters").rglob("*.py")])


@functools.cache
def _imports(source: str) -> list[tuple[str, tuple[str, ...], bool]]:
    """Every module imported, the names taken from it, and whether a function imports it when it is called."""
    imports: list[tuple[str, tuple[str, ...], bool]] = []
    for node, late in statements(source):
        if isinstance(node, ast.Import):
            imports.extend((alias.name, (), late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            imports.append((module, tuple(alias.name for alias in node.names), late))
    return imports


def _layer(module: str) -> str:
    """The package or module below irexec; "__init__" for irexec itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def _imported_layers(module: str, names: tuple[str, ...]) -> set[str]:
    """The layers of an import; ``from irexec import ops`` is one of ops."""
    if module != "irexec":
        return {_layer(module)}
    return {name if name in _LAYERS else "__init__" for name in names} or {"__init__"}


def _tool(module: str) -> str | None:
    """The group of a module of tools; None for any other module."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["irexec", "tools"] and len(parts) > 2 else None


def _tool_objections(name: str, source: str) -> Iterator[str]:
    """Wrong imports of other groups in a file of tools."""
    here = _tool(name.removesuffix(".py").replace("/", "."))
    if here is None or here == "__init__":
        return
    if here not in _TOOLS:
        yield f"{name}: the group {here} has no place in the order of tools"
        return
    for module, names, _ in _imports(source):
        imported = set(names) if module == "irexec.tools" else {_tool(module)} - {None}
        for group in sorted(imported - _TOOLS[here] - {here}):
            yield f"{name} ({here}) imports {module} ({group})"


def _objections(name: str, source: str) -> Iterator[str]:
    """What is wrong with the imports of the file of this name."""
    here = "converters" if name.startswith("converters") else _layer(name.removesuffix(".py").replace("/", "."))
    if here not in _LAYERS and here != "converters":
        yield f"{name}: the package {here} has no place in the order of layers"
        return
    allowed = _CONVERTERS if here == "converters" else _LAYERS[here] | {here}
    for module, names, late in _imports(source):
        package = module.split(".")[0]
        if (name, module) in _TYPES_ONLY:
            continue
        if package == "irexec":
            for layer in sorted(_imported_layers(module, names) - allowed):
                yield f"{name} ({here}) imports {module} ({layer})"
        elif package == "converters":
            if here != "converters" and not (name in _USES_CONVERTERS and late):
                yield f"{name} imports {module}"
        elif (package in _ONLY or package not in _EVERYWHERE) and not name.startswith(
            _ONLY.get(package, ()) or "nowhere"
        ):
            yield f"{name} imports {module}"


def test_imports() -> None:
    files = [(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in _FILES]
    objections = [
        one for name, source in files for one in (*_objections(name, source), *_tool_objections(name, source))
    ]
    assert not objections, "\n".join(objections)


def test_nothing_names_the_plug_in_of_tokenizers() -> None:
    """It is found by its entry point, as those of others are."""
    names = {path.relative_to(ROOT).as_posix() for path in _FILES if "irexec.tokenizers" in path.read_text("utf-8")}
    assert {name for name in names if not name.startswith("irexec/tokenizers/")} == set()


def _module_name(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


def _cycle(imports: Mapping[str, set[str]]) -> list[str]:
    """The modules of one cycle, the first again at the end; empty if there is none."""
    finished: set[str] = set()
    path: list[str] = []

    def visit(module: str) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in finished:
            return []
        path.append(module)
        for imported in sorted(imports.get(module, ())):
            if found := visit(imported):
                return found
        finished.add(path.pop())
        return []

    return next((found for module in sorted(imports) if (found := visit(module))), [])


def _imported_files(source: str, known: set[str]) -> set[str]:
    """The modules of this project that a file imports, functions and TYPE_CHECKING included."""
    found: set[str] = set()
    for module, names, _ in _imports(source):
        submodules = {f"{module}.{name}" for name in names} & known
        # A name taken from a package beside its submodules is one of the package's own file.
        found |= submodules
        if module in known and len(submodules) < max(1, len(names)):
            found.add(module)
    return found


def test_no_file_imports_itself_by_way_of_others() -> None:
    known = {_module_name(path) for path in _FILES}
    imports = {_module_name(path): _imported_files(path.read_text(encoding="utf-8"), known) for path in _FILES}
    for file, module in _TYPES_ONLY:
        imports[_module_name(ROOT / file)].remove(module)
    assert _cycle(imports) == []


def test_a_cycle_is_found() -> None:
    assert _cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    late = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from irexec.compile.plan import Step\n"
    assert _imported_files(late, {"irexec.compile.plan"}) == {"irexec.compile.plan"}


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("irexec/reference/gemm.py", "from irexec.ir.dims import Dim"),
        ("irexec/reference/gemm.py", "from scipy.linalg import blas"),
        ("irexec/reference/gemm.py", "from .windows import strided"),
        ("irexec/reference/gemm.py", "from irexec import ops"),
        ("irexec/reference/gemm.py", "from irexec.dtypes import elements"),
        ("irexec/display/hypertext.py", "from irexec.ir.findings import Finding"),
        ("irexec/errors.py", "from irexec.records import Record"),
        ("irexec/records.py", "def html():\n    import irexec.display"),
        ("irexec/ir/graph.py", "from irexec.display import Table"),
        ("irexec/compile/plan_report.py", "from irexec.display import Column"),
        ("irexec/runtime/profile.py", "def html():\n    from irexec.display import plain"),
        ("converters/onnx/load.py", "from irexec.display import Table"),
        ("irexec/dtypes/elements.py", "import onnx"),
        ("irexec/ir/graph.py", "def load():\n    from lxml import etree"),
        ("irexec/io/reader.py", "import irexec.ops.gather"),
        ("irexec/io/reader.py", "import irexec.schema.registry"),
        ("irexec/schema/registry.py", "def load():\n    import irexec.ops"),
        ("irexec/ops/gather.py", "def facts():\n    from irexec.analysis.shape_inference import infer_shapes"),
        ("irexec/ops/convolution.py", "from irexec.backend.winograd import convolve_tiles"),
        ("irexec/ops/gather.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from irexec.compile.plan import Step"),
        ("irexec/backend/winograd.py", "import ctypes"),
        ("irexec/native/build.py", "from ctypes import c_int64"),
        ("irexec/backend/winograd.py", "from irexec.ops.convolution import convolution_1"),
        ("irexec/tools/measure.py", "import rich.table"),
        ("irexec/runtime/session.py", "import irexec.cli.main"),
        ("irexec/analysis/validate.py", "import onnx"),
        ("irexec/cli/convert.py", "import converters"),
        ("irexec/cli/convert.py", "if True:\n    import converters"),
        ("irexec/cli/validate.py", "def run():\n    import converters"),
        ("irexec/passes/fold.py", "import numpy"),
        ("irexec/helpers.py", "import numpy"),
        ("converters/__init__.py", "import onnx"),
        ("converters/onnx/reference.py", "from irexec.ops.gather import gather_8"),
        ("converters/onnx/reference.py", "import openvino"),
    ],
)  # fmt: skip
def test_a_wrong_import_is_seen(name: str, source: str) -> None:
    assert len(list(_objections(name, source))) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("irexec/tools/arrays/files.py", "from irexec.tools.run.infer import infer"),
        ("irexec/tools/images.py", "def read():\n    from irexec.tools import engines"),
        ("irexec/tools/batch/run.py", "import irexec.tools.serving"),
        ("irexec/tools/compare/pairs.py", "from irexec.tools.reduce import reduce"),
        ("irexec/tools/helpers.py", "import numpy"),
    ],
)
def test_a_wrong_import_of_another_tool_is_seen(name: str, source: str) -> None:
    assert list(_objections(name, source)) == []
    assert len(list(_tool_objections(name, source))) == 1


def test_groups_of_tools_have_an_order() -> None:
    groups = list(_TOOLS)
    assert [group for i, group in enumerate(groups) if not _TOOLS[group] <= set(groups[:i])] == []
    existing = {path.stem for path in (ROOT / "irexec" / "tools").iterdir() if not path.name.startswith("__")}
    assert set(groups) == existing


def test_a_converter_may_be_imported_when_it_is_asked_for() -> None:
    assert list(_objections("irexec/cli/convert.py", "def run():\n    import converters")) == []


def test_the_top_level_is_what_it_is_said_to_be() -> None:
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".") and path.name not in _LEFT_BY_TOOLS}
    assert found <= {
        "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "action.yml", "irexec",
        "converters", "tests", "samples", "docs",
    }  # fmt: skip


_LEFT_BY_TOOLS = {"build", "dist", "irexec.egg-info", "__pycache__"}
