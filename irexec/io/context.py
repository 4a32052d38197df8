"""What every part of the reader shares: the document, the weights, and the problems found so far."""

from __future__ import annotations

from lxml import etree

from irexec.io.weights import Weights
from irexec.io.xml import Document
from irexec.ir import codes
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import Node

LARGEST_SIZE = (1 << 63) - 1


class ReadContext:
    """One document while it is read.

    Attributes:
        document: the parsed .xml.
        weights: the .bin.
        problems: those of the graph that is being read.
        unreadable: the constants whose bytes are not in the .bin.
    """

    def __init__(self, document: Document, weights: Weights) -> None:
        self.document, self.weights = document, weights
        self.problems: list[Finding] = []
        self.unreadable: list[Node] = []

    def line(self, element: etree._Element) -> int | None:
        """The line of an element."""
        return self.document.line(element)

    def problem(self, code: str, message: str, element: etree._Element, node: Node | None = None, port: int | None = None) -> None:
        """Add what is wrong at an element."""
        line = self.line(element)
        if node is None:
            self.problems.append(in_model(code, message, port=port, line=line))
        else:
            self.problems.append(node.finding(code, message, port=port, line=line))

    def integer(self, element: etree._Element, key: str, node: Node | None = None, code: str = codes.BAD_NUMBER) -> int | None:
        """An integer of at most 64 bits from an attribute; None, and a problem, if it is not one."""
        text = element.get(key)
        if text is None:
            self.problem(code, f"<{element.tag}> has no {key}", element, node)
            return None
        value = parse_integer(text)
        if value is None:
            self.problem(code, f"{key} {text[:40]!r} is not an integer of 64 bits", element, node)
        return value


def parse_integer(text: str) -> int | None:
    """An integer of at most 64 bits; None for any other text."""
    stripped = text.strip()
    digits = stripped.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        return None
    value = int(stripped)
    return value if -LARGEST_SIZE - 1 <= value <= LARGEST_SIZE else None
