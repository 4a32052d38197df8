"""Translators of operations of IR: ``@exact("Relu")``, ``@composed("Swish")``, ``@recognises("Multiply")``; a table.

A translator takes the context ``ctx``, the layer's inputs as Tensors (None where one is absent) and its attributes as
keywords, under the names of the parameters of the operation's kernel. It returns a Tensor or a tuple of them, one for
each output. The first sentence of its docstring is its row in the table of operations.

A recogniser takes the context, whose ``node`` is the last layer, and returns the Tensor of its output, or None. The
layers before it are written as well; nodes that nothing reads are left out in the end.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node, Value
from irexec.records import Record, Records
from irexec.schema.opdef import OpDef
from irexec.schema.registry import definitions

Kind = Literal["exact", "composed", "not expressible"]


@dataclass(frozen=True)
class Translation:
    """One row of the table.

    Attributes:
        type: of the operation.
        since: the first version that the row is for: an opset, or the namespace of an extension.
        kind: exact is one node of ONNX, composed several; of some attributes or element types an exact one needs more.
        text: the first sentence of the translator's docstring, or the reason why the operation is not expressible.
        function: the translator; None if the operation is not expressible.
    """

    type: str
    since: int | str
    kind: Kind
    text: str
    function: Callable[..., Any] | None


_TRANSLATIONS: dict[str, dict[int | str, Translation]] = {}


def exact(*types: str, since: int | str = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the function translates these operations, from the version ``since`` on, into one node."""
    return _decorator(types, since, "exact")


def composed(*types: str, since: int | str = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the function translates these operations, from the version ``since`` on, into several nodes."""
    return _decorator(types, since, "composed")


def inexpressible(*types: str, reason: str, since: int | str = 1) -> None:
    """Register operations that ONNX cannot compute."""
    for type in types:
        _add(Translation(type, since, "not expressible", reason, None))


def add(type: str, kind: Kind, text: str, function: Callable[..., Any], since: int | str = 1) -> None:
    """Register a translator; tables of operations call it directly."""
    _add(Translation(type, since, kind, text, function))


def _decorator(
    types: tuple[str, ...], since: int | str, kind: Kind
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for type in types:
            text = " ".join((function.__doc__ or "").split("\n\n")[0].split())
            _add(Translation(type, since, kind, text.partition(". ")[0].removesuffix("."), function))
        return function

    return register


def _add(translation: Translation) -> None:
    versions = _TRANSLATIONS.setdefault(translation.type, {})
    if translation.since in versions:
        raise ValueError(f"{translation.type} of {translation.since} has two translators")
    versions[translation.since] = translation


@functools.cache
def _load() -> None:
    from converters.ir_to_onnx import ops

    for module in pkgutil.iter_modules(ops.__path__):
        importlib.import_module(f"{ops.__name__}.{module.name}")


def translation_of(definition: OpDef) -> Translation | None:
    """The translator of an operation: the newest that is not newer; None if there is none."""
    _load()
    versions = _TRANSLATIONS.get(definition.type, {})
    if isinstance(definition.since, str):
        return versions.get(definition.since)
    fitting = [since for since in versions if isinstance(since, int) and since <= definition.since]
    return versions[max(fitting)] if fitting else None


Recogniser = Callable[[ExportContext], Tensor | None]
_RECOGNISERS: dict[str, list[Recogniser]] = {}


def recognises(*types: str) -> Callable[[Recogniser], Recogniser]:
    """Decorator: the function is asked for every layer of these types.

    Of the functions of one type at most one recognises a layer, so that their order does not matter.
    """

    def register(function: Recogniser) -> Recogniser:
        for type in types:
            _RECOGNISERS.setdefault(type, []).append(function)
        return function

    return register


def recognised(ctx: ExportContext) -> Tensor | None:
    """The output of the layer as that of an operator that several layers are; None if they are none."""
    for recogniser in _RECOGNISERS.get(ctx.node.type, ()):
        found = recogniser(ctx)
        if found is not None:
            return found
    return None


def constant_of(value: Value | None) -> np.ndarray | None:
    """The elements of a constant, also of one that is converted; None of another value."""
    node = None if value is None else value.node
    if node is not None and node.type == "Convert" and node.inputs[0] is not None:
        node = node.inputs[0].node
    return None if node is None or node.constant is None else constant_value(node.constant)


def producer(node: Node | None, index: int, type: str) -> Node | None:
    """The layer of that type that produces an input of a layer; None if another does."""
    return producer_of(None if node is None or index >= len(node.inputs) else node.inputs[index], type)


def producer_of(value: Value | None, type: str) -> Node | None:
    """The layer of that type that produces a value; None if another does."""
    return value.node if value is not None and value.node.type == type else None


def has_flag(node: Node, attribute: str) -> bool:
    """Whether a boolean attribute is given and true."""
    return node.attributes.get(attribute, "").lower() in ("true", "1")


WRITTEN_AROUND = {
    "Parameter": "an input of the graph", "Result": "an output of the graph", "Constant": "an initializer",
}  # fmt: skip
"""Operations that are not a node in ONNX."""


@dataclass(frozen=True)
class OnnxLine(Record):
    """One version of an operation.

    Attributes:
        type, version: of the operation.
        onnx: exact (one node), composed (several), or not expressible.
        how: the operators, or the reason.
    """

    type: str
    version: str
    onnx: str
    how: str


def onnx_table() -> Records[OnnxLine]:
    """Every version of every operation."""
    return Records(_line(definition) for definition in definitions())


def _line(definition: OpDef) -> OnnxLine:
    type, version = definition.type, definition.version
    if type in WRITTEN_AROUND:
        return OnnxLine(type, version, "exact", WRITTEN_AROUND[type])
    translation = translation_of(definition)
    if translation is None:
        return OnnxLine(type, version, "not expressible", "there is no translation of it")
    return OnnxLine(type, version, translation.kind, translation.text)
