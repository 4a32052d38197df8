"""The typed attributes of a layer, parsed once for all who ask."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from irexec.errors import UnsupportedError
from irexec.ir.graph import Node
from irexec.ir.writable import attribute_problems
from irexec.schema.opdef import AttributeProblem, OpDef, ParsedAttributes
from irexec.schema.registry import resolve

Texts = tuple[tuple[str, str], ...]
_LONGEST_SHARED = 512
"""Characters of the attributes of a layer that are parsed once for all layers that have the same ones."""


@dataclass(frozen=True, slots=True)
class _Typed:
    definition: OpDef
    texts: dict[str, str]
    parsed: ParsedAttributes


def typed_attributes(node: Node, definition: OpDef) -> ParsedAttributes:
    """The attributes of ``node`` as ``definition`` reads them; parsed again only where their text has changed since."""
    kept: _Typed | None = node.typed
    if kept is None or kept.definition is not definition or kept.texts != node.attributes:
        texts = tuple(node.attributes.items())
        if not all(isinstance(part, str) for pair in texts for part in pair):
            # One was set to an object of another type in Python.
            problems = (AttributeProblem(*problem) for pair in texts for problem in attribute_problems(*pair))
            return ParsedAttributes({}, tuple(problems))
        is_short = sum(len(text) for _, text in texts) <= _LONGEST_SHARED
        kept = node.typed = _shared(definition, texts) if is_short else _typed(definition, texts)
    return kept.parsed


def typed_attribute(node: Node, name: str) -> Any:
    """The typed value of an attribute by the kernel's name for it; None where it is missing or wrong, or the layer is
    not known."""
    try:
        definition = resolve(node.type, node.version)
    except UnsupportedError:
        return None
    return typed_attributes(node, definition).values.get(name)


def seed_attributes(node: Node, definition: OpDef, values: Mapping[str, Any]) -> None:
    """Store the typed attributes of a layer whose texts were written from ``values``."""
    node.typed = _Typed(definition, dict(node.attributes), definition.parse(values))


def _typed(definition: OpDef, texts: Texts) -> _Typed:
    given = dict(texts)
    return _Typed(definition, given, definition.parse(given))


_shared = functools.lru_cache(maxsize=1024)(_typed)
"""Many layers of a model have the same attributes; what is returned is never changed."""
