"""Tests of a plug-in: rows of inputs and expected outputs, run through the laws that irexec's own operations obey.

::

    from irexec import testing

    ROWS = [
        testing.case("SoftTopK", "my.ops", [[1.0, 2.0, 0.0]], k=1, gives=[[0.0, 1.0, 0.0]], id="the maximum"),
        testing.facts_case("SoftTopK", "my.ops", "f32[?,3]", k=2, gives="f32[?,3]", id="rows of any number"),
        testing.refuses("SoftTopK", "my.ops", "f32[3]", k=4, says="k is 4", id="more values than there are"),
    ]

    @testing.parametrize(ROWS)
    def test_row(row: testing.Row) -> None:
        testing.check(row)

Nothing here imports pytest but ``parametrize``, when it is called.
"""

from irexec.testing.checking import check, check_conversion, parametrize
from irexec.testing.rows import Case, FactsCase, Refusal, Row, Typed, case, facts_case, model_of, random, refuses, typed

__all__ = [
    "Case",
    "FactsCase",
    "Refusal",
    "Row",
    "Typed",
    "case",
    "check",
    "check_conversion",
    "facts_case",
    "model_of",
    "parametrize",
    "random",
    "refuses",
    "typed",
]
