"""Statistics of constants, in one pass over blocks of them: no constant is unpacked as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from irexec.display import Column, Table
from irexec.ir.constants import Constant
from irexec.ir.dims import shape_text
from irexec.ir.graph import Graph, Node
from irexec.records import Record, Records
from irexec.tools.arrays.statistics import constant_statistics


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


def weights(model: Graph, advance: Callable[[int], None] = lambda bytes: None) -> Records[WeightLine]:
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


def weight_line(node: Node, constant: Constant, advance: Callable[[int], None] = lambda bytes: None) -> WeightLine:
    """Statistics of the constant of a layer; arguments and errors as for ``weights``."""
    found = constant_statistics(node, advance)
    return WeightLine(
        node.id, node.name, constant.element.name, constant.shape, constant.size,
        min=found.min, max=found.max, mean=found.mean, std=found.std,
        zeros=found.zeros / found.finite if found.finite else 0.0,
        not_finite=found.not_finite,
    )  # fmt: skip
