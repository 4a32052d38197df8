"""``check``: all that must hold of a row of a plug-in; ``parametrize``: rows as tests of pytest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from irexec.errors import InputError
from irexec.testing.laws import can_run, every_law, inferred, refusal, refused_when_it_runs
from irexec.testing.plugin_laws import PLUGIN_LAWS
from irexec.testing.rows import Case, FactsCase, Row


def check(row: Row) -> None:
    """Run a row through all laws.

    The results of a ``case`` are the expected ones: of the reference kernel, of fast kernels, of the model written,
    read and compiled with every option, on one thread and two, observed and not, again and again. Shape inference
    admits them however little is known of the inputs, the validator finds a wrong port, the script of the model makes
    it again, and the operation is documented. The results of a ``facts_case`` are those of shape inference, and what
    ``refuses`` lists is refused by shape inference and by a run.

    Raises:
        AssertionError: a law does not hold; its name is in the notes. ExceptionGroup for several laws.
        InputError: the row has no expected outputs.
    """
    if isinstance(row, Case):
        if row.gives is None:
            raise InputError(f"the row {row.id} has no expected outputs")
        every_law(row, row.gives, PLUGIN_LAWS)
    elif isinstance(row, FactsCase):
        inferred(row)
    else:
        refusal(row)
        if can_run(row):
            refused_when_it_runs(row)


def parametrize(rows: Iterable[Row]) -> Any:
    """Decorator of a test of pytest with a parameter ``row``: it is run for each row, whose id is in its name.

    Raises:
        InputError: two rows have the same id.
    """
    import pytest

    found = list(rows)
    for name, count in Counter(row.id for row in found).items():
        if count > 1:
            raise InputError(f"{count} rows have the id {name!r}")
    return pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in found])
