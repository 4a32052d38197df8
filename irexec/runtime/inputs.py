"""What the caller passes, matched to the model's inputs and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irexec.analysis.evaluate import rounded
from irexec.analysis.model import Port, expected, find_port
from irexec.dtypes.elements import Element
from irexec.errors import InputError
from irexec.ir.dims import admits, shape_text

Inputs = Mapping[Any, Any] | Sequence[Any] | np.ndarray | None


def arrange(ports: Sequence[Port], given: Inputs) -> list[np.ndarray]:
    """One array per input of the model, in order.

    Args:
        ports: the model's inputs.
        given: a mapping by tensor name, layer name, id or position; a sequence in order; or one array
            for a model of one input. Python numbers and lists are taken as the input's type.

    Raises:
        InputError: a name, a shape, a type or the number is wrong, or an input is missing.
    """
    found: dict[int, Any] = {}
    for key, value in _pairs(ports, given):
        position = next(i for i, port in enumerate(ports) if port.node is find_port(ports, key).node)
        if position in found:
            raise InputError(f"input {ports[position].name!r} is given twice, the second time as {key!r}")
        found[position] = value
    missing = [port.name for i, port in enumerate(ports) if i not in found]
    if missing:
        raise InputError(f"no value is given for {', '.join(map(repr, missing))}: the model has {expected(ports)}")
    return [checked(ports[i], found[i]) for i in range(len(ports))]


def _pairs(ports: Sequence[Port], given: Inputs) -> list[tuple[Any, Any]]:
    if given is None:
        return []
    if isinstance(given, Mapping):
        return list(given.items())
    if isinstance(given, np.ndarray | np.generic | str | bytes | int | float):
        given = [given]
    if not isinstance(given, Sequence):
        raise InputError(
            f"inputs are a {type(given).__name__}, expected a mapping, a sequence or one array: the model has {expected(ports)}"
        )
    if len(given) > len(ports):
        raise InputError(f"{len(given)} inputs are given, the model has {len(ports)}: {expected(ports)}")
    return list(enumerate(given))


def checked(port: Port, value: Any, kind: str = "input") -> np.ndarray:
    """The value as an array of the port's type, whose shape the port admits; ``kind`` is what messages call it.

    Raises:
        InputError: the type or the shape does not fit.
    """
    what = f"{kind} {port.name!r}"
    array = _array(what, port, value)
    if not admits(port.shape, array.shape):
        raise InputError(f"{what} has shape {shape_text(array.shape)}, the model expects {port}")
    return array


def _array(what: str, port: Port, value: Any) -> np.ndarray:
    element = port.element
    if element is None:
        return np.asarray(value)
    if element.kind == "string":
        return _strings(what, port, value)
    if not isinstance(value, np.ndarray | np.generic):
        return _converted(what, port, element, value)
    if value.dtype.name == element.extension:
        value = value.astype(element.carrier)
    if value.dtype != element.carrier:
        raise InputError(f"{what} is {value.dtype}, the model expects {element.carrier} ({port})")
    return _representable(what, element, np.asarray(value))


def _strings(what: str, port: Port, value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if array.dtype.kind not in "UO" or not all(isinstance(v, str) for v in array.ravel().tolist()):
        raise InputError(f"{what} is {array.dtype}, the model expects text ({port})")
    return array.astype(object)


def _converted(what: str, port: Port, element: Element, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)
        typed = array.astype(element.carrier)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what} is no array of {element}: {error}") from None
    if not element.is_float and array.dtype.kind == "f" and array.size:
        raise InputError(f"{what} holds {array.dtype}, the model expects {element.carrier} ({port})")
    if element.is_integer and array.size and not np.array_equal(array, typed):
        raise InputError(f"{what} holds numbers that {element} cannot hold")
    return _representable(what, element, typed)


def _representable(what: str, element: Element, array: np.ndarray) -> np.ndarray:
    """The array rounded to a float type NumPy lacks; integers must fit their bits."""
    if element.native:
        return array
    if element.is_float:
        return rounded(array, element)
    low, high = (-(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1) if element.kind == "signed" else (0, (1 << element.bits) - 1)
    if array.size and (array.min() < low or array.max() > high):
        raise InputError(f"{what} holds numbers outside {low}..{high}, which {element} cannot hold")
    return array
