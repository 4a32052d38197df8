"""OpDef: one version of one operation, with its schema, its reference kernel and its shape rule.

Inputs of an operation: which element types and ranks each takes, declared in the annotation of the kernel's
parameter.

    def gather_8(data: Tensor, indices: IntegerTensor, axis: Annotated[IntegerTensor, Rank(0, 1)], *, batch_dims: int =
    0)

The aliases below name the usual sets of element types; ``Annotated[..., Rank(3, 5)]`` adds the ranks. One generic check
refuses an input that breaks its declaration: before the shape rule where its fact is known, else before the kernel.
Rules and kernels therefore see declared inputs alone.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from irexec.dtypes.elements import ELEMENTS, I32, I64, Element
from irexec.errors import OpError, RangeError
from irexec.ir import codes
from irexec.ir.dims import check_sizes, may_equal
from irexec.ir.facts import EveryOutput, Fact
from irexec.ir.graph import Node, Value
from irexec.messages import alternatives
from irexec.schema.attributes import INJECTED, REQUIRED, Attribute, ElementTypes, parser_of


@dataclasses.dataclass(frozen=True)
class Signature:
    """Inputs and attributes; the dataclasses that take several attributes, and what is injected, by the kernel's
    parameter."""

    inputs: tuple[InputSpec, ...]
    attributes: tuple[Attribute, ...]
    groups: Mapping[str, Any]
    injected: Mapping[str, Any]


def read_signature(kernel: Callable[..., Any]) -> Signature:
    """The schema that the kernel's parameters and their annotations declare."""
    hints = get_type_hints(kernel, include_extras=True)
    inputs: list[InputSpec] = []
    attributes: list[Attribute] = []
    groups: dict[str, Any] = {}
    injected: dict[str, Any] = {}
    for name, p in inspect.signature(kernel).parameters.items():
        hint = hints[name]
        if p.kind is not p.KEYWORD_ONLY:
            inputs.append(
                input_spec(name, hint, optional=p.default is not p.empty, variadic=p.kind is p.VAR_POSITIONAL)
            )
        elif any(hint is kind for kind in INJECTED):
            injected[name] = hint
        elif dataclasses.is_dataclass(hint) and hint is not Element:
            groups[name] = hint
            attributes.extend(_fields(hint, name))
        else:
            attributes.append(_attribute(name, hint, REQUIRED if p.default is p.empty else p.default))
    return Signature(tuple(inputs), tuple(attributes), groups, injected)


def _fields(group: Any, parameter: str) -> Iterator[Attribute]:
    """The fields of a dataclass as attributes."""
    hints = get_type_hints(group, include_extras=True)
    for entry in dataclasses.fields(group):
        default = REQUIRED if entry.default is dataclasses.MISSING else entry.default
        yield _attribute(entry.name, hints[entry.name], default, parameter)


def _attribute(parameter: str, hint: Any, default: Any, group: str | None = None) -> Attribute:
    parse, choices = parser_of(hint)
    written = parameter.replace("config_", "config.", 1) if parameter.startswith("config_") else parameter
    return Attribute(_IR_NAMES.get(parameter, written), parameter, parse, default, choices, hint, group)


# Attributes that IR spells with a hyphen or a dot, or as a word that Python reserves.
_IR_NAMES = {
    "exclude_pad": "exclude-pad",
    "lambda_": "lambda",
    "auto_broadcast_axis": "auto_broadcast.auto_broadcast_axis",
    "mode_axis": "mode.auto_broadcast_axis",
}


@dataclass(frozen=True)
class ElementSet:
    """Element types that an input takes.

    Attributes:
        text: the name of the set in messages and documentation, with its article: "an integer type".
        elements: its members.
    """

    text: str
    elements: frozenset[Element]

    def __contains__(self, element: Element) -> bool:
        return element in self.elements


@dataclass(frozen=True)
class Rank:
    """The ranks that an input takes: ``Rank(4)`` exactly 4, ``Rank(3, 5)`` 3 to 5, ``Rank(1, None)`` 1 or more.

    With ``single_element`` an input of rank 1 has one element: ``ONE_ELEMENT`` is a scalar, or a vector of one element
    where OpenVINO accepts it. ``SCALAR`` is for inputs whose vectors OpenVINO refuses.
    """

    minimum: int
    maximum: int | None = -1
    single_element: bool = False

    @property
    def text(self) -> str:
        """For messages: "4", "0 or 1", "3 to 5", "1 or more" or "0, or 1 with a single element"."""
        if self.single_element:
            return "0, or 1 with a single element"
        if self.maximum is None:
            return f"{self.minimum} or more"
        ranks = [str(rank) for rank in range(self.minimum, self._last + 1)]
        return alternatives(ranks) if len(ranks) < 4 else f"{ranks[0]} to {ranks[-1]}"

    @property
    def _last(self) -> int:
        return self.minimum if self.maximum == -1 else self.maximum or 0

    def __contains__(self, rank: int) -> bool:
        return rank >= self.minimum and (self.maximum is None or rank <= self._last)


SCALAR = Rank(0)
ONE_ELEMENT = Rank(0, 1, single_element=True)
VECTOR = Rank(1)


def element_set(text: str, *elements: Element) -> ElementSet:
    """A set of a few element types; ``text`` is what messages call it."""
    return ElementSet(text, frozenset(elements))


ANY_TYPE = element_set("any element type", *ELEMENTS)
NOT_STRING = element_set("any element type but string", *(e for e in ELEMENTS if e.kind != "string"))
NUMERIC = element_set("a numeric type", *(e for e in ELEMENTS if e.is_float or e.is_integer))
FLOAT = element_set("a floating-point type", *(e for e in ELEMENTS if e.is_float))
INTEGER = element_set("an integer type", *(e for e in ELEMENTS if e.is_integer))
INTEGER_OR_BOOLEAN = element_set(
    "an integer type or boolean", *(e for e in ELEMENTS if e.is_integer or e.kind == "boolean")
)
BOOLEAN_TYPE = element_set("boolean", *(e for e in ELEMENTS if e.kind == "boolean"))
STRING_TYPE = element_set("string", *(e for e in ELEMENTS if e.kind == "string"))
INDEX = element_set("i32 or i64", I32, I64)

AnyTensor = Annotated[np.ndarray, ANY_TYPE]
Tensor = Annotated[np.ndarray, NOT_STRING]
NumericTensor = Annotated[np.ndarray, NUMERIC]
FloatTensor = Annotated[np.ndarray, FLOAT]
FloatVector = Annotated[np.ndarray, FLOAT, VECTOR]
IntegerTensor = Annotated[np.ndarray, INTEGER]
BooleanTensor = Annotated[np.ndarray, BOOLEAN_TYPE]
StringTensor = Annotated[np.ndarray, STRING_TYPE]
IndexTensor = Annotated[np.ndarray, INDEX]
IndexScalar = Annotated[np.ndarray, INDEX, SCALAR]
IndexElement = Annotated[np.ndarray, INDEX, ONE_ELEMENT]
IndexVector = Annotated[np.ndarray, INDEX, VECTOR]
IntegerScalar = Annotated[np.ndarray, INTEGER, SCALAR]
IntegerElement = Annotated[np.ndarray, INTEGER, ONE_ELEMENT]
IntegerVector = Annotated[np.ndarray, INTEGER, VECTOR]
AxesTensor = Annotated[np.ndarray, INTEGER, Rank(0, 1)]


@dataclass(frozen=True)
class InputSpec:
    """One input of the schema.

    Attributes:
        name: the specification's.
        optional: whether it may be absent.
        variadic: whether it stands for any number of inputs.
        elements: the element types it takes; None if its annotation does not say.
        ranks: the ranks it takes; None for any.
    """

    name: str
    optional: bool = False
    variadic: bool = False
    elements: ElementSet | None = None
    ranks: Rank | None = None

    def check(self, fact: Fact) -> None:
        """Raise OpError if what is known of the input breaks its declaration."""
        # Messages are made where they are needed: growing states have every input checked in every run.
        elements, ranks = self.elements, self.ranks
        if elements is not None and fact.element is not None and fact.element not in elements:
            raise OpError(f"{self.name} has element type {fact.element}, expected {elements.text}")
        if ranks is not None and fact.shape is not None:
            if len(fact.shape) not in ranks:
                raise OpError(f"{self.name} has rank {fact.rank}, expected {ranks.text}")
            if ranks.single_element and fact.shape and not may_equal(fact.shape[0], 1):
                raise OpError(f"{self.name} has {fact.shape[0]} elements, expected 1")


def input_spec(name: str, hint: Any, *, optional: bool = False, variadic: bool = False) -> InputSpec:
    """The declaration of an input by its annotation, which may be ``... | None`` where it is optional."""
    if get_origin(hint) in (Union, UnionType):
        hint = next(kind for kind in get_args(hint) if kind is not NoneType)
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    # The outermost mark counts, so that an alias can be narrowed.
    elements = next((mark for mark in reversed(marks) if isinstance(mark, ElementSet)), None)
    ranks = next((mark for mark in reversed(marks) if isinstance(mark, Rank)), None)
    return InputSpec(name, optional, variadic, elements, ranks)


def unchanged(data: Fact) -> Fact:
    """The shape rule where the result has the element type and the shape of ``data``."""
    return Fact(data.element, data.shape)


def check_inputs(specs: Sequence[InputSpec], facts: Sequence[Fact]) -> None:
    """Raise OpError for the first input that breaks its declaration; the last spec counts on if it is variadic."""
    for i, fact in enumerate(facts):
        specs[min(i, len(specs) - 1)].check(fact)


@dataclass(frozen=True, slots=True)
class AttributeProblem:
    """A problem of one attribute of a layer: the code of a finding and its message; the schema does not know the
    layer."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ParsedAttributes:
    """The attributes of one layer, typed.

    Attributes:
        values: by the kernel's parameter; a parameter is left out where an attribute without a default is missing or
            wrong.
        problems: the faults of the attributes as written.
    """

    values: Mapping[str, Any]
    problems: tuple[AttributeProblem, ...]

    def require(self) -> dict[str, Any]:
        """A copy of the values; raises OpError for the first attribute that is missing, ill-typed or out of range."""
        for problem in self.problems:
            if problem.code != codes.UNKNOWN_ATTRIBUTE:
                raise OpError(problem.message)
        return dict(self.values)


@dataclass(eq=False)
class OpDef:
    """One version of one operation type.

    Attributes:
        type: as IR spells it.
        since: the opset in which the version first appeared, or the namespace of an extension.
        kernel: the reference kernel: arrays in, array or tuple of arrays out.
        symbolic: the kernel also works on object arrays of int | Dim.
        widen: f16 inputs are computed in f32 and the f32 results rounded back once.
        view: an output may be a view of an input.
        deterministic: the same inputs give the same outputs.
        propagate_value: its value is computed by shape inference where the inputs are known; not where OpenVINO
            declares another shape than it gives.
        stateful: it reads or writes variables.
        caches: inputs that it writes; a session keeps them in variables with the names of the layers they come from.
        unread: OpenVINO's transformations write layers of it, and its reader refuses them.
        tolerance: the relative error allowed in f32 against the reference kernel or a recorded answer.
        late: inputs that may have any shape where a fast kernel is selected: it binds their arrays in each run.
        ignores: attributes without a meaning, which other writers add.
        plugin: the plug-in of the operation in messages; empty for an operation of irexec.
        shape_function: the shape rule: the kernel's inputs as Facts, and the attributes that it names.
        first_output_kernel: the kernel's signature; gives the first output alone, where nobody reads the others.
        fast_kernels: of a plug-in's operation, the functions that yield candidates; see irexec.backend.registry.
    """

    type: str
    since: int | str
    kernel: Callable[..., Any]
    symbolic: bool = False
    widen: bool = False
    view: bool = False
    deterministic: bool = True
    propagate_value: bool = True
    stateful: bool = False
    caches: tuple[str, ...] = ()
    unread: bool = False
    tolerance: float = 1e-6
    late: tuple[int, ...] = ()
    ignores: tuple[str, ...] = ()
    plugin: str = ""
    shape_function: Callable[..., Any] = field(init=False, repr=False)
    first_output_kernel: Callable[..., Any] | None = None
    fast_kernels: list[Callable[..., Any]] = field(default_factory=list, repr=False)

    def shape_rule(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: ``rule`` is the shape rule of this operation."""
        self.shape_function = rule
        return rule

    def first_output_only(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: ``kernel`` gives the first output of this operation alone."""
        self.first_output_kernel = kernel
        return kernel

    def __call__(self, *inputs: Any, **attributes: Any) -> Any:
        """The reference kernel; f16 is widened where the operation asks for it. NaN and infinities are results, not
        reasons to warn."""
        with np.errstate(all="ignore"):
            return self._computed(*inputs, **attributes)

    def _computed(self, *inputs: Any, **attributes: Any) -> Any:
        floats = [x.dtype for x in inputs if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
        if not self.widen or np.float16 not in floats:
            return self.kernel(*inputs, **attributes)
        results = self.kernel(*map(widened, inputs), **attributes)
        return _narrow(results) if all(dtype == np.float16 for dtype in floats) else results

    @functools.cached_property
    def _signature(self) -> Signature:
        # Read when it is first needed: a model uses few of the operations, and annotations take long to evaluate.
        return read_signature(self.kernel)

    @functools.cached_property
    def _input_count(self) -> tuple[int, bool]:
        """The minimum number of inputs, and whether any number may follow."""
        return sum(not spec.optional and not spec.variadic for spec in self.inputs), any(
            spec.variadic for spec in self.inputs
        )

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        """Inputs of the operation."""
        return self._signature.inputs

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Its attributes, those of a group one by one."""
        return self._signature.attributes

    @property
    def groups(self) -> Mapping[str, Any]:
        """The frozen dataclasses that take several attributes at once, by the kernel's parameter."""
        return self._signature.groups

    @property
    def injected(self) -> Mapping[str, Any]:
        """Parameters that the runtime injects: name -> Runner, Variables, Caches, Constant or
        ElementTypes."""
        return self._signature.injected

    @property
    def version(self) -> str:
        """The version as the writer spells it: "opset8", or the namespace of an extension."""
        return f"opset{self.since}" if isinstance(self.since, int) else self.since

    @functools.cached_property
    def by_name(self) -> Mapping[str, Attribute]:
        """The attributes by the name that IR writes."""
        return {attribute.name: attribute for attribute in self.attributes}

    @functools.cached_property
    def elements_parameter(self) -> str | None:
        """The parameter that takes the element types of the inputs, if there is one."""
        return next((name for name, kind in self.injected.items() if kind is ElementTypes), None)

    def kept_inputs(self, node: Node) -> dict[str, Value]:
        """The values of ``caches`` by the name of the input; see ``cache_variable``."""
        if not self.caches:
            return {}
        sources = zip(self.inputs, node.inputs, strict=False)
        return {spec.name: value for spec, value in sources if spec.name in self.caches and value is not None}

    def infer(self, inputs: Sequence[Fact], arguments: Mapping[str, Any]) -> Any:
        """The facts of the outputs, as the shape rule gives them: a Fact, or a tuple of them.

        Args:
            inputs: the facts of the inputs.
            arguments: attributes and injected arguments, by the kernel's parameter.

        Raises:
            OpError: the number of inputs is wrong, one breaks its declaration, the rule objects, or a size of an output
                is negative or does not fit 64 bits.
        """
        self.check_input_count(len(inputs))
        check_inputs(self.inputs, inputs)
        with np.errstate(all="ignore"):
            facts = self.facts(inputs, arguments)
        for fact in facts if isinstance(facts, tuple | list) else (facts,):
            check_sizes(fact.fact.shape if isinstance(fact, EveryOutput) else fact.shape)
        return facts

    def facts(self, inputs: Iterable[Fact | None], arguments: Mapping[str, Any]) -> Any:
        """The result of the shape rule for the inputs and those of the arguments that the rule names."""
        named = _keywords(self.shape_function)
        return self.shape_function(*inputs, **{n: arguments[n] for n in arguments if named is None or n in named})

    def check_input_count(self, given: int) -> None:
        """Raise OpError unless ``given`` is a possible number of inputs."""
        minimum, variadic = self._input_count
        if given < minimum or (given > len(self.inputs) and not variadic):
            upper = "or more" if variadic else f"to {len(self.inputs)}" if len(self.inputs) > minimum else ""
            raise OpError(f"has {given} inputs, expected {' '.join(filter(None, (str(minimum), upper)))}")

    def parse(self, texts: Mapping[str, Any]) -> ParsedAttributes:
        """The attributes as written or given, typed, and what is wrong with them.

        A wrong or missing attribute gets its default, or is left out if it has none.
        """
        values: dict[str, Any] = {}
        problems: list[AttributeProblem] = []
        for attribute in self.attributes:
            text = texts.get(attribute.name)
            if text is not None:
                try:
                    values[attribute.parameter] = attribute.parse(text)
                    continue
                except OpError as error:
                    code = codes.ATTRIBUTE_OUT_OF_RANGE if isinstance(error, RangeError) else codes.ILL_TYPED_ATTRIBUTE
                    problems.append(AttributeProblem(code, f"attribute {attribute.name!r}: {error}"))
            elif attribute.required:
                problems.append(
                    AttributeProblem(codes.MISSING_ATTRIBUTE, f"required attribute {attribute.name!r} is missing")
                )
            if not attribute.required:
                values[attribute.parameter] = attribute.default
        for name in texts:
            if name not in self.by_name and name not in self.ignores:
                # OpenVINO writes a structure as several attributes, whose names begin with that of the first.
                is_part = name.rpartition(".")[0] in self.by_name
                code = codes.UNSUPPORTED_ATTRIBUTE if is_part else codes.UNKNOWN_ATTRIBUTE
                problems.append(AttributeProblem(code, f"attribute {name!r} is not known to {self.type}"))
        return ParsedAttributes(self._grouped(values), tuple(problems))

    def arguments(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Typed values of attributes by name as the kernel takes them: defaults added, those of a group in its
        dataclass."""
        defaults = {a.parameter: a.default for a in self.attributes if not a.required}
        return self._grouped(defaults | dict(attributes))

    def _grouped(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values with those of each group put into its dataclass, which is left out where one is missing."""
        for parameter, group in self.groups.items():
            names = [a.parameter for a in self.attributes if a.group == parameter]
            fields = {name: values.pop(name) for name in names if name in values}
            if len(fields) == len(names):
                values[parameter] = group(**fields)
        return values

    def ungrouped(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Attribute values by name with each dataclass taken apart: what Builder.emit takes."""
        flat = {name: value for name, value in arguments.items() if name not in self.groups}
        for attribute in self.attributes:
            if attribute.group is not None and attribute.group in arguments:
                flat[attribute.parameter] = getattr(arguments[attribute.group], attribute.parameter)
        return flat


def cache_variable(value: Value) -> str:
    """The variable that keeps a cache: the name of the layer from which it comes, before any Convert, so that layers
    with the same cache share it."""
    node = value.node
    while node.type == "Convert" and node.inputs and node.inputs[0] is not None:
        node = node.inputs[0].node
    return node.name


@functools.cache
def _keywords(function: Callable[..., Any]) -> frozenset[str] | None:
    """The names of the keyword-only parameters; None where a plug-in's function takes any."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)


def widened(x: Any) -> Any:
    """An array of f16 in f32; anything else as it is."""
    return x.astype(np.float32) if isinstance(x, np.ndarray) and x.dtype == np.float16 else x


def _narrow(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_narrow, result))
    with np.errstate(over="ignore"):
        return result.astype(np.float16) if result.dtype == np.float32 else result
