"""Inputs, constants and outputs of a graph: Parameter, Constant, Result."""

from __future__ import annotations

import numpy as np

from irexec.dtypes.elements import Element
from irexec.errors import ModelError, OpError
from irexec.ir.constants import Constant, constant_value
from irexec.ir.dims import PartialShape
from irexec.ir.facts import Fact
from irexec.schema.attributes import AttributeShape
from irexec.schema.inputs import AnyTensor
from irexec.schema.registry import op


@op("Parameter", since=1, deterministic=False)
def parameter_1(*, element_type: Element | None, shape: AttributeShape) -> np.ndarray:
    """An input of the graph; its value is what the caller passes, so that it is never computed.

    Source: Parameter-1.
    """
    raise OpError("a Parameter has no value of its own")


@parameter_1.shape_rule
def _parameter_1_shape(*, element_type: Element | None, shape: PartialShape) -> Fact:
    return Fact(element_type, shape)


@op("Constant", since=1, ignores=("offset", "size"))
def constant_1(*, element_type: Element, shape: AttributeShape, constant: Constant) -> np.ndarray:
    """The tensor stored in the .bin. Source: Constant-1."""
    try:
        return constant_value(constant)
    except ModelError as error:
        raise OpError(str(error)) from error


@constant_1.shape_rule
def _constant_1_shape(*, constant: Constant) -> Fact:
    return Fact(constant.element, constant.shape)


@op("Result", since=1, view=True, symbolic=True)
def result_1(input: AnyTensor) -> np.ndarray:
    """An output of the graph, equal to the input. Source: Result-1."""
    return input


@result_1.shape_rule
def _result_1_shape(input: Fact) -> Fact:
    return Fact(input.element, input.shape)
