"""The public API is what ``__all__`` lists, with the signatures in tests/data/public_api.txt, and is imported when it is used."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import pkgutil
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import converters
import irexec
from irexec import deprecation
from irexec.cli.commands import COMMANDS
from tests.support import signatures
from tests.support.paths import DIGITS
from tests.support.processes import said


def test_all_is_exact() -> None:
    """What is imported when it is asked for is neither more nor less than what type checkers see."""
    tree = ast.parse(Path(irexec.__file__).read_text("utf-8"))
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    public = {
        name
        for name in dir(irexec)
        if not name.startswith("_")
        and (name in irexec._SUBMODULES or not isinstance(getattr(irexec, name), types.ModuleType))
    }
    assert public - {"Any", "TYPE_CHECKING"} == imported - {"Any", "TYPE_CHECKING"} == set(irexec.__all__)
    assert {*irexec._PUBLIC, *irexec._SUBMODULES} == set(irexec.__all__)
    assert len(set(irexec.__all__)) == len(irexec.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'irexec' has no attribute 'nothing'"):
        irexec.nothing  # noqa: B018


_RUNNING = ("irexec.compile", "irexec.backend", "irexec.runtime")
_HEAVY = ("multiprocessing", "concurrent.futures", "logging", "PIL", "onnx", "igraph", "rich.console")
# A run without a trap, a reference and a profile needs none of these.
_UNUSED_BY_A_RUN = (
    "irexec.tools.trapping.trap", "irexec.tools.arrays.agreement", "irexec.analysis.validate", "irexec.analysis.cost",
    "irexec.runtime.profile", "irexec.compile.plan_report", "fractions", "html", "subprocess",
)  # fmt: skip
_XML, _ONNX = str(DIGITS / "classifier.xml"), str(DIGITS / "classifier.onnx")
# The modules that a command must not load where it does not need them: what it writes goes to a pipe, and no error is shown.
_COMMANDS: list[tuple[list[str], tuple[str, ...]]] = [
    (["validate", _XML], (*_RUNNING, *_HEAVY)),
    (["validate", str(DIGITS / "damaged.xml")], (*_RUNNING, *_HEAVY)),
    (["inspect", _XML], (*_RUNNING, *_HEAVY)),
    (["inspect", _XML, "--cost", "--tree", "--precision", "--layers"], (*_RUNNING, *_HEAVY)),
    (["diff", _XML, str(DIGITS / "denoiser.xml")], (*_RUNNING, *_HEAVY)),
    (["explain", "IR103"], (*_RUNNING, *_HEAVY, "numpy", "lxml")),
    (["ops", "Relu"], (*_RUNNING, *_HEAVY)),
    (["convert", _ONNX, "-o", "m.xml"], (*_RUNNING, "multiprocessing", "concurrent.futures", "PIL", "igraph")),
    (["inside", _XML, "-o", _XML], ("irexec.tools.reduce", "irexec.tools.graph", "openvino")),
    (["upgrade", str(DIGITS / "classifier_v5.xml"), "-o", "m.xml"], ("irexec.tools.graph", *_HEAVY)),
    (["infer", _XML, "-i", "random"], ("irexec.tools.reduce", "irexec.tools.compare", "irexec.tools.graph", *_UNUSED_BY_A_RUN, *_HEAVY[:3], *_HEAVY[4:])),
    (["graph", _XML], ("irexec.tools.reduce", "irexec.tools.compare", "onnx")),
    (["profile", _XML, "--runs", "1"], ("irexec.tools.reduce", "irexec.tools.compare", "irexec.tools.graph", "onnx")),
    (["report", _XML, "-o", "r.html"], ("irexec.tools.reduce", "irexec.tools.compare", "onnx")),
    (["compare", _XML, "--b-runtime", "reference"], ("irexec.tools.reduce", "irexec.tools.graph", "onnx", "openvino")),
    (["judge", _XML, "--runtime", "reference"], ("irexec.tools.reduce", "irexec.tools.graph", "onnx", "openvino", "onnxruntime")),
    (["reduce", _XML], ("irexec.tools.graph", "irexec.tools.batch", "onnx", "openvino")),
    (["bench", _XML, "--runs", "1"], ("irexec.tools.reduce", "irexec.tools.compare", "irexec.tools.graph", "openvino")),
    (["test", _XML], ("irexec.tools.reduce", "irexec.tools.graph", "irexec.tools.compare", "onnx", "openvino")),
    (["batch", _XML], ("irexec.tools.reduce", "irexec.tools.graph", "onnx", "ray")),
    # A shape that does not fit: where kserve is installed, the server would wait for requests.
    (["serve", _XML, "--shape", "image[1,1,8,7]"], ("irexec.tools.reduce", "irexec.tools.graph", "onnx")),
    (["edit", _XML, "--dry-run", "--batch", "2"], ("irexec.runtime", "irexec.tools.reduce", "irexec.tools.compare", *_HEAVY)),
    (["script", _XML, "-o", "m.py"], ("irexec.tools.reduce", "irexec.tools.compare", "irexec.tools.graph", "onnx", "rich.console")),
    (["join", str(DIGITS / "denoiser.xml"), _XML, "--map", "cleaned=image", "-o", "m.xml"], ("irexec.tools.graph", *_HEAVY)),
    (["extract", _XML, "--layers", "relu1", "-o", "m.xml"], ("irexec.tools.graph", "PIL", "onnx", "igraph")),
    (
        ["bisect", _XML, "--openvino", "2024.0", "--installed", "--environments", "nothing"],
        ("irexec.tools.reduce", "irexec.tools.graph", "onnx", "openvino", "onnxruntime"),
    ),
    (["generate", "nothing", "-p", "text"], ("irexec.tools.compare", "irexec.tools.graph", "onnx", "openvino")),
    (["demo"], ("onnx", "irexec.tools.graph")),
    (["conform", "--runtime", "reference", "--ops", "Relu", "--quick"], ("irexec.tools.graph", "onnx", "openvino", "onnxruntime")),
]  # fmt: skip


def test_every_command_is_looked_at() -> None:
    assert {line[0] for line, _ in _COMMANDS} == set(COMMANDS)


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        ("import irexec", ("numpy", "lxml", "irexec.ops", "irexec.compile")),
        ("import irexec.opset", (*_RUNNING, *_HEAVY, "lxml", "irexec.tools", "irexec.ops.elementwise")),
        ("from irexec.cli.main import run; run(['--help'])", ("numpy", "lxml", "rich", "json", "ctypes", "irexec.ops")),
        ("import irexec; irexec.validate, irexec.diff", ("irexec.compile", "irexec.backend", "onnx")),
        ("import irexec; irexec.read_model", ("rich", "click", "onnx", "concurrent.futures.process")),
        *(
            (
                f"from irexec.cli.main import run; run({line!r})",
                (*absent, *(() if line[0] in ("conform", "edit", "join", "script") else ("irexec.authoring",))),
            )
            for line, absent in _COMMANDS
        ),
    ],
)
@pytest.mark.sampled(12)
def test_nothing_is_imported_before_it_is_needed(program: str, absent: tuple[str, ...], tmp_path: Path) -> None:
    """Start-up is quick because of what is not imported."""
    check = f"import sys; found = [name for name in {absent!r} if name in sys.modules]; sys.exit(repr(found) if found else 0)"
    said(tmp_path, "-c", f"{program}; {check}")


@pytest.mark.parametrize(
    ("line", "most"),
    [
        (["validate", _XML], 100),
        (["inspect", _XML], 107),
        (["diff", _XML, _XML], 114),
        (["convert", _ONNX, "-o", "m.xml"], 141),
        (["infer", _XML, "-i", "random"], 190),
    ],
)
def test_a_command_imports_few_modules(line: list[str], most: int, tmp_path: Path) -> None:
    """Number of own modules, each of which takes half a millisecond to a few; a command that needs more says why."""
    check = "print(sum(name.split('.')[0] in ('irexec', 'converters') for name in sys.modules))"
    loaded = int(_in_process(f"import sys; from irexec.cli.main import run; run({line!r}); {check}", tmp_path)[-1])
    assert most - 20 < loaded <= most


@pytest.mark.parametrize("command", ["validate", "inspect"])
def test_numpy_is_imported_before_the_modules_of_a_command(command: str, tmp_path: Path) -> None:
    """Inside of them it may lie at the end of a chunk of the stack, which costs hundreds of maps of memory."""
    program = (
        "import sys, types; from irexec.cli.main import cli; begun = []; "
        "sys.meta_path.insert(0, types.SimpleNamespace(find_spec=lambda name, *_: begun.append(name))); "
        f"cli.get_command(None, {command!r}); print(begun.index('numpy') < begun.index('irexec.cli.{command}'))"
    )
    assert _in_process(program, tmp_path)[-1] == "True"


@pytest.mark.slow
def test_modules_of_a_command_are_imported_without_garbage_collection(tmp_path: Path) -> None:
    """The command line excludes its modules from later collections; a program that uses irexec as a library does not."""
    program = (
        "import gc, sys; collected = []; gc.callbacks.append(lambda phase, info: collected.append(info['generation'])); "
        "from irexec.cli.main import cli; before = len(collected); cli.get_command(None, 'infer'); "
        "print(len(collected) - before < 5, gc.isenabled(), gc.get_freeze_count() > 10_000)"
    )
    assert _in_process(program, tmp_path)[-1] == "True True False"
    as_command = f"import sys; sys.argv[0] = 'irexec'; {program}"
    assert _in_process(as_command, tmp_path)[-1] == "True True True"


def _in_process(program: str, folder: Path) -> list[str]:
    """The lines that a program prints."""
    return said(folder, "-c", program)[0].splitlines()


def test_everything_public_is_documented() -> None:
    for name in irexec.__all__:
        thing = getattr(irexec, name)
        assert thing.__doc__, f"{name} has no docstring"
        for attribute, value in vars(thing).items() if isinstance(thing, type) else ():
            # A function without a name is the default of an attribute.
            is_default = getattr(value, "__name__", "") == "<lambda>"
            if not attribute.startswith("_") and isinstance(value, types.FunctionType | property) and not is_default:
                assert inspect.getdoc(value), f"{name}.{attribute} has no docstring, not even one that it inherits"


def test_converters() -> None:
    assert converters.__all__ == ["convert", "to_onnx"]


def test_signatures_are_those_of_the_list() -> None:
    """A change of the public API is made on purpose: ``python -m tests.support.signatures`` writes the list."""
    assert signatures.lines() == signatures.FILE.read_text("utf-8").splitlines()


def test_a_changed_signature_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(signatures.lines())

    def cost(model: irexec.Model, depth: int = 3) -> irexec.CostReport:
        raise NotImplementedError

    class Failure(irexec.Failure):
        def worse(self) -> bool:
            return True

    monkeypatch.setattr(irexec, "cost", cost)
    monkeypatch.setattr(irexec, "Failure", Failure)
    Failure.__module__ = "irexec.tools.reduce"
    changed = set(signatures.lines()) - before
    assert changed == {"cost(model: irexec.Model, depth: int = 3) -> irexec.CostReport", "Failure.worse(self) -> bool"}


def _public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public functions, and the public methods and properties of public classes."""
    for name in irexec.__all__:
        thing = getattr(irexec, name)
        if isinstance(thing, types.FunctionType):
            yield name, thing
        for owner in thing.__mro__ if isinstance(thing, type) else ():
            for attribute, value in vars(owner).items() if owner.__module__.startswith("irexec") else ():
                function = value.fget if isinstance(value, property) else value
                if isinstance(function, types.FunctionType) and not attribute.startswith("_"):
                    yield f"{name}.{attribute}", function


def _classes(function: Callable[..., Any]) -> Iterator[type]:
    """The classes of irexec that the annotations of a function name; those of type aliases are not looked at."""
    for annotation in function.__annotations__.values():
        for node in ast.walk(ast.parse(annotation, mode="eval")) if isinstance(annotation, str) else ():
            found = function.__globals__.get(node.id) if isinstance(node, ast.Name) else None
            if isinstance(found, type) and found.__module__.startswith("irexec"):
                yield found


def test_the_classes_of_public_signatures_are_public() -> None:
    public = {id(getattr(irexec, name)) for name in irexec.__all__}
    hidden = [
        f"{name}: {cls.__name__}"
        for name, function in _public_functions()
        for cls in _classes(function)
        if id(cls) not in public
    ]
    # The model that io reads; a Model is one.
    assert [entry for entry in hidden if not entry.endswith(": ModelGraph")] == []


def test_no_function_has_the_name_of_a_submodule() -> None:
    """Importing the submodule would replace the function."""
    names = {module.name for module in pkgutil.iter_modules(irexec.__path__)} - set(irexec._SUBMODULES)
    assert names & set(irexec.__all__) == set()


def _import_everything() -> None:
    for package in (irexec, converters):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                with contextlib.suppress(irexec.UnsupportedError, ImportError):
                    importlib.import_module(found.name)


def due(version: str) -> list[deprecation.Deprecation]:
    """The deprecated functions that a version must have removed."""
    return [row for row in deprecation.DEPRECATIONS if parts(row.remove_in) <= parts(version)]


def parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_no_deprecation_is_overdue() -> None:
    """What is deprecated goes in the version that its warning names."""
    _import_everything()
    assert list(map(str, due(irexec.__version__))) == []


def test_a_deprecated_function_warns_and_becomes_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deprecation, "DEPRECATIONS", [])

    @deprecation.deprecated(remove_in="0.10.0", use_instead="irexec.new")
    def old(a: int, *, b: int = 2) -> int:
        """The sum."""
        return a + b

    with pytest.warns(
        DeprecationWarning, match=r"old is deprecated and goes in irexec 0\.10\.0: use irexec\.new"
    ) as caught:
        assert old(1, b=3) == 4
    assert caught[0].filename == __file__
    assert old.__doc__ == "The sum."
    assert [len(due(version)) for version in ("0.9.9", "0.10.0", "1.0.0")] == [0, 1, 1]
