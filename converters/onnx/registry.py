"""Translations of ONNX operators: ``@translates("Squeeze", since=13)``.

A translation's signature is the schema: after the context ``b`` come the inputs (None where absent,
``*inputs`` for any number), then keyword-only attributes with their defaults. It returns a Value, or
a tuple of them. The newest that is not newer than the model's opset counts.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

# What an annotation says of an attribute, in ONNX's words.
_KINDS = {
    "int": "INT", "float": "FLOAT", "str": "STRING", "list[int]": "INTS", "list[float]": "FLOATS", "list[str]": "STRINGS",
    "TensorProto": "TENSOR", "SparseTensorProto": "SPARSE_TENSOR", "GraphProto": "GRAPH",
    "TypeProto": "TYPE_PROTO",
}  # fmt: skip


@dataclass(frozen=True)
class Translation:
    """One translation.

    Attributes:
        since: the opset of its domain from which on it counts.
        function: takes the context, the inputs and the attributes.
        attributes: by name, the types that each may have: INT, FLOATS, ...
        required: the names of those without a default.
        least_inputs, most_inputs: how many inputs it takes; None for any number.
        needed: of the inputs that have a name, whether each must be there; those that follow must all be.
        takes_sequences: whether inputs may be sequences of tensors, or optionals.
    """

    since: int
    function: Callable[..., Any]
    attributes: Mapping[str, tuple[str, ...]]
    required: frozenset[str]
    least_inputs: int
    most_inputs: int | None
    needed: tuple[bool, ...]
    takes_sequences: bool


_TRANSLATIONS: dict[tuple[str, str], list[Translation]] = {}


def translates(*types: str, since: int = 1, domain: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the function translates these operators from opset ``since`` of ``domain`` on."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for type in types:
            add(type, since, domain, function)
        return function

    return register


def add(
    type: str, since: int, domain: str, function: Callable[..., Any], *, schema: Callable[..., Any] | None = None,
    more: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> None:  # fmt: skip
    """Register a translation; tables use it directly.

    Args:
        type, since, domain: the operator.
        function: the translation.
        schema: the function whose signature is the schema, where it is another one.
        more: optional attributes that are not in that signature, and their types.
    """
    parameters = list(inspect.signature(schema or function).parameters.values())[1:]
    keyword = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    translation = Translation(
        since,
        function,
        {p.name: _kinds(p) for p in keyword} | dict(more),
        frozenset(p.name for p in keyword if p.default is p.empty),
        sum(p.default is p.empty for p in positional),
        None if variadic else len(positional),
        tuple(p.default is p.empty and "None" not in str(p.annotation) for p in positional),
        any("Tensors" in str(p.annotation) for p in parameters),
    )
    _TRANSLATIONS.setdefault((domain, type), []).append(translation)


def _kinds(parameter: inspect.Parameter) -> tuple[str, ...]:
    """The types of an attribute, from its annotation."""
    return tuple(_KINDS[name] for name in str(parameter.annotation).split(" | ") if name != "None")


@functools.cache
def _load() -> None:
    import converters.onnx.ops

    for module in pkgutil.iter_modules(converters.onnx.ops.__path__):
        importlib.import_module(f"converters.onnx.ops.{module.name}")


def find(type: str, domain: str, opset: int) -> Translation | None:
    """The translation of an operator in an opset; None if there is none."""
    _load()
    fitting = [t for t in _TRANSLATIONS.get((domain, type), ()) if t.since <= opset]
    return max(fitting, key=lambda t: t.since) if fitting else None


def operators() -> list[tuple[str, str]]:
    """Every (domain, operator) that can be translated."""
    _load()
    return sorted(_TRANSLATIONS)
