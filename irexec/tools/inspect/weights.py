"""Weights: how those that a layer reads are stored, and statistics of all constants, in one pass over blocks of them.

Weights are read as they are, converted, or decompressed by a chain of layers.
NNCF and OpenVINO write Constant -> Convert -> [Subtract zero point] -> Multiply scale -> [Reshape] -> [Convert] for
weights of few bits, Constant (f16) -> Convert for weights of half precision, FakeQuantize for weights that a plugin is
to quantise, and Gather for indices into a codebook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from irexec.analysis.constant_layers import leaves
from irexec.analysis.cost import packed_bytes
from irexec.analysis.shape_inference import UNKNOWN
from irexec.display import Column, Table
from irexec.ir.constants import Constant
from irexec.ir.dims import shape_text
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node, Value
from irexec.messages import silent
from irexec.records import Record, Records
from irexec.tools.arrays.statistics import constant_statistics

_FEW_BITS = 8
MOVES = frozenset({"Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Layers that only move values."""


@dataclass(frozen=True)
class StoredWeights(Record):
    """The weights of one input of a layer.

    Attributes:
        name, id, line: of the Constant that holds them.
        element: the element type in which they are stored.
        shape: as stored.
        elements: their number.
        bytes: of them, with the scales, zero points and other constants that they are decompressed with.
        scheme: how they are decompressed, such as "zero point u4 for 128, scale f16 for 128"; "" where they are read as
            stored.
        computed: the element type in which the layer reads them.
        decompressed: bytes in this type; None if the shape is not known.
        shared: whether a layer before reads the same Constant, so that sums do not count it again.
    """

    name: str
    id: int
    line: int | None
    element: str
    shape: tuple[int, ...]
    elements: int
    bytes: int
    scheme: str
    computed: str
    decompressed: int | None
    shared: bool

    @property
    def bits(self) -> float:
        """Bits per weight, with its share of scales and zero points."""
        return 8 * self.bytes / self.elements


def is_weight(constant: Constant) -> bool:
    """Whether a constant is of parameters: floats or values of at most 8 bits, and more than one."""
    element = constant.element
    return (
        (element.is_float or element.bits <= _FEW_BITS)
        and element.kind not in ("boolean", "string")
        and constant.count > 1
    )


def stored_weights(
    value: Value, computed: set[Node], facts: Mapping[Value, Fact], counted: set[Node]
) -> StoredWeights | None:
    """How the weights are stored that a value is made of; None if it is not made of weights.

    Args:
        value: an output of a Constant or of a layer that depends on constants alone.
        computed: these layers; see ``constant_layers``.
        facts: of all values.
        counted: the Constants of weights before, to which those of this value are added.
    """
    sources = {node: node.constant for node in leaves(value, computed) if node.constant is not None}
    main = max(
        (node for node, one in sources.items() if is_weight(one)), key=lambda node: sources[node].count, default=None
    )
    if main is None:
        return None
    constant, fact = sources[main], facts.get(value, UNKNOWN)
    # Not shapes and axes; scales may be shared where weights are not.
    parts = {node: one for node, one in sources.items() if one.element.is_float or one.element.bits <= _FEW_BITS}
    size = sum(one.size for node, one in parts.items() if node is main or node not in counted)
    shared = main in counted
    counted.update(parts)
    return StoredWeights(
        main.name, main.id, main.line, constant.element.name, constant.shape, constant.count, size,
        scheme=", ".join(dict.fromkeys(_scheme(value, main, computed))),
        computed=str(fact.element or "?"),
        decompressed=packed_bytes(fact),
        shared=shared,
    )  # fmt: skip


def _scheme(value: Value, main: Node, computed: set[Node]) -> Iterator[str]:
    """The layers between the Constant and the value, in this order."""
    path = _path(value, main, computed)
    converts = any(node.type == "Convert" for node, _ in path)
    scaled = False
    for node, index in path:
        source = next((one for i, one in enumerate(node.inputs) if i != index and one is not None), None)
        constants = [one.constant for one in leaves(source, computed)] if source is not None else []
        other = max((one for one in constants if one is not None), key=lambda one: one.count, default=None)
        if node.type in ("Multiply", "Subtract") and other is not None:
            scaled = True
            kind = "scale" if node.type == "Multiply" else "zero point"
            yield f"{kind} {other.element.name} {_shared_by(main, other)}"
        elif node.type == "FakeQuantize":
            scaled = True
            yield f"{node.attributes.get('levels', '?')} levels"
        elif node.type == "Gather" and index == 1 and other is not None:
            scaled = True
            yield f"codebook of {other.count} {other.element.name}"
        elif node.type != "Convert" and node.type not in MOVES:
            yield node.type
    if converts and not scaled:
        yield "converted"


def _shared_by(main: Node, other: Constant) -> str:
    """The weights that share a scale or a zero point."""
    if other.count == 1:
        return "per tensor"
    if sum(size > 1 for size in other.shape) == 1:
        return "per channel"
    return f"for {main.constant.count // max(1, other.count)}" if main.constant is not None else ""


def _path(value: Value, main: Node, computed: set[Node]) -> list[tuple[Node, int]]:
    """The layers from the Constant to the value, each with the index of the input by which the weights come."""
    came: dict[Node, tuple[Node, int] | None] = {value.node: None}
    waiting = [value.node]
    while waiting and main not in came:
        node = waiting.pop()
        for index, source in enumerate(node.inputs if node in computed else ()):
            if source is not None and source.node not in came:
                came[source.node] = node, index
                waiting.append(source.node)
    found, step = list[tuple[Node, int]](), came.get(main)
    while step is not None:
        found.append(step)
        step = came[step[0]]
    return found


@dataclass(frozen=True)
class WeightLine(Record):
    """One constant and its statistics.

    Attributes:
        id, name: the layer.
        element, shape, bytes: as declared.
        min, max, mean, std: of the finite elements; None where there are none, and for strings.
        zeros: the part of the finite elements that is zero.
        not_finite: number of elements that are NaN or infinite.
    """

    id: int
    name: str
    element: str
    shape: tuple[int, ...]
    bytes: int
    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    zeros: float
    not_finite: int


def weights(model: Graph, advance: Callable[[int], None] = silent) -> Records[WeightLine]:
    """Statistics of every constant of a model and its bodies.

    Args:
        model: any graph.
        advance: called after each block with its number of packed bytes.

    Raises:
        ModelError: a constant cannot be read; the message says which.
    """
    return Records(weight_line(node, node.constant, advance) for node in model.walk() if node.constant is not None)


def weights_table(lines: Sequence[WeightLine]) -> Table:
    """Constants and their statistics."""
    columns = [
        Column("id", "id", "number"),
        Column("constant", "name"),
        Column("type", "element", "code"),
        Column("shape", lambda line: shape_text(line.shape), "code"),
        Column("bytes", "bytes", "number"),
        *(Column(name, name, "number") for name in ("min", "max", "mean", "std")),
        Column("zeros", lambda line: f"{line.zeros:.1%}", "number"),
        Column("NaN/Inf", lambda line: line.not_finite or None, "number"),
    ]
    return Table(columns, lines, what="constants")


def weight_line(node: Node, constant: Constant, advance: Callable[[int], None] = silent) -> WeightLine:
    """Statistics of the constant of a layer; arguments and errors as for ``weights``."""
    found = constant_statistics(node, advance)
    return WeightLine(
        node.id, node.name, constant.element.name, constant.shape, constant.size,
        min=found.min, max=found.max, mean=found.mean, std=found.std,
        zeros=found.zeros / found.finite if found.finite else 0.0,
        not_finite=found.not_finite,
    )  # fmt: skip
