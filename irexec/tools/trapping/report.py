"""The report of a trap: the place of the first wrong value, the tensors around it, and their recorded ranges."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from irexec.display import Column, Content, Table, Text
from irexec.errors import InputError, ModelError
from irexec.io.files import new_file
from irexec.io.reading import read_json
from irexec.io.writer import check_file
from irexec.ir.dims import shape_text
from irexec.messages import counted, listed
from irexec.records import Record, Report
from irexec.tools.arrays.statistics import Statistics
from irexec.tools.trapping import Kind

Origin = Literal["layer", "input", "constant"]
_KINDS = {
    "nan": "NaN",
    "inf": "infinities",
    "f16": "values beyond the largest f16, 65504",
    "range": "values outside of the recorded range",
}
_SHOWN = 10


@dataclass(frozen=True)
class TrappedTensor(Record):
    """A tensor that a layer has read or given.

    Attributes:
        name: its first tensor name, or else its layer's.
        source: the type of the layer that gives it.
        fact: element type and shape, as text.
        statistics: of all its elements.
    """

    name: str
    source: str
    fact: str
    statistics: Statistics


@dataclass(frozen=True)
class Trap(Record):
    """The first layer whose result is not as it should be.

    Attributes:
        kind: "nan", "inf", "f16" for finite values beyond the largest f16, or "range" for values outside of the
            recorded range.
        origin: "layer" where the layer makes it of inputs that have none; "input" where it is in an input of the model
            and "constant"
            where it is in a constant: then ``source`` names that.
        source: the name of the input or constant; "" for "layer".
        id, name, type, version, line: the layer; for an input of the model its Parameter.
        iterations: the bodies that the layer is in, from the outermost on: the layer that has the body, the body, and
            the iteration from 0.
        output: the result.
        index, value: the first element that is not as it should be.
        count: number of such elements.
        limits: the range with its margin, for "range".
        inputs: the inputs of the layer.
        fine: number of earlier layers with proper results, each iteration counted.
    """

    kind: Kind
    origin: Origin
    source: str
    id: int
    name: str
    type: str
    version: str
    line: int | None
    iterations: tuple[tuple[str, str, int], ...]
    output: TrappedTensor
    index: tuple[int, ...]
    value: float
    count: int
    limits: tuple[float, float] | None
    inputs: tuple[TrappedTensor, ...]
    fine: int

    def as_dict(self) -> dict[str, Any]:
        """The trap for JSON, its iterations by name."""
        names = ("layer", "body", "iteration")
        return super().as_dict() | {"iterations": [dict(zip(names, one, strict=True)) for one in self.iterations]}


@dataclass(frozen=True)
class Recorded(Record):
    """Contents of a file of ranges: the number of tensors and of runs."""

    path: str
    tensors: int
    runs: int


@dataclass(frozen=True)
class TrapReport(Report):
    """The result of a run with a trap.

    Attributes:
        kinds: the conditions that would have stopped the run.
        trap: where it stopped; None if it did not.
        layers: number of examined layers, each iteration counted.
        ignored: the names of layers, inputs and constants that were left out.
        without_range: the names of tensors of which no range is recorded; only where ranges are checked.
        infinite: the inputs of the model that have infinities: those that come of them are not reported.
        recorded: the file that the ranges of the run were added to; None without.
    """

    kinds: tuple[Kind, ...]
    trap: Trap | None
    layers: int
    ignored: tuple[str, ...] = ()
    without_range: tuple[str, ...] = ()
    infinite: tuple[str, ...] = ()
    recorded: Recorded | None = None

    def sections(self) -> Iterable[Content]:
        """Where the run stopped, and what is not reported."""
        return [self.finding(), [Text(note, "note") for note in self.notes()]]

    def finding(self) -> Iterator[Content]:
        """The layer at which the run stopped, with statistics of its inputs and output; or the number of checked
        layers."""
        found = self.trap
        if found is None:
            if self.kinds:
                yield f"trap {','.join(self.kinds)}: nothing found in {counted(self.layers, 'layer')}"
            return
        yield _sentence(found)
        for layer, body, iteration in found.iterations:
            where = f"in iteration {iteration + 1} of {body}" if body == "body" else f"in {body}"
            yield f"{where} of layer {layer!r}"
        none = "; none in its inputs" if found.origin == "layer" and found.kind != "range" else ""
        yield (
            f"{found.count:,} of {found.output.statistics.count:,} elements, "
            f"the first at {shape_text(found.index)}: {found.value:.6g}{none}"
        )
        if found.limits is not None:
            yield f"the range is {found.limits[0]:.6g} to {found.limits[1]:.6g}, margin included"
        fine = f"{counted(found.fine, 'layer')} before it had nothing to report"
        yield fine if found.fine else "no layer has run before it"
        inputs = [(f"input {i}", tensor) for i, tensor in enumerate(found.inputs)]
        yield _tensors_table([*inputs, ("output", found.output)])

    def notes(self) -> Iterator[str]:
        """Sentences about infinities and ranges that are not reported."""
        if self.infinite:
            yield f"infinities in inputs: {listed(self.infinite, _SHOWN)}; those that come of them are not reported"
        if self.without_range:
            count = counted(len(self.without_range), "tensor")
            yield f"no range is recorded of {count}: {listed(self.without_range, _SHOWN)}"


def _tensors_table(tensors: list[tuple[str, TrappedTensor]]) -> Table:
    columns = [
        Column("", lambda row: row[0]),
        Column("tensor", lambda row: row[1].name),
        Column("operation", lambda row: row[1].source),
        Column("type", lambda row: row[1].fact, "code"),
        Column("min", lambda row: row[1].statistics.min, "number"),
        Column("max", lambda row: row[1].statistics.max, "number"),
        Column("mean", lambda row: row[1].statistics.mean, "number"),
        Column("NaN", lambda row: row[1].statistics.nans or None, "number"),
        Column(
            "inf", lambda row: row[1].statistics.infinities + row[1].statistics.negative_infinities or None, "number"
        ),
    ]
    return Table(columns, tensors, what="tensors")


def _sentence(found: Trap) -> str:
    line = "" if found.line is None else f", line {found.line}"
    if found.origin == "input":
        return f"input {found.source!r} of the model has {_KINDS[found.kind]}"
    origin = f" that come from constant {found.source!r}" if found.origin == "constant" else ""
    return f"layer {found.id} {found.name!r} ({found.type}, {found.version}{line}) gives {_KINDS[found.kind]}{origin}"


_FORMAT = "irexec ranges"


@dataclass
class Ranges:
    """The minimum and maximum of the finite elements of tensors, over all runs.

    Attributes:
        model: the name of the model.
        runs: number of recorded runs.
        tensors: the ranges by the names of tensors, those of bodies with their path.
    """

    model: str = ""
    runs: int = 0
    tensors: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, name: str, low: float, high: float) -> None:
        """Widen the range of a tensor."""
        before = self.tensors.get(name, (math.inf, -math.inf))
        self.tensors[name] = min(before[0], low), max(before[1], high)


def read_ranges(path: str) -> Ranges:
    """Read what ``write_ranges`` wrote.

    Raises:
        ModelError: the file cannot be read, or is something else.
    """
    try:
        document = read_json(path)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise ModelError(f"{path}: not a file of ranges, as --record-range writes them: not JSON") from None
    try:
        runs = document["runs"]
        if document["format"] != _FORMAT or type(runs) is not int or runs < 0:
            raise ValueError("not such a document")
        tensors = {str(name): _range(pair) for name, pair in document["tensors"].items()}
        return Ranges(str(document["model"]), runs, tensors)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise ModelError(f"{path}: not a file of ranges, as --record-range writes them") from None


def _range(pair: object) -> tuple[float, float]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise TypeError("not a pair")
    low, high = float(pair[0]), float(pair[1])
    if not low <= high or math.isinf(low) or math.isinf(high):
        raise ValueError("not a range")
    return low, high


def check_ranges_file(path: str, read: Mapping[str, str]) -> Ranges:
    """Recorded ranges of the file that a run adds to; none if the file does not exist.

    Args:
        path: the file that is to be written.
        read: the files that the run reads, with what they are.

    Raises:
        InputError: it is not a .json, a file that the run reads, or one that something else has written.
    """
    if not path.lower().endswith(".json"):
        raise InputError(f"--record-range {path}: ranges are written to a .json")
    check_file("--record-range", Path(path), read)
    if not os.path.lexists(path):
        return Ranges()
    try:
        return read_ranges(path)
    except ModelError as error:
        raise InputError(f"--record-range would overwrite {error}") from None


def write_ranges(path: str, ranges: Ranges) -> None:
    """Write ranges to a .json, whole or not at all.

    Raises:
        ModelError: it cannot be written.
    """
    tensors = {name: list(pair) for name, pair in ranges.tensors.items()}
    document = {"schema": 1, "format": _FORMAT, "model": ranges.model, "runs": ranges.runs, "tensors": tensors}
    with new_file(path) as file:
        file.write((json.dumps(document, indent=1, allow_nan=False) + "\n").encode())
