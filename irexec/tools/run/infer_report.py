"""The results of a run: tensors, classes, traps and the agreement with a reference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from irexec.display import Column, Content, Table
from irexec.ir.dims import shape_text
from irexec.messages import listed
from irexec.records import Record, Records, Shown, plain
from irexec.runtime.inputs import arrays_text
from irexec.tools.run.results import Prediction, TensorLine, describe, predictions_sections
from irexec.tools.sections.runs import array_histogram

if TYPE_CHECKING:
    from irexec.tools.arrays.agreement import Agreement
    from irexec.tools.trapping.report import TrapReport

_NAMES, _IDS = 10, 200
"""Numbers of names that are listed, and of token ids of a row."""


@dataclass(frozen=True)
class Assertion(Record):
    """Tensors of a run against the arrays of a reference file.

    Attributes:
        agreements: one for each tensor that both have.
        only_in_reference, only_in_results: the names of the others, which are not compared.
        change: a change of an input with which all tensors agree, as a sentence; "" if none is known.
    """

    agreements: tuple[Agreement, ...]
    only_in_reference: tuple[str, ...] = ()
    only_in_results: tuple[str, ...] = ()
    change: str = ""

    @property
    def agrees(self) -> bool:
        """True if every compared tensor agrees."""
        return all(agreement.agrees for agreement in self.agreements)

    def sections(self) -> Iterator[Content]:
        """The compared tensors, a change of an input with which they agree, and the names of the others."""
        # Few runs are compared with a reference.
        from irexec.tools.arrays.agreement import agreements_table

        yield agreements_table(self.agreements, "compared")
        yield self.change or None
        for where, names in (("reference", self.only_in_reference), ("results", self.only_in_results)):
            if names:
                more = ", which --json lists" if len(names) > _NAMES else ""
                yield f"only in the {where}: {listed(names, _NAMES)}{more}"


@dataclass(frozen=True, repr=False)
class InferReport(Shown):
    """The results of a run.

    Attributes:
        tensors: the requested tensors by name.
        predictions: the most probable classes; None if not asked for.
        comparison: the agreement with the reference; None if there is none.
        dumped: number of tensors written to the dump folder; None without a dump.
        trap: the result of the trap; None without one. If the trap has stopped the run, other fields are empty.
        takes_text: whether the model has an input of strings, so that its integers are token ids.
    """

    tensors: Mapping[str, np.ndarray]
    predictions: tuple[Prediction, ...] | None = None
    comparison: Assertion | None = None
    dumped: int | None = None
    trap: TrapReport | None = None
    takes_text: bool = False

    @property
    def is_trapped(self) -> bool:
        """Whether a trap has stopped the run."""
        return self.trap is not None and self.trap.trap is not None

    def __repr__(self) -> str:
        agreement = "" if self.comparison is None else f", {'agrees' if self.comparison.agrees else 'differs'}"
        return f"<InferReport {arrays_text(self.tensors.items())}{agreement}>"

    def as_dict(self) -> dict[str, Any]:
        """The results for JSON: tensors by their statistics, and only what was asked for."""
        found = {
            "outputs": Records(describe(name, array) for name, array in self.tensors.items()),
            "trap": self.trap,
            "topk": self.predictions,
            "assert": None if self.comparison is None else self.comparison.agreements,
        }
        others = {} if self.comparison is None else self.comparison.as_dict()
        others.pop("agreements", None)
        return {name: plain(value) for name, value in found.items() if value is not None} | others

    def sections(self) -> Iterator[Content]:
        """The trap, the tensors, the most probable classes and the comparison."""
        if self.trap is not None:
            yield from self.trap.finding()
        if not self.is_trapped:
            yield self._tensors_table()
            yield from self._token_ids()
        if self.predictions:
            yield from predictions_sections(self.predictions)
        if self.comparison is not None:
            yield from self.comparison.sections()

    def _tensors_table(self) -> Table:
        columns = [
            Column("output", lambda row: row[0].name),
            Column("type", lambda row: row[0].type, "code"),
            Column("shape", lambda row: shape_text(row[0].shape), "code"),
            Column("min", lambda row: row[0].min, "number"),
            Column("max", lambda row: row[0].max, "number"),
            Column("mean", lambda row: row[0].mean, "number"),
            Column("NaN", lambda row: row[0].nans or None, "number"),
            Column("histogram", lambda row: array_histogram(row[1]), "chart"),
        ]
        rows = [(describe(name, array), array) for name, array in self.tensors.items()]
        if any(line.type == "string" for line, _ in rows):
            columns.append(Column("strings", lambda row: _strings(row[0]), "code"))
        return Table(columns, rows, hide_empty=False, what="tensors")

    def _token_ids(self) -> Iterator[Table]:
        """The elements of the integers of a model that takes strings, a line for each row."""
        ids = {name: a for name, a in self.tensors.items() if a.dtype.kind in "iu" and a.ndim in (1, 2) and a.size}
        if self.takes_text and ids:
            rows = [(name, i, row) for name, array in ids.items() for i, row in enumerate(np.atleast_2d(array))]
            columns = [Column("output", lambda row: row[0]), Column("row", lambda row: row[1], "number")]
            elements = Column("elements", lambda row: " ".join(map(str, row[2][:_IDS].tolist())), "sentence")
            yield Table([*columns, elements], rows, what="rows")


def _strings(line: TensorLine) -> str | None:
    """The first strings of a tensor, quoted."""
    if line.type != "string":
        return None
    more = ", ..." if math.prod(line.shape) > len(line.first) else ""
    return ", ".join(map(repr, line.first)) + more
