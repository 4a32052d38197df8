"""A model as a tree of the names of its layers, with what each branch costs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from irexec.analysis.cost import NOTHING, Cost
from irexec.analysis.shape_inference import Inference
from irexec.api import ModelLike
from irexec.display import Column, Content, Guided, Table
from irexec.errors import InputError
from irexec.messages import counted
from irexec.records import Record, Report
from irexec.tools.inspect.cost import CostReport, LayerCost, totals
from irexec.tools.inspect.cost import cost as cost_of

_SEPARATORS = re.compile(r"([/.]+)")
# A name may have any length; the rest of one with more parts is one part.
_PARTS = 64


@dataclass(frozen=True)
class TreeBranch(Record):
    """The layers whose names begin alike.

    Attributes:
        name: the part of the names that this branch adds, with those below it where there is nothing else:
            "model/encoder".
        path: how the names begin.
        type: of the layer that has just this name; None where there is none, or where there are several.
        layers: number of its rows in CostReport: layers that run, without Parameters, Constants and Results.
        cost: of these layers, as in CostReport: None for what is not known of any of them.
        branches: in the order of the file; empty below the depth that was asked for.
    """

    name: str
    path: str
    type: str | None
    layers: int
    cost: Cost
    branches: tuple[TreeBranch, ...]

    def as_dict(self) -> dict[str, Any]:
        """The branch for JSON, its cost among its own fields."""
        fields = super().as_dict()
        return fields | fields.pop("cost")


@dataclass(frozen=True)
class TreeReport(Report):
    """The tree of a model.

    Attributes:
        name: of the model.
        root: the branch of all layers.
        report: the cost of every layer.
    """

    name: str
    root: TreeBranch
    report: CostReport = field(repr=False)

    def __repr__(self) -> str:
        return f"<TreeReport {self.name!r}: {self.root.layers} layers in {counted(len(self.root.branches), 'branch')}>"

    def sections(self) -> list[Content]:
        """The branches and the sums."""
        columns = [
            Column("layers of the name", lambda row: Guided(row[0], row[1].name)),
            Column("operation", lambda row: row[1].type),
            Column("layers", lambda row: "" if row[1].layers == 1 and row[1].type else row[1].layers, "number"),
            Column("MACs", lambda row: row[1].cost.macs, "count"),
            Column("params", lambda row: row[1].cost.parameters, "count"),
            Column("bytes", lambda row: row[1].cost.bytes, "bytes"),
        ]
        return [Table(columns, list(walk(self.root)), what="branches"), totals(self.report)]

    def as_dict(self) -> dict[str, Any]:
        """The tree for JSON."""
        return self.root.as_dict()


def tree(model: ModelLike, depth: int | None = None, inference: Inference | None = None) -> TreeReport:
    """The layers of a model by their names, whose parts "/" and "." separate; bodies are branches of the layer that has
    them.

    Args:
        model: any model, or what read_model takes.
        depth: number of levels of branches; None for all.
        inference: facts of its values; inferred unless given.

    Raises:
        InputError: ``depth`` is not a positive integer.
        ModelError: it is an execution graph.
    """
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 1):
        raise InputError(f"depth is {depth!r}, expected an integer of at least 1")
    report = cost_of(model, inference)
    root = _Growing("", "")
    for row in report.layers:
        root.add(f"{row.path}{row.name}", row)
    return TreeReport(report.name, root.branch(depth), report)


class _Growing:
    """A branch while layers are added."""

    def __init__(self, name: str, path: str) -> None:
        self._name, self._path = name, path
        self._below: dict[str, _Growing] = {}
        self._layers, self._types = 0, list[str]()
        self._cost = NOTHING

    def add(self, name: str, row: LayerCost) -> None:
        """Add a layer."""
        at = self
        at._count(row)
        parts = _SEPARATORS.split(name, maxsplit=_PARTS)
        for i in range(0, len(parts), 2):
            if parts[i]:
                separator = parts[i - 1] if i else ""
                below = at._below.get(parts[i])
                if below is None:
                    below = at._below[parts[i]] = _Growing(f"{separator}{parts[i]}", f"{at._path}{separator}{parts[i]}")
                at = below
                at._count(row)
        at._types.append(row.type)

    def _count(self, row: LayerCost) -> None:
        self._layers += 1
        self._cost += row.cost

    def branch(self, depth: int | None) -> TreeBranch:
        """The branch, with ``depth`` levels below it."""
        at, name = self, self._name
        while not at._types and len(at._below) == 1 and self._name:
            (at,) = at._below.values()
            name += at._name
        below = (
            () if depth == 0 else tuple(one.branch(None if depth is None else depth - 1) for one in at._below.values())
        )
        type = at._types[0] if len(at._types) == 1 else None
        return TreeBranch(name.lstrip("/.") if self._name else "", at._path, type, at._layers, at._cost, below)


def walk(root: TreeBranch) -> Iterator[tuple[str, TreeBranch]]:
    """The branches from top to bottom, each with the lines that lead to it."""
    corner, tee, line = "└─ ", "├─ ", "│  "
    waiting = [("", "", branch) for branch in reversed(root.branches)]
    while waiting:
        before, guide, branch = waiting.pop()
        yield before + guide, branch
        inner = before if not guide else f"{before}{'   ' if guide == corner else line}"
        last = len(branch.branches) - 1
        waiting += [
            (inner, corner if i == last else tee, below) for i, below in reversed(list(enumerate(branch.branches)))
        ]
