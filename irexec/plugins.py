"""The names that a plug-in imports: the decorators, and the annotations of inputs and attributes."""

from irexec.ir.facts import Fact
from irexec.schema.attributes import AtLeast
from irexec.schema.extension import operation, translates
from irexec.schema.inputs import (
    AnyTensor,
    BooleanTensor,
    FloatTensor,
    IndexTensor,
    IntegerTensor,
    NumericTensor,
    Rank,
    StringTensor,
)

__all__ = [
    "AnyTensor",
    "AtLeast",
    "BooleanTensor",
    "Fact",
    "FloatTensor",
    "IndexTensor",
    "IntegerTensor",
    "NumericTensor",
    "Rank",
    "StringTensor",
    "operation",
    "translates",
]
