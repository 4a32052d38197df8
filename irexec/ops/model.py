"""The ends of a graph: Parameter, Constant, Result."""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.errors import ModelError, OpError
from irexec.ir.constants import Constant
from irexec.ir.elements import Element
from irexec.ir.facts import Fact
from irexec.kernels.packing import packed_size, unpack
from irexec.ops.attributes import AttributeShape
from irexec.ops.registry import op


def constant_value(constant: Constant) -> np.ndarray:
    """The constant unpacked into its element's carrier, in its shape; read-only.

    Raises:
        ModelError: its bytes are not in the file, or are not what shape and type ask for.
    """
    wrong = size_problem(constant)
    if wrong is not None:
        raise ModelError(wrong)
    element = constant.element
    try:
        value = unpack(element.name, constant.raw[: constant.size], constant.count).reshape(constant.shape)
    except OpError as error:
        raise ModelError(str(error)) from None
    value.flags.writeable = False
    return value


def size_problem(constant: Constant) -> str | None:
    """What is wrong with the declared number of bytes; None if nothing is.

    A string says in its bytes how long it is. A constant without elements may have one byte:
    OpenVINO 2026.4.1 writes it so unless the constant was made of a tensor.
    """
    element = constant.element
    if element.kind == "string":
        return None
    needed = packed_size(element.name, constant.count)
    if constant.size == needed or (constant.count == 0 and constant.size == 1):
        return None
    return f"has {constant.size} bytes, {element}[{','.join(map(str, constant.shape))}] takes {needed}"


@op("Parameter", since=1, deterministic=False)
def parameter_1(*, element_type: Element | None, shape: AttributeShape) -> np.ndarray:
    """An input of the graph; what the caller passes is its value, so that it is never computed.

    Source: Parameter-1.
    """
    raise OpError("a Parameter has no value of its own")


@parameter_1.facts
def _parameter_1_facts(*, element_type: Element | None, shape: Any) -> Fact:
    return Fact(element_type, shape)


@op("Constant", since=1, ignores=("offset", "size"))
def constant_1(*, element_type: Element, shape: AttributeShape, constant: Constant) -> np.ndarray:
    """The tensor that stands in the .bin. Source: Constant-1."""
    try:
        return constant_value(constant)
    except ModelError as error:
        raise OpError(str(error)) from error


@constant_1.facts
def _constant_1_facts(*, element_type: Element, shape: Any, constant: Constant) -> Fact:
    return Fact(constant.element, constant.shape)


@op("Result", since=1, view=True, symbolic=True)
def result_1(input: np.ndarray) -> np.ndarray:
    """An output of the graph: its input. Source: Result-1."""
    return input


@result_1.facts
def _result_1_facts(input: Fact) -> Fact:
    return Fact(input.element, input.shape)
