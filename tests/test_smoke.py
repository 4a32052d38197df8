"""One test of each command, each package and each family of operations: ``pytest -n auto -m smoke`` takes about a minute."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import converters
import irexec
from irexec.cli.commands import COMMANDS
from irexec.cli.main import run
from irexec.errors import UnsupportedError
from irexec.testing import Case
from irexec.testing.laws import every_law
from irexec.tokenizers.isolated import HAS_PROCESSES
from tests.support.cases import families
from tests.support.paths import DIGITS
from tests.test_laws import expected_of

pytestmark = pytest.mark.smoke

XML, ONNX, DAMAGED = str(DIGITS / "classifier.xml"), str(DIGITS / "classifier.onnx"), str(DIGITS / "damaged.xml")
FAST = ("--runs", "1")

_LINES: dict[str, tuple[int, Sequence[str]]] = {
    "batch": (0, [XML, str(DIGITS / "digit_7.png"), "-o", "c.jsonl", "--topk", "1", "--scale", "255"]),
    "bench": (0, [XML, *FAST]),
    "test": (2, [XML]),
    "bisect": (2, [XML, "--openvino", "2024.0", "--installed", "--environments", "nothing"]),
    "compare": (0, [XML, "--b-runtime", "reference"]),
    "script": (0, [XML, "-o", "script.py"]),
    "edit": (0, [XML, "-o", "edited.xml", "--batch", "2"]),
    "extract": (0, [XML, "--layers", "relu1", "-o", "part.xml"]),
    "join": (0, [str(DIGITS / "denoiser.xml"), XML, "--map", "cleaned=image", "-o", "joined.xml"]),
    "conform": (0, ["--runtime", "reference", "--ops", "Relu", "--quick"]),
    "convert": (0, [ONNX, "-o", "m.xml"]),
    "demo": (0, []),
    "diff": (1, [XML, str(DIGITS / "denoiser.xml")]),
    "explain": (0, ["IR103"]),
    "generate": (3, ["nothing", "-p", "text"]),
    "graph": (0, [XML, "-o", "m.dot"]),
    "infer": (0, [XML, "-i", "random"]),
    "inspect": (0, [XML, "--cost", "--memory", "--precision", "--tree"]),
    "judge": (0, [XML, "--runtime", "reference"]),
    "ops": (0, ["Relu"]),
    "profile": (0, [XML, *FAST]),
    "reduce": (0, [DAMAGED, "-o", "min.xml", "--finding", "IR103"]),
    "report": (0, [XML, "-o", "m.html"]),
    "serve": (2, [XML, "--port", "x"]),
    "inside": (2, [XML, "-o", XML]),
    "upgrade": (0, [str(DIGITS / "classifier_v5.xml"), "-o", "new.xml"]),
    "validate": (1, [DAMAGED]),
}
_NEED = {"batch": "PIL", "convert": "onnx"}
_REFUSED = 3
"""Of a command that needs processes where there are none."""


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if command in _NEED:
        pytest.importorskip(_NEED[command])
    monkeypatch.chdir(tmp_path)
    code, arguments = _LINES[command]
    if command == "bench" and not HAS_PROCESSES:
        code = _REFUSED
    assert run([command, *arguments]) == code


_PACKAGES = [
    f"{package.__name__}.{module.name}"
    for package in (irexec, converters)
    for module in pkgutil.iter_modules(package.__path__)
    if not module.name.startswith("__")
]


@pytest.mark.parametrize("name", _PACKAGES)
def test_package_is_imported(name: str) -> None:
    """Every module; those of extras only where these are installed."""
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{name}."):
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            of_extras = ("irexec.integrations", "converters.onnx", "converters.to_onnx", "converters.ir_to_onnx")
            assert name in of_extras or not HAS_PROCESSES, error
        except UnsupportedError as error:
            # Pyodide lacks parts of the standard library, of which each command says what it needs.
            assert not HAS_PROCESSES and " needs " in str(error)


_FIRST = {family: next((row for row in rows if isinstance(row, Case)), None) for family, rows in families().items()}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("family", [family for family, row in _FIRST.items() if row is not None])
def test_operation(family: str) -> None:
    """The first row of each family: schema, shape rule, reference and fast kernel, writer, reader, passes, runtime."""
    row = _FIRST[family]
    assert row is not None
    every_law(row, expected_of(family, row, live=False))


def test_network() -> None:
    image = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 1, 8, 8)
    fast = irexec.infer(XML, image)["probabilities"]
    np.testing.assert_allclose(fast, irexec.infer(XML, image, optimize=False)[0], rtol=1e-5)
    assert fast.sum() == pytest.approx(1)
