"""The verdict on the outputs of a runtime for one case: by bounds, and by a tolerance where there is no bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.portability import DIFFERENCES
from irexec.api import validate
from irexec.bounds import Arithmetic, Bound, Interval, Layer, Unbounded, operation_bounds
from irexec.bounds.readings import READINGS, read_as
from irexec.ir.facts import Fact
from irexec.messages import counted
from irexec.testing import Case
from irexec.testing.laws import COARSE, attributes_of, infer
from irexec.testing.rows import exact_facts
from irexec.tools.arrays.agreement import Tolerance, agreement_of

INSIDE, OUTSIDE, OPEN, CLOSE, DIFFERS = "inside", "outside", "open", "close", "differs"

Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class Verdict:
    """The verdict on one case.

    Attributes:
        name: of irexec.conformance.result.VERDICTS.
        why: the reason, where the verdict is neither "inside" nor "close".
        codes: of the portability table; they explain a case that is open, and not one that is outside.
    """

    name: str
    why: str = ""
    codes: tuple[str, ...] = ()


def case_bounds(row: Case, arithmetic: Arithmetic, codes: Sequence[str] = ()) -> tuple[Bound, ...]:
    """The bounds of the outputs of a case; ``codes``: of known differences, as which it is read."""
    inputs = [Fact.of(x.array, x.element) for x in row.inputs]
    layer = Layer(row.definition, attributes_of(row), inputs, infer(row, exact_facts(row)), arithmetic)
    return read_as(codes, layer, [Interval.certain(x.array) for x in row.inputs], operation_bounds)


def verdict_of(row: Case, given: Arrays, expected: Arrays, bounds: Sequence[Bound]) -> Verdict:
    """The verdict on the outputs of a case; the worst of those on its outputs."""
    found = [_of_output(row, i, *each) for i, each in enumerate(zip(given, expected, bounds, strict=True))]
    return next((one for name in (OUTSIDE, DIFFERS, CLOSE) for one in found if one.name == name), Verdict(INSIDE))


def _of_output(row: Case, index: int, actual: np.ndarray, expected: np.ndarray, bound: Bound) -> Verdict:
    name = f"output {index}"
    if isinstance(bound, Unbounded):
        return _by_tolerance(row, name, actual, expected)
    if actual.shape != bound.exact.shape:
        return Verdict(OUTSIDE, f"{name} has shape {list(actual.shape)}, expected {list(bound.exact.shape)}")
    outside = bound.outside(actual)
    if not outside.any():
        return Verdict(INSIDE)
    where = tuple(int(i) for i in np.unravel_index(int(np.argmax(outside)), outside.shape))
    allowed = "" if bound.admits else f", allowed {bound.low[where]:.9g} to {bound.high[where]:.9g}"
    total = f"{int(outside.sum()):,} of {counted(outside.size, 'element')}"
    return Verdict(OUTSIDE, f"{name}: {total} outside, {list(where)} is {actual[where]:.9g}{allowed}")


def _by_tolerance(row: Case, name: str, actual: np.ndarray, expected: np.ndarray) -> Verdict:
    """Compare by twice the tolerance of the coarsest element type among the inputs: both sides round."""
    if actual.shape != expected.shape:
        return Verdict(DIFFERS, f"{name} has shape {list(actual.shape)}, the reference {list(expected.shape)}")
    rtol = max(row.definition.tolerance, 1e-4, *(2 * COARSE.get(x.element.name, 0) for x in row.inputs))
    agrees = agreement_of(name, actual, expected, Tolerance(rtol=rtol, atol=rtol)).agrees
    return Verdict(CLOSE) if agrees else Verdict(DIFFERS, f"{name} is not within {rtol:g} of the reference")


def left_open(row: Case, model: Model, verdict: Verdict, given: Arrays, arithmetic: Arithmetic) -> Verdict:
    """The verdict on OpenVINO, with the codes of the portability table that the case has.

    It is left open if the outputs are those of one of these differences, or if there is no bound; else they stay
    outside, and no difference explains them.
    """
    if verdict.name not in (OUTSIDE, DIFFERS):
        return verdict
    findings = validate(model, portability=True)
    known = {one.code for one in findings if one.code in DIFFERENCES and DIFFERENCES[one.code].effect != "fails"}
    explaining = {
        code for code in known & READINGS.keys()
        if verdict_of(row, given, given, case_bounds(row, arithmetic, [code])).name == INSIDE
    }  # fmt: skip
    is_open = bool(explaining) or (verdict.name == DIFFERS and bool(known))
    return Verdict(OPEN if is_open else verdict.name, verdict.why, tuple(sorted(explaining or known)))
