"""The element types of inputs, checked against the schemas of ONNX."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from onnx import defs

from irexec.dtypes.elements import ELEMENTS, Element
from irexec.errors import OpError
from irexec.ir.facts import Fact

_ELEMENTS = {f"tensor({row.onnx.name.lower()})": row for row in ELEMENTS if row.onnx is not None}


def check_types(operator: str, domain: str, facts: Sequence[Fact | None]) -> None:
    """Raise OpError for an input whose element type no version of the operator accepts.

    Runtimes accept more types than the schema of one opset lists. If the schema of any opset has an integer type for an
    input, every integer type is accepted; the same holds for floating-point types.

    Args:
        operator, domain: the operator of the node.
        facts: facts of its inputs; None for an input that is absent or not a tensor.
    """
    formal, is_variadic = _inputs(operator, domain)
    for i, fact in enumerate(facts):
        if fact is None or fact.element is None or (i >= len(formal) and not is_variadic):
            continue
        formal[min(i, len(formal) - 1)].check(fact.element)


@dataclass(frozen=True)
class _Input:
    """A formal input.

    Attributes:
        name: the name in the newest version.
        elements: the element types that any version accepts; empty if no version accepts tensors.
    """

    name: str
    elements: frozenset[Element]

    @functools.cached_property
    def _kinds(self) -> frozenset[str]:
        return frozenset(map(_kind, self.elements))

    def check(self, element: Element) -> None:
        if self.elements and element not in self.elements and _kind(element) not in self._kinds:
            listed = ", ".join(str(one) for one in ELEMENTS if one in self.elements)
            raise OpError(f"input {self.name!r} has element type {element}, expected {listed}")


def _kind(element: Element) -> str:
    return "integer" if element.is_integer else "float" if element.is_float else element.kind


@functools.cache
def _inputs(operator: str, domain: str) -> tuple[list[_Input], bool]:
    """The formal inputs of an operator, and whether the last may be repeated."""
    found: list[_Input] = []
    is_variadic = False
    for schema in _versions(operator, domain):
        for i, formal in enumerate(schema.inputs):
            elements = _tensor_types(formal.types)
            if i < len(found):
                found[i] = _Input(found[i].name, found[i].elements | elements)
            else:
                found.append(_Input(formal.name, elements))
            is_variadic = is_variadic or formal.option == defs.OpSchema.FormalParameterOption.Variadic
    return found, is_variadic


def _versions(operator: str, domain: str) -> Iterator[defs.OpSchema]:
    """The schemas of all versions of an operator, the newest first; none for operators that ONNX does not define."""
    newest = (1 << 31) - 1
    while newest > 0:
        try:
            schema = defs.get_schema(operator, newest, domain)
        except defs.SchemaError:
            return
        yield schema
        newest = schema.since_version - 1


def _tensor_types(names: Iterable[str]) -> frozenset[Element]:
    """The element types of tensors and optional tensors among types of ONNX: "tensor(float)", "seq(...)"."""
    plain = (name.removeprefix("optional(") for name in names)
    return frozenset(_ELEMENTS[name.replace("))", ")")] for name in plain if name.replace("))", ")") in _ELEMENTS)
