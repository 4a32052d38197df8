"""The registry: an operation is a reference kernel and a shape rule under one decorator.

    @op("Gather", since=8, symbolic=True)
    def gather_8(data: AnyTensor, indices: IntegerTensor, axis: IntegerTensor, *, batch_dims: int = 0):
        '''Slices of ``data`` along ``axis``; an index out of range yields zeros.'''

    @gather_8.shape_rule
    def _(data: Fact, indices: Fact, axis: Fact, *, batch_dims: int = 0) -> Fact: ...

The kernel's signature is the schema. Positional parameters are the inputs (``= None``: optional;
``*inputs``: any number); their annotations say which element types and ranks they take (irexec.schema.inputs).
Keyword-only parameters are the attributes, with type and default (irexec.schema.attributes); one that is annotated
with a frozen dataclass takes all the attributes that are its fields. Those that irexec.schema.injected lists are not
attributes: the runtime injects them.

``since`` is the opset in which the version first appeared, as IR writes it; a layer's ``opsetN``
takes the newest definition not newer than N. An extension gives its namespace instead ("onednn").
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from irexec.errors import UnsupportedError
from irexec.schema import loader
from irexec.schema.opdef import OpDef

NEWEST_OPSET = 17
"""The newest opset whose operations are known; what a later one means by a name cannot be known."""

_REGISTRY: dict[str, dict[int | str, OpDef]] = {}


def op(type: str, since: int | str, **flags: Any) -> Callable[[Callable[..., Any]], OpDef]:
    """Decorator: register a kernel as the version of ``type`` that appeared in ``since``.

    Raises:
        ValueError: the version is registered already.
    """

    def register(kernel: Callable[..., Any]) -> OpDef:
        versions = _REGISTRY.setdefault(type, {})
        if since in versions:
            raise ValueError(f"{type} of {since} is registered twice")
        versions[since] = OpDef(type, since, kernel, **flags)
        resolve.cache_clear()
        return versions[since]

    return register


@functools.lru_cache(maxsize=1024)
def resolve(type: str, version: str) -> OpDef:
    """The definition that a layer of this type and version means.

    Raises:
        UnsupportedError: the type is not known, or was not yet known in that opset.
    """
    versions = _versions(type)
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


def _versions(type: str) -> dict[int | str, OpDef] | None:
    """The definitions of a type; None if there are none."""
    loader.operations.load_for(type)
    if type not in _REGISTRY:
        loader.operations.load()
    return _REGISTRY.get(type)


def opset_number(version: str) -> int | None:
    """N of "opsetN"; None for any other text."""
    digits = version.removeprefix("opset")
    return (
        int(digits)
        if version.startswith("opset") and digits.isascii() and digits.isdigit() and len(digits) < 6
        else None
    )


def is_known_type(type: str) -> bool:
    """Whether any version of the type is registered."""
    return _versions(type) is not None


def definitions() -> list[OpDef]:
    """Every definition, by type and then by version."""
    loader.operations.load()
    return [
        d
        for _, versions in sorted(_REGISTRY.items())
        for _, d in sorted(versions.items(), key=lambda item: str(item[0]).zfill(8))
    ]


@functools.cache
def opset_versions() -> tuple[tuple[str, int], ...]:
    """Every (type, since) of OpenVINO's opsets up to the newest known, whether it is registered or not."""
    from importlib import resources

    lines = (resources.files("irexec.schema") / "opsets.txt").read_text("utf-8").splitlines()
    return tuple((type, int(since)) for type, since in (line.split() for line in lines if not line.startswith("#")))


def newest(type: str) -> OpDef:
    """The newest definition of a type; an extension's only where there is no other.

    Raises:
        UnsupportedError: the type is not known.
    """
    return resolve(type, f"opset{NEWEST_OPSET}")
