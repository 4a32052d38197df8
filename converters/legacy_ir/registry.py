"""Translators of layer types: ``@translates("ReLU")``; reasons why a layer cannot be translated.

The signature of a translator is its schema: after the layer come the inputs (with None as the default of one that may
be missing, ``*inputs`` for any number), then keyword-only attributes with the type hints of irexec.schema.attributes.
Unknown attributes are ignored, as by the old readers. The translator returns a Value or a tuple of Values.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

from irexec.errors import IrexecError, OpError, check
from irexec.ir import legacy_codes as codes
from irexec.ir.findings import Finding
from irexec.ir.graph import Node
from irexec.messages import counted
from irexec.schema.attributes import parser_of


class WrongAttributeError(OpError):
    """An attribute of a layer that is missing or has a wrong value."""


class UnknownLayerError(OpError):
    """A layer type that versions 2 to 7 lack."""


class NoEquivalentError(OpError):
    """A layer that computes what no operation of version 11 computes."""


class ReportedError(OpError):
    """A reason that is a finding already."""


def finding_of(node: Node, error: IrexecError) -> Finding:
    """The finding that a layer cannot be translated, with the reason that the error was raised for."""
    reason: IrexecError = error
    while isinstance(reason.__cause__, IrexecError):
        reason = reason.__cause__
    return node.finding(_CODES.get(type(reason), codes.DOES_NOT_FIT), str(reason))


_CODES: dict[type[IrexecError], str] = {
    WrongAttributeError: codes.WRONG_ATTRIBUTE,
    UnknownLayerError: codes.UNKNOWN_LAYER,
    NoEquivalentError: codes.NO_EQUIVALENT,
}


@dataclass(frozen=True)
class Translator:
    """One translator.

    Attributes:
        type: the layer type as the catalogue spells it.
        function: the function of layer, inputs and attributes.
        min_inputs, max_inputs: the accepted numbers of inputs; ``max_inputs`` is None for any number.
        attributes: the type hint of each attribute by name.
        required: names of the attributes without a default.
    """

    type: str
    function: Callable[..., Any]
    min_inputs: int
    max_inputs: int | None
    attributes: Mapping[str, Any]
    required: frozenset[str]

    def __call__(self, layer: Any, inputs: Sequence[Any], texts: Mapping[str, str]) -> Any:
        """The result of the function; raises OpError for a wrong number of inputs or a wrong attribute."""
        most = "any number" if self.max_inputs is None else str(self.max_inputs)
        check(
            self.min_inputs <= len(inputs) and (self.max_inputs is None or len(inputs) <= self.max_inputs),
            f"the layer has {counted(len(inputs), 'input')}, expected {self.min_inputs} to {most}",
        )
        missing = sorted(self.required - texts.keys())
        if missing:
            raise WrongAttributeError(f"the attribute {', '.join(missing)} is missing")
        given = {name: parsed(name, hint, texts[name]) for name, hint in self.attributes.items() if name in texts}
        return self.function(layer, *inputs, **given)


def parsed(name: str, hint: Any, text: str) -> Any:
    """The value of an attribute of this type hint; raises WrongAttributeError for a wrong text."""
    try:
        return parser_of(hint)[0](text)
    except OpError as error:
        raise WrongAttributeError(f"attribute {name}: {error}") from None


_TRANSLATORS: dict[str, Translator] = {}


def translates(*types: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that registers a translator of these layer types; ValueError for a type that has one."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for type in types:
            if type.lower() in _TRANSLATORS:
                raise ValueError(f"{type} has two translators")
            _TRANSLATORS[type.lower()] = _translator(type, function)
        return function

    return register


def _translator(type: str, function: Callable[..., Any]) -> Translator:
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    return Translator(
        type,
        function,
        sum(p.default is p.empty for p in positional),
        None if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(positional),
        {p.name: hints[p.name] for p in keywords},
        frozenset(p.name for p in keywords if p.default is p.empty),
    )


@functools.cache
def _load() -> None:
    import converters.legacy_ir.layers

    for module in pkgutil.iter_modules(converters.legacy_ir.layers.__path__):
        importlib.import_module(f"converters.legacy_ir.layers.{module.name}")


def find(type: str) -> Translator | None:
    """The translator of a layer type, in any letter case; None if there is none."""
    _load()
    return _TRANSLATORS.get(type.lower())
