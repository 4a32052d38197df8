"""Random graphs against their bounds: each layer from the inputs that it had, and the whole graph as one region.

A layer whose f32 results are outside fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from irexec.analysis.shape_inference import infer_shapes
from irexec.bounds import ARITHMETICS, Bound, Interval, graph_bounds
from irexec.errors import IrexecError
from irexec.ir.graph import Value
from irexec.ir.order import topological
from irexec.tools.engines.runtimes import open_runtime
from tests.graphs.making import make
from tests.sweep.kind import Case, Kind, Outcome


class Sweep(Kind):
    """The random graphs of tests.graphs."""

    cases = 300

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--runtime", default="reference", choices=("reference", "irexec"))

    def names(self) -> list[str]:
        return ["graphs"]

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """The outputs of the layers of a graph."""
        yield lambda number: _outcomes(number, self.options.runtime)


def _outcomes(seed: int, runtime: str) -> Iterator[Outcome]:
    made = make(seed)
    nodes = [node for node in topological(made.model)[0] if node.type not in ("Parameter", "Result")]
    values = [value for node in nodes for value in node.outputs]
    try:
        facts = infer_shapes(made.model).facts
        with open_runtime(runtime, made.model, precision="as-written") as opened:
            feeds = {port.name: array for port, array in zip(made.model.inputs, made.runs[0], strict=True)}
            arrays = dict(zip(values, opened.run(feeds, values), strict=True))
    except IrexecError:
        yield Outcome("refused")
        return
    given = dict(arrays)
    given |= {node.outputs[0]: array for node, array in zip(made.model.parameters, made.runs[0], strict=True)}
    for node in nodes:
        sources = {value: given[value] for value in node.inputs if value is not None}
        for value, bound in graph_bounds([node], sources, facts, ARITHMETICS["f32"]).items():
            yield from _outcome("layer", value, arrays, bound)
    start = {node.outputs[0]: given[node.outputs[0]] for node in made.model.parameters}
    for value, bound in graph_bounds(nodes, start, facts, ARITHMETICS["f32"]).items():
        yield from _outcome("graph", value, arrays, bound)


def _outcome(what: str, value: Value, arrays: dict[Value, np.ndarray], bound: Bound) -> Iterator[Outcome]:
    node = value.node
    if node.type == "Constant":
        return
    actual = arrays[value]
    if not isinstance(bound, Interval):
        yield Outcome(f"{what}: no bound", f"{node.type} ({bound.reason[:40]})")
    elif bound.exact.shape != actual.shape:
        yield Outcome(f"{what}: another shape")
    elif not bound.outside(actual).any():
        yield Outcome(f"{what}: inside")
    else:
        at = tuple(np.argwhere(bound.outside(actual))[0])
        limits = f"{actual[at]!r}, exact {bound.exact[at]!r} [{bound.low[at]!r}, {bound.high[at]!r}]"
        text = f"{node.type}-{node.version} {node.name}: {limits} {node.attributes}"
        yield Outcome(f"{what}: outside", text, fails=True)
