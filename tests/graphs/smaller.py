"""Smaller graphs of a case: parts of it, of which what is cut off becomes inputs with the values that the reference kernels gave."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from irexec import io
from irexec.analysis.model import Model
from irexec.analysis.submodel import SubModel, extract
from irexec.errors import IrexecError
from irexec.ir.dims import ANY
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from tests.fuzz.case import Case
from tests.graphs.running import reference

Recorded = list[dict[Value, np.ndarray]]
"""The arrays of the values of a graph, for each run."""


def smaller_graphs(case: Case) -> Iterator[Case]:
    """The smallest first: with fewer runs, then without half of the layers, a quarter, ..., one."""
    from tests.fuzz.targets.graphs import case_of, feeds_of

    feeds = feeds_of(case)
    seed: int = case.arguments["seed"]
    for count in range(1, len(feeds)):
        yield case_of(case.files["m.xml"], case.files["m.bin"], feeds[:count], seed)
    model = Model.of(io.read_text(case.files["m.xml"], case.files["m.bin"]))
    recorded = _recorded(model, feeds)
    layers = [node for node in model.nodes if node.type not in ("Parameter", "Constant", "Result")]
    for gone in _chunks(layers):
        part = _without(model, layers, gone, recorded)
        if part is not None:
            runs = [[arrays[value] for value in part.feeds] for arrays in recorded]
            yield case_of(*io.write_text(part.model), runs, seed)


def _recorded(model: Model, feeds: Sequence[list[np.ndarray]]) -> Recorded:
    compiled = reference(model)
    values = [value for node in model.nodes if node.type != "Result" for value in node.outputs]
    session = compiled.session()
    found: Recorded = []
    for feed in feeds:
        # A part has no runs that the whole graph refuses.
        with contextlib.suppress(IrexecError):
            found.append(dict(zip(values, session.values(feed, values), strict=True)))
    return found


def _chunks(layers: Sequence[Node]) -> Iterator[set[Node]]:
    size = len(layers) // 2
    while size:
        for start in range(0, len(layers), size):
            yield set(layers[start : start + size])
        size //= 2


def _without(model: Model, layers: Sequence[Node], gone: set[Node], recorded: Recorded) -> SubModel | None:
    """The model without some layers; None where nothing can stand for one of them."""

    def boundary(value: Value) -> Fact | None:
        shapes = {arrays[value].shape for arrays in recorded if value in arrays}
        if not shapes or value.fact is None:
            return None
        first = next(iter(shapes))
        return Fact(value.fact.element, first if len(shapes) == 1 else (ANY,) * len(first))

    keep = [layer for layer in layers if layer not in gone]
    try:
        part = extract(model, keep, boundary) if keep and recorded else None
    except IrexecError:
        return None
    return part if part is not None and part.results else None
