"""A function for each version of each operation, made from the registry when it is first asked for."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from irexec.authoring.tensor import apply
from irexec.dtypes.elements import Element
from irexec.ir.facts import Fact
from irexec.schema.attributes import Attribute, PartialShapeText
from irexec.schema.inputs import InputSpec
from irexec.schema.opdef import OpDef
from irexec.schema.registry import NEWEST_OPSET, clear_on_change, definitions

# Types whose name in Python is not their words in lower case: as OpenVINO's Python names them.
_SPELLED = {
    "BGRtoNV12": "bgr_to_nv12",
    "Col2Im": "col2im",
    "ErfInv": "erfinv",
    "ExperimentalDetectronTopKROIs": "experimental_detectron_topk_rois",
    "GroupedMatMul": "grouped_matmul",
    "HSigmoid": "hsigmoid",
    "HSwish": "hswish",
    "I420toBGR": "i420_to_bgr",
    "I420toRGB": "i420_to_rgb",
    "If": "if_",
    "IsNaN": "is_nan",
    "MatMul": "matmul",
    "NV12toBGR": "nv12_to_bgr",
    "NV12toRGB": "nv12_to_rgb",
    "PRelu": "prelu",
    "RGBtoNV12": "rgb_to_nv12",
    "SoftPlus": "softplus",
    "SoftSign": "softsign",
    "TopK": "topk",
}
# Functions of their own, with other parameters than the operation has.
WRITTEN = ("Constant", "If", "Loop", "Parameter", "Result", "TensorIterator")


def function_name(type: str) -> str:
    """Name of the function of an operation type: snake_case."""
    words = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", re.sub(r"([a-z\d])([A-Z])", r"\1_\2", type))
    return _SPELLED.get(type, words.lower())


@functools.cache
def functions(version: int | str) -> Mapping[str, Callable[..., Any]]:
    """The functions of the operations of an opset or of an extension's namespace, by name.

    An opset has the newest version of each type that is not newer than the opset.
    """
    chosen: dict[str, OpDef] = {}
    for definition in definitions():
        since = definition.since
        fits = since == version if isinstance(version, str) else isinstance(since, int) and since <= version
        if fits and definition.type not in WRITTEN:
            chosen[definition.type] = definition
    return {function_name(type): function_of(definition) for type, definition in sorted(chosen.items())}


@functools.cache
def newest_functions() -> Mapping[str, Callable[..., Any]]:
    """The functions of the newest version of each operation; an extension's where no opset has its type."""
    found = dict(functions(NEWEST_OPSET))
    for definition in definitions():
        if isinstance(definition.since, str):
            found.setdefault(function_name(definition.type), function_of(definition))
    return found


# A plug-in that is loaded later has functions too.
clear_on_change(functions, newest_functions)


@functools.cache
def function_of(definition: OpDef) -> Callable[..., Any]:
    """The function that makes nodes of a version of an operation."""
    signature, name = _signature(definition), function_name(definition.type)

    def made(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            by_name = _by_name(definition) if "positional arguments" in str(error) else ""
            raise TypeError(f"{name}() of {definition.version}: {error}{by_name}") from None
        operands: list[Any] = []
        for spec in definition.inputs:
            operands += given.pop(spec.name, ()) if spec.variadic else [given.pop(spec.name, None)]
        return apply(definition, operands, given, name=given.pop("name", None), names=given.pop("names", ()))

    # A function has no declared signature, which documentation and editors read.
    function: Any = made
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = "irexec.opset", _docstring(definition)
    function.__signature__ = signature
    found: Callable[..., Any] = function
    return found


def _by_name(definition: OpDef) -> str:
    """The end of the message for arguments that can only be given by name."""
    inputs = ", ".join(spec.name for spec in definition.inputs) or "none"
    attributes = ", ".join(attribute.name for attribute in definition.attributes)
    return f" (inputs: {inputs}{f'; attributes, given by name: {attributes}' if attributes else ''})"


def _signature(definition: OpDef) -> inspect.Signature:
    """Inputs, then attributes by keyword, those without a default first, then the names."""
    attributes = sorted(definition.attributes, key=lambda attribute: not attribute.required)
    return inspect.Signature(
        [
            *map(_input, definition.inputs),
            *map(_attribute, attributes),
            _keyword("name", "str | None", None),
            _keyword("names", "Sequence[str]", ()),
        ],
        return_annotation=_outputs(definition),
    )


def _input(spec: InputSpec) -> inspect.Parameter:
    if spec.variadic:
        return inspect.Parameter(spec.name, inspect.Parameter.VAR_POSITIONAL, annotation=_Source("Operand"))
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if spec.optional:
        return inspect.Parameter(spec.name, kind, default=None, annotation=_Source("Operand | None"))
    return inspect.Parameter(spec.name, kind, annotation=_Source("Operand"))


def _attribute(attribute: Attribute) -> inspect.Parameter:
    default = inspect.Parameter.empty if attribute.required else attribute.default
    return _keyword(attribute.parameter, annotation_text(attribute.annotation), default)


def _keyword(name: str, annotation: str, default: Any) -> inspect.Parameter:
    shown = default.name if isinstance(default, Element) else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=shown, annotation=_Source(annotation))


class _Source(str):
    """An annotation that a signature shows as it is written."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def annotation_text(annotation: Any) -> str:
    """The annotation of an argument that is given for an attribute: any sequence for a tuple, whatever means an element
    type or a shape for one."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        is_shape = any(isinstance(mark, PartialShapeText) for mark in parts[1:])
        return "ShapeLike" if is_shape else annotation_text(parts[0])
    if origin is Literal:
        return f"Literal[{', '.join(map(_quoted, parts))}]"
    if origin is tuple:
        return f"Sequence[{annotation_text(parts[0])}]"
    if NoneType in parts:
        return " | ".join([*(annotation_text(part) for part in parts if part is not NoneType), "None"])
    return "ElementLike" if annotation is Element else str(annotation.__name__)


def _quoted(text: str) -> str:
    return f'"{text}"'


def _outputs(definition: OpDef) -> _Source:
    """The annotation of the outputs: a Tensor, a tuple of as many as the shape rule gives, or Any where an attribute
    decides."""
    facts = get_type_hints(definition.shape_function)["return"]
    if facts is Fact:
        return _Source("Tensor")
    if facts is Any:
        return _Source("Any")
    parts = get_args(facts) if get_origin(facts) is tuple else (Fact, ...)
    return _Source(f"tuple[{', '.join('...' if part is ... else 'Tensor' for part in parts)}]")


def _docstring(definition: OpDef) -> str:
    text = inspect.cleandoc(definition.kernel.__doc__ or "").replace("``", "`").replace("`", "``")
    inputs = [f"    {line}" for line in map(_input_line, definition.inputs) if line]
    return "\n".join(
        [f"{definition.type} of {definition.version}. {text}", *(["", "Args:", *inputs] if inputs else [])]
    )


def _input_line(spec: InputSpec) -> str:
    kinds = [spec.elements.text] if spec.elements is not None else []
    kinds += [f"rank {spec.ranks.text}"] if spec.ranks is not None else []
    return f"{spec.name}: {', '.join(kinds)}." if kinds else ""
