"""The corpus through a runtime."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from irexec.analysis.model import Model
from irexec.api import to_onnx
from irexec.conformance.corpus import cases, chosen
from irexec.conformance.result import CLOSE, CRASHED, DIFFERS, REFUSED, CaseResult, Conformance
from irexec.errors import EngineError, InputError, IrexecError, RunTimeoutError
from irexec.ir.graph import Value
from irexec.records import Records
from irexec.testing import Case, model_of
from irexec.testing.laws import COARSE
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.engines.engine import EngineJob
from irexec.tools.engines.runtimes import Worker, open_runtime, require_runtime, runtime_kind

_IN_PROCESSES = ("openvino", "onnxruntime")

Arrays = Sequence[np.ndarray]


@dataclass(frozen=True, kw_only=True)
class ConformOptions:
    """The choice of cases.

    Attributes:
        ops: patterns of types, such as "Conv*" or "Softmax-8"; all operations without any.
        seed: of the first case of each operation.
        cases: number of cases of each operation.
        properties: of OpenVINO's plugin.
        timeout: seconds that a case may take.
    """

    ops: tuple[str, ...] = ()
    seed: int = 0
    cases: int = 10
    properties: Mapping[str, str] | None = None
    timeout: float = 60


def conform(
    runtime: str, options: ConformOptions | None = None, advance: Callable[[float], object] = lambda done: None
) -> Conformance:
    """Hold a runtime to the corpus. No case ends the run: OpenVINO and ONNX Runtime are in a process of their own.

    Args:
        runtime: as for open_runtime; "onnxruntime" runs the model that the exporter to ONNX writes.
        options: the choice of cases.
        advance: called with the share of the work that is done.

    Raises:
        InputError: there is no such runtime, it has no properties, or a pattern matches no operation.
        UnsupportedError: the package of the runtime is not installed.
    """
    options = options or ConformOptions()
    require_runtime(runtime, options.properties)
    if runtime == "onnx":
        raise InputError("conform does not run the evaluator of onnx")
    pairs, count = chosen(options.ops), options.cases
    kind = runtime_kind(runtime)
    with Worker(kind, options.timeout) as worker:
        found: Records[CaseResult] = Records()
        for row in cases(pairs, options.seed, count):
            result = _judged(row, runtime, options, worker if kind in _IN_PROCESSES else None)
            if result is not None:
                found.append(result)
            advance(1 / (len(pairs) * count))
        return Conformance(runtime, worker.version, options.seed, found)


def _judged(row: Case, runtime: str, options: ConformOptions, worker: Worker | None) -> CaseResult | None:
    """The verdict on a case; None where the reference refuses it, and there is nothing to hold a runtime to."""
    try:
        model, fed = model_of(row)
        with open_runtime("reference", model) as reference:
            expected = reference.run(_named(model, fed), _results(model))
    except IrexecError:
        return None
    verdict, why = _outcome(row, model, fed, expected, runtime, options, worker)
    elements = tuple(x.element.name for x in row.inputs)
    return CaseResult(row.type, int(row.since), row.name, elements, verdict, why)


def _outcome(
    row: Case, model: Model, fed: Arrays, expected: Arrays, runtime: str, options: ConformOptions,
    worker: Worker | None,
) -> tuple[str, str]:  # fmt: skip
    try:
        if runtime == "onnxruntime" and worker is not None:
            given = _exported(model, fed, worker)
        else:
            with open_runtime(
                runtime, model, properties=options.properties, timeout=options.timeout, worker=worker
            ) as opened:
                given = opened.run(_named(model, fed), _results(model))
    except RunTimeoutError as error:
        return CRASHED, str(error)
    except EngineError as error:
        return REFUSED if error.exit_code is None else CRASHED, str(error)
    except IrexecError as error:
        return REFUSED, str(error)
    return _compared(row, given, expected)


def _named(model: Model, fed: Arrays) -> dict[str, np.ndarray]:
    return {port.name: array for port, array in zip(model.inputs, fed, strict=True)}


def _results(model: Model) -> list[Value]:
    return [value for node in model.results for value in node.inputs if value is not None]


def _exported(model: Model, fed: Arrays, worker: Worker) -> list[np.ndarray]:
    """The outputs of the model that the exporter writes, in ONNX Runtime."""
    proto = to_onnx(model)
    names = [each.name for each in proto.graph.input]
    with tempfile.TemporaryDirectory(prefix="irexec-conform-") as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(proto.SerializeToString())
        return worker.run(EngineJob("onnxruntime", str(path), ""), [dict(zip(names, fed, strict=True))], "the case")[0]


def _compared(row: Case, given: Arrays, expected: Arrays) -> tuple[str, str]:
    """Compare by twice the tolerance of the coarsest element type among the inputs: both sides round."""
    kinds = [x.element.name for x in row.inputs]
    rtol = max(row.definition.tolerance, 1e-4, *(2 * COARSE.get(kind, 0) for kind in kinds))
    for i, (actual, wanted) in enumerate(zip(given, expected, strict=True)):
        if actual.shape != wanted.shape:
            return DIFFERS, f"output {i} has shape {list(actual.shape)}, the reference {list(wanted.shape)}"
        found = agreement_of(f"output {i}", actual, wanted, Tolerance(rtol=rtol, atol=rtol))
        if not found.agrees:
            return DIFFERS, f"output {i} is not within {rtol:g} of the reference"
    return CLOSE, ""
