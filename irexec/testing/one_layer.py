"""A row as a model of one layer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irexec.analysis.builder import Builder
from irexec.analysis.model import Model
from irexec.ir.dims import ANY, PartialShape
from irexec.testing.rows import Case, read_attributes

COUNTED_BY_LENGTH = {"VariadicSplit"}
"""Operations whose last input has as many elements as there are outputs, so that its length must be known."""


def shape(known: PartialShape) -> PartialShape:
    """The whole shape of a Parameter is known."""
    return known


def rank(known: PartialShape) -> PartialShape:
    """The rank of a Parameter is known."""
    return (ANY,) * len(known or ())


def nothing(known: PartialShape) -> PartialShape:
    """Nothing of the shape of a Parameter is known."""
    return None


FORMS: tuple[tuple[int | None, Callable[[PartialShape], PartialShape]], ...] = (
    (None, shape), (1, shape), (0, shape), (None, rank), (1, rank), (1, nothing),
)  # fmt: skip
"""Index of the first constant input (None: no input is constant), and what is known of the shapes of Parameters."""


def model_of(
    row: Case, first_constant: int | None = None, known: Callable[[PartialShape], PartialShape] = shape
) -> tuple[Model, list[np.ndarray]]:
    """The model of one layer that computes a row, and the inputs of a run.

    Args:
        row: the row.
        first_constant: index of the first input that is a constant; None if all inputs are Parameters.
        known: part of the shape of a Parameter that is declared.
    """
    builder = Builder("case")
    if first_constant is None and known is not shape and row.type in COUNTED_BY_LENGTH:
        first_constant = len(row.inputs) - 1
    fed, operands = [], []
    for i, x in enumerate(row.inputs):
        if first_constant is not None and i >= first_constant:
            operands.append(builder.constant(x.array, x.element))
        else:
            operands.append(builder.parameter(x.element, known(x.array.shape), f"input{i}"))
            fed.append(x.array.copy())
    if row.type == "Result":
        builder.result(operands[0])
        return builder.model(), fed
    values = builder.emit(row.type, *operands, version=row.since, **read_attributes(row.definition, row.attributes))
    for value in values if isinstance(values, tuple) else (values,):
        builder.result(value)
    return builder.model(), fed
