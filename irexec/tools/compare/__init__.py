"""Where two models diverge: tensor by tensor, with the first layer that differs."""

from irexec.tools.compare.comparison import (
    ComparedLayer,
    Comparison,
    Divergence,
    InputRow,
    Suspect,
    TensorRow,
    Uncompared,
)
from irexec.tools.compare.options import CompareOptions
from irexec.tools.compare.run import compare

__all__ = [
    "CompareOptions",
    "ComparedLayer",
    "Comparison",
    "Divergence",
    "InputRow",
    "Suspect",
    "TensorRow",
    "Uncompared",
    "compare",
]
