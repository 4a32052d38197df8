"""Options of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from irexec.analysis.model import Model
from irexec.analysis.precision import Precision
from irexec.errors import InputError
from irexec.tools.arrays.agreement import THRESHOLDS, Metric
from irexec.tools.engines.runtimes import OWN, Runtime, open_runtime, precision_beside, runtime_kind
from irexec.tools.run.shapes import Shapes

Side = Literal["A", "B"]


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """How two models are run and compared. A is the reference.

    Attributes:
        a_runtime, b_runtime: runtimes of A and B; see irexec.tools.engines.runtimes.open_runtime.
        properties: of OpenVINO's plugins, by name.
        a_weights, b_weights: the .bin of A and B; None is the file of the model's name.
        shapes: new shapes of inputs by name, for both; None is the only input.
        seed: seed of random inputs.
        runs: number of runs one after the other, with state from run to run; None is 2 for models with state, else 1.
            Where it is given, a source of arrays may have those of each run, see ``sources_of_step``.
        load_state: a .npz with the arrays of variables before the first run, by variable_id.
        metric, threshold, rtol, atol: see Tolerance; by default by element type: see irexec.tools.compare.tolerances.
        maps: pairs of names of tensors of A and B, which overrule all other pairs.
        inputs_of: the side with tensors that are inputs of the other side, which is a part of it.
        isolate: run each layer of B alone, with the tensors of A as inputs.
        precision: precision of f16 and bf16 in irexec; by default as in the other runtime.
        threads, max_memory, timeout: as for open_runtime.
        tries: maximum number of comparisons until one finds a fault, all but the first with random inputs.
        strict: differing pairs from structure count even if later tensors agree.
        environments: the folder of the environments of releases, for a runtime such as openvino==2024.1.0.
    """

    a_runtime: str = "irexec"
    b_runtime: str = "irexec"
    properties: Mapping[str, str] | None = None
    a_weights: str | None = None
    b_weights: str | None = None
    shapes: Shapes | None = None
    seed: int = 0
    runs: int | None = None
    load_state: str | None = None
    metric: Metric | None = None
    threshold: float | None = None
    rtol: float | None = None
    atol: float | None = None
    maps: tuple[tuple[str, str], ...] = ()
    inputs_of: Side | None = None
    isolate: bool = False
    precision: Precision | None = None
    threads: int | None = None
    max_memory: int | None = None
    timeout: float | None = None
    tries: int = 1
    strict: bool = False
    environments: str | None = None

    def __post_init__(self) -> None:
        metric = self.metric or "max"
        if self.threshold is not None and metric not in THRESHOLDS:
            raise InputError("a threshold is for the metrics rel, cosine and snr; the metric max has rtol and atol")
        if metric != "max" and (self.rtol is not None or self.atol is not None):
            raise InputError(f"rtol and atol are for the metric max; the metric {metric} has a threshold")
        if self.properties and "openvino" not in (runtime_kind(self.a_runtime), runtime_kind(self.b_runtime)):
            raise InputError("properties are for the runtime openvino, which is neither that of A nor that of B")
        if self.tries < 1:
            raise InputError(f"tries is {self.tries}, expected at least 1")
        if self.runs is not None and self.runs < 1:
            raise InputError(f"runs is {self.runs}, expected at least 1")

    @property
    def own_precision(self) -> Precision:
        """The precision of f16 and bf16 in irexec."""
        other = next((name for name in (self.a_runtime, self.b_runtime) if name not in OWN), self.b_runtime)
        return self.precision or precision_beside(other)

    def properties_of(self, runtime: str) -> Mapping[str, str] | None:
        """The properties that a runtime is given."""
        return self.properties if runtime_kind(runtime) == "openvino" else None


def opened_runtime(options: CompareOptions, name: str, model: Model) -> Runtime:
    """A model in a runtime, with the threads, memory and time of the options."""
    return open_runtime(
        name,
        model,
        properties=options.properties_of(name),
        threads=options.threads,
        precision=options.own_precision,
        max_memory=options.max_memory,
        timeout=options.timeout,
        environments=options.environments,
    )
