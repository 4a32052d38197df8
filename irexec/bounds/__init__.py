"""How far a correct implementation may be from the exact result.

For each operation, inputs as given and a stated arithmetic (f32, tf32, f16, bf16, ...) a rule gives the exact result
and, for each element, the interval of what correct implementations give: sums in any order, functions by any of the
usual approximations, ties and edges decided either way where the input lies within its own bound of the edge. An
operation without a rule has no bound, and is never accused.
"""

from irexec.bounds.evaluate import caches_after, graph_bounds, operation_bounds, stored_in, unrounded
from irexec.bounds.interval import ARITHMETICS, FUNCTIONS, Arithmetic, Bound, Interval, Unbounded, arithmetic
from irexec.bounds.registry import EDGES, Layer

__all__ = [
    "ARITHMETICS",
    "EDGES",
    "FUNCTIONS",
    "Arithmetic",
    "Bound",
    "Interval",
    "Layer",
    "Unbounded",
    "arithmetic",
    "caches_after",
    "graph_bounds",
    "operation_bounds",
    "stored_in",
    "unrounded",
]
