"""State that every part of the reader shares: the weights, the problems found so far, common parts of ports and
layers."""

from __future__ import annotations

from collections.abc import Sequence

from irexec.io.elements import XmlElement
from irexec.io.payload import LayerPayload
from irexec.io.weights_file import Weights
from irexec.ir import codes
from irexec.ir.dims import LARGEST_SIZE
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import Node


class ReadContext:
    """One document while it is read.

    Most layers of a large model say the same of their ports and have the same parts, so that these are held once.

    Attributes:
        name: the name of the document in messages.
        weights: the .bin.
        problems: the problems of the graph that is being read.
        unreadable: the constants whose bytes are not in the .bin.
        facts: by precision and dims as written, where nothing is wrong with them.
        layouts: payloads of layers that say nothing else, by the tags of their child elements.
    """

    def __init__(self, name: str, weights: Weights) -> None:
        self.name, self.weights = name, weights
        self.problems: list[Finding] = []
        self.unreadable: list[Node] = []
        self.facts: dict[tuple[str | None, ...], Fact] = {}
        self.layouts: dict[tuple[str, ...], LayerPayload] = {}
        self._texts: dict[str, str] = {}
        self._shapes: dict[tuple[int, ...], tuple[int, ...]] = {}

    def shared(self, text: str) -> str:
        """The same text, held once."""
        return self._texts.setdefault(text, text)

    def shared_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The same sizes, held once."""
        return self._shapes.setdefault(shape, shape)

    def problem(
        self, code: str, message: str, element: XmlElement, node: Node | None = None, port: int | None = None
    ) -> None:
        """Add what is wrong at an element."""
        if node is None:
            self.problems.append(in_model(code, message, port=port, line=element.line))
        else:
            self.problems.append(node.finding(code, message, port=port, line=element.line))

    def integer(
        self, element: XmlElement, key: str, node: Node | None = None, code: str = codes.BAD_NUMBER
    ) -> int | None:
        """An integer of at most 64 bits from an attribute; None, and a problem, if it is not one."""
        text = element.attributes.get(key)
        value = None if text is None else parse_integer(text)
        if text is None:
            self.problem(code, f"<{element.tag}> has no {key}", element, node)
        elif value is None:
            self.problem(code, f"{key} {text[:40]!r} is not an integer of 64 bits", element, node)
        return value

    def integers(
        self, element: XmlElement, keys: Sequence[str], node: Node | None = None, code: str = codes.BAD_NUMBER
    ) -> list[int] | None:
        """Integers from several attributes; None, and problems, if one is not an integer."""
        values = [value for key in keys if (value := self.integer(element, key, node, code)) is not None]
        return values if len(values) == len(keys) else None


def parse_integer(text: str) -> int | None:
    """An integer of at most 64 bits; None for any other text."""
    if len(text) < 19 and text.isascii() and text.isdigit():
        return int(text)
    stripped = text.strip()
    digits = stripped.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        return None
    value = int(stripped)
    return value if -LARGEST_SIZE - 1 <= value <= LARGEST_SIZE else None
