"""Random graphs in OpenVINO, beside irexec: what differs, by the layer that ``irexec compare`` names and what it knows of it.

Each verdict is to be looked at by hand: a row of the table of portability is missing, or a verdict of compare is wrong. The CPU plugin runs
in a process of its own, which may crash.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from irexec import read_model
from irexec.errors import IrexecError
from irexec.io import write_text
from irexec.tools.compare import CompareOptions, compare
from tests.graphs.agreement import Refused, outcome
from tests.graphs.making import make
from tests.graphs.running import reference
from tests.sweep.kind import Case, Kind, Outcome


def verdict(seed: int) -> str:
    """What compare says of one graph, without what is particular to it."""
    made = make(seed)
    model = read_model(*write_text(made.model))
    outcomes = outcome(reference(made.model), made.runs)
    # Some runs have inputs that do not fit, and are refused.
    runs = [arrays for arrays, run in zip(made.runs, outcomes, strict=True) if not isinstance(run, Refused)]
    if not runs:
        return "refused"
    feeds = [dict(zip((port.name for port in model.inputs), arrays, strict=True)) for arrays in runs]
    try:
        found = compare(model, None, feeds, CompareOptions(b_runtime="openvino", timeout=60))
    except IrexecError as error:
        return f"not run: {type(error).__name__} {str(error)[:60]}"
    if found.agrees:
        return "agrees"
    known = " ".join(sorted({one.code for one in found.known}))
    if found.first is None and found.uncompared and all(row.agreement.agrees for row in found.results):
        return f"not compared: {found.uncompared[0].type} {found.uncompared[0].reason[:90]}"
    if found.first is None:
        return f"results alone {known}"
    return f"{found.first.row.b.type} {known}"


class Sweep(Kind):
    """The random graphs of tests.graphs."""

    def names(self) -> list[str]:
        return ["graphs"]

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """The verdict about a graph."""
        yield lambda number: [Outcome(verdict(number))]
