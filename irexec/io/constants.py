"""Reading constants: where their bytes are in the .bin, and what is wrong with that file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irexec.dtypes.elements import Element as ElementType
from irexec.dtypes.elements import element
from irexec.errors import UnsupportedError
from irexec.io.context import ReadContext, parse_integer
from irexec.io.elements import XmlElement
from irexec.io.record import BinRecord
from irexec.io.weights_file import Weights
from irexec.ir import codes
from irexec.ir.constants import Constant
from irexec.ir.findings import Finding, in_model
from irexec.ir.graph import Node
from irexec.messages import counted

_ATTRIBUTES = ("element_type", "shape", "offset", "size")


def read_constant(context: ReadContext, layer: XmlElement, node: Node) -> Constant | None:
    """The constant of a layer; None, and a problem, if its attributes do not describe one."""
    texts = node.attributes
    missing = [key for key in _ATTRIBUTES if key not in texts]
    if missing:
        context.problem(codes.CONSTANT_ATTRIBUTE, f"the constant has no {', '.join(missing)}", layer, node)
        return None
    kind = _element_type(context, layer, node)
    sizes = texts["shape"].split(",") if texts["shape"].strip() else []
    shape = _integers(context, layer, node, "shape", sizes)
    offset, size = (_integers(context, layer, node, key, [texts[key]]) for key in ("offset", "size"))
    if kind is None or shape is None or offset is None or size is None:
        return None
    is_readable = size[0] == 0 or context.weights.contains(offset[0], size[0])
    if not is_readable:
        context.unreadable.append(node)
    return Constant(kind, shape, context.weights.slice(offset[0], size[0]), size[0], offset[0], is_readable)


def _element_type(context: ReadContext, layer: XmlElement, node: Node) -> ElementType | None:
    try:
        return element(node.attributes["element_type"])
    except UnsupportedError as error:
        context.problem(codes.CONSTANT_ATTRIBUTE, str(error), layer, node)
        return None


def _integers(
    context: ReadContext, layer: XmlElement, node: Node, key: str, texts: Sequence[str]
) -> tuple[int, ...] | None:
    numbers = [parse_integer(text) for text in texts]
    if any(number is None or number < 0 for number in numbers):
        context.problem(
            codes.CONSTANT_ATTRIBUTE, f"the constant's {key} {node.attributes[key][:60]!r} is wrong", layer, node
        )
        return None
    return context.shared_shape(tuple([number or 0 for number in numbers]))


def weights_problems(weights: Weights, unreadable: Sequence[Node]) -> Iterator[Finding]:
    """Findings about the .bin: one finding, however many constants it concerns."""
    if not unreadable:
        return
    first, rest = unreadable[0], len(unreadable) - 1
    if weights.defect is not None:
        what = counted(len(unreadable), "constant") if rest else f"the constant {first.name!r}"
        yield in_model(codes.NO_WEIGHTS_FILE, f"{weights.defect}; the contents of {what} are unknown")
        return
    needed = max(c.offset + c.size for node in unreadable if (c := node.constant) is not None and c.offset is not None)
    file = "the weights have" if weights.path is None else f"{weights.path.name} has"
    more = f", nor those of {rest} more constants" if rest else ""
    text = f"{file} {weights.size} bytes: those of this constant are not among them{more} ({needed} bytes are needed)"
    yield first.finding(codes.CONSTANT_OUT_OF_FILE, text)


@dataclass(frozen=True)
class BinComparison:
    """Whether the .bin is the one that was written with the .xml.

    Attributes:
        weights: the .bin.
        record: the entry of the .xml.
    """

    weights: Weights
    record: BinRecord

    def __call__(self, *, whole: bool) -> list[Finding]:
        """The finding that it is not, if so: by its size and a sample, or, if it is to be read as a ``whole``, by all
        its bytes.

        Raises:
            ModelError: it cannot be read.
        """
        changed = self.record.difference(self.weights.record(whole=whole))
        if changed is None:
            return []
        name = "the .bin" if self.weights.path is None else self.weights.path.name
        return [in_model(codes.CHANGED_BIN, f"{name} is not the file that was written with the .xml: {changed}")]
