"""Random models of one layer, exported and run.

Each case is exported as the rows of ``tests.to_onnx.sweep`` are, and compared with what OpenVINO gives for it. Each
operation runs in a process of its own, since a runtime may take it down. Cases that OpenVINO refuses are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from converters.ir_to_onnx.graph_writer import ExportError
from irexec.testing import Case
from irexec.testing.laws import kernel, read_only
from irexec.testing.random_cases import random_cases, seeded
from tests.oracle.openvino_runner import Refused, run_case
from tests.oracle.sweep import random_operations, type_and_since
from tests.sweep import kind as sweep
from tests.sweep.kind import Kind, Outcome
from tests.to_onnx.sweep import exported


class Sweep(Kind):
    """The versions of operations that have random cases."""

    cases = 13
    told = frozenset({"refused", "as the reference kernel"})
    is_isolated = True

    def names(self) -> list[str]:
        return random_operations()

    @contextmanager
    def opened(self, name: str) -> Iterator[sweep.Case]:
        """A model for each number."""
        pair = type_and_since(name)
        yield lambda number: [_outcome(random_cases()[pair](seeded(*pair, number)))]


def _outcome(row: Case) -> Outcome:
    try:
        expected = run_case(row)
    except Refused:
        return Outcome("OpenVINO refuses")
    try:
        counts = exported(row, expected)
    except ExportError as error:
        return Outcome("refused", error.layers[0].reason)
    except Exception as error:
        # Anything that a runtime, the checker or the comparison raises is a failure of the case.
        text = " ".join(str(error).split())[:300]
        kind = "as the reference kernel" if _is_as_kernel(row) else "failed"
        what = f"{[str(x.element) for x in row.inputs]} {row.attributes}: {type(error).__name__}: {text}"
        return Outcome(kind, what, fails=kind == "failed")
    return Outcome("onnxruntime" if counts["onnxruntime"] else "onnx" if counts["onnx"] else "rank")


def _is_as_kernel(row: Case) -> bool:
    """Whether the exported case gives what the reference kernel gives, where OpenVINO gives something else."""
    try:
        exported(row, kernel(row, read_only(row)))
    except Exception:
        # As above.
        return False
    return True
