"""The opsets that models are written for: element types of ONNX's schemas and of ONNX Runtime's kernels.

kernels.txt has a line for each kernel: the operator, the opsets, and the types of its type variables. The command
``python -m tests.to_onnx.kernels`` makes it anew from the installed ONNX Runtime.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources

import onnx
from onnx.defs import OpSchema

from converters.ir_to_onnx.graph import type_name
from irexec.dtypes.elements import BOOLEAN, ELEMENTS, F16, F32, F64, I32, I64, U8, U32, U64, Element
from irexec.errors import InputError, OpError

OLDEST_OPSET = 13
NEWEST_OPSET = 25
"""The newest opset of ONNX Runtime."""

_BY_NAME = {type_name(row): row for row in ELEMENTS if row.onnx is not None}


def checked_opset(opset: int | None) -> int:
    """The opset to write; raises InputError for one that is not written."""
    chosen = NEWEST_OPSET if opset is None else opset
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= chosen <= newest:
        raise InputError(f"opset {chosen} cannot be written: the opsets are {OLDEST_OPSET} to {newest}")
    return chosen


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
    """Whether an opset has an operator of ai.onnx, and ONNX Runtime a kernel for it there or in an older opset."""
    try:
        schema_of(type, opset, "")
    except OpError:
        return False
    return newest_with(type, opset) is not None


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


def computed_types(type: str, opset: int, wanted: Mapping[str, Element]) -> dict[str, Element]:
    """The element types in which ONNX Runtime computes an operator of ai.onnx: those wanted, or wider ones.

    Types without a kernel and without a wider one become f64 or f32, see ``loses_bits``. The wanted types remain if no
    kernel accepts these either.

    Args:
        type, opset: the operator.
        wanted: the element type of each type variable of its inputs, which the schema accepts.
    """
    fitting = [found for kernel in kernels_of(type, opset) if (found := _fitted(type, opset, kernel, wanted))]
    return min(fitting, key=lambda found: _changes(wanted, found), default=dict(wanted))


def _fitted(type: str, opset: int, kernel: Kernel, wanted: Mapping[str, Element]) -> dict[str, Element] | None:
    found = {}
    for variable, element in wanted.items():
        name = variable.partition("#")[0]
        if computes(kernel, name, element):
            found[variable] = element
            continue
        allowed = kernel[name] & accepted(type, opset, "", variable)
        try:
            found[variable] = wider(element, allowed)
        except OpError:
            floats = [kind for kind in (F64, F32) if kind in allowed]
            if not floats or element.kind == "string":
                return None
            found[variable] = floats[0]
    return found


def _changes(wanted: Mapping[str, Element], found: Mapping[str, Element]) -> tuple[int, int]:
    """The number of types that lose bits, and the number of types that change."""
    changed = [(element, found[name]) for name, element in wanted.items() if found[name] is not element]
    return sum(loses_bits(*pair) for pair in changed), len(changed)


def loses_bits(element: Element, other: Element) -> bool:
    """Whether f64 or integers of more than 16 bits are computed in a float that does not have all their values."""
    return other.is_float and element is not other and (element is F64 or (element.is_integer and element.bits > 16))


Kernel = Mapping[str, frozenset[Element]]
"""The element types of each type variable that a kernel limits."""


@functools.cache
def _table() -> dict[str, list[tuple[frozenset[int], Kernel]]]:
    elements = {row.name: row for row in ELEMENTS}
    found: dict[str, list[tuple[frozenset[int], Kernel]]] = {}
    for line in (resources.files("converters.ir_to_onnx") / "kernels.txt").read_text("utf-8").splitlines():
        operator, opsets, *variables = line.split()
        kernel = {}
        for variable in variables:
            name, _, kinds = variable.partition("=")
            kernel[name] = frozenset(elements[kind] for kind in kinds.split(","))
        ranges = (part.split("-") for part in opsets.split(","))
        served = frozenset(opset for first, last in ranges for opset in range(int(first), int(last) + 1))
        found.setdefault(operator, []).append((served, kernel))
    return found


_NEWEST = 28
"""The newest opset of the table; newer ones are taken for it."""


@functools.lru_cache(maxsize=4096)
def kernels_of(operator: str, opset: int) -> tuple[Kernel, ...]:
    """The kernels of an operator of ai.onnx in an opset."""
    return tuple(kernel for opsets, kernel in _table().get(operator, ()) if min(opset, _NEWEST) in opsets)


def newest_with(operator: str, opset: int) -> int | None:
    """The newest opset up to ``opset`` in which there is a kernel of an operator; None if there is none."""
    known = [other for opsets, _ in _table().get(operator, ()) for other in opsets if other <= opset]
    return max(known, default=None)


def is_computed(operator: str, opset: int, types: Mapping[str, Element]) -> bool:
    """Whether there is a kernel for these element types of the type variables of an operator."""
    kernels = kernels_of(operator, opset)
    return any(all(computes(kernel, name, kind) for name, kind in types.items()) for kernel in kernels)


def computes(kernel: Kernel, variable: str, element: Element) -> bool:
    """Whether a kernel accepts an element type; ONNX Runtime computes f16 in f32 where it has no kernel for it."""
    accepted = kernel.get(variable)
    return accepted is None or element in accepted or (element is F16 and F32 in accepted)
