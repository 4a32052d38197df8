"""Inputs of both sides, run by run: given arrays, random arrays, or tensors of the whole model for a part of it."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from irexec.analysis.model import Model, Port, find_port
from irexec.analysis.open_sizes import sizes_for
from irexec.analysis.shape_inference import infer_shapes
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError, OpError
from irexec.ir.dims import PartialShape, contradict, meet_shapes
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.ir.order import values_by_name
from irexec.messages import listed, silent
from irexec.runtime.inputs import bind_inputs
from irexec.tools.arrays.files import open_arrays
from irexec.tools.compare.options import CompareOptions, Side
from irexec.tools.compare.scopes import input_names
from irexec.tools.engines.runtimes import Arrays, Runtime
from irexec.tools.images import Notify
from irexec.tools.observing.observe import observe
from irexec.tools.observing.sides import AnySide, ModelSide, RecordedSide, as_declared
from irexec.tools.run.input_sources import STEP_SEED, GivenInputs, InputSource, sample_inputs, sources_of_step
from irexec.tools.run.shapes import Shapes

Given = Mapping[str, np.ndarray]
Partners = Mapping[Value, Value]
"""Values of A by values of B."""
_BOUNDARY = ("Parameter", "Constant", "Result")


@dataclass(frozen=True)
class Inputs:
    """The inputs of all runs.

    Attributes:
        a, b: arrays of each run, by the names of the inputs of this side; A's are empty for recorded tensors.
        partners: tensors of the whole model that are inputs of a part, as pairs.
        whole: the side that has the other one as a part; None without such a side.
    """

    a: Sequence[Arrays]
    b: Sequence[Arrays]
    partners: Partners
    whole: Side | None = None


@dataclass(frozen=True)
class Ports:
    """The inputs of both models.

    Attributes:
        a, b: the sides; no A for recorded tensors, or for one model alone.
        partners: the pairs of values.
    """

    a: ModelSide | None
    b: ModelSide
    partners: Partners

    @functools.cached_property
    def paired(self) -> list[tuple[Port, Port]]:
        """Inputs that both models share: by pairs, by name, or by position if none is left over."""
        left = {port.node: port for port in self._of_a}
        found: dict[str, Port] = {}
        for port in self.b.model.inputs:
            value = self.partners.get(port.node.outputs[0])
            if value is not None and value.node in left:
                found[port.name] = left.pop(value.node)
        for port in self.b.model.inputs:
            same = next((other for other in left.values() if set(other.names) & set(port.names)), None)
            if port.name not in found and same is not None:
                found[port.name] = left.pop(same.node)
        alone = [port.name for port in self.b.model.inputs if port.name not in found]
        if len(alone) == len(left):
            found |= zip(alone, left.values(), strict=True)
        return [(found[port.name], port) for port in self.b.model.inputs if port.name in found]

    @property
    def _of_a(self) -> list[Port]:
        return self.a.model.inputs if self.a else []

    def all(self) -> list[Port]:
        """Inputs that need arrays: each input of A with the shape that its partner accepts too, then the inputs of B
        alone.

        Raises:
            InputError: partners have no common shape.
        """
        partner = {port.name: other for port, other in self.paired}
        common = {other.name for _, other in self.paired}
        merged = [_merged(port, partner.get(port.name)) for port in self._of_a]
        return [*merged, *(port for port in self.b.model.inputs if port.name not in common)]

    def shapes_of_b(self, shapes: Shapes) -> Shapes:
        """Shapes under the names of B's inputs, from shapes under the names of their partners in A."""
        names = {port.name: other.name for port, other in self.paired}
        found: dict[str | None, PartialShape] = {}
        for name, shape in shapes.items():
            port = None if name is None else next((port for port in self._of_a if name in port.names), None)
            if port is None:
                found[name] = shape
            elif port.name in names:
                found[names[port.name]] = shape
        return found

    def require_partners(self, named: Collection[str]) -> None:
        """Refuse random values for an input of one side alone, unless the user names it.

        Raises:
            InputError: there is such an input.
        """
        paired = {port.node for both in self.paired for port in both}
        for side, other, ports in (("A", "B", self._of_a), ("B", "A", self.b.model.inputs)):
            lone = [port for port in ports if port.node not in paired and not set(port.names) & set(named)]
            if lone:
                names = ", ".join(repr(port.name) for port in lone)
                raise InputError(
                    f"{side} has inputs that are neither inputs nor tensors of {other} ({names}), "
                    "and random values would not be the same: "
                    f"-i {lone[0].name}=SOURCE gives one of them values, -i random gives all of them random ones"
                )

    def bound(self, arrays: Given) -> tuple[Arrays, Arrays]:
        """The inputs of A and of B in one run, from arrays by the names of ``all``."""
        own = {port.name: arrays[port.name] for port in self._of_a if port.name in arrays}
        names = {other.name: port.name for port, other in self.paired}
        of_b = {
            port.name: arrays[names.get(port.name, port.name)]
            for port in self.b.model.inputs
            if names.get(port.name, port.name) in arrays
        }
        of_a = _bound(self._of_a, own, "A: ") if self._of_a else {}
        return of_a, _bound(self.b.model.inputs, of_b, "B: " if self._of_a else "")

    def filled(
        self,
        given: Sequence[Given],
        sources: Sequence[InputSource],
        options: CompareOptions,
        count: int,
        notify: Notify,
    ) -> Inputs:
        """The inputs of ``count`` runs; random ones differ from run to run.

        Args:
            given: arrays by the names of inputs, for each run, or one mapping for all runs.
            sources: sources of other arrays.
            options: options with the seed.
            count: number of runs.
            notify: receives unexpected facts.
        """
        ports, runs, models = self.all(), [], [side.model for side in (self.a, self.b) if side is not None]
        for run in range(count):
            named = given[min(run, len(given) - 1)].items()
            known = {find_port(ports, name).name: np.asarray(array) for name, array in named}
            sizes = sizes_for(*models, known={name: array.shape for name, array in known.items()})
            quiet = notify if run == 0 else silent
            left = [port for port in ports if port.name not in known]
            own = sources if options.runs is None else sources_of_step(sources, run + 1, count)
            # Every run of random inputs has a seed of its own.
            seed, memory = options.seed + STEP_SEED * run, MemoryLimit(options.max_memory)
            arrays = sample_inputs(own, left, seed, quiet, memory, sizes) if left else {}
            runs.append(self.bound({**known, **arrays}))
        return Inputs([of_a for of_a, _ in runs], [of_b for _, of_b in runs], {})

    def others(self, inputs: Inputs, seed: int) -> list[Given]:
        """Random arrays with the shapes of each run, by the names of ``all``."""
        found: list[Given] = []
        for run, (of_a, of_b) in enumerate(zip(inputs.a, inputs.b, strict=True)):
            known = {**of_b, **of_a}
            ports = [replace(port, shape=known[port.name].shape) for port in self.all()]
            found.append(sample_inputs([InputSource(None, "random")], ports, seed + STEP_SEED * run, silent))
        return found


def _bound(ports: Sequence[Port], arrays: Given, side: str) -> dict[str, np.ndarray]:
    try:
        bound = bind_inputs(ports, dict(arrays), allow_cast=True)
    except InputError as error:
        raise InputError(f"{side}{error}") from None
    return {port.name: array for port, array in zip(ports, bound, strict=True)}


def _merged(port: Port, other: Port | None) -> Port:
    if other is None:
        return port
    try:
        shape = meet_shapes(port.shape, other.shape)
    except OpError:
        raise InputError(
            f"input {port} of A is input {other} of B, and no shape fits both: --shape gives them one"
        ) from None
    names = (*port.names, *(name for name in other.names if name not in port.names))
    return replace(port, shape=shape, names=names)


def inputs_of_runs(
    a: AnySide,
    b: ModelSide,
    partners: Partners,
    runtimes: tuple[Runtime | None, Runtime],
    given: GivenInputs,
    options: CompareOptions,
    count: int,
    notify: Notify,
) -> Inputs:
    """The inputs of both sides.

    Args:
        a, b: the sides.
        partners: the pairs of values so far.
        runtimes: of A and of B; None for recorded tensors.
        given: the given arrays of each run, and the sources of others.
        options, notify: as for ``compare``.
        count: number of runs.

    Raises:
        InputError: an input is missing, or a given array does not fit.
    """
    arrays, sources = list(given.arrays) or [{}], given.sources
    if isinstance(a, RecordedSide):
        known = {**recorded_inputs(a, b.model), **arrays[0]}
        missing = [str(port) for port in b.model.inputs if port.name not in known]
        if missing and not sources:
            raise InputError(
                f"{a.label} does not hold the inputs of its tensors ({', '.join(missing)}): give them with -i"
            )
        return Ports(None, b, partners).filled([known], sources, options, 1, notify)
    named = _named(arrays, sources if options.runs is None else sources_of_step(sources, 1, count))
    whole = options.inputs_of or (None if a.model is b.model else _whole(a, b, named, notify))
    if whole is None:
        ports = Ports(a, b, partners)
        if not sources:
            ports.require_partners(named)
        return ports.filled(arrays, sources, options, count, notify)
    outer, part, runtime = (a, b, runtimes[0]) if whole == "A" else (b, a, runtimes[1])
    assert runtime is not None
    tensors = _same_tensors(outer, part, partners)
    of_whole = Ports(None, outer, partners).filled(arrays, sources, options, count, notify).b
    found = observe(runtime, of_whole, tensors.values())
    for value in tensors.values():
        if value in found.failures:
            raise InputError(
                f"{value.name!r}, which is an input of {part.label}, cannot be had: {found.failures[value]}"
            )
    of_part = [{name: found.arrays[value][run] for name, value in tensors.items()} for run in range(count)]
    both = {port.node.outputs[0]: tensors[port.name] for port in part.model.inputs}
    if whole == "A":
        return Inputs(of_whole, of_part, both, whole)
    return Inputs(of_part, of_whole, {value: own for own, value in both.items()}, whole)


def facts_of(model: Model, runs: Sequence[Arrays]) -> Mapping[Value, Fact]:
    """Facts of every value for the inputs of the first run."""
    given = {}
    for port in model.inputs:
        value = port.node.outputs[0]
        if runs and port.name in runs[0] and port.element is not None:
            element = value.fact.element if value.fact is not None else None
            given[port.node] = Fact(element or port.element, runs[0][port.name].shape)
    return infer_shapes(model, given, tolerant=True).facts


def recorded_inputs(a: RecordedSide, model: Model) -> dict[str, np.ndarray]:
    """Recorded tensors with the names of the inputs of a model, or given to a recorded module in their place."""
    found = {}
    of_module = input_names(a.names)
    keys = dict(of_module)
    for index, port in enumerate(model.inputs):
        name = next((name for name in port.names if name in a.names), None)
        if name is None and of_module:
            name = next((keys[name] for name in port.names if name in keys), None)
            if name is None and len(of_module) == len(model.inputs):
                name = of_module[index][1]
        if name is not None:
            found[port.name] = as_declared(a.read(name), port.shape)
    return found


def _named(given: Sequence[Given], sources: Sequence[InputSource]) -> set[str]:
    """Names of the inputs with values from the user, one by one."""
    names = {name for arrays in given for name in arrays} | {
        source.name for source in sources if source.name is not None
    }
    for source in sources:
        if source.name is None and source.path is not None and source.path.endswith(".npz"):
            with open_arrays(source.path, ".npz", MemoryLimit()) as file:
                names.update(file.names)
    return names


def _whole(a: ModelSide, b: ModelSide, named: Collection[str], notify: Notify) -> Side | None:
    """The side that has the other one as a part: an input of the part has the name of an inner tensor of the whole, and
    is not among those with values from the user, ``named``."""
    sides: tuple[tuple[Side, ModelSide, Side, ModelSide], ...] = (("A", a, "B", b), ("B", b, "A", a))
    for side, whole, other, part in sides:
        inner = [repr(port.name) for port in inner_inputs(whole.model, part.model) if not set(port.names) & set(named)]
        if inner:
            notify(f"{other} is a part of {side}: its inputs ({listed(inner, 5)}) are the tensors of {side}")
            return side
    return None


def _same_tensors(whole: ModelSide, part: ModelSide, pairs: Partners) -> dict[str, Value]:
    """The tensor of the whole model for each input of a part: the tensor of the same name, or the paired input.

    Raises:
        InputError: an input has no such tensor.
    """
    named = values_by_name(whole.model)
    partners = {one: other for both in pairs.items() for one, other in (both, both[::-1])}
    inputs = {port.node for port in whole.model.inputs}
    found: dict[str, Value] = {}
    for port in part.model.inputs:
        name = next((name for name in port.names if name in named), None)
        partner = partners.get(port.node.outputs[0])
        if name is not None:
            found[port.name] = named[name]
        elif partner is not None and partner.node in inputs:
            found[port.name] = partner
        else:
            raise InputError(f"{whole.label} has no tensor with the name of input {port} of {part.label}")
    return found


def inner_inputs(whole: Model, part: Model) -> list[Port]:
    """Inputs of a part that the whole model computes, with a fitting name, type and shape; none unless it is a part.

    Names of tensors alone are little evidence: exporters call many tensors "x". At least half of the layers of a part
    have names and types of layers of the whole model, and the layers that compute its inputs are not in the part.
    """
    named = values_by_name(whole)
    common = {name for port in whole.inputs for name in port.names}
    inner = {port.node: _inner(port, named) for port in part.inputs if not common & set(port.names)}
    found = {node: value for node, value in inner.items() if value is not None}
    if not found:
        return []
    layers = [node for node in part.nodes if node.type not in _BOUNDARY]
    kept = {
        named[name].node
        for node in layers
        for name in _names(node)
        if name in named and named[name].node.type == node.type
    }
    shared = sum(any(name in named and named[name].node in kept for name in _names(node)) for node in layers)
    if 2 * shared < len(layers) or any(value.node in kept for value in found.values()):
        return []
    return [port for port in part.inputs if port.node in found]


def _names(node: Node) -> list[str]:
    return [node.name, *(name for value in node.outputs for name in value.names)]


def _inner(port: Port, named: dict[str, Value]) -> Value | None:
    """The inner tensor of a model that an input may be."""
    for value in (named[name] for name in port.names if name in named):
        fact = value.fact
        if value.node.type not in _BOUNDARY and (
            fact is None or (fact.element in (None, port.element) and not contradict(fact.shape, port.shape))
        ):
            return value
    return None
