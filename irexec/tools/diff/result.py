"""The result of ``diff``, and groups of layers with the same changes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from irexec.ir.graph import Node
from irexec.ir.order import grouped
from irexec.records import Record

KINDS = {
    "added": "layers that only B has",
    "removed": "layers that only A has",
    "type": "a layer replaced by one of another type",
    "names": "names of layers and graphs",
    "tensor-names": "names of tensors",
    "versions": "versions of operations and of the IR",
    "attributes": "attributes of layers",
    "types": "element types",
    "shapes": "shapes",
    "wiring": "where the inputs of a layer come from",
    "values": "values of constants",
    "bodies": "port maps and back edges of bodies",
    "order": "the order of the inputs and outputs of the model or of a body",
    "metadata": "rt_info and what else a file says beside the graph",
}
"""The kinds of changes, with descriptions."""

Status = Literal["added", "removed", "changed", "renamed"]


@dataclass(frozen=True, slots=True)
class LayerRef(Record):
    """A layer of one of the models.

    Attributes:
        path: the layers and bodies that it is in, each followed by a slash.
        id, name, type, version, line: as written; no line where the model is not from an .xml.
    """

    path: str
    id: int
    name: str
    type: str
    version: str
    line: int | None

    @classmethod
    def of(cls, node: Node, path: str) -> LayerRef:
        """The layer of a graph at ``path``."""
        return cls(path, node.id, node.name, node.spelling or node.type, node.version, node.line)

    def __str__(self) -> str:
        return f"{self.id} {self.path}{self.name}"


@dataclass(frozen=True, slots=True)
class ValueChange(Record):
    """Changes of the values of a constant. The decompressed values of a compressed constant count as its values.

    Attributes:
        elements: number of elements.
        changed: number of elements with another value.
        largest: the largest absolute difference; None where none is finite.
        relative: the Euclidean norm of all finite differences, divided by that of the values in A; infinite where only
            the latter is 0.
        not_finite: number of elements that are NaN or infinite on one side and differ on the other.
        decompressed: whether one side stores another type, from which layers compute the values.
        transposed: whether B has the transposed matrix, of as many rows as columns.
    """

    elements: int
    changed: int
    largest: float | None
    relative: float | None
    not_finite: int = 0
    decompressed: bool = False
    transposed: bool = False

    def parts(self) -> list[str]:
        """The numbers in words, for a list with commas."""
        found = [f"{self.changed:,} of {self.elements:,} changed"]
        found += [f"by at most {self.largest:.6g}"] if self.largest is not None else []
        found += [f"relative norm {self.relative:.6g}"] if self.relative is not None else []
        return found + ([f"{self.not_finite:,} with NaN or infinity"] if self.not_finite else [])


@dataclass(frozen=True, slots=True)
class Change(Record):
    """One change.

    Attributes:
        kind: one of ``KINDS``.
        what: the part of the layer or model: "output 0", "input 1", the name of an attribute.
        a, b: its value in each; None if that one does not have it.
        values: for a constant.
    """

    kind: str
    what: str
    a: str | None
    b: str | None
    values: ValueChange | None = None


@dataclass(frozen=True)
class LayerDiff(Record):
    """A layer that was added, removed or changed.

    Attributes:
        a, b: the layer in each model; None in the one that does not have it.
        reason: why the two are taken for the same layer.
        changes: the changes; empty for a layer of one model alone.
        attributes, inputs, outputs, readers: for a layer of one model alone: its attributes, the type, shape and source
            of each input, the type and shape of each output, and its readers.
        between: source and target of each edge of the other model on which this layer lies.
    """

    a: LayerRef | None
    b: LayerRef | None
    reason: str | None = None
    changes: tuple[Change, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    between: tuple[tuple[str, str], ...] = ()

    _json_properties = ("status",)

    @property
    def status(self) -> Status:
        """Added, removed, changed or renamed."""
        if self.a is None:
            return "added"
        if self.b is None:
            return "removed"
        return "renamed" if all(change.kind in ("names", "tensor-names") for change in self.changes) else "changed"

    @property
    def layer(self) -> LayerRef:
        """The layer in A or, if it was added, in B."""
        found = self.a or self.b
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class Following(Record):
    """A shape or type that differs because of a change elsewhere.

    Attributes:
        layer: in A.
        other: in B.
        change: the shape or type.
        roots: indices in ``Diff.layers`` of the changes that cause it, up to four.
    """

    layer: LayerRef
    other: LayerRef
    change: Change
    roots: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class Diff(Record):
    """The changes from model ``a`` to model ``b``.

    Attributes:
        a, b: the paths, or the names of models without one.
        layer_counts: number of layers of each model, bodies included.
        model: changes of the models as a whole, and of the graphs of bodies.
        layers: layers that were added, removed, changed or renamed.
        following: shapes and types that follow from these.
        ignored: the entries of ``ignore``.
        unread: number of constants whose values cannot be read, and were not compared.
    """

    a: str
    b: str
    layer_counts: tuple[int, int]
    model: tuple[Change, ...]
    layers: tuple[LayerDiff, ...]
    following: tuple[Following, ...]
    ignored: tuple[str, ...] = ()
    unread: int = 0

    _json_properties = ("counts",)

    @property
    def is_empty(self) -> bool:
        """True if nothing changed."""
        return not (self.model or self.layers or self.following)

    @property
    def counts(self) -> dict[str, int]:
        """Number of layers that were added, removed, changed and renamed."""
        found = Counter(layer.status for layer in self.layers)
        return {status: found[status] for status in get_args(Status)}

    def as_dict(self) -> dict[str, Any]:
        """The diff as the JSON format has it."""
        return super().as_dict() | {"equal": self.is_empty}

    def followers(self) -> dict[int | None, list[Following]]:
        """Shapes and types that follow, by the index of the first change that causes them; None for other changes."""
        return grouped((each.roots[0] if each.roots else None, each) for each in self.following)

    def summary(self) -> str:
        """One sentence."""
        counts = {status: count for status, count in self.counts.items() if count}
        layers = "layer" if list(counts.values())[:1] == [1] else "layers"
        texts = [f"{count:,}{'' if k else f' {layers}'} {status}" for k, (status, count) in enumerate(counts.items())]
        for number, one, several in (
            (len(self.model), "change of the model", "changes of the model"),
            (len(self.following), "shape or type that follows", "shapes and types that follow"),
        ):
            texts += [f"{number:,} {one if number == 1 else several}"] if number else []
        return ", ".join(texts) or "no differences"

    def __repr__(self) -> str:
        return f"<Diff {self.a} {self.b}: {self.summary()}>"


def groups(layers: Sequence[LayerDiff]) -> list[list[int]]:
    """Indices of layers of the same type with the same changes, in the order of the first of each group.

    Constants with changed values are one group, whatever the differences. Names count only for layers without other
    changes.
    """
    return list(grouped((_key(layer), index) for index, layer in enumerate(layers)).values())


def _key(layer: LayerDiff) -> Hashable:
    status, type = layer.status, layer.layer.type
    if status == "renamed":
        return (status, tuple(sorted({change.kind for change in layer.changes})))
    if status == "changed":
        return (
            status,
            type,
            tuple(
                (change.kind, change.values.transposed, "", "")
                if change.values is not None
                else (change.kind, change.what, change.a, change.b)
                for change in layer.changes
                if change.kind not in ("names", "tensor-names")
            ),
        )
    return status, type, bool(layer.between), tuple(sorted(layer.attributes.items()))


def total(changes: Sequence[ValueChange]) -> ValueChange:
    """Several changes of values as one: sums of elements, the largest differences."""
    finite = [change.largest for change in changes if change.largest is not None]
    relative = [change.relative for change in changes if change.relative is not None]
    return ValueChange(
        elements=sum(change.elements for change in changes),
        changed=sum(change.changed for change in changes),
        largest=max(finite) if finite else None,
        relative=max(relative, key=lambda value: (math.isinf(value), value)) if relative else None,
        not_finite=sum(change.not_finite for change in changes),
        decompressed=any(change.decompressed for change in changes),
        transposed=all(change.transposed for change in changes),
    )
