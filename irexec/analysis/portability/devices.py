"""Models that a device of the newest release does not take, as far as OpenVINO's published sources say.

Sources: the GPU plugin's list of operations (openvino ``intel_gpu/plugin/primitives_list.hpp``) with the conversions
before it (``transformations_pipeline.cpp``), compared with the names in the plugin of 2026.4; the importer of the NPU
compiler (npu_compiler ``frontend/IE.cpp``: the map of operations, ``importPrecision``, ``importShape`` and the passes
before it), which has no operation of opset17 yet; the CPU plugin itself (irexec.analysis.portability.failures).
Layers that are computed from constants never come to a device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irexec.analysis.portability import DIFFERENCES
from irexec.analysis.portability.findings import at_the_first, differences
from irexec.analysis.portability.plugins import is_constant
from irexec.analysis.portability.releases import NEWEST, parse_release
from irexec.analysis.shape_inference import Inference
from irexec.errors import UnsupportedError
from irexec.ir import codes
from irexec.ir.dims import high
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.ir.graph import ModelGraph, Node
from irexec.schema.registry import resolve

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
    repeated: dict[str, list[Finding]] = {}
    for node, reason in refusals(model, inference, device):
        repeated.setdefault(reason, []).append(node.finding(codes.NOT_RUN_BY_DEVICE, reason))
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
