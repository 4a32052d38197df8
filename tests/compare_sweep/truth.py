"""Which layers differ between a model and a copy of it, and which of them are the first: without anything of irexec.tools.compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from irexec import Model, compile_model
from irexec.compile.steps import Step
from irexec.ir.graph import Node, Value
from irexec.runtime import execute

Feeds = Mapping[str, np.ndarray]
Place = tuple[int, int]
"""The index of a layer in ``model.walk()``, and of its output."""


@dataclass
class Record:
    """What a model computes.

    Attributes:
        outer: for each run the values outside of bodies, in topological order.
        inner: for each run the values inside of bodies, in the order of running; a layer occurs once for each iteration.
    """

    outer: list[dict[Place, np.ndarray]] = field(default_factory=list)
    inner: list[list[tuple[Place, np.ndarray]]] = field(default_factory=list)


def record(model: Model, runs: Sequence[Feeds]) -> Record:
    """Run a model with the reference kernels; raises IrexecError if it cannot be run."""
    compiled = compile_model(model, optimize=False)
    copies = {node: i for i, node in enumerate(compiled.model.walk())}
    index = {node: i for i, node in enumerate(model.walk())}
    read = {value for node in model.nodes for value in node.inputs}
    layers = [node for node in _order(model) if node.type not in ("Parameter", "Constant", "Assign")]
    values = [value for node in layers for value in node.outputs if value in read or value.index == 0]
    session, found = compiled.session(), Record()
    for feeds in runs:
        seen: list[tuple[Place, np.ndarray]] = []
        with mock.patch.object(
            execute._Runner, "run", _recording(execute._Runner.run, copies, set(compiled.model.nodes), seen)
        ):
            arrays = session.values(dict(feeds), values)
        found.outer.append(
            {(index[value.node], value.index): array for value, array in zip(values, arrays, strict=True)}
        )
        found.inner.append(seen)
    return found


def _recording(run: Any, copies: Mapping[Node, int], outer: set[Node], seen: list[tuple[Place, np.ndarray]]) -> Any:
    """Running a step that keeps what it gives, if it is one of a body."""

    def recorded(self: Any, step: Step, context: Any) -> None:
        run(self, step, context)
        node = step.report.origins[-1]
        if node in copies and node not in outer:
            for i, slot in enumerate(step.outputs):
                if slot >= 0 and isinstance(self.slots[slot], np.ndarray):
                    seen.append(((copies[node], i), self.slots[slot].copy()))

    return recorded


def _order(model: Model) -> list[Node]:
    """The layers, each after those that it depends on, by a search of its own."""
    placed: dict[Node, None] = {}
    for last in model.nodes:
        waiting = [last]
        while waiting:
            node = waiting[-1]
            missing = [value.node for value in node.inputs if value is not None and value.node not in placed]
            if missing and node not in placed:
                waiting.append(missing[0])
                continue
            placed[node] = None
            waiting.pop()
    return list(placed)


def first_layers(model: Model, a: Record, b: Record, *, only: set[Place] | None = None) -> set[int]:
    """The layers that differ first: in the first run in which any differs, those of which nothing in front differs.

    Args:
        model: with the graph.
        a, b: what both compute.
        only: the values that can be observed; all unless given.
    """
    for run in range(len(a.outer)):
        inner = [
            (position, differ(one, other))
            for (position, one), (_, other) in zip(a.inner[run], b.inner[run], strict=False)
        ]
        outer = {
            position: differ(array, b.outer[run][position])
            for position, array in a.outer[run].items()
            if only is None or position in only
        }
        found = _first(model, outer, only)
        in_body = next((position[0] for position, differs in inner if differs), None) if only is None else None
        nodes = list(model.walk())
        loops = {i for i in found if nodes[i].bodies}
        if in_body is not None and loops:
            found = found - loops | {in_body}
        if found:
            return found
    return set()


def _first(model: Model, differs: Mapping[Place, bool], only: set[Place] | None) -> set[int]:
    index = {node: i for i, node in enumerate(model.walk())}
    after: dict[Value, bool] = {}
    found: set[int] = set()
    for node in _order(model):
        source = any(after.get(value, False) for value in node.inputs if value is not None)
        for value in node.outputs:
            own = differs.get((index[node], value.index), False)
            if own and not source:
                found.add(index[node])
            # What cannot be observed passes on what is in front of it.
            after[value] = source or own
    return found


def differ(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are not the same within the tolerance that compare documents."""
    if a.shape != b.shape:
        return True
    if a.dtype.kind not in "f" or b.dtype.kind not in "f":
        return not np.array_equal(a, b)
    one, other = a.astype(np.float64), b.astype(np.float64)
    rtol = 1e-2 if np.float16 in (a.dtype, b.dtype) else 1e-4
    finite = one[np.isfinite(one)]
    scale = np.sqrt(np.mean(finite**2)) if finite.size else 0.0
    with np.errstate(invalid="ignore"):
        near = np.abs(other - one) <= rtol * (scale + np.abs(one))
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    return not bool(np.all(same | (near & np.isfinite(one) & np.isfinite(other))))
