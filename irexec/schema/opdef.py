"""OpDef: one version of one operation, with its schema, its reference kernel and its shape rule."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irexec.errors import OpError, RangeError
from irexec.ir import codes
from irexec.ir.dims import check_sizes
from irexec.ir.facts import EveryOutput, Fact
from irexec.schema.attributes import Attribute
from irexec.schema.injected import ElementTypes
from irexec.schema.inputs import InputSpec, check_inputs
from irexec.schema.signature import Signature, read_signature


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
        """Parameters that the runtime injects: name -> Runner, Variables, Constant or ElementTypes."""
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
