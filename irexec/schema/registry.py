"""The registry: an operation is a reference kernel and a shape rule under one decorator.

    @op("Gather", since=8, symbolic=True)
    def gather_8(data: AnyTensor, indices: IntegerTensor, axis: IntegerTensor, *, batch_dims: int = 0):
        '''Slices of ``data`` along ``axis``; an index out of range yields zeros.'''

    @gather_8.shape_rule
    def _(data: Fact, indices: Fact, axis: Fact, *, batch_dims: int) -> Fact: ...

The kernel's signature is the schema. Positional parameters are the inputs (``= None``: optional;
``*inputs``: any number); their annotations say which element types and ranks they take (irexec.schema.opdef).
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
from irexec.schema.opdef import OpDef
from irexec.schema.plugins import operations, plugins

NEWEST_OPSET = 17
"""The newest opset whose operations are known; what a later one means by a name cannot be known."""

_FROM_OPSET_2 = ("MVN", "ROIPooling", "ReorgYolo")
_EXPERIMENTAL = (
    "ExperimentalDetectronDetectionOutput",
    "ExperimentalDetectronGenerateProposalsSingleImage",
    "ExperimentalDetectronPriorGridGenerator",
    "ExperimentalDetectronROIFeatureExtractor",
    "ExperimentalDetectronTopKROIs",
    "GRUCell",
    "RNNCell",
    "Proposal",
)
OTHER_VERSIONS: dict[tuple[str, str], str] = {
    **{(type, "opset1"): "opset2" for type in _FROM_OPSET_2},
    **{(type, version): "opset6" for type in _EXPERIMENTAL for version in ("experimental", "extension")},
}
"""The opset of a (type, version) that no opset has, as OpenVINO's reader takes it: Model Optimizer of 2020 and 2021
wrote these versions. Source: openvino ``ir_deserializer.cpp``, ``create_node``."""

_REGISTRY: dict[str, dict[int | str, OpDef]] = {}
_CACHED: list[Any] = []


def op(type: str, since: int | str, **flags: Any) -> Callable[[Callable[..., Any]], OpDef]:
    """Decorator: register a kernel as the version of ``type`` that appeared in ``since``.

    Raises:
        ValueError: the version is registered already.
    """

    def register(kernel: Callable[..., Any]) -> OpDef:
        return add(OpDef(type, since, kernel, **flags))

    return register


def add(definition: OpDef, replace: bool = False) -> OpDef:
    """Register a definition.

    Raises:
        ValueError: the version is registered already, and ``replace`` is false or the other is not of the same plug-in.
    """
    other = _REGISTRY.get(definition.type, {}).get(definition.since)
    if other is not None and not (replace and other.plugin == definition.plugin):
        of_plugin = f", by {other.plugin} too" if other.plugin else ""
        raise ValueError(f"{definition.type} of {definition.since} is registered twice{of_plugin}")
    _REGISTRY.setdefault(definition.type, {})[definition.since] = definition
    _clear_caches()
    return definition


def discard(definition: OpDef) -> None:
    """Remove a definition that was added."""
    versions = _REGISTRY[definition.type]
    del versions[definition.since]
    if not versions:
        del _REGISTRY[definition.type]
    _clear_caches()


def clear_on_change(*functions: Any) -> None:
    """The caches of these functions are cleared whenever a definition is added or removed."""
    _CACHED.extend(functions)


def _clear_caches() -> None:
    for function in (resolve, *_CACHED):
        function.cache_clear()


@functools.lru_cache(maxsize=1024)
def resolve(type: str, version: str) -> OpDef:
    """The definition that a layer of this type and version means.

    Raises:
        UnsupportedError: the type is not known, or was not yet known in that opset.
    """
    version = OTHER_VERSIONS.get((type, version), version)
    versions = _versions(type)
    if versions is None:
        raise UnsupportedError(f"{type} of {version or 'no version'} is not supported (the type is not known)")
    if version in versions:
        return versions[version]
    opsets = sorted(since for since in versions if isinstance(since, int))
    if not opsets:
        return _of_extension(type, version, versions)
    number = opset_number(version)
    if number is not None and number > NEWEST_OPSET:
        raise UnsupportedError(f"{type} of {version} is not supported (the newest opset known is {NEWEST_OPSET})")
    if number is None:
        raise UnsupportedError(f"{type} of {version or 'no version'} is not supported (known since opset {opsets[0]})")
    fitting = [since for since in opsets if since <= number]
    if not fitting:
        raise UnsupportedError(f"{type} of {version} is not supported (known since opset {opsets[0]})")
    return versions[fitting[-1]]


def _of_extension(type: str, version: str, versions: dict[int | str, OpDef]) -> OpDef:
    """The definition of a type that no opset has. Those of irexec stand for every version, as its names are its own."""
    plugins.load(operations=True)
    found = versions.get(version) or next(iter(versions.values()))
    if found.plugin and found.version != version:
        known = ", ".join(map(str, versions))
        raise UnsupportedError(f"{type} of {version or 'no version'} is not supported (known of {known})")
    return found


def _versions(type: str) -> dict[int | str, OpDef] | None:
    """The definitions of a type; None if there are none."""
    operations.load_for(type)
    if type not in _REGISTRY:
        operations.load()
    if type not in _REGISTRY:
        plugins.load(operations=True)
    return _REGISTRY.get(type)


def opset_number(version: str) -> int | None:
    """N of "opsetN"; None for any other text."""
    digits = version.removeprefix("opset")
    is_opset = version.startswith("opset") and digits.isascii() and digits.isdigit() and len(digits) < 6
    return int(digits) if is_opset else None


def is_known_type(type: str) -> bool:
    """Whether any version of the type is registered."""
    return _versions(type) is not None


def is_own_type(type: str) -> bool:
    """Whether irexec or an opset of OpenVINO has the type; operations of plug-ins are not looked at."""
    operations.load_for(type)
    own = any(not definition.plugin for definition in _REGISTRY.get(type, {}).values())
    return own or any(type == known for known, _ in opset_versions())


def definitions() -> list[OpDef]:
    """Every definition, by type and then by version."""
    operations.load()
    plugins.load(operations=True)
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
    """The newest definition of a type; an extension's only without another one.

    Raises:
        UnsupportedError: the type is not known, or several plug-ins have it.
    """
    of_plugins = [definition for definition in (_versions(type) or {}).values() if definition.plugin]
    if of_plugins and len({definition.plugin for definition in of_plugins}) == 1:
        return of_plugins[-1]
    return resolve(type, f"opset{NEWEST_OPSET}")
