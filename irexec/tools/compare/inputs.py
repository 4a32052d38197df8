"""Inputs of both sides, run by run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from irexec.analysis.model import Port, find_port
from irexec.analysis.open_sizes import sizes_for
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError, OpError
from irexec.ir.dims import PartialShape, meet_shapes
from irexec.ir.find import values_by_name
from irexec.ir.graph import Value
from irexec.messages import listed
from irexec.runtime.inputs import bind_inputs
from irexec.tools.arrays.files import open_arrays
from irexec.tools.compare.layouts import as_declared
from irexec.tools.compare.options import CompareOptions, Side
from irexec.tools.compare.pairs import Pairs
from irexec.tools.compare.parts import inner_inputs
from irexec.tools.compare.sides import ModelSide, RecordedSide
from irexec.tools.engines.runtimes import Arrays
from irexec.tools.images.files import Notify
from irexec.tools.run.input_sources import STEP_SEED, InputSource, sample_inputs, sources_of_step
from irexec.tools.run.shapes import Shapes

Given = Mapping[str, np.ndarray]


def shapes_of_b(shapes: Shapes | None, a: ModelSide, b: ModelSide, pairs: Pairs) -> Shapes:
    """Shapes under the names of B's inputs, from shapes under the names of their partners in A."""
    names = {port.name: other.name for port, other in paired_inputs(a.model.inputs, b.model.inputs, pairs)}
    found: dict[str | None, PartialShape] = {}
    for name, shape in (shapes or {}).items():
        port = None if name is None else next((port for port in a.model.inputs if name in port.names), None)
        if port is None:
            found[name] = shape
        elif port.name in names:
            found[names[port.name]] = shape
    return found


def paired_inputs(a: Sequence[Port], b: Sequence[Port], pairs: Pairs) -> list[tuple[Port, Port]]:
    """Inputs that both models share: by pairs, by name, or by position if none is left over."""
    by_node = {port.node: port for port in a}
    found: dict[str, tuple[Port, Port]] = {}
    for port in b:
        value = pairs.by_b.get(port.node.outputs[0])
        if value is not None and value.node in by_node:
            found[port.name] = (by_node.pop(value.node), port)
    for port in b:
        same = next((other for other in by_node.values() if set(other.names) & set(port.names)), None)
        if port.name not in found and same is not None:
            found[port.name] = (by_node.pop(same.node), port)
    left = [port for port in b if port.name not in found]
    if len(left) == len(by_node):
        found |= {port.name: (other, port) for port, other in zip(left, by_node.values(), strict=True)}
    return [found[port.name] for port in b if port.name in found]


class Inputs:
    """The inputs of all runs.

    Attributes:
        models: the models of both sides.
        a, b: arrays of each run, by the names of the inputs of this model.
    """

    def __init__(self, a: ModelSide | None, b: ModelSide, pairs: Pairs) -> None:
        self.models = [b.model] if a is None else [a.model, b.model]
        self._a_ports, self._b_ports = a.model.inputs if a else [], b.model.inputs
        self._paired = paired_inputs(self._a_ports, self._b_ports, pairs)
        self.a: list[Arrays] = []
        self.b: list[Arrays] = []

    def ports(self) -> list[Port]:
        """Inputs that need arrays: each input of A with the shape that its partner accepts too, then the inputs of B
        alone.

        Raises:
            InputError: partners have no common shape.
        """
        partner = {port.name: other for port, other in self._paired}
        common = {other.name for _, other in self._paired}
        merged = [_merged(port, partner.get(port.name)) for port in self._a_ports]
        return [*merged, *(port for port in self._b_ports if port.name not in common)]

    def require_partners(self, named: Collection[str]) -> None:
        """Refuse random values for an input of one side alone, unless the user names it.

        Raises:
            InputError: there is such an input.
        """
        paired = {port.node for both in self._paired for port in both}
        for side, other, ports in (("A", "B", self._a_ports), ("B", "A", self._b_ports)):
            lone = [port for port in ports if port.node not in paired and not set(port.names) & set(named)]
            if lone:
                names = ", ".join(repr(port.name) for port in lone)
                raise InputError(
                    f"{side} has inputs that are neither inputs nor tensors of {other} ({names}), "
                    "and random values would not be the same: "
                    f"-i {lone[0].name}=SOURCE gives one of them values, -i random gives all of them random ones"
                )

    def add(self, arrays: Given) -> None:
        """Add the inputs of one run, by the names of ``ports``."""
        own = {port.name: arrays[port.name] for port in self._a_ports if port.name in arrays}
        names = {other.name: port.name for port, other in self._paired}
        of_b = {
            port.name: arrays[names.get(port.name, port.name)]
            for port in self._b_ports
            if names.get(port.name, port.name) in arrays
        }
        self.a.append(_bound(self._a_ports, own, "A") if self._a_ports else {})
        self.b.append(_bound(self._b_ports, of_b, "B"))

    def others(self, seed: int) -> list[Given]:
        """Random arrays with the shapes of each run, by the names of ``ports``."""
        found: list[Given] = []
        for run, (of_a, of_b) in enumerate(zip(self.a, self.b, strict=True)):
            known = {**of_b, **of_a}
            ports = [replace(port, shape=known[port.name].shape) for port in self.ports()]
            found.append(sample_inputs([InputSource(None, "random")], ports, seed + STEP_SEED * run, lambda text: None))
        return found


def _bound(ports: Sequence[Port], arrays: Given, side: str) -> dict[str, np.ndarray]:
    try:
        bound = bind_inputs(ports, dict(arrays), allow_cast=True)
    except InputError as error:
        raise InputError(f"{side}: {error}") from None
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


def random_or_given(
    inputs: Inputs,
    sources: Sequence[InputSource],
    options: CompareOptions,
    count: int,
    notify: Notify,
    given: Sequence[Given],
) -> None:
    """Add the inputs of ``count`` runs; random ones differ from run to run.

    Args:
        inputs: the inputs to add to.
        sources: sources of arrays.
        options: options with the seed.
        count: number of runs.
        notify: receives unexpected facts.
        given: arrays by the names of inputs, for each run, or one mapping for all runs.
    """
    ports = inputs.ports()
    for run in range(count):
        known = {
            find_port(ports, name).name: np.asarray(array) for name, array in given[min(run, len(given) - 1)].items()
        }
        sizes = sizes_for(*inputs.models, known={name: array.shape for name, array in known.items()})
        quiet = notify if run == 0 else lambda text: None
        left = [port for port in ports if port.name not in known]
        own = sources if options.runs is None else sources_of_step(sources, run + 1, count)
        # Every run of random inputs has a seed of its own.
        arrays = (
            sample_inputs(own, left, options.seed + STEP_SEED * run, quiet, MemoryLimit(options.max_memory), sizes)
            if left
            else {}
        )
        inputs.add({**known, **arrays})


def recorded_inputs(a: RecordedSide, b: ModelSide) -> dict[str, np.ndarray]:
    """Recorded tensors with the names of B's inputs."""
    found = {}
    for port in b.model.inputs:
        name = next((name for name in port.names if name in a.names), None)
        if name is not None:
            found[port.name] = as_declared(a.read(name), port.shape)
    return found


def named_inputs(given: Sequence[Given], sources: Sequence[InputSource]) -> set[str]:
    """Names of the inputs with values from the user, one by one."""
    names = {name for arrays in given for name in arrays} | {
        source.name for source in sources if source.name is not None
    }
    for source in sources:
        if source.name is None and source.path is not None and source.path.endswith(".npz"):
            with open_arrays(source.path, ".npz", MemoryLimit()) as file:
                names.update(file.names)
    return names


def whole_side(a: ModelSide, b: ModelSide, named: Collection[str], notify: Notify) -> Side | None:
    """The side that has the other one as a part: an input of the part has the name of an inner tensor of the whole.

    Args:
        a, b: both sides.
        named: inputs with values from the user.
        notify: receives the finding.
    """
    sides: tuple[tuple[Side, ModelSide, Side, ModelSide], ...] = (("A", a, "B", b), ("B", b, "A", a))
    for side, whole, other, part in sides:
        inner = [repr(port.name) for port in inner_inputs(whole.model, part.model) if not set(port.names) & set(named)]
        if inner:
            notify(f"{other} is a part of {side}: its inputs ({listed(inner, 5)}) are the tensors of {side}")
            return side
    return None


def same_tensors(whole: ModelSide, part: ModelSide, pairs: Pairs) -> dict[str, Value]:
    """The tensor of the whole model for each input of a part: the tensor of the same name, or the paired input.

    Raises:
        InputError: an input has no such tensor.
    """
    named = values_by_name(whole.model)
    partners = {one: other for both in pairs.by_b.items() for one, other in (both, both[::-1])}
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
