"""The typed attributes of a layer, parsed once for all who ask."""

from __future__ import annotations

from dataclasses import dataclass

from irexec.ir.graph import Node
from irexec.schema.opdef import OpDef, ParsedAttributes


@dataclass(frozen=True)
class _Typed:
    definition: OpDef
    texts: dict[str, str]
    parsed: ParsedAttributes


def typed_attributes(node: Node, definition: OpDef) -> ParsedAttributes:
    """The attributes of ``node`` as ``definition`` reads them; parsed again only where their text has changed since."""
    kept: _Typed | None = node.typed
    if kept is None or kept.definition is not definition or kept.texts != node.attributes:
        kept = node.typed = _Typed(definition, dict(node.attributes), definition.parse(node.attributes))
    return kept.parsed
