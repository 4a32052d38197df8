"""Where values enter and leave a graph, which OpenVINO calls infrastructure: Parameter, Constant, Result, ReadValue and
Assign."""

from __future__ import annotations

import numpy as np

from irexec.dtypes.elements import Element
from irexec.errors import ModelError, OpError, check
from irexec.ir.constants import Constant, constant_value
from irexec.ir.dims import PartialShape, low, meet_shapes, shape_text
from irexec.ir.facts import Fact
from irexec.schema.attributes import AttributeShape, Variables
from irexec.schema.opdef import AnyTensor, unchanged
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


result_1.shape_rule(unchanged)


@op("ReadValue", since=3, deterministic=False, stateful=True)
def read_value_3(init_value: AnyTensor, *, variable_id: str, variables: Variables) -> np.ndarray:
    """The variable's value; ``init_value`` before anything was assigned in this session.

    ``init_value`` may have another shape in each run; a value assigned under another shape is refused. Source:
    ReadValue-3 and Assign-3, where a variable has the shape of ``init_value``.
    """
    value = variables.get(variable_id, init_value)
    check(
        value.shape == init_value.shape,
        f"variable {variable_id!r} holds a value of shape {shape_text(value.shape)}, "
        f"init_value has shape {shape_text(init_value.shape)}; reset the state",
    )
    return value


# The specification has every Assign of the variable give the type and shape of ``init_value``.
read_value_3.shape_rule(unchanged)


@op("ReadValue", since=6, deterministic=False, stateful=True)
def read_value_6(
    init_value: AnyTensor | None = None,
    *,
    variable_id: str,
    variable_type: Element | None = None,
    variable_shape: AttributeShape = None,
    variables: Variables,
) -> np.ndarray:
    """The variable's value; before anything was assigned ``init_value``, or zeros where it is absent.

    Without ``init_value`` an unknown size of ``variable_shape`` is its minimum, as in
    OpenVINO's plugins. Source: ReadValue-6.
    """
    if variable_id in variables:
        return variables[variable_id]
    if init_value is not None:
        return init_value
    if variable_type is None:
        raise OpError(f"variable {variable_id!r} has neither an init_value nor a variable_type")
    return np.zeros([low(size) for size in variable_shape or ()], variable_type.carrier)


@read_value_6.shape_rule
def _read_value_6_shape(
    init_value: Fact | None = None, *, variable_type: Element | None, variable_shape: AttributeShape
) -> Fact:
    if init_value is None:
        return Fact(variable_type, variable_shape)
    if variable_type is not None and init_value.element not in (None, variable_type):
        raise OpError(f"init_value has element type {init_value.element}, variable_type is {variable_type}")
    try:
        meet_shapes(init_value.shape, variable_shape)
    except OpError as error:
        raise OpError(f"init_value does not fit variable_shape: {error}") from None
    return Fact(variable_type or init_value.element, variable_shape)


@op("Assign", since=3, deterministic=False, stateful=True)
def assign_3(new_value: AnyTensor, *, variable_id: str, variables: Variables) -> np.ndarray:
    """Sets the variable to ``new_value``, which is also the result. Source: Assign-3."""
    variables[variable_id] = new_value.copy()
    return new_value


assign_3.shape_rule(unchanged)


@op("Assign", since=6, deterministic=False, stateful=True)
def assign_6(new_value: AnyTensor, *, variable_id: str, variables: Variables) -> np.ndarray:
    """Sets the variable to ``new_value``, which is also the result. Source: Assign-6."""
    variables[variable_id] = new_value.copy()
    return new_value


assign_6.shape_rule(unchanged)
