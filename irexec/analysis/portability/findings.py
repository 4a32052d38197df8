"""Findings about a model elsewhere: differences between implementations, and what a release or a device does not take.

Sources: the GPU plugin's list of operations (openvino ``intel_gpu/plugin/primitives_list.hpp``) with the conversions
before it (``transformations_pipeline.cpp``), compared with the names in the plugin of 2026.4; the importer of the NPU
compiler (npu_compiler ``frontend/IE.cpp``: the map of operations, ``importPrecision``, ``importShape`` and the passes
before it), which has no operation of opset17 yet; the CPU plugin itself (irexec.analysis.portability.failures).
Layers that are computed from constants never come to a device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from irexec.analysis.portability import DIFFERENCES, Difference
from irexec.analysis.portability.layer import ExaminedLayer, KnownLayer
from irexec.analysis.portability.old_values import other_values
from irexec.analysis.portability.plugins import DYNAMIC_SHAPES, is_constant, plugin_findings
from irexec.analysis.portability.releases import (
    ELEMENTS,
    IR_VERSIONS,
    NEWEST,
    OPSETS,
    Release,
    first_release,
    parse_release,
)
from irexec.analysis.shape_inference import Inference
from irexec.errors import UnsupportedError
from irexec.ir import codes
from irexec.ir.dims import high
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding, at_the_first, in_model
from irexec.ir.graph import ModelGraph, Node, Value
from irexec.ir.order import grouped, readers, topological
from irexec.schema.registry import OTHER_VERSIONS, opset_number, resolve


def portability_findings(model: ModelGraph, inference: Inference, release: Release | None = None) -> Iterator[Finding]:
    """A finding for each layer on which OpenVINO's implementations differ; only those of one release, if it is given.

    What any layer may have, such as an element type, is reported once, at the first of them.
    """
    rows = [row for row in DIFFERENCES.values() if release is None or _is_in(row, release)]
    repeated: dict[str, list[Finding]] = {}
    for node, row in differences(model, inference, rows):
        finding = node.finding(row.code, row.does)
        if row.types:
            yield finding
        else:
            repeated.setdefault(row.code, []).append(finding)
    yield from map(at_the_first, repeated.values())


def value_findings(model: ModelGraph, inference: Inference, release: Release) -> Iterator[Finding]:
    """A finding for each layer to which an implementation of a release may give other values or another shape."""
    rows = {code for code, row in DIFFERENCES.items() if row.effect != "fails"}
    return (one for one in portability_findings(model, inference, release) if one.code in rows)


def differences(
    model: ModelGraph, inference: Inference, rows: Sequence[Difference]
) -> Iterator[tuple[Node, Difference]]:
    """Layers with a known difference, layers of bodies included, each with its difference.

    Layers on or after a cycle are left out: they do not run, and conditions follow chains of layers to their end.
    """
    reading, own = readers(model.walk()), set(model.nodes)
    graphs = (model, *(body.graph for node in model.walk() for body in node.bodies.values()))
    stuck = {node for graph in graphs for node in topological(graph)[1]}
    for node in model.walk():
        for row in rows:
            if node in stuck or (row.types and node.type not in row.types):
                continue
            layer = _layer(node, inference, reading, node in own)
            if layer is not None and row.condition(layer):
                yield node, row


def _layer(
    node: Node, inference: Inference, readers: Mapping[Value, Sequence[Node]], is_of_the_model: bool
) -> ExaminedLayer | None:
    if node in inference.failures:
        return None
    try:
        return ExaminedLayer(node, inference.facts, readers, resolve(node.type, node.version), is_of_the_model)
    except UnsupportedError:
        return None


def _is_in(row: Difference, release: Release) -> bool:
    """Whether a release is known to have a difference, or not known not to have it."""
    begun = row.since is None or release >= parse_release(row.since)
    return begun and (row.until is None or release < parse_release(row.until))


def release_findings(model: ModelGraph, inference: Inference, release: Release) -> Iterator[Finding]:
    """Findings about parts that the release does not read: the version of IR, opsets, operations and types.

    What several layers have in common is reported once, at the first of them.
    """
    first_with = IR_VERSIONS.get(model.version)
    if first_with is None or first_with > release:
        since = "" if first_with is None else f"; {first_with} is the first that does"
        text = f"OpenVINO {release} does not read version {model.version} of IR{since}"
        yield in_model(codes.VERSION_NOT_IN_RELEASE, text)
    repeated: dict[str, list[Finding]] = {}
    own, reading = set(model.nodes), readers(model.walk())
    for node in model.walk():
        # Releases before 2022.1 leave out inputs that no layer reads.
        layer = KnownLayer(node, inference.facts, reading)
        is_left_out = release < DYNAMIC_SHAPES and node.type == "Parameter" and not layer.is_used(0)
        for finding in (
            *_operation(node, release),
            *_elements(node, inference, release),
            *(() if is_left_out and node in own else plugin_findings(layer, release)),
            *other_values(layer, release),
        ):
            repeated.setdefault(finding.message, []).append(finding)
    yield from map(at_the_first, repeated.values())


def _operation(node: Node, release: Release) -> Iterator[Finding]:
    written = opset_number(OTHER_VERSIONS.get((node.type, node.version), node.version))
    try:
        definition = resolve(node.type, node.version)
    except UnsupportedError:
        return
    since = definition.since
    if not isinstance(since, int) or written is None:
        yield node.finding(codes.NOT_IN_RELEASE, f"{node.type} of {node.version!r} is not an operation of OpenVINO")
        return
    begun = first_release(node.type, since)
    if begun is None or begun > release:
        first = "no release is known to have it" if begun is None else f"{begun} is the first that does"
        text = f"OpenVINO {release} does not have {node.type} of opset{since}; {first}"
        yield node.finding(codes.NOT_IN_RELEASE, text)
    elif written != since and (written not in OPSETS or OPSETS[written] > release):
        text = f"OpenVINO {release} does not have opset{written}, with which the layer is written; "
        yield node.finding(codes.OPSET_NOT_IN_RELEASE, f"{text}opset{since} means the same")


def _elements(node: Node, inference: Inference, release: Release) -> Iterator[Finding]:
    for value in node.outputs:
        fact = inference.facts.get(value)
        name = "" if fact is None or fact.element is None else fact.element.name
        if name in ELEMENTS and ELEMENTS[name] > release:
            text = f"OpenVINO {release} does not have the element type {name}; {ELEMENTS[name]} is the first that does"
            yield node.finding(codes.ELEMENT_NOT_IN_RELEASE, text)


DEVICES = ("CPU", "GPU", "NPU")


def _operations(text: str) -> frozenset[tuple[str, int]]:
    """Versions of operations from words such as "Softmax-8"."""
    pairs = (word.rsplit("-", 1) for word in text.split())
    return frozenset((type, int(since)) for type, since in pairs)


NOT_TAKEN: dict[str, frozenset[tuple[str, int]]] = {
    "CPU": frozenset(),
    "GPU": _operations("BGRtoNV12-17 BitwiseNot-13 Inverse-14 RGBtoNV12-17 StringTensorPack-15 StringTensorUnpack-15"),
    "NPU": _operations(
        """
        BinaryConvolution-1 BitwiseLeftShift-15 BitwiseRightShift-15 CTCLoss-4 Col2Im-15 EmbeddingBagOffsets-15
        EmbeddingBagPacked-15 ExperimentalDetectronDetectionOutput-6
        ExperimentalDetectronGenerateProposalsSingleImage-6 ExperimentalDetectronPriorGridGenerator-6
        ExperimentalDetectronTopKROIs-6 GatherND-5 GenerateProposals-9 ISTFT-16 IsFinite-10 IsInf-10 IsNaN-10
        MatrixNms-8 MulticlassNms-8 MulticlassNms-9 Multinomial-13 NMSRotated-13 OneHot-16 Proposal-1 RNNCell-1
        RNNSequence-5 ROIAlign-3 ROIAlignRotated-15 ScatterNDUpdate-15 SearchSorted-15 SegmentMax-16 SliceScatter-15
        SoftSign-9 SparseFillEmptyRows-16 StringTensorPack-15 StringTensorUnpack-15 Unique-10
        """
    ),
}
"""Versions of operations that a device neither has nor converts to others, by type and opset."""

_ELEMENTS_NOT_TAKEN = {"GPU": {"string"}, "NPU": {"string", "u1", "u3", "u6", "f4e2m1", "f8e8m0"}}

_OF_SOME_VALUES = {"IR965"}
"""Failures that depend on values of inputs."""


def device_findings(model: ModelGraph, inference: Inference, device: str) -> Iterator[Finding]:
    """A finding for each layer that a device refuses; what several layers have in common is reported at the first."""
    refused = refusals(model, inference, device)
    repeated = grouped((reason, node.finding(codes.NOT_RUN_BY_DEVICE, reason)) for node, reason in refused)
    yield from map(at_the_first, repeated.values())


def refusals(model: ModelGraph, inference: Inference, device: str) -> Iterator[tuple[Node, str]]:
    """Layers that a device refuses, layers of bodies included, each with a reason."""
    for node in model.walk():
        if node.constant is None:
            for reason in dict.fromkeys(_reasons(node, inference, device)):
                yield node, f"the {device} {reason}"
    # The reader refuses them for every device.
    rows = [
        row
        for code, row in DIFFERENCES.items()
        if row.effect == "fails"
        and code not in _OF_SOME_VALUES
        and (row.who != "CPU plugin" or device == "CPU")
        and (row.until is None or parse_release(row.until) > NEWEST)
    ]
    for node, row in differences(model, inference, rows):
        yield node, f"{row.does} ({row.code})"


def _reasons(node: Node, inference: Inference, device: str) -> Iterator[str]:
    values = [value for value in node.outputs if not is_constant(value)]
    if node.outputs and not values:
        return
    try:
        since = resolve(node.type, node.version).since
    except UnsupportedError:
        return
    if (node.type, since) in NOT_TAKEN[device]:
        yield f"does not have {node.type}-{since}"
    facts = [inference.facts[value] for value in values if value in inference.facts]
    elements = {fact.element.name for fact in facts if fact.element is not None}
    for name in sorted(elements & _ELEMENTS_NOT_TAKEN.get(device, set())):
        yield f"does not compute in {name}"
    yield from _shapes(node, facts, device)


def _shapes(node: Node, facts: Iterable[Fact], device: str) -> Iterator[str]:
    for fact in facts:
        if fact.shape is None and (device == "NPU" or (device == "GPU" and node.type == "Softmax")):
            yield f"does not take {'tensors' if device == 'NPU' else 'a Softmax'} of unknown rank"
        elif device == "NPU" and node.type == "Parameter" and any(high(size) is None for size in fact.shape or ()):
            yield "does not take sizes without an upper bound"


@dataclass(frozen=True)
class Target:
    """A release, on whose CPU a model is to run, or a device of the newest release.

    Attributes:
        release: the release.
        device: CPU, GPU or NPU; None where a release was named.
    """

    release: Release
    device: str | None = None

    def __str__(self) -> str:
        return self.device or str(self.release)

    @property
    def name(self) -> str:
        """The subject of a sentence, such as "OpenVINO 2021.4" or "the GPU"."""
        return f"the {self.device}" if self.device else f"OpenVINO {self.release}"

    def has(self, type: str, since: int) -> bool:
        """Whether it has a version of an operation, by the opset of the version."""
        first = first_release(type, since)
        refused = NOT_TAKEN.get(self.device or "", frozenset())
        return first is not None and first <= self.release and (type, since) not in refused

    def findings(self, model: ModelGraph, inference: Inference) -> Iterator[Finding]:
        """Findings about the layers that do not run there."""
        if self.device is not None:
            return device_findings(model, inference, self.device)
        return release_findings(model, inference, self.release)


def parse_target(text: str) -> Target:
    """A target from "2023.3", "2023.3.0" or a device in any letter case; raises InputError for anything else."""
    if text.upper() in DEVICES:
        return Target(NEWEST, text.upper())
    return Target(parse_release(text))
