"""Translators of operations of IR: ``@exact("Relu")``, ``@composed("Swish")``, ``inexpressible("BPETokenizer", ...)``.

A translator takes the context ``ctx``, the layer's inputs as Tensors (None where one is absent) and its attributes as
keywords, under the names of the parameters of the operation's kernel. It returns a Tensor or a tuple of them, one for
each output. The first sentence of its docstring is its row in the table of operations.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from irexec.schema.opdef import OpDef

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
            _add(Translation(type, since, kind, _first_sentence(function), function))
        return function

    return register


def _first_sentence(function: Callable[..., Any]) -> str:
    text = " ".join((function.__doc__ or "").split("\n\n")[0].split())
    return text.partition(". ")[0].removesuffix(".")


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
