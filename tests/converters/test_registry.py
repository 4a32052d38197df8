"""The registry of translators: it reads type hints, whether or not they are strings, and accepts no key twice."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import converters.onnx.ops
from converters.onnx import registry
from converters.onnx.registry import NCHWC, NHWC, add, find, operators, translates


@pytest.fixture(autouse=True)
def own_entries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is forgotten after it."""
    operators()
    monkeypatch.setattr(
        registry, "_TRANSLATIONS", {key: dict(versions) for key, versions in registry._TRANSLATIONS.items()}
    )
    yield


_TRANSLATOR = """
    {future}
    from onnx import GraphProto, TensorProto

    from converters.onnx.context import TranslationContext
    from converters.onnx.registry import translates
    from converters.onnx.tensors import TensorSequence
    from irexec.ir.graph import Value


    @translates("Probe", since=3, domain="test")
    def probe(
        ctx: TranslationContext, x: Value, y: Value | None, z: Value | None = None, *rest: Value, axis: int, scales: list[float] | None = None,
        power: float | int = 2, body: GraphProto | None = None, value: TensorProto | None = None, names: list[str] | None = None,
    ) -> Value:
        return x


    @translates("SequenceProbe", domain="test")
    def sequence_probe(ctx: TranslationContext, x: Value | TensorSequence) -> Value:
        return x
"""


@pytest.mark.parametrize(
    "future", ["from __future__ import annotations", ""], ids=["hints are strings", "hints are types"]
)
def test_signature_is_the_schema(future: str) -> None:
    module = ModuleType("probe")
    exec(
        compile(textwrap.dedent(_TRANSLATOR.format(future=future)), "probe.py", "exec", dont_inherit=True),
        module.__dict__,
    )
    found = find("Probe", "test", 5)
    assert found is not None
    assert found.function is module.probe
    assert found.attributes == {
        "axis": ("INT",), "scales": ("FLOATS",), "power": ("FLOAT", "INT"), "body": ("GRAPH",), "value": ("TENSOR",), "names": ("STRINGS",),
    }  # fmt: skip
    assert found.required == {"axis"}
    assert (found.min_inputs, found.max_inputs, found.required_inputs) == (2, None, (True, False, False))
    assert not found.takes_sequences
    sequence = find("SequenceProbe", "test", 1)
    assert sequence is not None
    assert sequence.takes_sequences


def test_newest_version_not_newer_than_the_opset() -> None:
    for since in (1, 6, 13):
        add("Probe", since, "test", lambda ctx: None)
    assert [getattr(find("Probe", "test", opset), "since", None) for opset in (0, 1, 5, 6, 12, 13, 99)] == [
        None, 1, 1, 6, 6, 13, 13,
    ]  # fmt: skip
    assert find("Probe", "other", 13) is None


def _first(ctx: Any) -> None: ...


def _second(ctx: Any) -> None: ...


def test_duplicate_is_refused() -> None:
    translates("Probe", since=2, domain="test")(_first)
    translates("Probe", since=3, domain="test")(_second)
    with pytest.raises(ValueError, match=r"^test\.Probe of opset 2 has two translators: .*\._first and .*\._second$"):
        translates("Probe", since=2, domain="test")(_second)
    with pytest.raises(ValueError, match=r"^ai\.onnx\.Relu of opset 1 has two translators"):
        add("Relu", 1, "", _first)


def _complex_attribute(ctx: Any, *, z: complex) -> None: ...


def _untyped_attribute(ctx: Any, *, z) -> None: ...  # what the test is about


@pytest.mark.parametrize("function", [_complex_attribute, _untyped_attribute])
def test_attribute_without_a_type_of_onnx_is_refused(function: Any) -> None:
    with pytest.raises(TypeError, match=r"attribute 'z' has the type hint .*, which ONNX has no type for"):
        add("Probe", 1, "test", function)


@dataclass(frozen=True, kw_only=True)
class _Size:
    height: int
    width: int = 1
    scale: float = 1.0


def _sized(ctx: Any, x: Any, *, size: _Size, mode: str = "fit") -> Any:
    return x, size, mode


def _named(ctx: Any, *, name: str = "") -> None: ...


def test_attributes_of_a_dataclass_and_of_further_schemas() -> None:
    """Fields are attributes; ``without`` removes some; the attributes of all schemas are known."""
    add("Probe", 1, "test", _sized, _sized, _named, without=["scale"])
    found = find("Probe", "test", 1)
    assert found is not None
    assert found.attributes == {"height": ("INT",), "width": ("INT",), "mode": ("STRING",), "name": ("STRING",)}
    assert (found.required, found.min_inputs, found.max_inputs) == ({"height"}, 1, 1)
    assert found(None, ["x"], {"height": 3, "mode": "crop"}) == ("x", _Size(height=3), "crop")


def test_every_file_below_ops_is_loaded() -> None:
    """Each domain has its folder, those of layouts that of com.microsoft, and every file in it has been imported."""
    (root,) = converters.onnx.ops.__path__
    files = {path for path in Path(root).rglob("*.py") if path.name != "__init__.py"}
    assert files == {
        Path(sys.modules[name].__file__ or "") for name in sys.modules if name.startswith("converters.onnx.ops.")
    } - _packages(root)
    assert len({domain for domain, _ in operators()} - {NHWC, NCHWC}) == len({path.parent for path in files})


def _packages(root: str) -> set[Path]:
    return set(Path(root).rglob("__init__.py"))


_LAZILY = """
import importlib, pkgutil, sys
import converters.onnx.ops
from converters.onnx import registry

{body}
"""


def _lazily(body: str) -> str:
    """Run in a process of its own, in which no translator is registered yet; returns its stdout."""
    code = _LAZILY.format(body=textwrap.dedent(body))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_few_modules_are_imported_for_few_operators() -> None:
    printed = _lazily("""
        assert registry.find("Relu", "", 13) and registry.find("Conv", "", 13) and not registry.find("Conv", "test", 1)
        print(sum(name.startswith("converters.onnx.ops.") for name in sys.modules))
    """)
    assert int(printed) < 22


@pytest.mark.slow
def test_every_translator_is_found_by_the_name_of_its_operator() -> None:
    """The module that registers an operator is one of those that are imported for the name of the operator."""
    printed = _lazily("""
        for module in pkgutil.walk_packages(converters.onnx.ops.__path__, "converters.onnx.ops."):
            before, known = set(sys.modules), set(registry._TRANSLATIONS)
            importlib.import_module(module.name)
            fresh = set(sys.modules) - before
            for domain, operator in set(registry._TRANSLATIONS) - known:
                if not fresh & set(registry._loader().modules_for(operator)):
                    print(domain, operator, module.name)
    """)
    assert printed == ""
