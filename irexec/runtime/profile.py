"""The time of a model, measured step by step, beside the cost of each step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from irexec.analysis.cost import Cost, LayerCosts, has_macs, total
from irexec.compile.steps import Plan, Step
from irexec.errors import InputError
from irexec.ir.graph import Node
from irexec.ir.order import grouped
from irexec.messages import counted, metric
from irexec.records import Record, Report
from irexec.runtime.execute import Observer

WARM_UP = 2
"""Runs before those that are measured."""

Grouping = Literal["step", "layer", "type"]
SortKey = Literal["time", "macs", "memory"]


@dataclass(frozen=True)
class Times:
    """Measured times, in seconds since the first run began.

    Attributes:
        begins, ends: of each run.
        step_begins, step_seconds: (runs, steps).
        plain: seconds of each run that was not observed.
    """

    begins: np.ndarray
    ends: np.ndarray
    step_begins: np.ndarray
    step_seconds: np.ndarray
    plain: np.ndarray


def measure(run_once: Callable[[Observer | None], None], steps: int, runs: int) -> Times:
    """Measure runs after a warm-up, first without an observer, for which Python calls each step of C kernels."""
    plain = np.zeros(WARM_UP + runs)
    for i in range(WARM_UP + runs):
        begin = time.perf_counter()
        run_once(None)
        plain[i] = time.perf_counter() - begin
    for _ in range(WARM_UP):
        run_once(lambda step, outputs, seconds: None)
    begins, ends = np.zeros(runs), np.zeros(runs)
    done, seconds_of = np.zeros((runs, steps)), np.zeros((runs, steps))
    start = time.perf_counter()
    for i in range(runs):
        recorder = _Recorder(done[i], seconds_of[i])
        begins[i] = time.perf_counter()
        run_once(recorder)
        ends[i] = time.perf_counter()
    return Times(begins - start, ends - start, done - seconds_of - start, seconds_of, plain[WARM_UP:])


def followed(
    run_once: Callable[[Observer | None], None], runs: int, progress: Callable[[float], object]
) -> Callable[[Observer | None], None]:
    """``run_once`` that reports progress after each run, those of the warm-up included.

    It is reported before the next run begins, so that it is not measured with the steps.
    """

    def run(observer: Observer | None) -> None:
        run_once(observer)
        progress(1 / (2 * (runs + WARM_UP)))

    return run


class _Recorder:
    """The observer of one run."""

    def __init__(self, done: np.ndarray, seconds: np.ndarray) -> None:
        self._done, self._seconds, self._index = done, seconds, 0

    def __call__(self, step: Step, outputs: Sequence[Any], seconds: float) -> None:
        self._done[self._index], self._seconds[self._index] = time.perf_counter(), seconds
        self._index += 1


@dataclass(frozen=True, repr=False)
class ProfileRow(Record):
    """The time and the cost of a step, of a layer, or of all steps of a type.

    Attributes:
        name: of the layer, of the step's main layer, or of the type.
        layers: the names of all layers that it stands for.
        type: of the operation, with what is computed along with it: "Convolution+Add+Relu".
        algorithm: of the kernel; None for a type.
        milliseconds: median of the runs; None for a layer whose time is in that of another one.
        share: of the time of all steps; None likewise.
        macs, parameters, bytes: see irexec.analysis.cost; None if a shape is not known.
    """

    name: str
    layers: tuple[str, ...]
    type: str
    algorithm: str | None
    milliseconds: float | None
    share: float | None
    macs: int | None
    parameters: int
    bytes: int | None

    _json_properties = ("gflops",)

    @property
    def gflops(self) -> float | None:
        """10^9 floating-point operations per second, two for each multiply-accumulate; None without any."""
        if not self.macs or not self.milliseconds:
            return None
        return 2 * self.macs / (self.milliseconds * 1e6)

    @property
    def title(self) -> str:
        """The name, and how many more layers there are: "conv1 +2"."""
        return self.name + (f" +{len(self.layers) - 1}" if len(self.layers) > 1 else "")

    def __repr__(self) -> str:
        time = "" if self.milliseconds is None else f"ms {self.milliseconds:.3f}"
        parts = [time, f"MACs {metric(self.macs) or '?'}", f"params {metric(self.parameters)}"]
        sizes = f"bytes {metric(self.bytes) or '?'}"
        return f"<ProfileRow {self.title!r} {self.type}: {', '.join(filter(None, [*parts, sizes]))}>"


@dataclass(frozen=True)
class Profile(Report):
    """The times of several runs.

    Attributes:
        steps: a row for each step, in the order in which they run. The cost of a layer that several steps compute is
            that of one.
        layers: a row for each layer; the time of a step is that of its main layer, and the other layers have none.
        types: a row for each type of operation, that with the most time first.
        threads: number of threads of a step.
        kernels: as for PlanReport.
        runs: number of measured runs.
        milliseconds: median of the times of runs that are not observed.
        minimum: the shortest of them.
        observed: median of the times of the runs whose steps are measured, with the calls of Python between steps.
        in_steps: the sum of the medians of the steps.
        cost: of the whole model.
        times: every single time.
    """

    steps: tuple[ProfileRow, ...]
    layers: tuple[ProfileRow, ...]
    types: tuple[ProfileRow, ...]
    threads: int
    kernels: str
    runs: int
    milliseconds: float
    minimum: float
    observed: float
    in_steps: float
    cost: Cost
    times: Times = field(repr=False)

    def rows(self, by: Grouping = "step", sort: SortKey | None = None) -> list[ProfileRow]:
        """The rows of a grouping, sorted by time, MACs or bytes, the largest first; as they are without ``sort``.

        Raises:
            InputError: the grouping or order does not exist.
        """
        return sorted_rows(_chosen({"step": self.steps, "layer": self.layers, "type": self.types}, by, "by"), sort)

    def __repr__(self) -> str:
        steps, runs = counted(len(self.steps), "step"), counted(self.runs, "run")
        return f"<Profile: {self.milliseconds:.3g} ms in {steps}, median of {runs}>"


def sorted_rows(rows: Sequence[ProfileRow], sort: SortKey | None) -> list[ProfileRow]:
    """The rows, the largest first; those without a value come last. Raises InputError if the order does not exist."""
    keys: dict[SortKey, Callable[[ProfileRow], float]] = {
        "time": lambda row: row.milliseconds or 0,
        "macs": lambda row: row.macs or 0,
        "memory": lambda row: row.bytes or 0,
    }
    return list(rows) if sort is None else sorted(rows, key=_chosen(keys, sort, "sort"), reverse=True)


def _chosen(choices: Mapping[Any, Any], key: str, name: str) -> Any:
    if key not in choices:
        raise InputError(f"{name} is {key!r}, expected {', '.join(map(repr, choices))}")
    return choices[key]


def describe_profile(plan: Plan, times: Times, costs: LayerCosts, kernels: str) -> Profile:
    """The profile of a plan, from the measured ``times``; ``kernels`` as for PlanReport."""
    medians = np.median(times.step_seconds, 0) * 1e3
    whole = float(medians.sum())
    owners = _owners(plan)
    steps = tuple(
        _step_row(step, [n for n in step.report.origins if owners[n] is step], float(ms), whole, costs)
        for step, ms in zip(plan.steps, medians, strict=True)
    )
    run_times = (times.ends - times.begins) * 1e3
    return Profile(
        steps=steps,
        layers=tuple(_layer_rows(plan, steps, owners, costs)),
        types=tuple(by_type(steps)),
        threads=plan.threads,
        kernels=kernels,
        runs=len(run_times),
        milliseconds=float(np.median(times.plain)) * 1e3,
        minimum=float(times.plain.min()) * 1e3,
        observed=float(np.median(run_times)),
        in_steps=whole,
        cost=costs.of(costs.layers),
        times=times,
    )


def _owners(plan: Plan) -> dict[Node, Step]:
    """The step that counts the cost of each layer: the first of its steps with multiply-accumulates, else the first."""
    found: dict[Node, Step] = {}
    for step in plan.steps:
        for node in step.report.origins:
            if node not in found or (has_macs(step.report.type) and not has_macs(found[node].report.type)):
                found[node] = step
    return found


def _step_row(step: Step, layers: Sequence[Node], ms: float, whole: float, costs: LayerCosts) -> ProfileRow:
    cost = costs.of(layers)
    return ProfileRow(
        name=step.node.name,
        layers=tuple(node.name for node in step.report.origins),
        type=step.report.operation,
        algorithm=step.report.algorithm,
        milliseconds=ms,
        share=ms / whole if whole else 0.0,
        macs=cost.macs,
        parameters=cost.parameters,
        bytes=cost.bytes,
    )


def _layer_rows(
    plan: Plan, steps: Sequence[ProfileRow], owners: dict[Node, Step], costs: LayerCosts
) -> Iterator[ProfileRow]:
    """Rows of layers; a layer that is the main one of several steps has the sum of their times."""
    main = grouped((step.node, row) for step, row in zip(plan.steps, steps, strict=True))
    for node in costs.layers:
        cost, own, owner = costs.of([node]), main.get(node), owners.get(node)
        yield ProfileRow(
            name=node.name,
            layers=(node.name,),
            type=node.type,
            algorithm=None if owner is None else owner.report.algorithm,
            milliseconds=sum(row.milliseconds or 0 for row in own) if own else None,
            share=sum(row.share or 0 for row in own) if own else None,
            macs=cost.macs,
            parameters=cost.parameters,
            bytes=cost.bytes,
        )


def by_type(rows: Sequence[ProfileRow]) -> list[ProfileRow]:
    """One row for all rows of the same main operation, that with the most time first, or with the most MACs without
    times."""
    groups = grouped((row.type.split("+")[0], row) for row in rows)
    return sorted_rows(sorted_rows([_type_row(type, group) for type, group in groups.items()], "macs"), "time")


def _type_row(type: str, rows: Sequence[ProfileRow]) -> ProfileRow:
    times = [row.milliseconds for row in rows if row.milliseconds is not None]
    shares = [row.share for row in rows if row.share is not None]
    return ProfileRow(
        name=type,
        layers=tuple(layer for row in rows for layer in row.layers),
        type=type,
        algorithm=None,
        milliseconds=sum(times) if times else None,
        share=sum(shares) if shares else None,
        macs=total(row.macs for row in rows),
        parameters=sum(row.parameters for row in rows),
        bytes=total(row.bytes for row in rows),
    )
