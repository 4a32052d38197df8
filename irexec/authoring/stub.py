"""The stub of irexec.opset, by which editors complete and type checkers check.

    python -m irexec.authoring.stub

writes irexec/opset.pyi from the signatures of the functions, as building a wheel and installing in editable mode do.
The file is not in the repository.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from irexec.authoring.operations import WRITTEN, function_name, function_of, newest_functions
from irexec.schema.opdef import OpDef
from irexec.schema.registry import NEWEST_OPSET, definitions

FILE = Path(__file__).parents[1] / "opset.pyi"
"""The file that is written."""
_WIDTH = 120
# Width of a docstring, inside a method and after its quotes.
_PROSE = _WIDTH - 11
_HEAD = '''"""Functions of the operations, for editors and type checkers: written by irexec/authoring/stub.py."""

# Versions of an operation differ in their inputs and attributes.
# mypy: disable-error-code="override"

from collections.abc import Sequence
from typing import Any, Literal, overload

from irexec.authoring.bodies import Iteration as Iteration
from irexec.authoring.bodies import Slices as Slices
from irexec.authoring.bodies import if_ as if_
from irexec.authoring.bodies import loop as loop
from irexec.authoring.bodies import tensor_iterator as tensor_iterator
from irexec.authoring.embedding import embed as embed
from irexec.authoring.ends import constant as constant
from irexec.authoring.ends import packed as packed
from irexec.authoring.ends import parameter as parameter
from irexec.authoring.ends import result as result
from irexec.authoring.raw_layers import body as body
from irexec.authoring.raw_layers import declared as declared
from irexec.authoring.raw_layers import layer as layer
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
    return f"    @staticmethod\n{line}\n{_docstring(inspect.getdoc(function) or '')}\n"


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


def _docstring(doc: str) -> str:
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
