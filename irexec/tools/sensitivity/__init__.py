"""The share of each layer in the error of a model with fewer bits."""

from __future__ import annotations

import copy
import json
import math
import shlex
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from irexec.analysis.builder import Adding
from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.api import ModelLike, as_model
from irexec.authoring.compression import weights
from irexec.display import Column, Content, Table, Text, sections_of
from irexec.dtypes.elements import BF16, F16, F32, Element
from irexec.errors import InputError
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.ir.order import grouped, topological
from irexec.messages import counted, silent
from irexec.records import Record, Records, Report
from irexec.tools.compare.comparison import ComparedLayer
from irexec.tools.compare.layers import DETECTIONS
from irexec.tools.compare.layers import layer as compared_layer
from irexec.tools.engines.runtimes import Arrays
from irexec.tools.engines.runtimes.kinds import OwnRuntime
from irexec.tools.images import Notify
from irexec.tools.judge.judgement import StepOptions
from irexec.tools.judge.run import given_steps
from irexec.tools.run.input_sources import InputSource
from irexec.tools.sensitivity.against import Swaps

_SHOWN = 20


@dataclass(frozen=True)
class LayerSensitivity(Record):
    """A layer that alone has fewer bits.

    Attributes:
        layer: the layer.
        error: the relative error of the results: root mean square of the error divided by that of the results.
        share: of the sum of the squares of all errors, from 0 to 1; layers with infinite errors share alike.
        saturated: number of elements of its outputs in f32 beyond the largest number of the type.
        dead: number of output channels that are 0 throughout.
        channels: number of output channels.
    """

    layer: ComparedLayer
    error: float
    share: float
    saturated: int = 0
    dead: int = 0
    channels: int = 0

    @property
    def snr(self) -> float:
        """The ratio of the results to their error in decibels."""
        return decibels(self.error)


@dataclass(frozen=True)
class MixedPrecision(Record):
    """The fewest layers in f32 with which the results are right enough.

    Attributes:
        kept: names of the layers that stay in f32.
        error: the relative error of the results with all others in the type.
        ignored_scope: Python that names these layers for NNCF; "" if there are none.
        command: the ``irexec edit`` that makes the model; "" if it would change nothing.
    """

    kept: tuple[str, ...]
    error: float
    ignored_scope: str
    command: str


@dataclass(frozen=True)
class Sensitivity(Report):
    """The share of each layer in the error of a model with fewer bits.

    Attributes:
        model: its path or name.
        type: "f16", "bf16", "int8", "int4", or the path or name of the quantised model.
        layers: the layers, the largest error first.
        together: the relative error of the results with all these layers in the type.
        target: the SNR in decibels that the proposal reaches.
        proposal: the fewest layers in f32; None if the target cannot be reached.
        samples: number of runs.
        further: of a quantised model that reaches the target, names of layers that could have weights in int8 too.
    """

    model: str
    type: str
    layers: Records[LayerSensitivity]
    together: float
    target: float
    proposal: MixedPrecision | None
    samples: int = 1
    further: tuple[str, ...] = ()


def decibels(error: float) -> float:
    """The SNR of a relative error: infinite for 0, and minus infinity for one that is not finite."""
    if math.isnan(error) or math.isinf(error):
        return -math.inf
    return -20 * math.log10(error) if error else math.inf


def percent(share: float) -> str:
    """A share as text."""
    return f"{share:.1%}" if share >= 0.0005 or not share else "<0.1%"


def _in_decibels(error: float) -> str:
    found = decibels(error)
    return "exact" if found == math.inf else "not finite" if found == -math.inf else f"{found:.1f} dB"


def sensitivity_sections(found: Sensitivity, shows_all: bool = False) -> Iterator[Content]:
    """The layers with the largest errors, and the proposal."""
    layers = found.layers if shows_all else found.layers[:_SHOWN]
    yield Table(
        [
            Column("id", lambda one: one.layer.id, "number"),
            Column("layer", lambda one: one.layer.name, "path"),
            Column("type", lambda one: one.layer.type),
            Column("SNR alone", lambda one: _in_decibels(one.error)),
            Column("share", lambda one: percent(one.share)),
            Column("saturated", lambda one: one.saturated or None, "number"),
            Column("dead", lambda one: f"{one.dead} of {one.channels}" if one.dead else None),
        ],
        layers,
        what="layers",
    )
    if len(layers) < len(found.layers):
        yield f"and {counted(len(found.layers) - len(layers), 'layer')} of smaller errors"
    yield f"all {counted(len(found.layers), 'layer')} in {found.type}: {_in_decibels(found.together)}"
    proposal = found.proposal
    if proposal is None:
        yield Text(f"no choice of layers reaches {found.target:g} dB", "error")
        return
    if proposal.kept:
        kept = counted(len(proposal.kept), "layer")
        yield Text(f"{kept} in f32, the others in {found.type}: {_in_decibels(proposal.error)}", "title")
    else:
        yield Text(f"no layer needs f32 for {found.target:g} dB", "title")
    yield from (Text(text, "code") for text in (proposal.ignored_scope, proposal.command) if text)
    if found.further:
        yield f"weights that int8 could store too: {', '.join(found.further)}"


sections_of.register(Sensitivity, sensitivity_sections)


COMPUTED = {"f16": F16, "bf16": BF16}
"""Types in which a layer is computed: its inputs and outputs are rounded, its sums are not."""
STORED = ("int8", "int4")
"""Types in which weights are stored; see Editor.compress."""
TYPES = (*COMPUTED, *STORED)

_LARGEST_GROUP = 128
_MOVING = frozenset(
    (
        "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Concat", "Split", "VariadicSplit", "Slice", "StridedSlice",
        "Gather", "GatherElements", "GatherND", "Pad", "Broadcast", "Tile", "Convert", "ShapeOf", "ReadValue", "Assign",
        "Result", "Parameter", "Constant", "DepthToSpace", "SpaceToDepth", "ShuffleChannels", "Roll", "Reverse",
    )
)  # fmt: skip
"""Operations that move elements: the layers beside them round."""


def candidates(model: Model, facts: Mapping[Value, Fact], type: str) -> list[Node]:
    """The layers that can have fewer bits: layers that compute with f32 by the facts, or layers with weights."""
    if type in STORED:
        return list(dict.fromkeys(weight.node for weight in weights(model)))
    found = []
    for node in model.nodes:
        elements = {fact.element for value in node.outputs if (fact := facts.get(value)) is not None}
        is_computed = any(value is not None and value.node.type != "Constant" for value in node.inputs)
        if F32 in elements and node.type not in _MOVING and not node.bodies and is_computed:
            found.append(node)
    return found


def lowered(model: Model, layers: Collection[Node], type: str, group: int) -> Model:
    """A copy of a model in which these layers have fewer bits."""
    made = copy.copy(model)
    position = {node: i for i, node in enumerate(model.nodes)}
    chosen = [made.nodes[position[node]] for node in layers]
    if type in STORED:
        kept = [weight.node.name for weight in weights(made) if weight.node not in chosen]
        if chosen:
            with made.edit() as editor:
                editor.compress(type, group=group, keep=kept)
        return made
    _round_ports(made, chosen, COMPUTED[type])
    return made


def group_of(model: Model) -> int:
    """The largest power of two, of at most 128, that divides the summed axes of all products.

    Raises:
        InputError: such an axis has an odd size.
    """
    held = ((weight.constant.constant, weight.axes[0]) for weight in weights(model) if weight.is_product)
    sizes = [constant.shape[axis] for constant, axis in held if constant is not None]
    group = math.gcd(_LARGEST_GROUP, *sizes)
    if group == 1:
        raise InputError("int4 needs groups of weights, and a product has an odd number of inputs")
    return group


def _round_ports(model: Model, nodes: Collection[Node], element: Element) -> None:
    """Round the f32 inputs and outputs of layers to a type."""
    adding = Adding(model.nodes)
    reading = grouped((port.source, port) for node in model.nodes for port in node.ports)

    def rounded(value: Value) -> Value:
        for kind in (element, F32):
            fact = Fact(kind, None if value.fact is None else value.fact.shape)
            value = adding.layer("Convert", {"destination_type": kind.name}, [value], fact)
        return value

    for node in nodes:
        for port in node.ports:
            if port.source is not None and _is_f32(port.source):
                port.source = rounded(port.source)
        for value in node.outputs:
            if _is_f32(value):
                less = rounded(value)
                for port in reading.get(value, ()):
                    # A reader that rounds its inputs itself reads another value by now.
                    if port.source is value:
                        port.source = less


def _is_f32(value: Value) -> bool:
    return value.fact is not None and value.fact.element is F32


Type = Literal["f16", "bf16", "int8", "int4"]
_LARGEST = {"f16": 65504.0, "bf16": 3.3895313892515355e38}
_SPATIAL = 3
_TARGET_COMPUTED, _TARGET_STORED = 40.0, 30.0


@dataclass(frozen=True, kw_only=True)
class SensitivityOptions(StepOptions):
    """Options of a measurement, which runs a step for each sample; of a model with state steps with state.

    Attributes:
        type: "f16" or "bf16": layers compute in it; "int8" or "int4": weights are stored as ``irexec edit --compress``
            stores them.
        target: the SNR in decibels that the results need; None is 40 for types that layers compute in, and 30 for
            stored weights.
        against: a quantised model that was made from this one: its stored weights and ranges are what each layer
            has alone, and ``type`` is not used.

    Others are those of StepOptions.
    """

    type: Type = "f16"
    target: float | None = None
    against: ModelLike | None = None

    def __post_init__(self) -> None:
        if self.type not in TYPES:
            raise InputError(f"{self.type!r} is not one of {', '.join(TYPES)}")


def sensitivity(
    model: ModelLike,
    inputs: Arrays | Sequence[Arrays] | None = None,
    options: SensitivityOptions | None = None,
    *,
    sources: Sequence[InputSource] = (),
    notify: Notify = silent,
    advance: Callable[[float], object] = silent,
) -> Sensitivity:
    """Measure how much of the error of a model with fewer bits each layer makes, in irexec.

    Args:
        model: a model, or a path that read_model accepts; it is not changed.
        inputs: arrays by the names of inputs; one mapping for each of several samples. Others come from ``sources``.
        options: the type, and options of inputs as for ``judge``; ``steps`` is the number of samples.
        sources: sources of other inputs; by default random ones.
        notify: receives unexpected facts.
        advance: called with each finished part of the work, a fraction of it.

    Raises:
        InputError: no layer can have fewer bits, or the options, inputs or shapes do not fit the model.
        ModelError, NodeError, ConversionError: the model cannot be read or run.
    """
    options = options or SensitivityOptions()
    fixed, samples, _ = given_steps(model, inputs, options, sources, notify)
    return _Measuring(fixed, samples, options, advance).found()


class _Measuring:
    """A measurement of a model with static inputs."""

    def __init__(
        self, model: Model, samples: Sequence[Arrays], options: SensitivityOptions, advance: Callable[[float], object]
    ) -> None:
        self._model, self._samples, self._options, self._advance = model, samples, options, advance
        self._type: str = options.type
        if options.against is not None:
            other = as_model(options.against)
            swaps = Swaps(model, other, self._fixed_values)
            self._type = str(other.path or other.name or "the quantised model")
            self._layers, self._lowered = swaps.layers, swaps.applied
            self._floating = [node for node in candidates(model, {}, "int8") if node not in self._layers]
        else:
            self._layers = candidates(model, infer_shapes(model, tolerant=True).facts, options.type)
            if not self._layers:
                raise InputError(f"the model has no layer that {options.type} changes")
            self._group = group_of(model) if options.type == "int4" else 128
            self._lowered = lambda layers: lowered(model, layers, options.type, self._group)
            self._floating = []
        is_computed = options.type not in STORED and options.against is None
        default = _TARGET_COMPUTED if is_computed else _TARGET_STORED
        self._target = default if options.target is None else options.target
        self._measured = measured_ports(model)
        results = self._sources(model)
        outputs = [value for node in self._layers for value in node.outputs]
        arrays = self._run(model, [*results, *outputs])
        self._exact = [arrays[value] for value in results]
        self._outputs = {value: arrays[value] for value in outputs}
        # Each layer alone, all together, and a search among them.
        self._part = 1 / (len(self._layers) + 1 + len(self._layers).bit_length())

    def found(self) -> Sensitivity:
        """Measure; called once."""
        errors = {node: self._error([node]) for node in self._layers}
        layers = sorted((self._sensitivity(node, errors) for node in self._layers), key=lambda one: -one.error)
        order = sorted(self._layers, key=lambda node: -errors[node])
        whole = self._error(self._layers)
        model = self._model
        return Sensitivity(
            str(model.path or model.name or "the model"), self._type, Records(layers), whole, self._target,
            self._proposal(order, whole), len(self._samples), self._further(whole),
        )  # fmt: skip

    def _fixed_values(self, model: Model, values: list[Value]) -> dict[Value, np.ndarray]:
        """Values that need no input."""
        if not values:
            return {}
        with OwnRuntime("irexec", model, threads=self._options.threads, precision="as-written") as own:
            return dict(zip(values, own.run_all([{}], values)[0], strict=True))

    def _run(self, model: Model, values: Sequence[Value]) -> dict[Value, list[np.ndarray]]:
        """The arrays of values of a model in each sample."""
        with OwnRuntime(
            "irexec", model, threads=self._options.threads, max_memory=self._options.max_memory, precision="as-written"
        ) as own:
            found = own.run_all(self._samples, values)
        return {value: [arrays[i] for arrays in found] for i, value in enumerate(values)}

    def _error(self, layers: Collection[Node]) -> float:
        """The relative error of the results with these layers in the type."""
        return self._error_of(self._lowered(layers))

    def _error_of(self, made: Model) -> float:
        values = self._sources(made)
        found = self._run(made, values)
        self._advance(self._part)
        return relative_error(self._exact, [found[value] for value in values])

    def _sources(self, made: Model) -> list[Value]:
        """The values at the measured ports."""
        nodes = {node.name: node for node in made.nodes}
        return [source for name, i in self._measured if (source := nodes[name].inputs[i]) is not None]

    def _sensitivity(self, node: Node, errors: dict[Node, float]) -> LayerSensitivity:
        arrays = [array for value in node.outputs for array in self._outputs[value] if array.dtype.kind == "f"]
        limit = _LARGEST.get(self._type, math.inf)
        channels = _dead_channels(self._outputs[node.outputs[0]])
        return LayerSensitivity(
            compared_layer(node.outputs[0]),
            errors[node],
            _share(errors[node], list(errors.values())),
            int(sum(np.count_nonzero(np.abs(array) > limit) for array in arrays)),
            int(np.count_nonzero(channels)),
            channels.size,
        )

    def _proposal(self, order: Sequence[Node], whole: float) -> MixedPrecision | None:
        """The fewest layers in f32 of those with the largest errors, by a binary search; None if all would be."""
        measured = {0: whole}

        def reaches_target(kept: int) -> bool:
            if kept not in measured:
                measured[kept] = self._error(order[kept:])
            return decibels(measured[kept]) >= self._target

        kept = bisect_left(range(len(order)), True, key=reaches_target)
        return None if kept == len(order) else self._proposed([node.name for node in order[:kept]], measured[kept])

    def _further(self, whole: float) -> tuple[str, ...]:
        """The most layers, the least sensitive first, whose weights in int8 leave the results right enough."""
        if decibels(whole) < self._target or not self._floating:
            return ()
        alone = {node: self._error_of(lowered(self._model, [node], "int8", 128)) for node in self._floating}
        order = sorted(self._floating, key=lambda node: alone[node])
        quantised = self._lowered(self._layers)
        position = {node: i for i, node in enumerate(self._model.nodes)}
        low, high = 0, len(order)
        while low < high:
            middle = (low + high + 1) // 2
            chosen = [quantised.nodes[position[node]] for node in order[:middle]]
            if decibels(self._error_of(lowered(quantised, chosen, "int8", 128))) >= self._target:
                low = middle
            else:
                high = middle - 1
        return tuple(node.name for node in order[:low])

    def _proposed(self, kept: Sequence[str], error: float) -> MixedPrecision:
        type, path = self._type, self._model.path
        names = f"nncf.IgnoredScope(names={json.dumps(list(kept), ensure_ascii=False)})" if kept else ""
        if self._options.against is not None or (not kept and type not in STORED):
            return MixedPrecision(tuple(kept), error, names, "")
        words = ["irexec", "edit", str(path or "model.xml"), "-o", "mixed.xml"]
        if type in STORED:
            words += ["--compress", f"int4:group={self._group}" if type == "int4" else type]
        flag = "--keep" if type in STORED else "--precise"
        words += [word for name in kept for word in (flag, name)]
        return MixedPrecision(tuple(kept), error, names, shlex.join(words))


def measured_ports(model: Model) -> list[tuple[str, int]]:
    """The inputs of layers, by name and index, whose values say how wrong the results are: those of Results, or what a
    selection reads. Detections, indices and what they gather are other rows as soon as a score crosses another one.
    """
    facts, fixed = infer_shapes(model, tolerant=True).facts, constant_layers(model)
    varying, selected = set[Value](), set[Value]()
    for node in topological(model)[0]:
        sources = [value for value in node.inputs if value in varying]
        for value in () if node.constant is not None or node in fixed else node.outputs:
            fact = facts.get(value)
            is_float = fact is None or fact.element is None or fact.element.is_float
            # Integers that are computed from integers alone, and sizes, are the same with fewer bits.
            if (fact is not None and fact.known is not None) or not (is_float or sources):
                continue
            varying.add(value)
            is_moved = node.type in _MOVING and any(one in selected for one in sources)
            if not is_float or is_moved or node.type in DETECTIONS:
                selected.add(value)

    ports: dict[tuple[str, int], None] = {}
    waiting, seen = list(reversed(model.results)), set(model.results)
    while waiting:
        node = waiting.pop()
        for i, source in enumerate(node.inputs):
            if source is None or source not in varying:
                continue
            if source not in selected:
                ports[node.name, i] = None
            elif source.node not in seen:
                seen.add(source.node)
                waiting.append(source.node)
    return list(ports) or [(result.name, 0) for result in model.results]


def relative_error(exact: Sequence[Sequence[np.ndarray]], found: Sequence[Sequence[np.ndarray]]) -> float:
    """Root mean square of the error of results, divided by that of the exact ones; over all samples.

    Several results count alike: the root of the mean of their squares. Results of integers count as numbers.
    """
    squares = [_relative_square(one, other) for one, other in zip(exact, found, strict=True)]
    return math.sqrt(sum(squares) / len(squares))


def _relative_square(exact: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> float:
    size = error = 0.0
    with np.errstate(all="ignore"):
        for a, b in zip(exact, found, strict=True):
            if a.shape != b.shape:
                return math.inf
            one, other = a.astype(np.float64), b.astype(np.float64)
            same = (one == other) | (np.isnan(one) & np.isnan(other))
            error += float(np.sum(np.where(same, 0.0, one - other) ** 2))
            size += float(np.sum(np.where(np.isfinite(one), one, 0.0) ** 2))
    if math.isnan(error):
        return math.inf
    return error / size if size else (math.inf if error else 0.0)


def _share(error: float, errors: Sequence[float]) -> float:
    infinite = sum(map(math.isinf, errors))
    if infinite:
        return 1 / infinite if math.isinf(error) else 0.0
    total = sum(one * one for one in errors)
    return error * error / total if total else 0.0


def _dead_channels(samples: Sequence[np.ndarray]) -> np.ndarray:
    """Mask of the channels that are 0 in all samples: along axis 1 of images, else along the last axis."""
    if any(array.ndim < 2 or not array.size for array in samples):
        return np.zeros(0, bool)
    axis = 1 if samples[0].ndim > _SPATIAL else -1
    masks = [np.moveaxis(array, axis, -1).reshape(-1, array.shape[axis]).any(axis=0) for array in samples]
    return ~np.logical_or.reduce(masks)
