"""Rows as models of one layer, exported and run: ``python -m tests.to_onnx.sweep [FAMILY|TYPE ...] [-v] [--opset=N]``.

Each row is exported with every input as a Parameter and with all but the first constant, checked by onnx.checker, run in
ONNX Runtime (of an opset that is asked for, else in onnx.reference) and compared with the expected values of the row.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np
import onnx

import irexec
from converters.ir_to_onnx.export import export
from converters.ir_to_onnx.refusals import ExportError
from irexec.errors import ConversionError
from irexec.testing import Case
from irexec.testing.laws import assert_same
from irexec.testing.one_layer import model_of, rank, shape
from tests.support.cases import families
from tests.support.exported import run_onnx
from tests.support.goldens import recorded

FORMS = ((1, rank), (None, shape), (1, shape))
"""The first input that is a constant, and what is known of the others; most is known in the last."""


def cases(names: list[str]) -> Iterator[tuple[str, Case]]:
    """The rows with expected values of these families or operation types; all without names."""
    for family, rows in families().items():
        for row in rows:
            if isinstance(row, Case) and (not names or family in names or row.type in names):
                yield family, row


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


def main() -> None:
    """Run the sweep and print counts."""
    names, verbose = [a for a in sys.argv[1:] if not a.startswith("-")], "-v" in sys.argv
    opset = next((int(a.removeprefix("--opset=")) for a in sys.argv if a.startswith("--opset=")), None)
    counts: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for family, row in cases(names):
        try:
            for outcome, number in exported(row, expected_of(family, row), opset).items():
                counts[outcome] += number
        except ExportError as error:
            if "there is no translation" in error.layers[0].reason:
                continue
            counts["rows refused"] += 1
            failed[f"{row.type}: refused"] += 1
            if verbose:
                print(f"{row.id}: {error.layers[0].reason}")
        except Exception as error:
            # Anything that a runtime, the checker or the comparison raises is a failure of the row.
            counts["rows failed"] += 1
            failed[f"{row.type}: failed"] += 1
            if verbose:
                text = " ".join(str(error).split())[:300]
                print(f"{row.id}: {type(error).__name__}: {text}")
    print(dict(counts), irexec.__name__)
    print("\n".join(f"{number:5} {name}" for name, number in failed.most_common()))


if __name__ == "__main__":
    main()
