"""The schema of an operation, read from the signature of its reference kernel; irexec.schema.registry describes how."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_type_hints

from irexec.dtypes.elements import Element
from irexec.schema.attributes import REQUIRED, Attribute, parser_of
from irexec.schema.injected import INJECTED
from irexec.schema.inputs import InputSpec, input_spec


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
    for field in dataclasses.fields(group):
        default = REQUIRED if field.default is dataclasses.MISSING else field.default
        yield _attribute(field.name, hints[field.name], default, parameter)


def _attribute(parameter: str, hint: Any, default: Any, group: str | None = None) -> Attribute:
    parse, choices = parser_of(hint)
    return Attribute(_IR_NAMES.get(parameter, parameter), parameter, parse, default, choices, hint, group)


# Attributes that IR spells with a hyphen or a dot, or as a word that Python reserves.
_IR_NAMES = {
    "exclude_pad": "exclude-pad",
    "lambda_": "lambda",
    "auto_broadcast_axis": "auto_broadcast.auto_broadcast_axis",
    "mode_axis": "mode.auto_broadcast_axis",
}
