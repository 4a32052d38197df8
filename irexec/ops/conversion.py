"""Convert and ConvertLike."""

from __future__ import annotations

import numpy as np

from irexec.dtypes.elements import Element, element_of
from irexec.dtypes.rounding import round_to
from irexec.errors import check
from irexec.ir.facts import Fact
from irexec.reference.integers import truncated
from irexec.schema.inputs import AnyTensor
from irexec.schema.registry import op


def converted(data: np.ndarray, to: Element) -> np.ndarray:
    """The values of ``data`` converted to another element type, in its carrier.

    As OpenVINO's reference does: floats are truncated to integers, integers keep the low bits
    of the type; every value but 0 becomes true, NaN included. A float beyond the range of 64 bits
    becomes the minimum of i64 first. f64 becomes f16 by way of f32, so rounded twice.
    """
    if data.dtype == object:
        return data
    if to.kind == "boolean":
        return data != 0
    if to.is_integer:
        return _integers(data, to)
    with np.errstate(over="ignore", invalid="ignore"):
        through = data.astype(np.float32) if data.dtype == np.float64 and to.name == "f16" else data
        values = through.astype(to.carrier)
    return values if to.native else round_to(to, values)


def _integers(data: np.ndarray, to: Element) -> np.ndarray:
    if data.dtype.kind == "f":
        data = truncated(data, to.carrier)
    integers = data.astype(to.carrier) if data.dtype != to.carrier else data
    return integers if to.native else round_to(to, integers)


def _check_kinds(data: Fact, to: Element | None) -> None:
    if data.element is not None and to is not None:
        has_string = "string" in (data.element.kind, to.kind)
        check(not has_string or data.element is to, f"{data.element} cannot be converted to {to}")


@op("Convert", since=1, symbolic=True, view=True)
def convert_1(data: AnyTensor, *, destination_type: Element) -> np.ndarray:
    """``data`` converted to the element type ``destination_type``. Source: Convert-1."""
    return converted(data, destination_type) if data.dtype != object else data.copy()


@convert_1.shape_rule
def _convert_1_facts(data: Fact, *, destination_type: Element) -> Fact:
    _check_kinds(data, destination_type)
    return Fact(destination_type, data.shape)


@op("ConvertLike", since=1)
def convert_like_1(data: AnyTensor, like: AnyTensor) -> np.ndarray:
    """``data`` converted to the element type of ``like``. Source: ConvertLike-1."""
    result = data if data.dtype == object else converted(data, element_of(like.dtype))
    return result.copy() if result is data else result


@convert_like_1.shape_rule
def _convert_like_1_facts(data: Fact, like: Fact) -> Fact:
    _check_kinds(data, like.element)
    return Fact(like.element, data.shape)
