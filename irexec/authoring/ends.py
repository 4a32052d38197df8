"""The ends of a model that is being made: parameters, constants and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.authoring.tensor import LooseBuilder, Tensor
from irexec.dtypes.elements import ElementLike, as_element
from irexec.errors import ModelError
from irexec.ir.constants import BytesInMemory, Constant, size_problem
from irexec.ir.graph import Value
from irexec.ir.shape_text import ShapeLike


def parameter(shape: ShapeLike, element: ElementLike, name: str, *, names: Sequence[str] | None = None) -> Tensor:
    """An input of a model.

    Args:
        shape: as Model.reshape takes it: [1, 3, "?"], "1,3,?,2..5", None for an unknown rank.
        element: the element type: irexec.f32, "f32", np.float32.
        name: the layer's name.
        names: the tensor names; the layer's name unless given.
    """
    builder = LooseBuilder()
    value = builder.parameter(element, shape, name, [name] if names is None else names)
    return Tensor(value, builder.fact(value))


def constant(
    array: Any, element: ElementLike | None = None, *, name: str | None = None, names: Sequence[str] = ()
) -> Tensor:
    """A constant with a copy of the values in ``array``: Python ints are i64 and floats f32 unless ``element`` says
    otherwise.

    Args:
        array: an array, or numbers, texts or lists of them.
        element: the element type.
        name: the layer's name.
        names: the tensor names.
    """
    builder = LooseBuilder()
    value = builder.constant(array, element, name, names)
    return Tensor(value, builder.fact(value))


def packed(
    data: bytes | np.ndarray, element: ElementLike, shape: Sequence[int], *, name: str | None = None,
    names: Sequence[str] = (),
) -> Tensor:  # fmt: skip
    """A constant of bytes as a .bin has them.

    Args:
        data: the bytes.
        element: the element type.
        shape: the sizes.
        name: the layer's name.
        names: the tensor names.

    Raises:
        ModelError: type and shape take another number of bytes.
    """
    raw = np.frombuffer(bytes(data), np.uint8)
    made = Constant(as_element(element), tuple(shape), BytesInMemory(raw), raw.nbytes)
    problem = size_problem(made)
    if problem is not None:
        raise ModelError(problem)
    builder = LooseBuilder()
    value = builder.raw_constant(made, name, names)
    return Tensor(value, builder.fact(value))


def result(tensor: Tensor, *, name: str | None = None) -> Tensor:
    """An output of a model, for which the Result has a name of its own; ``Model`` makes the Results of other tensors.

    Args:
        tensor: the tensor that the output gives.
        name: the layer's name; ``LAYER/sink_port_0`` unless given.
    """
    builder = LooseBuilder([tensor])
    return Tensor(Value(builder.result(tensor.value, name or "Result"), 0), tensor.fact)
