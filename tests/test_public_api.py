"""The public API is what ``__all__`` says, no more and no less."""

from __future__ import annotations

import types

import converters
import irexec


def test_all_is_exact() -> None:
    public = {name for name, value in vars(irexec).items() if not name.startswith("_") and not isinstance(value, types.ModuleType)}
    assert public == set(irexec.__all__)
    assert len(set(irexec.__all__)) == len(irexec.__all__)


def test_everything_public_is_documented() -> None:
    for name in irexec.__all__:
        thing = getattr(irexec, name)
        assert thing.__doc__, f"{name} has no docstring"
        for attribute, value in vars(thing).items() if isinstance(thing, type) else ():
            if not attribute.startswith("_") and isinstance(value, types.FunctionType | property):
                assert value.__doc__, f"{name}.{attribute} has no docstring"


def test_converters() -> None:
    assert converters.__all__ == ["convert"]
