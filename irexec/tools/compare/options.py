"""Options of a comparison, and the tolerances that follow from them."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from irexec.analysis.evaluate import Precision
from irexec.analysis.model import Model
from irexec.dtypes.elements import BF16, Element
from irexec.errors import InputError
from irexec.ir.graph import Graph, Value
from irexec.ir.order import topological
from irexec.tools.arrays.agreement import THRESHOLDS, Metric, Tolerance
from irexec.tools.engines.runtimes import OWN, Runtime, open_runtime, precision_beside, runtime_kind
from irexec.tools.run.shapes import Shapes

Side = Literal["A", "B"]
RTOL = {"f64": 1e-4, "f32": 1e-4, "f16": 1e-2, "bf16": 5e-2, "f8e4m3": 0.25, "f8e5m2": 0.5}
"""Relative tolerance by the coarser element type of a pair: about ten times the rounding of a value, for sums of
products."""
QUANTISED_SNR = 20.0
"""Minimum SNR in decibels of a tensor of a well quantised network."""
_WEIGHTS = 16
"""Minimum number of elements of weights."""


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
        metric, threshold, rtol, atol: see Tolerance; by default by element type: see Tolerances.
        maps: pairs of names of tensors of A and B, which overrule all other pairs.
        inputs_of: the side with tensors that are inputs of the other side, which is a part of it.
        isolate: run each layer of B alone, with the tensors of A as inputs.
        precision: precision of f16 and bf16 in irexec; by default as in the other runtime.
        threads, max_memory, timeout: as for open_runtime.
        tries: maximum number of comparisons until one finds a fault, all but the first with random inputs.
        strict: differing pairs from structure count even if later tensors agree.
        environments: the folder of the environments of releases, for a runtime such as openvino==2024.1.0.
        dynamic_quantization: of irexec and of OpenVINO; as for open_runtime.
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
    dynamic_quantization: int | None = None

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


def opened_runtime(options: CompareOptions, name: str, model: Model, beside: Runtime | None = None) -> Runtime:
    """A model in a runtime, with the threads, memory and time of the options.

    It runs in the process of another model of this runtime, if there is one: to start a process takes longer than most
    runs.
    """
    return open_runtime(
        name,
        model,
        properties=options.properties_of(name),
        threads=options.threads,
        precision=options.own_precision,
        max_memory=options.max_memory,
        timeout=options.timeout,
        environments=options.environments,
        dynamic_quantization=options.dynamic_quantization,
        worker=None if beside is None else beside.worker,
    )


@dataclass(frozen=True)
class Tolerances:
    """The tolerance for each pair of tensors.

    Attributes:
        options: the options of the user.
        a, b: the precision of the weights of both models.
    """

    options: CompareOptions
    a: WeightPrecision
    b: WeightPrecision

    @property
    def quantised(self) -> bool:
        """Whether only one of the models is quantised."""
        return self.a.quantised != self.b.quantised

    @functools.cached_property
    def metric(self) -> Metric:
        """The measure that decides."""
        given = self.options.rtol is not None or self.options.atol is not None
        return self.options.metric or ("snr" if self.quantised and not given else "max")

    def of(self, *elements: Element | None) -> Tolerance:
        """The tolerance for tensors of these element types."""
        options = self.options
        if self.metric != "max":
            default = QUANTISED_SNR if self.quantised and self.metric == "snr" else THRESHOLDS[self.metric]
            return Tolerance(self.metric, threshold=default if options.threshold is None else options.threshold)
        rtol = options.rtol
        if rtol is None:
            # Weights of another precision have other values, and so have all tensors after them.
            coarsest = max((self.a.rtol, self.b.rtol)) if self.a.rtol != self.b.rtol else 0.0
            rtol = max([RTOL["f32"], coarsest, *(RTOL.get(str(one), RTOL["f32"]) for one in elements)])
        if options.atol is not None:
            return Tolerance(rtol=rtol, atol=options.atol)
        return Tolerance(rtol=rtol, atol=rtol, scaled=True)


@dataclass(frozen=True)
class WeightPrecision:
    """The precision of the weights of a model.

    Attributes:
        rtol: relative tolerance for the coarsest floating-point type of weights.
        quantised: whether it has FakeQuantize, or weights of small integers that are converted.
    """

    rtol: float = RTOL["f32"]
    quantised: bool = False


def weight_precision(model: Model | None) -> WeightPrecision:
    """The precision of the weights of a model; that of f32 without a model."""
    nodes = list(model.walk()) if model else []
    converts = (node for node in nodes if node.type == "Convert")
    converted = {value.node for node in converts for value in node.inputs if value is not None}
    rtol, quantised = RTOL["f32"], any(node.type in ("FakeQuantize", "FakeConvert") for node in nodes)
    for node in nodes:
        if node.constant is None or math.prod(node.constant.shape) < _WEIGHTS:
            continue
        element = node.constant.element
        if element.is_float:
            rtol = max(rtol, RTOL.get(str(element), RTOL["f8e5m2"]))
        elif element.bits <= 8 and element.is_integer and node in converted:
            quantised = True
    return WeightPrecision(rtol, quantised)


def computed_from_bf16(graph: Graph, *, is_all: bool = False) -> set[Value]:
    """The values that are computed in bf16, and all that are computed from them; with ``is_all`` those of all layers.

    OpenVINO's CPU plugin leaves bf16 as it is on processors that have it, whatever its precision hint:
    each layer rounds.
    """
    found: set[Value] = set()
    for node in topological(graph)[0]:
        if node.type == "Constant" or (node.type == "Parameter" and not is_all):
            continue
        rounds = is_all or any(value.element_type is BF16 for value in node.outputs)
        rounds |= any(value in found for value in node.inputs)
        for body in node.bodies.values():
            inner = computed_from_bf16(body.graph, is_all=rounds)
            found |= inner
            rounds |= bool(inner)
        found.update(node.outputs if rounds else ())
    return found
