"""Judge whole networks.

Clean runs: each network in irexec, and in OpenVINO's CPU plugin; an accusation is a failure. Planted faults: each network
runs with irexec's kernels and a fault in one layer, which has a bound and whose result the fault changes visibly; the
verdict must name this layer and no other one. The networks are those of tests/data/networks. An
accusation of a clean run fails, and a fault that is not named, or of which another layer is named.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.open_sizes import sizes_for
from irexec.analysis.shape_inference import infer_shapes
from irexec.analysis.submodel import with_shapes
from irexec.ir.facts import Fact
from irexec.ir.graph import Node
from irexec.ir.order import values_by_name
from irexec.tools.judge import Judgement, judge
from tests.judge_sweep.faults import FAULTS, Fault, planted
from tests.support.networks import NAMES, feeds, unpacked
from tests.sweep.kind import Case, Kind, Outcome, temporary
from tests.tools.judge.faulty import Faulty, plant

_TRIES = 20
_VISIBLE = 1e-3
_VISIBLE_F16 = 5e-5


@dataclass(frozen=True)
class Row:
    """One judgement.

    Attributes:
        runtime: "irexec" and "openvino" with its precision are clean; else the fault.
        outcome: "clean" or "accused"; for a fault "named", "missed" or "another": another layer is named.
    """

    network: str
    runtime: str
    outcome: str
    layer: str
    verdict: str
    bounded: int
    tensors: int
    seconds: float
    sentence: str


class Judged:
    """The judgements of one network.

    Args:
        name: of the network.
        seed: of the faults.
        folder: for its files.
        is_open: whether the sizes stay open that the network leaves so, and inputs have sizes that irexec chooses.
    """

    def __init__(self, name: str, seed: int, folder: Path, is_open: bool = False) -> None:
        path = unpacked(name, folder)
        model = irexec.read_model(path)
        arrays = feeds(path, model.inputs)[0]
        self.name, self.rng = name, np.random.default_rng([seed, *name.encode()])
        self.inputs = {port.name: array for port, array in zip(model.inputs, arrays, strict=True)}
        if is_open:
            chosen = sizes_for(model)(model.inputs, {}) or [array.shape for array in arrays]
            self.inputs = {
                port.name: np.resize(array, shape)
                for port, array, shape in zip(model.inputs, arrays, chosen, strict=True)
            }
        shapes = {port.node.id: self.inputs[port.name].shape for port in model.inputs}
        self.model = model if is_open else with_shapes(model, shapes)
        given = {port.node: Fact(port.element, self.inputs[port.name].shape) for port in model.inputs}
        self.facts = infer_shapes(self.model, given if is_open else None).facts

    def clean(self, runtime: str, **properties: str) -> tuple[Row, Judgement]:
        """A run without a fault, in OpenVINO with properties."""
        start = time.perf_counter()
        found = judge(self.model, self.inputs, runtime=runtime, properties=properties or None)
        outcome = "accused" if found.verdict in ("bug", "fusion") else "clean"
        return self._row(" ".join([runtime, *properties.values()]), outcome, "", found, start), found

    def faulty(self, fault: Fault, bounded: set[str], unobserved: bool) -> Row | None:
        """A run with a fault in a random layer; None if no layer shows it."""
        fitting = [node for node in self.model.nodes if node.name in bounded and fault.fits(node, self.facts)]
        for i in self.rng.permutation(len(fitting))[:_TRIES]:
            node = fitting[i]
            if self._shows(fault, node) and not (unobserved and self._is_result(node)):
                return self._planted(fault, node, unobserved)
        return None

    def _is_result(self, node: Node) -> bool:
        return any(node.outputs[0] in one.inputs for one in self.model.results)

    def _planted(self, fault: Fault, node: Node, unobserved: bool) -> Row:
        damage = planted(fault, node.name, self.facts[node.outputs[0]], unobserved)
        start = time.perf_counter()
        with pytest.MonkeyPatch.context() as patch:
            runtime = plant(patch, damage, kernels="irexec")
            found = judge(self.model, self.inputs, runtime=runtime)
        accused = found.at if found.verdict in ("bug", "fusion") else ()
        names = [{one.layer.name, *(one.region if unobserved else ())} for one in accused]
        outcome = (
            ("unexplained" if found.verdict in ("unexplained", "no-bound", "open") else "missed")
            if not names
            else "named"
            if all(node.name in each for each in names)
            else "another"
        )
        kind = f"{fault.kind}, unobserved" if unobserved else fault.kind
        return self._row(kind, outcome, f"{node.name} ({node.type})", found, start)

    def _shows(self, fault: Fault, node: Node) -> bool:
        """Whether the fault changes the result of the layer visibly."""
        damage = planted(fault, node.name, self.facts[node.outputs[0]])
        wrong, right = (
            Faulty(self.model, one, lambda value, array: array, "irexec").run_all([self.inputs], [node.outputs[0]])[0][0]
            for one in (damage, lambda model, values: None)
        )  # fmt: skip
        size = float(np.sqrt(np.mean(np.square(right, dtype=np.float64))))
        limit = _VISIBLE_F16 if fault.kind == "f16" else _VISIBLE
        return right.shape != wrong.shape or bool(np.max(np.abs(right - wrong), initial=0) > limit * size)

    def _row(self, runtime: str, outcome: str, layer: str, found: Judgement, start: float) -> Row:
        bounded = len(found.layers) - found.count("no bound")
        seconds = round(time.perf_counter() - start, 1)
        return Row(
            self.name, runtime, outcome, layer, found.verdict, bounded, len(found.layers), seconds, found.sentence
        )


def bounded_layers(sweep: Judged, found: Judgement) -> set[str]:
    """Names of the layers of one output that have a bound."""
    values = values_by_name(sweep.model)
    inside = [one for one in found.layers if one.state == "inside"]
    return {one.layer.name for one in inside if len(values[one.layer.tensor].node.outputs) == 1}


def _rows(sweep: Judged, plants: int, without: list[str], planted_kinds: Counter[str]) -> Iterator[Row]:
    """Clean runs, then faults of the kinds that were planted least so far; every seventh only where nobody observes."""
    row, found = sweep.clean("irexec")
    yield row
    if "openvino" not in without:
        yield sweep.clean("openvino")[0]
        for hint in ("bf16", "f16"):
            yield sweep.clean("openvino", INFERENCE_PRECISION_HINT=hint)[0]
    bounded, left = bounded_layers(sweep, found), plants
    for fault in sorted(FAULTS, key=lambda one: planted_kinds[one.kind]):
        total = planted_kinds.total()
        made = sweep.faulty(fault, bounded, total % 7 == 6) if left else None
        if made is not None:
            left -= 1
            planted_kinds[fault.kind] += 1
            yield made


def _outcome(row: Row) -> Outcome:
    text = f"{row.runtime} {row.layer}: {row.bounded} of {row.tensors} tensors with a bound, {row.seconds} s"
    if row.outcome in ("accused", "missed", "another", "unexplained") or row.verdict not in ("agrees", "bug", "fusion"):
        text = f"{text}; {row.sentence}"
    return Outcome(row.outcome, text, row.outcome in ("accused", "missed", "another"), asdict(row))


class Sweep(Kind):
    """Clean runs and planted faults of each network."""

    cases = 1

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self._planted: Counter[str] = Counter()

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--plants", type=int, default=2, help="faults for each case")
        add("--open", action="store_true", help="leave sizes open")
        add("--without", action="append", default=[], help="a runtime that is left out")

    def names(self) -> list[str]:
        return NAMES

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """The rows of a network with faults of a number."""
        given = self.options
        with temporary() as folder:
            yield lambda number: map(
                _outcome, _rows(Judged(name, number, folder, given.open), given.plants, given.without, self._planted)
            )
