"""Inputs that shape inference accepts and OpenVINO refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from irexec.analysis.attributes import typed_attribute
from irexec.analysis.shape_inference import UNKNOWN, Inference
from irexec.ir import codes
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.ir.graph import ModelGraph, Node
from irexec.schema.registry import resolve


def refused_findings(model: ModelGraph, inference: Inference) -> Iterator[Finding]:
    """Layers that OpenVINO refuses when it reads or compiles the model."""
    for node in model.walk():
        if node.type in _CHECKS and node not in inference.failures:
            facts = [UNKNOWN if value is None else inference.facts.get(value, UNKNOWN) for value in node.inputs]
            reason = _CHECKS[node.type](node, facts)
            if reason is not None:
                yield node.finding(codes.WRONG_INPUTS, reason)


def _parts(node: Node, facts: list[Fact]) -> str | None:
    """OpenVINO gives the layer no outputs, which other layers then cannot read."""
    shape = facts[2].shape if len(facts) > 2 else None
    return (
        None
        if shape and isinstance(shape[0], int)
        else "the length of split_lengths, and so the number of outputs, is not known"
    )


def _signal(node: Node, facts: list[Fact]) -> str | None:
    """OpenVINO transforms signals of three types. Source: openvino ``fft_base.cpp``."""
    element = facts[0].element
    return (
        None
        if element is None or element.name in ("bf16", "f16", "f32")
        else f"data is {element}, expected bf16, f16 or f32"
    )


def _mapping(node: Node, facts: list[Fact]) -> str | None:
    """OpenVINO refuses an axes_mapping that Broadcast-3 would not read. Source: openvino ``broadcast.cpp``."""
    is_read = typed_attribute(node, "mode") == "explicit" or resolve(node.type, node.version).since == 1
    return None if is_read or len(facts) < 3 else "axes_mapping is given, though mode is not explicit"


_CHECKS: Mapping[str, Callable[[Node, list[Fact]], str | None]] = {
    "VariadicSplit": _parts,
    "Broadcast": _mapping,
    **dict.fromkeys(("DFT", "IDFT", "RDFT", "IRDFT"), _signal),
}
