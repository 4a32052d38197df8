"""The public API is what ``__all__`` says, no more and no less."""

from __future__ import annotations

import ast
import subprocess
import sys
import types
from pathlib import Path

import pytest

import converters
import irexec


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
        if not name.startswith("_") and not isinstance(getattr(irexec, name), types.ModuleType)
    }
    assert public - {"Any", "TYPE_CHECKING"} == imported - {"Any", "TYPE_CHECKING"} == set(irexec.__all__)
    assert len(set(irexec.__all__)) == len(irexec.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'irexec' has no attribute 'nothing'"):
        irexec.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        ("import irexec", ("numpy", "lxml", "irexec.ops", "irexec.compile")),
        ("from irexec.cli.main import run; run(['--help'])", ("numpy", "lxml", "rich", "irexec.ops")),
        ("import irexec; irexec.validate, irexec.diff", ("irexec.compile", "irexec.backend", "onnx")),
        ("import irexec; irexec.read_model", ("rich", "click", "onnx", "concurrent.futures.process")),
    ],
)
def test_nothing_is_imported_before_it_is_needed(program: str, absent: tuple[str, ...]) -> None:
    """Start-up is quick because of what is not imported."""
    check = f"import sys; found = [name for name in {absent!r} if name in sys.modules]; sys.exit(repr(found) if found else 0)"
    done = subprocess.run([sys.executable, "-c", f"{program}; {check}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_everything_public_is_documented() -> None:
    for name in irexec.__all__:
        thing = getattr(irexec, name)
        assert thing.__doc__, f"{name} has no docstring"
        for attribute, value in vars(thing).items() if isinstance(thing, type) else ():
            if not attribute.startswith("_") and isinstance(value, types.FunctionType | property):
                assert value.__doc__, f"{name}.{attribute} has no docstring"


def test_converters() -> None:
    assert converters.__all__ == ["convert"]
