"""Rows as models of one layer, exported and run.

Each row is exported with every input as a Parameter and with all but the first constant, checked by onnx.checker, run in
ONNX Runtime (of an opset that is asked for, else in onnx.reference) and compared with the expected values of the row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx

from converters.ir_to_onnx.export import export
from converters.ir_to_onnx.graph_writer import ExportError
from irexec.errors import ConversionError
from irexec.testing import Case
from irexec.testing.laws import assert_same
from irexec.testing.rows import model_of, rank, shape
from tests.support.cases import families
from tests.support.exported import run_onnx
from tests.support.goldens import recorded
from tests.sweep import kind as sweep
from tests.sweep.kind import Kind, Outcome

FORMS = ((1, rank), (None, shape), (1, shape))
"""The first input that is a constant, and what is known of the others; most is known in the last."""


def cases() -> Iterator[tuple[str, Case]]:
    """The rows with expected values, each with its family."""
    return ((family, row) for family, rows in families().items() for row in rows if isinstance(row, Case))


def expected_of(family: str, row: Case) -> tuple[np.ndarray, ...]:
    """The expected results of a row: written in it, or recorded from OpenVINO."""
    return row.gives if row.gives is not None else recorded(family, row.id, row.digest)


def exported(row: Case, expected: tuple[np.ndarray, ...], opset: int | None = None) -> Counter[str]:
    """Export a row in every form and compare; counts of the outcomes.

    Raises:
        ExportError: no form is expressible; the reason is that of the last.
    """
    counts: Counter[str] = Counter()
    refused: ExportError | None = None
    for first_constant, known in FORMS:
        if first_constant is not None and first_constant >= len(row.inputs) and known is shape:
            continue
        model, fed = model_of(row, first_constant, known)
        try:
            proto = export(model, opset).proto
        except ExportError as error:
            refused = error
            counts["refused"] += 1
            continue
        except ConversionError:
            # The rank of an output is not known.
            counts["rank"] += 1
            continue
        onnx.checker.check_model(proto, full_check=True)
        results, runtime = run_onnx(proto, fed)
        assert opset is not None or runtime == "onnxruntime", f"ONNX Runtime refuses what is written ({known.__name__})"
        assert_same([_carried(x) for x in results], expected, row)
        counts[runtime] += 1
    if refused is not None and counts["refused"] == sum(counts.values()):
        raise refused
    return counts


def _carried(array: np.ndarray) -> np.ndarray:
    return array.astype(object) if array.dtype.kind in "US" else array


class Sweep(Kind):
    """The types of operations that have rows."""

    cases = 1

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--opset", type=int, help="of ai.onnx; default: as ``irexec convert`` chooses it")

    def names(self) -> list[str]:
        return sorted({row.type for _, row in cases()})

    @contextmanager
    def opened(self, name: str) -> Iterator[sweep.Case]:
        """All rows of a type."""
        yield lambda number: (
            outcome for family, row in cases() if row.type == name for outcome in self._outcomes(family, row)
        )

    def _outcomes(self, family: str, row: Case) -> Iterator[Outcome]:
        try:
            counts = exported(row, expected_of(family, row), self.options.opset)
        except ExportError as error:
            yield Outcome("row refused", f"{row.id}: {error.layers[0].reason}")
        except Exception as error:
            # Anything that a runtime, the checker or the comparison raises is a failure of the row.
            text = " ".join(str(error).split())[:300]
            yield Outcome("row failed", f"{row.id}: {type(error).__name__}: {text}", fails=True)
        else:
            yield from map(Outcome, counts.elements())
