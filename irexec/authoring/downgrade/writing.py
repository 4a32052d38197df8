"""The rewriting of a model for a release or device: every layer that it lacks is replaced, or named with the reason."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from irexec.analysis.attributes import typed_attributes
from irexec.analysis.collection import in_order
from irexec.analysis.constant_layers import gives_the_same
from irexec.analysis.model import Model
from irexec.analysis.portability.findings import Target, parse_target, refusals, value_findings
from irexec.analysis.portability.plugins import UNIQUE_NAMES
from irexec.analysis.portability.releases import IR_VERSIONS, OPSETS, Release
from irexec.analysis.shape_inference import UNKNOWN, Inference
from irexec.analysis.validate import infer_all
from irexec.authoring.downgrade.layer import FOLLOWING, REASONS, RESPELLINGS, REWRITES, Inexact, Layer, Rewrite
from irexec.authoring.editing import Editing
from irexec.authoring.optimizing import fold, is_folded
from irexec.authoring.tensor import Tensor, constant
from irexec.errors import ConversionError, OpError, UnsupportedError
from irexec.ir import codes
from irexec.ir.constants import constant_value
from irexec.ir.dims import is_static
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.ir.graph import Graph, Input, Node, Value
from irexec.ir.order import Names, needed
from irexec.ir.writable import refuse_damage
from irexec.records import Record
from irexec.schema.opdef import OpDef
from irexec.schema.registry import opset_number, resolve

_SIZES_COMPUTED = Release(2023, 0)
"""The first release that computes what follows from known sizes, as irexec does."""


@dataclass(frozen=True)
class Change(Record):
    """A layer that was replaced.

    Attributes:
        layer, line: its name and its line in the file.
        operation: the version of the operation, such as "Softmax-8".
        into: the operations in its place, in order; none where the layer is left out.
    """

    layer: str
    line: int | None
    operation: str
    into: tuple[str, ...]


@dataclass
class Downgraded:
    """A model for a release or device.

    Attributes:
        model: the model.
        release: the release, such as "2021.4", or the device.
        changes: the layers that were replaced.
        findings: the layers that the release cannot have, each with the reason; the model is written for the release
            only if there are none.
        remarks: the layers for which the CPU plugin of the release may give other values, as infos.
    """

    model: Model
    release: str
    changes: list[Change] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    remarks: list[Finding] = field(default_factory=list)

    def require(self) -> Downgraded:
        """The same object; raises ConversionError, which names every layer that the release cannot have."""
        if self.findings:
            reasons = "; ".join(f"{finding.at()}: {finding.message}" for finding in self.findings)
            raise ConversionError(
                f"the model cannot be written for {parse_target(self.release).name}: {reasons}", unsupported=True
            )
        return self


def downgrade(model: Model, release: str) -> Downgraded:
    """A copy of a model in the operations and the version of IR that a release of OpenVINO reads.

    Args:
        model: the model, which stays as it is.
        release: such as "2021.4", or a device: "CPU", "GPU" or "NPU".

    Raises:
        InputError: the release or device does not exist.
        ModelError: the model is damaged.
    """
    target = parse_target(release)
    refuse_damage(model)
    found = Downgraded(model.clone(), str(target))
    _Writing(found, target).run()
    return found


class _Writing:
    """The rewriting of all graphs of a model.

    Args:
        found: takes the changes and findings.
        target: the release or device.
    """

    def __init__(self, found: Downgraded, target: Target) -> None:
        self._found, self._target, self._release = found, target, target.release
        inference = _folded(found.model) if target.release < _SIZES_COMPUTED else infer_all(found.model)
        self._inference, self._facts, self._failures = inference, dict(inference.facts), dict(inference.failures)
        self._is_changed = False
        self._is_open = not all(is_static(port.shape) for port in found.model.inputs)
        # A device has a form of its own only for layers that it refuses.
        device = target.device
        self._refused = None if device is None else {node for node, _ in refusals(found.model, inference, device)}

    def run(self) -> None:
        model = self._found.model
        first = IR_VERSIONS.get(model.version)
        if first is not None and first > self._release:
            model.version = max(version for version, since in IR_VERSIONS.items() if since <= self._release)
        self._graph(model)
        found = self._found
        inference = infer_all(model) if self._is_changed else self._inference
        named = {(one.layer_id, one.layer_name) for one in found.findings}
        left = [one for one in self._target.findings(model, inference) if not _is_named(one, named)]
        found.findings += [finding for finding in left if finding.severity != "info"]
        found.findings.sort(key=lambda finding: finding.line or 0)
        found.remarks += [finding for finding in left if finding.severity == "info"]
        if self._target.device in (None, "CPU"):
            found.remarks += value_findings(model, inference, self._release)

    def _graph(self, graph: Graph) -> None:
        before = needed(graph)
        if self._release < UNIQUE_NAMES:
            # Rename layers whose name another one has, inputs and outputs apart.
            kept = [node for node in graph.nodes if node.type in ("Parameter", "Result")]
            names = Names(node.name for node in kept)
            for node in graph.nodes:
                if node not in kept:
                    node.name = names.free(node.name)
        new = _Replacing(graph)
        for node in list(graph.nodes):
            for body in node.bodies.values():
                self._graph(body.graph)
            if self._release < _SIZES_COMPUTED and graph is not self._found.model:
                self._set_known_inputs(new, node)
            try:
                self._layer(new, node)
            except Inexact as error:
                self._found.findings.append(node.finding(codes.NOT_WRITTEN_FOR_RELEASE, str(error)))
        self._is_changed |= bool(new.made)
        gone = before - needed(graph)
        nodes = (one for node in graph.nodes for one in (*new.made.get(node, ()), node))
        graph.nodes = [node for node in nodes if node not in gone or node.type == "Parameter"]

    def _layer(self, graph: _Replacing, node: Node) -> None:
        """Replace a layer by layers that the release has; Inexact if there are none."""
        lacking = self._lacking(node)
        if node in self._failures:
            if lacking is not None:
                raise Inexact(str(self._failures[node]))
            return
        if lacking is None and node.type not in RESPELLINGS:
            return
        definition = lacking or resolve(node.type, node.version)
        read = frozenset(value.index for value in node.outputs if graph.readers.get(value))
        values = self._respelled(node, definition, read)
        if values is None and lacking is not None:
            values = self._replacement(node, definition, read)
        if values is None:
            return
        made = in_order([values[index].node for index in sorted(read)], _is_of_a_graph)
        graph.adopt(node, made)
        for index in sorted(read):
            graph.take_over(node.outputs[index], values[index])
        if 0 in read and values[0].node in made:
            name, values[0].node.name = node.name, node.name
            node.name = f"{name}/replaced"
        into = tuple(f"{one.type}-{opset_number(one.version)}" for one in made if one.constant is None)
        name = values[0].node.name if 0 in read and values[0].node in made else node.name
        self._found.changes.append(Change(name, node.line, f"{node.type}-{definition.since}", into))

    def _set_known_inputs(self, graph: _Replacing, node: Node) -> None:
        """Put constants in the place of inputs that follow from shapes, as folding does outside of bodies."""
        if node.outputs and all(map(self._is_known, node.outputs)):
            return
        for value in dict.fromkeys(node.inputs):
            if value is not None and self._is_known(value) and gives_the_same(value.node):
                fact = self._facts[value]
                made = constant(fact.known, fact.element).value
                graph.adopt(node, [made.node])
                graph.take_over(value, made)

    def _is_known(self, value: Value) -> bool:
        """Whether a layer computes integers that are known."""
        fact = self._facts.get(value, UNKNOWN)
        is_computed = value.node.constant is None and value.node.type != "Parameter"
        return is_computed and fact.element is not None and fact.element.is_integer and fact.known is not None

    def _lacking(self, node: Node) -> OpDef | None:
        """The definition of a layer if the release lacks it; else the layer is written in an opset of the release."""
        try:
            definition = resolve(node.type, node.version)
        except UnsupportedError as error:
            raise Inexact(str(error)) from None
        if not isinstance(definition.since, int):
            raise Inexact(f"{node.type} of {node.version!r} is not an operation of OpenVINO")
        if not self._target.has(node.type, definition.since):
            return definition
        written = opset_number(node.version)
        if written != definition.since and (written not in OPSETS or OPSETS[written] > self._release):
            node.version = definition.version
        return None

    def _replacement(self, node: Node, definition: OpDef, read: frozenset[int]) -> list[Value]:
        """The values in place of the outputs of a layer, made of layers that the release has."""
        key = (node.type, int(definition.since))
        lacks = f"{self._target.name} does not have {key[0]}-{key[1]}"
        rewrite = REWRITES.get(key)
        if rewrite is None:
            raise Inexact(f"{lacks}: {REASONS.get(key, 'no older operations are known to compute the same')}")
        try:
            made = rewrite(self._examined(node, definition, read))
        except (Inexact, OpError) as error:
            raise Inexact(f"{lacks}: {error}") from None
        values = [tensor.value for tensor in (made if isinstance(made, tuple) else (made,))]
        return self._rewritten(values, read)

    def _respelled(
        self, node: Node, definition: OpDef, read: frozenset[int], but: Collection[Rewrite] = ()
    ) -> list[Value] | None:
        """The values of another form of the layer, which the release takes; None for a layer that stays.

        A layer in another form gets no third one, which could be the first, unless the function follows others.
        """
        for until, rewrite in RESPELLINGS.get(node.type, ()):
            if but and (rewrite in but or rewrite not in FOLLOWING):
                continue
            if self._release < until or (self._refused is not None and node in self._refused):
                try:
                    made = rewrite(self._examined(node, definition, read))
                except (Inexact, OpError):
                    # The release may take the layer as it is.
                    continue
                if made is not None:
                    values = [tensor.value for tensor in (made if isinstance(made, tuple) else (made,))]
                    return self._rewritten(values, read, (*but, rewrite))
        return None

    def _examined(self, node: Node, definition: OpDef, read: frozenset[int]) -> Layer:
        sources = [value for value in node.inputs if value is not None]
        attributes = definition.ungrouped(typed_attributes(node, definition).require())
        inputs, outputs = ([self._tensor(value) for value in values] for values in (sources, node.outputs))
        known = {attribute.parameter for attribute in definition.attributes}
        kept = {name: value for name, value in attributes.items() if name in known}
        return Layer(node, definition, inputs, outputs, kept, read, self._is_open)

    def _tensor(self, value: Value) -> Tensor:
        known = self._facts.get(value)
        if known is None and value.node.constant is not None:
            known = Fact.of(constant_value(value.node.constant), value.node.constant.element)
        return Tensor(value, known or value.fact or UNKNOWN)

    def _rewritten(self, values: list[Value], read: frozenset[int], but: Collection[Rewrite] = ()) -> list[Value]:
        """The same values, in which layers that the release lacks are replaced, and others have the form it takes."""
        wanted = [value for index, value in enumerate(values) if index in read]
        new = in_order([value.node for value in wanted], _is_of_a_graph)
        for node in new:
            sources = {value for other in new for value in other.inputs} | set(wanted)
            used = frozenset(value.index for value in node.outputs if value in sources)
            lacking = self._lacking(node)
            if lacking is not None:
                given: list[Value] | None = self._replacement(node, lacking, used)
            else:
                given = self._respelled(node, resolve(node.type, node.version), used, but) if used else None
            if given is None:
                continue
            instead = dict(zip(node.outputs, given, strict=False))
            for other in new:
                for port in other.ports:
                    port.source = instead.get(port.source, port.source) if port.source is not None else None
            values = [instead.get(value, value) for value in values]
            wanted = [instead.get(value, value) for value in wanted]
        return values


def _is_named(finding: Finding, named: Collection[tuple[int | None, str | None]]) -> bool:
    """Whether a finding says again that the target lacks the operation of a layer that was not replaced."""
    is_of_devices = finding.code == codes.NOT_RUN_BY_DEVICE
    return finding.code == codes.NOT_IN_RELEASE or (is_of_devices and (finding.layer_id, finding.layer_name) in named)


def _folded(model: Model) -> Inference:
    """Compute what the shapes decide: plugins without dynamic shapes do not, and those of 2022 not through Mod.

    Then compute the layers whose inputs have become constants: some crash when the release computes them.
    """
    editing = Editing(model)
    for _ in range(2):
        if not is_folded(editing):
            with editing.step("fold"):
                fold(editing)
    return editing.facts.inference


def _is_of_a_graph(node: Node) -> bool:
    return node.id >= 0


class _Replacing:
    """A graph of which layers are replaced.

    Attributes:
        readers: the inputs that read each value.
        made: the new layers, by the layer before which they stand.
    """

    def __init__(self, graph: Graph) -> None:
        self.readers: dict[Value, list[Input]] = {}
        self.made: dict[Node, Sequence[Node]] = {}
        self._names = Names(node.name for node in graph.nodes)
        self._number = 1 + max((node.id for node in graph.nodes), default=0)
        self._read(graph.nodes)

    def _read(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            for port in node.ports:
                if port.source is not None:
                    self.readers.setdefault(port.source, []).append(port)

    def adopt(self, node: Node, made: Sequence[Node]) -> None:
        """Put new layers before the layer that they replace; their names begin with its name."""
        for one in made:
            one.id, one.name = self._number, self._names.free(f"{node.name}/{one.name}")
            self._number += 1
        self.made[node] = [*self.made.get(node, ()), *made]
        self._read(made)

    def take_over(self, old: Value, new: Value) -> None:
        """The readers of one value read another, which gets its tensor names."""
        moved = self.readers.pop(old, [])
        for port in moved:
            port.source, port.fact = new, new.fact
        self.readers.setdefault(new, []).extend(moved)
        new.names = [*new.names, *(name for name in old.names if name not in new.names)]
        old.names = []
