"""The table of operations: how each is written as ONNX, or why it cannot be."""

from __future__ import annotations

from dataclasses import dataclass

from converters.ir_to_onnx.registry import translation_of
from irexec.records import Record, Records
from irexec.schema.opdef import OpDef
from irexec.schema.registry import definitions

WRITTEN_AROUND = {
    "Parameter": "an input of the graph", "Result": "an output of the graph", "Constant": "an initializer",
}  # fmt: skip
"""Operations that are no node in ONNX."""


@dataclass(frozen=True)
class OnnxLine(Record):
    """One version of an operation.

    Attributes:
        type, version: of the operation.
        onnx: exact (one node), composed (several), or not expressible.
        how: the operators, or the reason.
    """

    type: str
    version: str
    onnx: str
    how: str


def onnx_table() -> Records[OnnxLine]:
    """Every version of every operation."""
    return Records(_line(definition) for definition in definitions())


def _line(definition: OpDef) -> OnnxLine:
    type, version = definition.type, definition.version
    if type in WRITTEN_AROUND:
        return OnnxLine(type, version, "exact", WRITTEN_AROUND[type])
    translation = translation_of(definition)
    if translation is None:
        return OnnxLine(type, version, "not expressible", "there is no translation of it")
    return OnnxLine(type, version, translation.kind, translation.text)
