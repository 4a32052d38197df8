"""Random single operations against their bounds: irexec's own results in f32, and its fast kernels, must be inside.

An output that is outside of its bound fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import irexec.testing
from irexec.bounds import ARITHMETICS, Unbounded
from irexec.errors import OpError
from irexec.testing.laws import infer, kernel, read_only
from irexec.testing.random_cases import random_cases, seeded
from irexec.testing.rows import exact_facts
from tests.bounds.rows import row_bounds
from tests.oracle.sweep import random_operations, type_and_since
from tests.sweep.kind import Case, Kind, Outcome


class Sweep(Kind):
    """The versions of operations that have random cases."""

    cases = 20

    def names(self) -> list[str]:
        return random_operations()

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """The outputs of a random case."""
        pair = type_and_since(name)
        make = random_cases()[pair]
        yield lambda number: _outcomes(make(seeded(*pair, number)))


def _outcomes(row: irexec.testing.Case) -> Iterator[Outcome]:
    try:
        infer(row, exact_facts(row))
        results = kernel(row, read_only(row))
    except OpError:
        return
    for i, (result, bound) in enumerate(zip(results, row_bounds(row, ARITHMETICS["f32"]), strict=True)):
        if isinstance(bound, Unbounded):
            yield Outcome("no bound", bound.reason)
        elif not (outside := bound.outside(result)).any():
            yield Outcome("inside")
        else:
            at = tuple(np.argwhere(outside)[0])
            limits = f"{result[at]!r}, exact {bound.exact[at]!r}, [{bound.low[at]!r}, {bound.high[at]!r}]"
            text = f"output {i} {at}: {limits}; {[str(x.element) for x in row.inputs]} {row.attributes}"
            yield Outcome("outside", text, fails=True)
