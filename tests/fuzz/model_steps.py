"""What is done with a model: it is validated, compiled, run, written and read again."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

import irexec
from irexec.dtypes.elements import F32
from irexec.ir.dims import admits, has_room, shape_text
from tests.fuzz import odd
from tests.fuzz.findings import Observer

LARGEST_FEED = 1 << 20
# Of any array in NumPy.
_HIGHEST_RANK = 64


def check_model(observer: Observer, model: Any, given: Sequence[np.ndarray] | int, *, optimize: bool = True) -> None:
    """Validate, compile, run and save a model; ``given`` are its inputs, or a seed for random ones."""
    observer.step("validate", lambda: irexec.validate(model), allowed=())
    observer.step("validate --weights", lambda: irexec.validate(model, weights=True), allowed=())
    observer.step("repr", lambda: repr(model), allowed=())
    observer.step("html", model._repr_html_, allowed=())
    compiled = observer.step("compile", lambda: irexec.compile_model(model, optimize=optimize, threads=1))
    if compiled is not None:
        run(observer, compiled, given)
    if observer.step("save", lambda: (irexec.save_model(model, "saved.xml"), True)[1]):
        again = observer.step("read what was saved", lambda: irexec.read_model("saved.xml"), allowed=())
        if again is not None and compiled is not None:
            observer.step("compile what was saved", lambda: irexec.compile_model(again, optimize=False, threads=1))


def run(observer: Observer, compiled: Any, given: Sequence[np.ndarray] | int) -> None:
    """Run a compiled model; what it gives must be of the types and shapes inferred."""
    feed = feeds(compiled.inputs, random.Random(given)) if isinstance(given, int) else list(given)
    if feed is None:
        return
    result = observer.step("run", lambda: compiled.run(feed, timeout=2))
    for i, port in enumerate(compiled.outputs if result is not None else ()):
        array = result[i]
        if not admits(port.shape, array.shape) or (port.element is not None and array.dtype != port.element.carrier):
            message = f"{array.dtype}{list(array.shape)} where {port.element}{shape_text(port.shape)} is inferred"
            observer.found("contradiction", "inferred", _type_of(port), message)


def _type_of(port: Any) -> str:
    """The operation that gives an output, since a contradiction has no frame."""
    source = port.node.inputs[0] if port.node.inputs else None
    return "nothing" if source is None else f"{source.node.type}-{source.node.version}"


def feeds(ports: Sequence[Any], rng: random.Random) -> list[np.ndarray] | None:
    """Random inputs; None where they would be large, or NumPy has none."""
    found = []
    for port in ports:
        shape = _shape(port.shape, rng)
        if math.prod(shape) > LARGEST_FEED or len(shape) > _HIGHEST_RANK or not has_room(shape):
            return None
        found.append(_array(port.element or F32, shape, rng))
    return found


def _shape(shape: Any, rng: random.Random) -> tuple[int, ...]:
    if shape is None:
        return rng.choice(odd.SHAPES)
    return tuple(size if isinstance(size, int) else _size(size, rng) for size in shape)


def _size(size: Any, rng: random.Random) -> int:
    high = size.lo + 4 if size.hi is None else min(size.hi, size.lo + 4)
    return rng.randint(size.lo, max(size.lo, high))


def _array(element: Any, shape: tuple[int, ...], rng: random.Random) -> np.ndarray:
    """Some odd values among likely ones; large arrays repeat theirs."""
    few = [odd.value(rng, element, likely=rng.choice([1, 1, 0.8, 0])) for _ in range(min(math.prod(shape), 64))]
    values = odd.array(element, few, (len(few),))
    return np.resize(values, shape) if few else np.zeros(shape, element.carrier)
