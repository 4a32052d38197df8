"""The signatures of the public API, one a line, and the file that they are compared with.

    python -m tests.support.signatures

writes the file anew: do so when a change of the public API is intended, and name the change in the changelog.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from typing import Any

import irexec
from tests.support.paths import DATA

FILE = DATA / "public_api.txt"
_METHODS = {"__call__", "__getitem__", "__len__", "__iter__", "__contains__", "__enter__", "__exit__"}


def lines() -> list[str]:
    """Every public name with its signature, and every public method, property and attribute of the classes."""
    found: list[str] = []
    for name in irexec.__all__:
        found += _described(name, getattr(irexec, name))
    return found


def _described(name: str, thing: Any) -> Iterator[str]:
    if isinstance(thing, type) and not issubclass(thing, Exception):
        yield f"class {name}{_signature(thing)}"
        members: dict[str, str] = {}
        for owner in thing.__mro__[::-1]:
            if owner.__module__.startswith(("irexec", "converters")):
                members |= _members(owner)
        yield from (f"{name}.{member}" for member in members.values())
    elif isinstance(thing, type):
        bases = ", ".join(base.__name__ for base in thing.__bases__)
        yield f"class {name}({bases})"
    elif isinstance(thing, types.FunctionType):
        yield f"{name}{_signature(thing)}"
    else:
        yield f"{name}: {type(thing).__name__}"


def _members(owner: type) -> dict[str, str]:
    """The members that a class itself defines, by their names."""
    found = {
        attribute: f"{attribute}: {_Text.of(kind)}"
        for attribute, kind in inspect.get_annotations(owner).items()
        if not attribute.startswith("_")
    }
    for attribute, value in vars(owner).items():
        if attribute in found or (attribute.startswith("_") and attribute not in _METHODS):
            continue
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if isinstance(function, types.FunctionType):
            found[attribute] = f"{attribute}{_signature(function)}"
        elif isinstance(value, property):
            found[attribute] = f"{attribute} -> {_Text.of(inspect.get_annotations(value.fget)['return'])}"  # type: ignore[arg-type]
    return found


def _signature(thing: Any) -> str:
    """The signature as text, the same in every version of Python."""
    signature = inspect.signature(thing)
    parameters = [
        parameter.replace(
            annotation=_Text.of(parameter.annotation),
            default=parameter.default if parameter.default is inspect.Parameter.empty else _Text(_default(parameter)),
        )
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=parameters, return_annotation=_Text.of(signature.return_annotation)))


def _default(parameter: inspect.Parameter) -> str:
    """A default as text, ``...`` where its repr may hold an address."""
    return repr(parameter.default) if isinstance(parameter.default, str | int | float | tuple | None) else "..."


class _Text:
    """An annotation or a default that shows as it is written."""

    def __init__(self, text: str) -> None:
        self._text = text

    @classmethod
    def of(cls, annotation: Any) -> Any:
        """An annotation as text; nothing stays nothing."""
        if annotation is inspect.Parameter.empty:
            return annotation
        return cls(annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation)))

    def __repr__(self) -> str:
        return self._text


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", "utf-8")
    print(f"{FILE}: {len(lines())} lines")
