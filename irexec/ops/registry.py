"""The registry: an operation is a kernel, a facts rule and perhaps a bind rule under one decorator.

    @op("Gather", since=8, symbolic=True)
    def gather_8(data, indices, axis, *, batch_dims: int = 0):
        '''Slices of ``data`` along ``axis``; an index out of range yields zeros.'''

    @gather_8.facts
    def _(data: Fact, indices: Fact, axis: Fact, *, batch_dims: int = 0) -> Fact: ...

The kernel's signature is the schema. Positional parameters are the inputs (``= None``: optional;
``*inputs``: any number); keyword-only parameters are the attributes, with type and default.
``since`` is the opset in which the version first appeared, as IR writes it; a layer's ``opsetN``
takes the newest definition not newer than N. An extension gives its namespace instead ("onednn").

Some keyword-only parameters are no attributes but what the walker hands over, told by annotation:
``Runner`` (a body, by the parameter's name), ``Variables`` (the session's state), ``Constant``, ``Elements``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal, Protocol, get_type_hints

import numpy as np

from irexec.errors import OpError, UnsupportedError
from irexec.ir.constants import Constant
from irexec.ir.elements import Element
from irexec.ir.graph import Body, Node
from irexec.ops.attributes import REQUIRED, Attribute, parser_of


class Runner(Protocol):
    """A body as kernels and rules see it: called with one argument per Parameter, in order of the
    Parameters in ``body.graph.parameters``, it returns one result per Result, in order.

    A kernel's Runner takes and gives arrays, a facts rule's Runner takes and gives Facts.
    """

    body: Body
    node: Node

    def __call__(self, *inputs: Any) -> list[Any]: ...


class Variables(MutableMapping[str, np.ndarray]):
    """The state of a session by variable_id: an annotation for stateful kernels."""


class Elements(tuple[Element | None, ...]):
    """The element types of the inputs: an annotation where carriers do not tell enough (bf16 and f32 have the same)."""


@dataclass(frozen=True)
class InputSpec:
    """One input of the schema: its specification's name and whether it may be absent or repeat."""

    name: str
    optional: bool = False
    variadic: bool = False


@dataclass(eq=False)
class OpDef:
    """One version of one operation type.

    Attributes:
        type: as IR spells it.
        since: the opset in which the version first appeared, or the namespace of an extension.
        kernel: arrays in, array or tuple of arrays out.
        facts_rule: the same signature on Facts.
        bind_rule: the same signature on Facts, returning a faster closure over arrays, or None.
        alone_rule: the kernel's signature; gives the first output alone, where nobody reads the others.
        inputs, attributes: the schema read from the kernel's signature.
        handed: parameters that the walker hands over: name -> Runner, Variables or Constant.
        elements: the parameter that takes the element types of the inputs.
        symbolic: the kernel also works on object arrays of int | Dim.
        widen: f16 inputs are computed in f32 and the f32 results rounded back once.
        inplace: the first output may take the memory of the first input.
        view: an output may be a view of an input.
        deterministic: the same inputs give the same outputs.
        followed: its value is followed through a graph before it runs; not where OpenVINO declares another shape than it gives.
        stateful: it reads or writes variables.
        tolerance: the relative error allowed in f32 against the plain kernel or a golden.
        ignores: attributes that other writers add and that mean nothing.
    """

    type: str
    since: int | str
    kernel: Callable[..., Any]
    inputs: tuple[InputSpec, ...]
    attributes: tuple[Attribute, ...]
    handed: dict[str, Any]
    elements: str | None = None
    symbolic: bool = False
    widen: bool = False
    inplace: bool = False
    view: bool = False
    deterministic: bool = True
    followed: bool = True
    stateful: bool = False
    tolerance: float = 1e-6
    ignores: tuple[str, ...] = ()
    facts_rule: Callable[..., Any] = field(init=False, repr=False)
    bind_rule: Callable[..., Any] | None = None
    alone_rule: Callable[..., Any] | None = None
    by_name: dict[str, Attribute] = field(default_factory=dict)

    def facts(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: ``rule`` is the facts rule of this operation."""
        self.facts_rule = rule
        return rule

    def bind(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: ``rule`` is the bind rule of this operation."""
        self.bind_rule = rule
        return rule

    def alone(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: ``rule`` gives the first output of this operation alone."""
        self.alone_rule = rule
        return rule

    def __call__(self, *inputs: Any, **attributes: Any) -> Any:
        """The plain kernel; f16 is widened where the operation asks for it. NaN and infinities are results, not reasons to warn."""
        with np.errstate(all="ignore"):
            return self._computed(*inputs, **attributes)

    def _computed(self, *inputs: Any, **attributes: Any) -> Any:
        if self.widen and any(isinstance(x, np.ndarray) and x.dtype == np.float16 for x in inputs):
            return _narrow(self.kernel(*map(_widened, inputs), **attributes))
        return self.kernel(*inputs, **attributes)

    @property
    def version(self) -> str:
        """As the writer spells it: "opset8", or the namespace of an extension."""
        return f"opset{self.since}" if isinstance(self.since, int) else self.since

    def check_arity(self, given: int) -> None:
        """Raise OpError unless ``given`` is a possible number of inputs."""
        least = sum(not spec.optional and not spec.variadic for spec in self.inputs)
        variadic = any(spec.variadic for spec in self.inputs)
        if given < least or (given > len(self.inputs) and not variadic):
            most = "or more" if variadic else f"to {len(self.inputs)}" if len(self.inputs) > least else ""
            raise OpError(f"has {given} inputs, expected {' '.join(filter(None, (str(least), most)))}")

    def parse(self, texts: dict[str, str]) -> tuple[dict[str, Any], list[AttributeProblem]]:
        """Values by parameter for the attributes as written, and what is wrong with them.

        A wrong or missing attribute gets its default, or is left out if it has none.
        """
        values: dict[str, Any] = {}
        problems: list[AttributeProblem] = []
        for attribute in self.attributes:
            text = texts.get(attribute.name)
            if text is None:
                if attribute.required:
                    problems.append(AttributeProblem("missing", attribute.name, f"required attribute {attribute.name!r} is missing"))
                else:
                    values[attribute.parameter] = attribute.default
                continue
            try:
                values[attribute.parameter] = attribute.parse(text)
            except OpError as error:
                kind: Literal["range", "type"] = "range" if attribute.choices or "below" in str(error) else "type"
                problems.append(AttributeProblem(kind, attribute.name, f"attribute {attribute.name!r}: {error}"))
                if not attribute.required:
                    values[attribute.parameter] = attribute.default
        for name in texts:
            if name not in self.by_name and name not in self.ignores:
                problems.append(AttributeProblem("unknown", name, f"attribute {name!r} is not known to {self.type}"))
        return values, problems

    def read_attributes(self, texts: dict[str, str], elements: Iterable[Element | None] | None = None) -> dict[str, Any]:
        """Values by parameter; raises OpError for the first that is missing, ill-typed or out of range.

        With the element types of the inputs, these too, where the operation asks for them.
        """
        values, problems = self.parse(texts)
        if elements is not None and self.elements is not None:
            values[self.elements] = Elements(elements)
        for problem in problems:
            if problem.kind != "unknown":
                raise OpError(problem.message)
        return values


@dataclass(frozen=True)
class AttributeProblem:
    """What is wrong with one attribute of a layer."""

    kind: Literal["missing", "type", "range", "unknown"]
    name: str
    message: str


def _widened(x: Any) -> Any:
    return x.astype(np.float32) if isinstance(x, np.ndarray) and x.dtype == np.float16 else x


def _narrow(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_narrow, result))
    with np.errstate(over="ignore"):
        return result.astype(np.float16) if result.dtype == np.float32 else result


NEWEST_OPSET = 17
"""The newest opset whose operations are known; what a later one means by a name cannot be known."""

_REGISTRY: dict[str, dict[int | str, OpDef]] = {}
_HANDED = (Runner, Variables, Constant, Elements)


def op(type: str, since: int | str, **flags: Any) -> Callable[[Callable[..., Any]], OpDef]:
    """Decorator: register a kernel as the version of ``type`` that appeared in ``since``."""

    def register(kernel: Callable[..., Any]) -> OpDef:
        inputs, attributes, handed = _schema(kernel)
        elements = next((name for name, kind in handed.items() if kind is Elements), None)
        handed = {name: kind for name, kind in handed.items() if kind is not Elements}
        definition = OpDef(type, since, kernel, inputs, attributes, handed, elements, **flags)
        definition.by_name = {a.name: a for a in attributes}
        versions = _REGISTRY.setdefault(type, {})
        assert since not in versions, f"{type} of {since} is registered twice"
        versions[since] = definition
        return definition

    return register


def _schema(kernel: Callable[..., Any]) -> tuple[tuple[InputSpec, ...], tuple[Attribute, ...], dict[str, Any]]:
    hints = get_type_hints(kernel, include_extras=True)
    inputs, attributes, handed = [], [], {}
    for name, p in inspect.signature(kernel).parameters.items():
        if p.kind is p.VAR_POSITIONAL:
            inputs.append(InputSpec(name, variadic=True))
        elif p.kind is not p.KEYWORD_ONLY:
            inputs.append(InputSpec(name, optional=p.default is not p.empty))
        elif _is_handed(hints[name]):
            handed[name] = hints[name]
        else:
            parse, choices = parser_of(hints[name])
            default = REQUIRED if p.default is p.empty else p.default
            attributes.append(Attribute(_ir_name(name), name, parse, default, choices))
    return tuple(inputs), tuple(attributes), handed


def _is_handed(hint: Any) -> bool:
    return any(hint is kind for kind in _HANDED)


# The few attributes that IR spells with a hyphen, or as a word that Python reserves.
_HYPHENATED = {"exclude_pad": "exclude-pad", "auto_pad_": "auto-pad", "lambda_": "lambda"}


def _ir_name(parameter: str) -> str:
    return _HYPHENATED.get(parameter, parameter)


@functools.cache
def _load() -> None:
    """Import every family once, so that a new file registers itself."""
    import irexec.ops

    for module in pkgutil.iter_modules(irexec.ops.__path__):
        importlib.import_module(f"irexec.ops.{module.name}")


def resolve(type: str, version: str) -> OpDef:
    """The definition that a layer of this type and version means.

    Raises:
        UnsupportedError: the type is not known, or was not yet known in that opset.
    """
    _load()
    versions = _REGISTRY.get(type)
    if versions is None:
        raise UnsupportedError(f"{type} of {version or 'no version'} is not supported (the type is not known)")
    if version in versions:
        return versions[version]
    opsets = sorted(since for since in versions if isinstance(since, int))
    if not opsets:
        return next(iter(versions.values()))
    number = opset_number(version)
    if number is not None and number > NEWEST_OPSET:
        raise UnsupportedError(f"{type} of {version} is not supported (the newest opset known is {NEWEST_OPSET})")
    if number is None:
        raise UnsupportedError(f"{type} of {version or 'no version'} is not supported (known since opset {opsets[0]})")
    fitting = [since for since in opsets if since <= number]
    if not fitting:
        raise UnsupportedError(f"{type} of {version} is not supported (known since opset {opsets[0]})")
    return versions[fitting[-1]]


def opset_number(version: str) -> int | None:
    """N of "opsetN"; None for any other text."""
    digits = version.removeprefix("opset")
    return int(digits) if version.startswith("opset") and digits.isascii() and digits.isdigit() and len(digits) < 6 else None


def is_known_type(type: str) -> bool:
    """Whether any version of the type is registered."""
    _load()
    return type in _REGISTRY


def definitions() -> list[OpDef]:
    """Every definition, by type and then by version."""
    _load()
    return [d for _, versions in sorted(_REGISTRY.items()) for _, d in sorted(versions.items(), key=lambda item: str(item[0]).zfill(8))]


@functools.cache
def opset_versions() -> tuple[tuple[str, int], ...]:
    """Every (type, since) of OpenVINO's opsets up to the newest known, whether it is registered or not."""
    lines = (resources.files("irexec.ops") / "opsets.txt").read_text("utf-8").splitlines()
    return tuple((type, int(since)) for type, since in (line.split() for line in lines if not line.startswith("#")))


def newest(type: str) -> OpDef:
    """The newest definition of a type; an extension's only where there is no other.

    Raises:
        UnsupportedError: the type is not known.
    """
    return resolve(type, f"opset{NEWEST_OPSET}")
