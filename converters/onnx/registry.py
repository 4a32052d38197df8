"""Translators of ONNX operators: ``@translates("Squeeze", since=13)``.

The signature of a translator is its schema, read from its type hints: after the context ``ctx`` come the inputs (None
where absent, ``*inputs`` for any number; ``Annotated[Value, Rank(3)]`` for rank 3), then keyword-only attributes with
their defaults; ``Literal["DCR", "CRD"]`` is one of a few texts. A frozen dataclass stands for several attributes, its
fields. The translator returns a Value or a tuple of Values. A node is translated by the newest translator whose
``since`` does not exceed the imported opset. The module of a translator is imported when a model has a node of its
operator.
"""

from __future__ import annotations

import functools
import inspect
import pkgutil
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from onnx import GraphProto, NodeProto, SparseTensorProto, TensorProto, TypeProto

from converters.onnx.graphs import domain_of, opset_of
from converters.onnx.tensors import OnnxValue
from irexec.errors import PluginError
from irexec.ir.facts import Fact
from irexec.ir.graph import Value
from irexec.schema.extension import TRANSLATORS
from irexec.schema.opdef import InputSpec, input_spec
from irexec.schema.plugins import Loader, plugins

AI_ONNX_ML, COM_MICROSOFT = "ai.onnx.ml", "com.microsoft"
OPENVINO = "org.openvinotoolkit"
NHWC, NCHWC = "com.ms.internal.nhwc", "com.microsoft.nchwc"

# ONNX's name of the type of an attribute, by type hint.
_ATTRIBUTE_TYPES: dict[Any, str] = {
    int: "INT", float: "FLOAT", str: "STRING", list[int]: "INTS", list[float]: "FLOATS", list[str]: "STRINGS",
    TensorProto: "TENSOR", SparseTensorProto: "SPARSE_TENSOR", GraphProto: "GRAPH", TypeProto: "TYPE_PROTO",
}  # fmt: skip
_NOT_TENSORS = frozenset(get_args(OnnxValue)) - {Value}


@dataclass(frozen=True)
class Translation:
    """One translator.

    Attributes:
        since: the first opset of the domain that the translator is for.
        function: the function of context, inputs and attributes.
        attributes: the accepted types of each attribute by name: INT, FLOATS, ...
        choices: the accepted texts of the attributes that are one of a few.
        required: the names of the attributes without a default.
        groups: the dataclasses of attributes, by parameter of the function.
        min_inputs, max_inputs: the accepted numbers of inputs; ``max_inputs`` is None for any number.
        required_inputs: whether each named input must be present; further inputs must always be.
        takes_sequences: whether inputs may be sequences of tensors, or optionals.
        inputs: the accepted ranks of each input; the last entry is that of all further inputs.
    """

    since: int
    function: Callable[..., Any]
    attributes: Mapping[str, tuple[str, ...]]
    choices: Mapping[str, tuple[str, ...]]
    required: frozenset[str]
    groups: Mapping[str, Any]
    min_inputs: int
    max_inputs: int | None
    required_inputs: tuple[bool, ...]
    takes_sequences: bool
    inputs: tuple[InputSpec, ...]

    def __call__(self, ctx: Any, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """The result of the function, with the attributes of a dataclass as one argument."""
        given = dict(attributes)
        for parameter, group in self.groups.items():
            given[parameter] = group(**{f.name: given.pop(f.name) for f in fields(group) if f.name in given})
        return self.function(ctx, *inputs, **given)

    def check_ranks(self, facts: Sequence[Fact | None]) -> None:
        """Raise OpError for an input of a rank that is not accepted; None is an input that is not a tensor."""
        for i, fact in enumerate(facts):
            if fact is not None:
                self.inputs[min(i, len(self.inputs) - 1)].check(fact)


# By domain and operator, then by the first opset.
_TRANSLATIONS: dict[tuple[str, str], dict[int, Translation]] = {}
_OF_PLUGINS: set[tuple[str, str, int]] = set()


def translates(
    *types: str, since: int = 1, domain: str = "", without: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that registers a translator of these operators from opset ``since`` of ``domain`` on; see ``add``."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for type in types:
            add(type, since, domain, function, without=without)
        return function

    return register


def openvino_operator(*types: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``translates`` for operators of OpenVINO's domain; exporters write them without a domain too."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for type in types:
            add(type, 1, OPENVINO, function)
            add(type, 1, "", function)
        return function

    return register


def add(
    type: str, since: int, domain: str, function: Callable[..., Any], *schemas: Callable[..., Any],
    without: Sequence[str] = ()
) -> None:  # fmt: skip
    """Register a translator; tables of operators call it directly.

    Args:
        type, since, domain: the operator.
        function: the translator.
        schemas: functions whose attributes are the schema, together with the inputs of the first; ``function`` unless
            given.
        without: attributes that this version of the operator lacks.

    Raises:
        ValueError: the operator has a translator of that domain and opset already.
        TypeError: an attribute has no type hint, or its type hint is not the type of an ONNX attribute.
    """
    versions = _TRANSLATIONS.setdefault((domain, type), {})
    if since in versions:
        both = " and ".join(f"{one.__module__}.{one.__qualname__}" for one in (versions[since].function, function))
        raise ValueError(f"{domain or 'ai.onnx'}.{type} of opset {since} has two translators: {both}")
    versions[since] = _translation(since, function, schemas or (function,), frozenset(without))


def _translation(
    since: int, function: Callable[..., Any], schemas: Sequence[Callable[..., Any]], without: frozenset[str]
) -> Translation:
    groups = {name: hint for schema in schemas for name, hint, _ in _keywords(schema) if is_dataclass(hint)}
    attributes, choices, required = dict[str, tuple[str, ...]](), dict[str, tuple[str, ...]](), set[str]()
    for schema in schemas:
        for name, hint, default in _attributes(schema):
            attributes[name] = _kinds(hint, schema, name)
            if get_origin(hint) is Literal:
                choices[name] = get_args(hint)
            if default is MISSING:
                required.add(name)
    return Translation(
        since,
        function,
        {name: kinds for name, kinds in attributes.items() if name not in without},
        choices,
        frozenset(required),
        groups,
        *_inputs(schemas[0]),
    )


def _keywords(schema: Callable[..., Any]) -> Iterator[tuple[str, Any, Any]]:
    """Name, type hint and default, or MISSING, of each keyword-only parameter."""
    hints = get_type_hints(schema, include_extras=True)
    for p in inspect.signature(schema).parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            yield p.name, hints.get(p.name), MISSING if p.default is p.empty else p.default


def _attributes(schema: Callable[..., Any]) -> Iterator[tuple[str, Any, Any]]:
    """Name, type hint and default, or MISSING, of each attribute: the keywords, and the fields of dataclasses."""
    for name, hint, default in _keywords(schema):
        if not is_dataclass(hint):
            yield name, hint, default
            continue
        hints = get_type_hints(hint)
        yield from ((field.name, hints[field.name], field.default) for field in fields(hint))


def _inputs(schema: Callable[..., Any]) -> tuple[int, int | None, tuple[bool, ...], bool, tuple[InputSpec, ...]]:
    """The fields of Translation that describe the inputs."""
    hints = get_type_hints(schema, include_extras=True)
    parameters = list(inspect.signature(schema).parameters.values())[1:]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = [p for p in parameters if p.kind is p.VAR_POSITIONAL]
    accepted = {p.name: _members(hints.get(p.name)) for p in [*positional, *variadic]}
    return (
        sum(p.default is p.empty for p in positional),
        None if variadic else len(positional),
        tuple(p.default is p.empty and types.NoneType not in accepted[p.name] for p in positional),
        any(not _NOT_TENSORS.isdisjoint(members) for members in accepted.values()),
        tuple(input_spec(p.name, hints.get(p.name)) for p in [*positional, *variadic]),
    )


def _members(hint: Any) -> tuple[Any, ...]:
    """The types of a union, or the type itself."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _kinds(hint: Any, schema: Callable[..., Any], name: str) -> tuple[str, ...]:
    """The accepted types of an attribute, by its type hint; ``schema`` and ``name`` are for the message."""
    members = [str if get_origin(hint) is Literal else one for one in _members(hint) if one is not types.NoneType]
    if hint is None or not all(member in _ATTRIBUTE_TYPES for member in members):
        place = f"{schema.__module__}.{schema.__qualname__}"
        raise TypeError(f"{place}: attribute {name!r} has the type hint {hint}, which ONNX has no type for")
    return tuple(_ATTRIBUTE_TYPES[member] for member in members)


@functools.cache
def _loader() -> Loader:
    """Loader of the modules that register translators: every package below converters.onnx.ops."""
    import converters.onnx.ops

    loader = Loader()
    for package in pkgutil.iter_modules(converters.onnx.ops.__path__):
        folders = [str(Path(folder) / package.name) for folder in converters.onnx.ops.__path__]
        loader.add_package(f"converters.onnx.ops.{package.name}", folders)
    return loader


def translation_of(node: NodeProto, opsets: Mapping[str, int]) -> Translation | None:
    """The translator of a node; None if there is none.

    An operator that is newer than the opset of the model is taken for that of its first opset, as in OpenVINO's reader,
    unless it has changed since.
    """
    domain = domain_of(node)
    found = find(node.op_type, domain, opset_of(node, opsets))
    if found is None and domain in opsets:
        versions = _versions(node.op_type, domain)
        found = next(iter(versions.values())) if len(versions) == 1 else None
    return found


def find(type: str, domain: str, opset: int) -> Translation | None:
    """The translator of an operator in an opset; None if there is none."""
    versions = _versions(type, domain)
    known = [since for since in versions if since <= opset]
    return versions[max(known)] if known else None


def operators() -> list[tuple[str, str]]:
    """Every (domain, operator) that can be translated."""
    _loader().load()
    plugins.load()
    _add_those_of_plugins()
    return sorted(_TRANSLATIONS)


def first_opset(type: str, domain: str) -> int | None:
    """The first opset for which an operator has a translator; None if there is none."""
    return min(_versions(type, domain), default=None)


def _versions(type: str, domain: str) -> Mapping[int, Translation]:
    """The translators of an operator by their first opset; those of plug-ins where irexec has none."""
    _loader().load_for(type)
    if (domain, type) not in _TRANSLATIONS:
        plugins.load()
    _add_those_of_plugins()
    return _TRANSLATIONS.get((domain, type), {})


def _add_those_of_plugins() -> None:
    """Register the translators that plug-ins have added since the last call.

    Raises:
        PluginError: the operator has a translator, or the translator is not valid.
    """
    while TRANSLATORS:
        translator = TRANSLATORS[0]
        domain, type = translator.domain, translator.type
        _loader().load_for(type)
        own = [since for since in _TRANSLATIONS.get((domain, type), {}) if (domain, type, since) not in _OF_PLUGINS]
        if own:
            raise PluginError(
                f"{translator.plugin}: irexec translates {domain or 'ai.onnx'}.{type}, a plug-in cannot replace it"
            )
        try:
            add(type, translator.since, domain, translator.function)
        except (ValueError, TypeError, NameError) as error:
            raise PluginError(f"{translator.plugin}: {error}") from error
        _OF_PLUGINS.add((domain, type, translator.since))
        TRANSLATORS.pop(0)
