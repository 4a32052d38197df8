"""The rows of tests/cases by family, and rows that are derived from others. irexec.testing makes rows."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from importlib.util import find_spec

import numpy as np

from irexec.schema.opdef import OpDef
from irexec.schema.registry import definitions
from irexec.testing import Case, Row, Typed, typed

_IS_INSTALLED = find_spec("sentencepiece") is not None


PDPD_AXIS = "auto_broadcast.auto_broadcast_axis"
"""The axis of pdpd, as OpenVINO writes it."""


def _is_runnable(type: str) -> bool:
    """False for operations that need a library of an extra which is not installed."""
    return _IS_INSTALLED or not type.startswith("Sentencepiece")


def runnable_definitions() -> list[OpDef]:
    """The operations whose libraries are installed."""
    return [definition for definition in definitions() if _is_runnable(definition.type)]


def families() -> dict[str, list[Row]]:
    """The rows of every table, by family, of operations whose libraries are installed."""
    import tests.cases

    found = {}
    for module in pkgutil.iter_modules(tests.cases.__path__):
        rows = importlib.import_module(f"tests.cases.{module.name}").ROWS
        found[module.name] = [row for row in rows if _is_runnable(row.type)]
    return found


def halves(rows: list[Row]) -> list[Row]:
    """The first row of each operation on f32 numbers, in f16 and bf16, where no row of its own is: OpenVINO says what it gives."""
    cases = [row for row in rows if isinstance(row, Case)]
    found: list[Row] = []
    for pair in dict.fromkeys((row.type, row.since) for row in cases):
        own = [row for row in cases if (row.type, row.since) == pair]
        kinds = {x.element.name for row in own for x in row.inputs}
        first = next(
            (row for row in own if row.gives is None and any(x.element.name == "f32" for x in row.inputs)), None
        )
        for name in ("f16", "bf16"):
            if first is not None and name not in kinds:
                inputs = tuple(typed(name, x.array) if x.element.name == "f32" else x for x in first.inputs)
                found.append(dataclasses.replace(first, inputs=inputs, name=f"{first.name}, in {name}"))
    return found


def odd(rows: list[Row], but: tuple[str, ...] = ()) -> list[Row]:
    """The first row of each operation on f32 numbers with NaN and both infinities among those of its first such input.

    OpenVINO says what it gives; of operations that have such a row, or are named in ``but``, there is none.
    """
    cases = [row for row in rows if isinstance(row, Case)]
    found: list[Row] = []
    for pair in dict.fromkeys((row.type, row.since) for row in cases):
        own = [row for row in cases if (row.type, row.since) == pair]
        if pair[0] in but or any(
            x.element.is_float and not np.isfinite(x.array).all() for row in own for x in row.inputs
        ):
            continue
        first = next(
            (
                row
                for row in own
                if row.gives is None and any(x.element.name == "f32" and x.array.size > 2 for x in row.inputs)
            ),
            None,
        )
        if first is not None:
            index = next(i for i, x in enumerate(first.inputs) if x.element.name == "f32" and x.array.size > 2)
            array = first.inputs[index].array.copy()
            array.flat[[0, array.size // 3, 2 * array.size // 3]] = np.nan, np.inf, -np.inf
            inputs = tuple(typed("f32", array) if i == index else x for i, x in enumerate(first.inputs))
            found.append(dataclasses.replace(first, inputs=inputs, name=f"{first.name}, with NaN and infinities"))
    return found


def emptied(rows: list[Row], *types: str, inputs: tuple[int, ...] = (0,), axis: int = 0) -> list[Row]:
    """The first row of each of these operations, of which ``inputs`` have nothing left along ``axis``: OpenVINO says what it gives."""
    found: list[Row] = []
    for pair in dict.fromkeys((row.type, row.since) for row in rows if row.type in types):
        first = next(
            row
            for row in rows
            if isinstance(row, Case) and (row.type, row.since) == pair and row.inputs[inputs[0]].array.ndim > axis
        )
        cut = tuple(Typed(x.element, x.array.take([], axis)) if i in inputs else x for i, x in enumerate(first.inputs))
        found.append(
            dataclasses.replace(first, inputs=cut, gives=None, name=f"{first.name}, with nothing along axis {axis}")
        )
    return found
