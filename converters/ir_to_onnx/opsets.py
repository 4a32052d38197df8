"""The opsets that models are written for, and what the schemas of ONNX's operators say of element types."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import onnx
from onnx.defs import OpSchema

from converters.ir_to_onnx.tensors import type_name
from irexec.dtypes.elements import BOOLEAN, ELEMENTS, F32, I32, I64, U8, U32, U64, Element
from irexec.errors import InputError, OpError

OLDEST_OPSET = 13
NEWEST_OPSET = 25
"""The newest opset of ONNX Runtime, which has its operators except those in ``_OLDER``."""
_OLDER = {"RoiAlign": 21, "Swish": 23}
"""Operators that ONNX Runtime lacks in newer opsets, each with the opset in which a layer is written for it."""

_BY_NAME = {type_name(row): row for row in ELEMENTS if row.onnx is not None}


def checked_opset(opset: int | None) -> int:
    """The opset to write; raises InputError for one that is not written."""
    chosen = NEWEST_OPSET if opset is None else opset
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= chosen <= newest:
        raise InputError(f"opset {chosen} cannot be written: the opsets are {OLDEST_OPSET} to {newest}")
    return chosen


def opset_for_runtime(operators: Iterable[str]) -> int:
    """The newest opset in which ONNX Runtime has all of these operators, or layers are written with others."""
    return min((_OLDER[operator] for operator in operators if operator in _OLDER), default=NEWEST_OPSET)


@functools.lru_cache(maxsize=2048)
def schema_of(type: str, opset: int, domain: str) -> OpSchema:
    """The schema of an operator.

    Raises:
        OpError: the opset does not have it.
    """
    try:
        return onnx.defs.get_schema(type, opset, domain)
    except onnx.defs.SchemaError:
        raise OpError(f"ONNX's {type} is not in opset {opset}") from None


def has_operator(type: str, opset: int) -> bool:
    """Whether an opset has an operator of ai.onnx."""
    try:
        schema_of(type, opset, "")
    except OpError:
        return False
    return True


def input_variable(schema: OpSchema, index: int) -> str:
    """The type of an input in a schema: a type variable, or the name of a type."""
    formal = schema.inputs[min(index, len(schema.inputs) - 1)]
    # Each input of a heterogeneous list has a type of its own.
    return formal.type_str if formal.is_homogeneous else f"{formal.type_str}#{index}"


def output_variable(schema: OpSchema, index: int) -> str:
    """The type of an output in a schema: a type variable, or the name of a type."""
    return schema.outputs[min(index, len(schema.outputs) - 1)].type_str


@functools.lru_cache(maxsize=4096)
def accepted(type: str, opset: int, domain: str, variable: str) -> frozenset[Element]:
    """The element types that a type variable of an operator may be."""
    name = variable.partition("#")[0]
    if name in _BY_NAME:
        return frozenset({_BY_NAME[name]})
    for constraint in schema_of(type, opset, domain).type_constraints:
        if constraint.type_param_str == name:
            return frozenset(_BY_NAME[text] for text in constraint.allowed_type_strs if text in _BY_NAME)
    return frozenset()


def only_element(type: str, opset: int, domain: str, variable: str) -> Element | None:
    """The element type that an output always has, such as that of comparisons; None if it varies."""
    allowed = accepted(type, opset, domain, variable)
    return next(iter(allowed)) if len(allowed) == 1 else None


def wider(element: Element, allowed: frozenset[Element]) -> Element:
    """The first accepted type with every value of ``element``.

    Raises:
        OpError: there is none.
    """
    if element is BOOLEAN:
        candidates = [U8, I32, I64, F32]
    elif element.is_float:
        candidates = [F32] if element.bits < F32.bits else []
    elif element.kind == "unsigned":
        candidates = [kind for kind in (U32, I32, U64, I64) if kind.bits > element.bits]
    else:
        candidates = [kind for kind in (I32, I64) if kind.bits > element.bits]
    found = next((kind for kind in candidates if kind in allowed), None)
    if found is None:
        raise OpError(f"does not take {element}")
    return found
