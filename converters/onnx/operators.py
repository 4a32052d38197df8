"""Nodes without a translator, and element types of inputs that the schemas of ONNX do not have.

Nodes without a translator: unknown operators, operators of another opset, unsupported operators; and operators that
are newer than the opset of the model.
"""

from __future__ import annotations

import difflib
import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import defs

from converters.onnx.graphs import describe, domain_of, every_node, location, opset_of, opsets_of
from converters.onnx.registry import find, first_opset, operators, translation_of
from irexec.dtypes.elements import ELEMENTS, Element
from irexec.errors import OpError
from irexec.ir import onnx_codes as codes
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.ir.order import grouped
from irexec.messages import counted

# Reasons why well-known operators cannot be expressed in IR.
_MAPS = "its input is a map, which IR has no type for: make its tensor before the model"

_REASONS: dict[tuple[str, str], str] = {
    ("ai.onnx.ml", "CastMap"): _MAPS,
    ("ai.onnx.ml", "DictVectorizer"): _MAPS,
}


_PLUG_IN = "a plug-in can translate operators of other domains (docs: Write a plug-in)"


def because(node: onnx.NodeProto, opsets: Mapping[str, int]) -> str:
    """A colon and the reason why a node has no translator, to append to a message; empty if no reason is known."""
    domain, operator = domain_of(node), node.op_type
    reason = _REASONS.get((domain, operator))
    opset = opset_of(node, opsets) if domain in opsets else None
    since = _first_opset(domain, operator)
    if reason is None and domain not in _operators():
        reason = _PLUG_IN if opset is not None else f"the model does not import its domain; {_PLUG_IN}"
    elif reason is None and opset is not None and since is not None and opset < since:
        reason = f"it exists since opset {since}"
    return "" if reason is None else f": {reason}"


def unsupported(model: onnx.ModelProto) -> list[str]:
    """Descriptions of all nodes without a translator, also in subgraphs, with the reason if it is known."""
    opsets = opsets_of(model)
    return [describe(node, opsets) + because(node, opsets) for node in _without_translator(model)]


def refusal(model: onnx.ModelProto) -> str | None:
    """The message about nodes without a translator, one entry per operator; None without such nodes."""
    opsets = opsets_of(model)
    groups = grouped(((domain_of(node), node.op_type), node) for node in _without_translator(model))
    if not groups:
        return None
    entries: dict[str, list[str]] = defaultdict(list)
    for (domain, operator), nodes in groups.items():
        many = f"{domain or 'ai.onnx'}.{operator} x {len(nodes)}"
        entries[because(nodes[0], opsets)].append(describe(nodes[0], opsets) if len(nodes) == 1 else many)
    listed = "; ".join((", " if reason else "; ").join(texts) + reason for reason, texts in entries.items())
    return f"{counted(sum(map(len, groups.values())), 'node')} cannot be converted: {listed}"


def early_operators(model: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, str]]:
    """The nodes whose operator is converted although it is newer than the opset of the model, and a remark on each."""
    opsets = opsets_of(model)
    for node in every_node(model.graph):
        domain, operator, opset = domain_of(node), node.op_type, opset_of(node, opsets)
        if find(operator, domain, opset) is None and translation_of(node, opsets) is not None:
            since = first_opset(operator, domain)
            exists = f"{domain or 'ai.onnx'}.{operator} exists since opset {since}"
            yield node, f"{exists}, the model imports opset {opset}: it is taken for that of opset {since}"


def _without_translator(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    opsets = opsets_of(model)
    return (node for node in every_node(model.graph) if translation_of(node, opsets) is None)


def operator_findings(model: onnx.ModelProto) -> Iterator[Finding]:
    """Findings of nodes without a translator in a model whose nodes are marked; a node of a function is found once."""
    opsets = opsets_of(model)
    for node in _without_translator(model):
        yield location(node).finding(*_reason(node, opsets))
    for node, remark in early_operators(model):
        yield location(node).finding(codes.EARLY_OPERATOR, remark)


def _reason(node: onnx.NodeProto, opsets: Mapping[str, int]) -> tuple[str, str]:
    """The code and the message for a node without a translator."""
    domain, operator = domain_of(node), node.op_type
    shown, opset = domain or "ai.onnx", opset_of(node, opsets) if domain in opsets else None
    since = _first_opset(domain, operator)
    if since is not None and opset is not None and opset < since:
        return codes.OPERATOR_VERSION, f"{shown}.{operator} exists since opset {since}, the model imports opset {opset}"
    if since is not None:
        return (
            codes.UNSUPPORTED_OPERATOR,
            f"{shown}.{operator} of opset {opset} cannot be converted{because(node, opsets)}",
        )
    known = _operators()
    if domain not in known:
        imported = "" if opset is not None else ", and the model does not import it"
        return (
            codes.UNKNOWN_OPERATOR,
            f"the domain {shown!r} of operator {operator!r} is not known{imported}: {_PLUG_IN}",
        )
    near = difflib.get_close_matches(operator, known[domain], 3)
    return (
        codes.UNKNOWN_OPERATOR,
        f"{shown} has no operator {operator!r}{f'; similar operators are {_listed(near)}' if near else ''}",
    )


def _listed(names: list[str]) -> str:
    return ", ".join(sorted(names))


def _first_opset(domain: str, operator: str) -> int | None:
    """The opset in which an operator first appeared; None if it is not known."""
    versions = [
        schema.since_version
        for schema in defs.get_all_schemas_with_history()
        if (schema.domain, schema.name) == (domain, operator)
    ]
    first = first_opset(operator, domain)
    return min([*versions, *([] if first is None else [first])], default=None)


@functools.cache
def _operators() -> dict[str, set[str]]:
    """The known operators by domain."""
    found: dict[str, set[str]] = {}
    for domain, operator in [
        *operators(),
        *((schema.domain, schema.name) for schema in defs.get_all_schemas_with_history()),
    ]:
        found.setdefault(domain, set()).add(operator)
    return found


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
            # The element types of tensors and optional tensors among types of ONNX: "tensor(float)", "seq(...)".
            plain = (name.removeprefix("optional(") for name in formal.types)
            elements = frozenset(
                _ELEMENTS[name.replace("))", ")")] for name in plain if name.replace("))", ")") in _ELEMENTS
            )
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
