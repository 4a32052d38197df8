"""Decorators of plug-ins: ``operation`` registers an operation, ``translates`` a translator of an ONNX operator.

    @irexec.operation("SoftTopK", domain="my.ops")
    def soft_top_k(data: FloatTensor, *, k: int = 1) -> np.ndarray: ...

    @soft_top_k.shape_rule
    def _(data: Fact, *, k: int = 1) -> Fact: ...

    @irexec.translates("my.domain", "SoftTopK")
    def translate(ctx, data: irexec.Value, *, k: int = 1): ...

The signature of a kernel is the schema, as that of irexec's own kernels; see irexec.schema.registry.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, get_args, get_type_hints

import numpy as np

from irexec.dtypes.elements import STRING, Element, element_of
from irexec.errors import OpError, PluginError
from irexec.ir.dims import Dim
from irexec.ir.facts import EveryOutput, Fact
from irexec.schema.opdef import OpDef
from irexec.schema.plugins import IN_MAIN, guarded, origin_of, plugins
from irexec.schema.registry import add, discard, is_own_type, opset_number

_OWN_DOMAINS = ("irexec", "onednn")


class Operation(Protocol):
    """An operation of a plug-in."""

    def shape_rule(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: ``rule`` is the shape rule of this operation. It takes the inputs of the
        kernel as facts, and those of its attributes that it names."""

    def fast_kernel(self, candidates: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: ``candidates`` takes a ``irexec.plugins.Task`` and yields a ``Candidate`` for each kernel that can
        compute it faster than this one; none where there is none for its types and shapes."""

    def __call__(self, *inputs: Any, **attributes: Any) -> Any:
        """The results of the kernel."""


@dataclass(eq=False)
class Extension(OpDef):
    """The definition of an Operation."""

    def __post_init__(self) -> None:
        self.shape_function = _missing
        self.kernel = self._checked(self.kernel)

    def shape_rule(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """See Operation.shape_rule."""
        what = f"the shape rule of {self}"
        call, annotation = guarded(rule, what), functools.cache(guarded(lambda: get_type_hints(rule)["return"], what))

        @functools.wraps(rule)
        def run(*inputs: Any, **attributes: Any) -> Any:
            found = call(*inputs, **attributes)
            facts = found if isinstance(found, tuple | list) else (found,)
            parts = get_args(annotation())
            expected = 1 if annotation() is Fact else None if ... in parts else len(parts)
            if expected and (len(facts) != expected or (annotation() is Fact and facts is found)):
                raise OpError(f"{what} returns {len(facts)} facts, its annotation has {expected}")
            checked = tuple(_checked_fact(fact, what) for fact in facts)
            return checked if facts is found else checked[0]

        return super().shape_rule(run)

    def fast_kernel(self, candidates: Callable[..., Any]) -> Callable[..., Any]:
        """See Operation.fast_kernel."""
        self.fast_kernels.append(candidates)
        if plugins.current is not None:
            plugins.current.undo.append(functools.partial(self.fast_kernels.remove, candidates))
        return candidates

    def first_output_only(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Refused: kernels of plug-ins compute all outputs."""
        raise PluginError(f"{self}: the kernel of a plug-in computes all outputs")

    def __str__(self) -> str:
        return f"{self.type} of {self.version} ({self.plugin})"

    def check(self) -> None:
        """Raise PluginError unless there is a shape rule, and the schema can be read."""
        if self.shape_function is _missing:
            raise PluginError(f"{self.type} of {self.version} has no shape rule")
        for function, name in ((self.kernel, "kernel"), (self.shape_function, "shape rule")):
            try:
                hints = get_type_hints(function)
            except NameError as error:
                raise PluginError(f"an annotation of the {name} of {self.type}: {error}") from error
            if name == "shape rule" and "return" not in hints:
                raise PluginError(f"the shape rule of {self.type} has no annotation of its result")
        try:
            _ = self.inputs
        except KeyError as error:
            raise PluginError(f"parameter {error.args[0]!r} of the kernel of {self.type} has no annotation") from error

    def _checked(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """The kernel; it raises OpError where its results are not those that the shape rule announces."""
        call = guarded(kernel, f"the kernel of {self}")

        @functools.wraps(kernel)
        def run(*inputs: Any, **attributes: Any) -> Any:
            results = call(*inputs, **attributes)
            arrays = results if isinstance(results, tuple) else (results,)
            rule = self.facts(map(_fact, inputs), attributes)
            facts = rule if isinstance(rule, tuple) else (rule,)
            if len(facts) != len(arrays):
                raise OpError(f"the kernel of {self} returns {len(arrays)} outputs, its shape rule {len(facts)}")
            checked = tuple(self._output(*pair) for pair in zip(arrays, facts, strict=True))
            return checked if isinstance(results, tuple) else checked[0]

        return run

    def _output(self, array: Any, fact: Fact) -> np.ndarray:
        """A result of the kernel as an array in the carrier of its element type.

        NumPy returns scalars in place of arrays of rank 0, and arrays of str for texts.
        """
        if not isinstance(array, np.ndarray | np.generic | str):
            raise OpError(f"the kernel of {self} returns {type(array).__name__}, expected an array")
        array = np.asarray(array)
        if array.dtype.kind in "UT":
            array = array.astype(object)
        if (
            array.dtype == object
            and (wrong := next((x for x in array.flat if not isinstance(x, str)), None)) is not None
        ):
            raise OpError(f"the kernel of {self} returns an array of objects with {wrong!r}, expected str")
        if not Fact(fact.element, fact.shape).admits(array):
            raise OpError(f"the kernel of {self} returns {array.dtype}{list(array.shape)}, its shape rule {fact}")
        return array


def _checked_fact(fact: Any, what: str) -> Any:
    """A fact of a shape rule; sizes become int, and a list of sizes a tuple.

    Raises:
        OpError: it is something else, or has another element type or shape than a Fact may have.
    """
    if isinstance(fact, EveryOutput):
        return fact
    if not isinstance(fact, Fact):
        raise OpError(f"{what} returns {type(fact).__name__}, expected a Fact")
    if not isinstance(fact.element, Element | None):
        raise OpError(f"{what} returns the element type {fact.element!r}, expected one such as irexec.f32")
    if fact.shape is None:
        return fact
    if not isinstance(fact.shape, tuple | list) or not all(isinstance(n, int | np.integer | Dim) for n in fact.shape):
        raise OpError(f"{what} returns the shape {fact.shape!r}, expected a tuple of int and Dim")
    shape = tuple(size if isinstance(size, Dim) else int(size) for size in fact.shape)
    return Fact(fact.element, shape, fact.value)


def _missing(*inputs: Any, **attributes: Any) -> Any:
    raise OpError("the operation has no shape rule")


def operation(
    type: str, *, domain: str, since: int = 1, widen: bool = False, view: bool = False, deterministic: bool = True,
    tolerance: float = 1e-6,
) -> Callable[[Callable[..., Any]], Operation]:  # fmt: skip
    """Decorator of a kernel: it becomes an operation that every function and command knows.

    Positional parameters are the inputs, annotated by a type of ``irexec.plugins``; ``= None`` is an optional input,
    ``*inputs`` any number. Keyword-only parameters are the attributes, with type and default. The kernel takes and
    returns arrays, and its docstring documents the operation. The result has the decorator ``shape_rule``.

    Args:
        type: the type of a layer; not one of irexec's own types.
        domain: the namespace of the operation, which IR has as the version of the layer.
        since: the version of the operation in its domain; version 2 is written as "domain.2".
        widen: f16 inputs are computed in f32, and the results rounded back once.
        view: an output may share memory with an input.
        deterministic: the same inputs give the same outputs.
        tolerance: the relative error allowed in f32.

    Raises:
        PluginError: the type is one of irexec's own, or the version is registered already.
    """
    if is_own_type(type):
        raise PluginError(f"{type} is an operation of irexec, a plug-in cannot replace it; use another type")
    if domain in _OWN_DOMAINS or opset_number(domain) is not None or not domain.strip():
        raise PluginError(f"domain {domain!r} of {type} is reserved; use another domain")
    if since < 1:
        raise PluginError(f"{type} of {domain}: since is {since}, expected 1 or more")
    version = domain if since == 1 else f"{domain}.{since}"

    def register(kernel: Callable[..., Any]) -> Operation:
        plugin = origin_of(kernel)
        definition = Extension(
            type, version, kernel, widen=widen, view=view, deterministic=deterministic, tolerance=tolerance,
            plugin=plugin,
        )  # fmt: skip
        try:
            add(definition, replace=plugin == IN_MAIN)
        except ValueError as error:
            raise PluginError(str(error)) from None
        if plugins.current is not None:
            plugins.current.checks.append(definition.check)
            plugins.current.undo.append(functools.partial(discard, definition))
        return definition

    return register


@dataclass(frozen=True)
class Translator:
    """A translator of a plug-in, which converters register when they look for it.

    Attributes:
        domain, type, since: the ONNX operator, and the first opset of its domain; the domain of ai.onnx is "".
        function: the translator.
        plugin: the plug-in in messages.
    """

    domain: str
    type: str
    since: int
    function: Callable[..., Any]
    plugin: str


TRANSLATORS: list[Translator] = []
"""Translators that no converter has registered yet."""


def translates(domain: str, *types: str, since: int = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a translator of ONNX operators to layers.

    The translator takes a context, the inputs as ``irexec.Value`` (``= None`` where optional) and the attributes as
    keyword-only parameters with type and default. ``ctx.emit(type, *inputs, **attributes)`` adds a layer and returns
    its output, ``ctx.constant(array)`` a constant. The translator returns the outputs.

    Args:
        domain: the domain of the operators.
        types: the operators.
        since: the first opset of the domain that the translator is for.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for type in types:
            plugin = origin_of(function)
            call = guarded(function, f"the translator of {domain}.{type} ({plugin})")
            translator = Translator("" if domain == "ai.onnx" else domain, type, since, call, plugin)
            TRANSLATORS.append(translator)
            if plugins.current is not None:
                plugins.current.undo.append(functools.partial(TRANSLATORS.remove, translator))
        return function

    return register


def _fact(array: np.ndarray | None) -> Fact | None:
    """The fact of an input of a kernel. An element type that NumPy lacks is that of its carrier."""
    if array is None:
        return None
    return Fact(STRING if array.dtype == object else element_of(array.dtype), array.shape, array)
