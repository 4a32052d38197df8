"""A function for each version of each operation, and the stub by which editors complete them.

    python -m irexec.authoring.operations

writes irexec/opset.pyi from the signatures of the functions, as building a wheel and installing in editable mode do.
The file is not in the repository.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from irexec.authoring.tensor import apply
from irexec.dtypes.elements import Element
from irexec.ir.facts import Fact
from irexec.schema.attributes import Attribute, PartialShapeText
from irexec.schema.opdef import InputSpec, OpDef
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
    text = inspect.cleandoc(definition.kernel.__doc__ or "").replace("``", "`").replace("`", "``")
    inputs = [f"    {line}" for line in map(_input_line, definition.inputs) if line]
    function.__module__, function.__doc__ = (
        "irexec.opset",
        "\n".join([f"{definition.type} of {definition.version}. {text}", *(["", "Args:", *inputs] if inputs else [])]),
    )
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
    kind = inspect.Parameter.VAR_POSITIONAL if spec.variadic else inspect.Parameter.POSITIONAL_OR_KEYWORD
    if spec.optional and not spec.variadic:
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
    """The annotation of the argument for an attribute: a sequence for a tuple, ``ElementLike`` for an element type,
    ``ShapeLike`` for a shape."""
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


def _input_line(spec: InputSpec) -> str:
    kinds = [spec.elements.text] if spec.elements is not None else []
    kinds += [f"rank {spec.ranks.text}"] if spec.ranks is not None else []
    return f"{spec.name}: {', '.join(kinds)}." if kinds else ""


FILE = Path(__file__).parents[1] / "opset.pyi"
"""The file that is written."""
_WIDTH = 120
# Width of a docstring, inside a method and after its quotes.
_PROSE = _WIDTH - 11
_HEAD = '''"""Functions of the operations, for editors and type checkers: written by irexec/authoring/operations.py."""

# Versions of an operation differ in their inputs and attributes.
# mypy: disable-error-code="override"

from collections.abc import Sequence
from typing import Any, Literal, overload

from irexec.authoring.bodies import Iteration as Iteration
from irexec.authoring.bodies import Slices as Slices
from irexec.authoring.bodies import if_ as if_
from irexec.authoring.bodies import loop as loop
from irexec.authoring.bodies import tensor_iterator as tensor_iterator
from irexec.authoring.surgery import embed as embed
from irexec.authoring.tensor import constant as constant
from irexec.authoring.tensor import packed as packed
from irexec.authoring.tensor import parameter as parameter
from irexec.authoring.tensor import result as result
from irexec.authoring.bodies import body as body
from irexec.authoring.bodies import declared as declared
from irexec.authoring.bodies import layer as layer
from irexec.authoring.tensor import Operand, Tensor
from irexec.dtypes.elements import ElementLike
from irexec.ir.shape_text import ShapeLike
'''


def text() -> str:
    """The whole stub."""
    return "\n".join([_HEAD, *_classes(), *_names()]) + "\n"


def _classes() -> Iterator[str]:
    """A class for each opset, which has the functions that are new in it, and one for each other namespace."""
    versions: dict[int | str, list[OpDef]] = {number: [] for number in range(1, NEWEST_OPSET + 1)}
    for definition in definitions():
        if definition.type not in WRITTEN:
            versions.setdefault(definition.since, []).append(definition)
    for version, found in versions.items():
        if isinstance(version, int):
            base = f"(Opset{version - 1})" if version > 1 else ""
            yield f'class Opset{version}{base}:\n    """The operations of opset {version}."""\n'
        else:
            yield f'class {_class_of(version)}:\n    """The operations of the namespace {version}."""\n'
        yield from (_function(definition) for definition in found)


def _class_of(namespace: str) -> str:
    return f"Extension{namespace.title()}"


def _function(definition: OpDef) -> str:
    """One static method with its docstring."""
    function = function_of(definition)
    signature = inspect.signature(function)
    head = [_parameter(parameter) for parameter in signature.parameters.values()]
    first = next((i for i, p in enumerate(signature.parameters.values()) if p.kind is p.KEYWORD_ONLY), None)
    is_variadic = any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values())
    if first is not None and not is_variadic:
        head.insert(first, "*")
    end = f") -> {signature.return_annotation}:"
    line = f"    def {function.__name__}({', '.join(head)}{end}"
    if len(line) > _WIDTH:
        line = "\n".join([f"    def {function.__name__}(", *(f"        {part}," for part in head), f"    {end}"])
    return f"    @staticmethod\n{line}\n{_docstring_lines(inspect.getdoc(function) or '')}\n"


def _parameter(parameter: inspect.Parameter) -> str:
    star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
    default = "" if parameter.default is parameter.empty else f" = {_literal(parameter.default)}"
    line = f"{star}{parameter.name}: {parameter.annotation}{default}"
    if len(line) > _WIDTH - 9:
        # As the formatter breaks it.
        return line.replace("[", "[\n            ", 1).replace("] =", "\n        ] =")
    return line


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        inner = ", ".join(map(_literal, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return f'float("{value}")' if value in (float("inf"), -float("inf")) else repr(value)


def _docstring_lines(doc: str) -> str:
    text = "\n\n".join(map(_wrapped, doc.split("\n\n")))
    if "\n" not in text and len(text) <= _PROSE - 3:
        return f'        """{text}"""'
    return textwrap.indent(f'"""{text}\n"""', " " * 8, lambda line: bool(line.strip()))


def _wrapped(paragraph: str) -> str:
    """A paragraph within the width; lists and examples have indented lines and stay as they are."""
    lines = paragraph.splitlines()
    if max(map(len, lines), default=0) <= _PROSE or any(line.startswith(" ") for line in lines[1:]):
        return paragraph
    return textwrap.fill(paragraph.replace("\n", " "), _PROSE, break_on_hyphens=False)


def _names() -> Iterator[str]:
    """The module's own names: the opsets, the namespaces, and the newest function of each operation."""
    for number in range(1, NEWEST_OPSET + 1):
        yield f"opset{number}: Opset{number}"
    yield ""
    namespaces = sorted({d.since for d in definitions() if isinstance(d.since, str)})
    for namespace in namespaces:
        yield f'@overload\ndef extension(namespace: Literal["{namespace}"]) -> {_class_of(namespace)}: ...'
    yield "@overload\ndef extension(namespace: str) -> Any: ...\n"
    in_opset = {function_name(d.type) for d in definitions() if isinstance(d.since, int)}
    for name in newest_functions():
        owner = f"Opset{NEWEST_OPSET}" if name in in_opset else _class_of(_namespace(name))
        yield f"{name} = {owner}.{name}"


def _namespace(name: str) -> str:
    return next(d.since for d in definitions() if function_name(d.type) == name and isinstance(d.since, str))


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
    print(FILE)
