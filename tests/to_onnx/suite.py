"""The ONNX suite there and back: ``python -m tests.to_onnx.suite [NAME ...] [-v]``.

Each test of the suite is converted to IR and written as ONNX again, checked by onnx.checker and run in ONNX Runtime (else
in onnx.reference); its outputs are compared with the expected ones.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import converters
from converters.ir_to_onnx.export import export
from converters.ir_to_onnx.graph_writer import ExportError
from converters.onnx.tensors import array_of
from irexec.errors import IrexecError
from tests.support.casts import only_defined
from tests.support.exported import run_onnx

_DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
_RANDOM = re.compile(r"test_(bernoulli|training_dropout(_default)?(_mask)?$)")
_COARSE = {"bfloat16": 1.6e-2, "float16": 2e-3}


@dataclass(frozen=True)
class Case:
    """One test: a model, its inputs and expected outputs."""

    name: str
    model: Any
    sets: tuple[tuple[list[Any], list[Any]], ...]
    rtol: float
    atol: float


def node_tests() -> Iterator[Case]:
    """The tests of single operators."""
    import warnings

    from onnx.backend.test.case import node

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = node.collect_testcases(None)
    for case in cases:
        yield Case(case.name, case.model, tuple((list(a), list(b)) for a, b in case.data_sets), case.rtol, case.atol)


def file_tests() -> Iterator[Case]:
    """The tests that are files."""
    for suite in ("pytorch-operator", "pytorch-converted", "simple"):
        for path in sorted((_DATA / suite).glob("*/model.onnx")):
            sets = tuple(
                (_numbered(folder, "input"), _numbered(folder, "output"))
                for folder in sorted(path.parent.glob("test_data_set_*"))
            )
            yield Case(f"{suite}/{path.parent.name}", path, sets, 1e-3, 1e-6)


def _numbered(folder: Path, kind: str) -> list[Any]:
    paths = sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.split("_")[1]))
    return [onnx.TensorProto.FromString(path.read_bytes()) for path in paths]


def _array(value: Any) -> np.ndarray:
    """An input or output in the carrier of its type."""
    array = array_of(value)[0] if isinstance(value, onnx.TensorProto) else np.asarray(value)
    if array.dtype.kind in "US":
        return array.astype(str).astype(object)
    if array.dtype.name in np.sctypeDict and array.dtype.kind != "V":
        return array
    return array_of(numpy_helper.from_array(array))[0]


def outcome(test: Case) -> str:
    """Convert, export, run and compare.

    Returns:
        The runtime, or the reason for which the test is out of scope.

    Raises:
        Exception: the round trip fails.
    """
    try:
        model = converters.convert(test.model, warn=lambda text: None)
    except IrexecError as error:
        return f"not converted: {type(error).__name__}"
    proto = export(model).proto
    onnx.checker.check_model(proto, full_check=True)
    runtime = "nothing"
    for inputs, expected in test.sets:
        results, runtime = run_onnx(proto, [_array(x) for x in inputs][: len(proto.graph.input)])
        assert len(results) == len(expected), f"{len(results)} outputs, expected {len(expected)}"
        for result, value in zip(results, expected, strict=True):
            _compare(test, result, _array(value), value, _array(inputs[0]) if inputs else result)
    return runtime


def _compare(test: Case, result: np.ndarray, expected: np.ndarray, value: Any, x: np.ndarray) -> None:
    assert result.shape == expected.shape, f"shape {result.shape}, expected {expected.shape}"
    if _RANDOM.match(test.name):
        return
    if expected.dtype == object:
        assert [str(x) for x in result.ravel()] == [str(x) for x in expected.ravel()]
        return
    kind = (
        onnx.TensorProto.DataType.Name(value.data_type).lower()
        if isinstance(value, onnx.TensorProto)
        else str(np.asarray(value).dtype)
    )
    result, expected = only_defined(test.name, kind, x, result, expected)
    rtol = max(test.rtol, _COARSE.get(kind, 0))
    wide = np.bool_ if expected.dtype == np.bool_ else np.float64
    # The error of a sum depends on the size of its terms.
    atol = max(
        test.atol, 1e-7, 1e-6 * float(np.abs(expected.astype(np.float64)).max(initial=0)) if "ft" in test.name else 0
    )
    np.testing.assert_allclose(result.astype(wide), expected.astype(wide), rtol=rtol, atol=atol)


def main() -> None:
    """Run the sweep and print counts, and with -v each failure."""
    names, verbose = [a for a in sys.argv[1:] if not a.startswith("-")], "-v" in sys.argv
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for test in (*node_tests(), *file_tests()):
        if names and not any(name in test.name for name in names):
            continue
        try:
            counts[outcome(test)] += 1
        except ExportError as error:
            counts["refused"] += 1
            reasons[f"{error.layers[0].type}: {error.layers[0].reason}"[:110]] += 1
            if verbose:
                print(f"{test.name}: {error.layers[0]}"[:300])
        except Exception as error:
            # Runtimes, the checker and the comparison raise classes of their own.
            counts["failed"] += 1
            text = " ".join(str(error).split())[:300]
            reasons[f"failed: {type(error).__name__}"] += 1
            if verbose:
                print(f"{test.name}: {type(error).__name__}: {text}")
    print(dict(counts), sum(counts.values()))
    print("\n".join(f"{number:5} {reason}" for reason, number in reasons.most_common(60)))


if __name__ == "__main__":
    main()
