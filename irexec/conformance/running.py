"""The corpus through a runtime."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from irexec.analysis.model import Model
from irexec.api import to_onnx
from irexec.bounds import ARITHMETICS, Arithmetic, arithmetic
from irexec.conformance.corpus import cases, chosen
from irexec.conformance.result import CRASHED, INEXPRESSIBLE, REFUSED, CaseResult, Conformance
from irexec.conformance.verdicts import Arrays, Verdict, case_bounds, left_open, verdict_of
from irexec.errors import ConversionError, EngineError, InputError, IrexecError, RunTimeoutError
from irexec.ir.graph import Value
from irexec.messages import silent
from irexec.records import Records
from irexec.testing import Case, model_of
from irexec.tools.engines.engine import EngineJob
from irexec.tools.engines.runtimes import Worker, default_functions, open_runtime, require_runtime, runtime_kind
from irexec.tools.engines.runtimes.names import release_of

Reference = tuple[Model, list[np.ndarray], list[np.ndarray]]

_IN_PROCESSES = ("openvino", "onnxruntime")


@dataclass(frozen=True, kw_only=True)
class ConformOptions:
    """The choice of cases.

    Attributes:
        ops: patterns of types, such as "Conv*" or "Softmax-8"; all operations without any.
        seed: of the first case of each operation.
        cases: number of cases of each operation.
        properties: of OpenVINO's plugin.
        arithmetic: a name of irexec.bounds.ARITHMETICS; by default what the runtime says it computes in, or f32. An
            element type that is coarser counts as well.
        timeout: seconds that a case may take.
        environments: the folder of the environments of releases.
    """

    ops: tuple[str, ...] = ()
    seed: int = 0
    cases: int = 10
    properties: Mapping[str, str] | None = None
    arithmetic: str | None = None
    timeout: float = 60
    environments: str | None = None


def conform(
    runtime: str, options: ConformOptions | None = None, advance: Callable[[float], object] = silent
) -> Conformance:
    """Hold a runtime to the corpus. No case ends the run: OpenVINO and ONNX Runtime are in a process of their own.

    Args:
        runtime: as for open_runtime; "onnxruntime" runs the model that the exporter to ONNX writes.
        options: the choice of cases.
        advance: called with the share of the work that is done.

    Raises:
        InputError: there is no such runtime or arithmetic, it has no properties or does not say its arithmetic, or a
            pattern matches no operation.
        UnsupportedError: the package or the release of the runtime is not installed.
    """
    options = options or ConformOptions()
    stated = "" if options.arithmetic is None else arithmetic(options.arithmetic).name
    require_runtime(runtime, options.properties)
    if runtime == "onnx":
        raise InputError("conform does not run the evaluator of onnx")
    pairs, count = chosen(options.ops), options.cases
    kind = runtime_kind(runtime)
    with Worker(kind, options.timeout, release_of(runtime), options.environments) as worker:
        found: Records[CaseResult] = Records()
        for row in cases(pairs, options.seed, count):
            result = _judged(row, runtime, options, worker if kind in _IN_PROCESSES else None)
            if result is not None:
                found.append(result)
            advance(1 / (len(pairs) * count))
        return Conformance(runtime, worker.version, stated, options.seed, found)


def reference_run(row: Case) -> Reference | None:
    """The model of a case, its inputs, and what the reference kernels give; None where they refuse it."""
    try:
        model, fed = model_of(row)
        with open_runtime("reference", model) as reference:
            return model, fed, reference.run(_named(model, fed), _results(model))
    except IrexecError:
        return None


def _judged(row: Case, runtime: str, options: ConformOptions, worker: Worker | None) -> CaseResult | None:
    """The verdict on a case; None where there is nothing to hold a runtime to."""
    made = reference_run(row)
    if made is None:
        return None
    model, fed, expected = made
    found = _outcome(row, model, fed, expected, runtime, options, worker)
    if found.name == CRASHED:
        # A process may end by the damage of an earlier case: only what a fresh one does again is an accusation.
        found = _outcome(row, model, fed, expected, runtime, options, worker)
    elements = tuple(x.element.name for x in row.inputs)
    return CaseResult(row.type, int(row.since), row.name, elements, found.name, found.why, found.codes)


def _outcome(
    row: Case, model: Model, fed: Arrays, expected: Arrays, runtime: str, options: ConformOptions,
    worker: Worker | None,
) -> Verdict:  # fmt: skip
    try:
        if runtime == "onnxruntime" and worker is not None:
            given, said = _exported(model, fed, worker), ""
        else:
            with open_runtime(
                runtime, model, properties=options.properties, timeout=options.timeout, worker=worker
            ) as opened:
                given, said = opened.run(_named(model, fed), _results(model)), opened.precision
    except ConversionError as error:
        return Verdict(INEXPRESSIBLE, str(error))
    except RunTimeoutError as error:
        return Verdict(CRASHED, str(error))
    except EngineError as error:
        return Verdict(REFUSED if error.exit_code is None else CRASHED, str(error))
    except IrexecError as error:
        return Verdict(REFUSED, str(error))
    held = _stated(runtime, options, said)
    found = verdict_of(row, given, expected, case_bounds(row, held))
    return left_open(row, model, found, given, held) if runtime_kind(runtime) == "openvino" else found


def _stated(runtime: str, options: ConformOptions, said: str) -> Arithmetic:
    """The arithmetic of the options, or the one that the runtime says.

    Raises:
        InputError: another device than the CPU does not say it.
    """
    if options.arithmetic is None and not said and runtime_kind(runtime) == "openvino" and runtime != "openvino":
        raise InputError(f"{runtime} does not say in which precision it computes: --arithmetic f16, for example")
    return arithmetic(options.arithmetic or (said if said in ARITHMETICS else "f32"), default_functions(runtime))


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
