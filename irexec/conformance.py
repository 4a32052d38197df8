"""Conformance: a corpus of cases generated from the registry, which any runtime can be held to."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.portability import DIFFERENCES
from irexec.api import save_model, to_onnx, validate
from irexec.bounds import ARITHMETICS, Arithmetic, Bound, Interval, Layer, Unbounded, arithmetic, operation_bounds
from irexec.bounds.readings import READINGS, read_as
from irexec.display import Column, Content, Table, Text
from irexec.display.hypertext import badge, html, page
from irexec.errors import ConversionError, EngineError, InputError, IrexecError, RunTimeoutError
from irexec.io.files import new_file
from irexec.ir.facts import Fact
from irexec.ir.graph import Value
from irexec.messages import counted, silent, visible
from irexec.records import Record, Records, Report
from irexec.testing import Case, model_of
from irexec.testing.laws import COARSE, attributes_of, infer
from irexec.testing.random_cases import random_cases, seeded
from irexec.testing.rows import exact_facts
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.engines.engine import EngineJob
from irexec.tools.engines.runtimes import Worker, default_functions, open_runtime, require_runtime, runtime_kind
from irexec.tools.engines.runtimes.runtime import release_of

Pair = tuple[str, int]


def chosen(patterns: Sequence[str]) -> list[Pair]:
    """The operations whose type, or type and version as in "Softmax-8", match one of the patterns; all without any.

    Raises:
        InputError: a pattern matches no operation.
    """
    pairs = sorted(random_cases())
    for pattern in patterns:
        if not any(_matches(pair, pattern) for pair in pairs):
            raise InputError(f"no operation matches {pattern!r}; irexec ops lists all operations")
    return [pair for pair in pairs if not patterns or any(_matches(pair, pattern) for pattern in patterns)]


def _matches(pair: Pair, pattern: str) -> bool:
    type, since = pair
    return fnmatchcase(type, pattern) or fnmatchcase(f"{type}-{since}", pattern)


def cases(pairs: Sequence[Pair], seed: int, count: int) -> Iterator[Case]:
    """``count`` cases of each operation, with the seeds from ``seed`` on. The name of a case is its seed."""
    table = random_cases()
    for type, since in pairs:
        for number in range(seed, seed + count):
            yield replace(table[type, since](seeded(type, since, number)), name=str(number))


INSIDE, OUTSIDE, OPEN, CLOSE, DIFFERS = "inside", "outside", "open", "close", "differs"

Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class Verdict:
    """The verdict on one case.

    Attributes:
        name: of irexec.conformance.VERDICTS.
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
        # Compare by twice the tolerance of the coarsest element type among the inputs: both sides round.
        if actual.shape != expected.shape:
            return Verdict(DIFFERS, f"{name} has shape {list(actual.shape)}, the reference {list(expected.shape)}")
        rtol = max(row.definition.tolerance, 1e-4, *(2 * COARSE.get(x.element.name, 0) for x in row.inputs))
        agrees = agreement_of(name, actual, expected, Tolerance(rtol=rtol, atol=rtol)).agrees
        return Verdict(CLOSE) if agrees else Verdict(DIFFERS, f"{name} is not within {rtol:g} of the reference")
    if actual.shape != bound.exact.shape:
        return Verdict(OUTSIDE, f"{name} has shape {list(actual.shape)}, expected {list(bound.exact.shape)}")
    outside = bound.outside(actual)
    if not outside.any():
        return Verdict(INSIDE)
    where = tuple(int(i) for i in np.unravel_index(int(np.argmax(outside)), outside.shape))
    allowed = "" if bound.admits else f", allowed {bound.low[where]:.9g} to {bound.high[where]:.9g}"
    total = f"{int(outside.sum()):,} of {counted(outside.size, 'element')}"
    return Verdict(OUTSIDE, f"{name}: {total} outside, {list(where)} is {actual[where]:.9g}{allowed}")


def left_open(row: Case, model: Model, verdict: Verdict, given: Arrays, arithmetic: Arithmetic) -> Verdict:
    """The verdict on OpenVINO, with the codes of the portability table that the case has.

    It is left open if the outputs are those of one of these differences, or without a bound; else they stay
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


REFUSED, INEXPRESSIBLE, CRASHED = "refused", "inexpressible", "crashed"
VERDICTS = (INSIDE, OUTSIDE, OPEN, CLOSE, DIFFERS, REFUSED, INEXPRESSIBLE, CRASHED)
"""Inside and outside: every element is within its bound, or one is not and no correct implementation gives it. Open:
outside, but the portability table has the difference. Close and differs: without a bound, the outputs are within
the tolerance of the reference, or not, which is not a failure. Refused: the runtime does not run the case.
Inexpressible: the exporter to ONNX cannot write it. Crashed: the runtime's process ended, or took too long."""

FAILURES = (OUTSIDE, CRASHED)


@dataclass(frozen=True)
class CaseResult(Record):
    """The verdict on one case.

    Attributes:
        type, since: the operation, and the opset of its version.
        case: the seed of the case.
        elements: the element types of the inputs.
        verdict: of VERDICTS.
        why: the reason, where the verdict is neither "inside" nor "close".
        codes: of the portability table, where it is "open".
    """

    type: str
    since: int
    case: str
    elements: tuple[str, ...]
    verdict: str
    why: str
    codes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conformance(Report):
    """The verdicts on one runtime.

    Attributes:
        runtime: its name.
        version: its version; "" where it has none.
        arithmetic: its stated arithmetic; "" for what it says itself.
        seed: of the first case of each operation.
        cases: the verdicts.
    """

    runtime: str
    version: str
    arithmetic: str
    seed: int
    cases: Records[CaseResult]
    _json_properties = ("counts",)

    @property
    def counts(self) -> dict[str, int]:
        """The number of cases by verdict."""
        found = Counter(case.verdict for case in self.cases)
        return {verdict: found[verdict] for verdict in VERDICTS}

    @property
    def has_run(self) -> bool:
        """Whether the runtime has run any case."""
        return any(case.verdict in (INSIDE, OUTSIDE, OPEN, CLOSE, DIFFERS) for case in self.cases)

    @property
    def has_failed(self) -> bool:
        """Whether an output is outside of its bound, the runtime crashed, or it has run no case."""
        return not self.has_run or any(case.verdict in FAILURES for case in self.cases)

    def by_operation(self) -> dict[str, Counter[str]]:
        """The number of cases by verdict of each operation, such as "Softmax-8"."""
        rows: dict[str, Counter[str]] = {}
        for case in self.cases:
            rows.setdefault(f"{case.type}-{case.since}", Counter())[case.verdict] += 1
        return rows

    @property
    def title(self) -> str:
        """The runtime and the sum of the verdicts."""
        total = ", ".join(f"{number} {verdict}" for verdict, number in self.counts.items() if number)
        name = " ".join(filter(None, (self.runtime, self.version, self.arithmetic)))
        rows = counted(len({(case.type, case.since) for case in self.cases}), "operation")
        return f"{name}: {counted(len(self.cases), 'case')} of {rows}: {total}"

    def sections(self) -> list[Content]:
        """A table by operation, the reasons of cases that are not inside or close, and the sum."""
        return self._sections(_SHOWN)

    def _sections(self, limit: int | None) -> list[Content]:
        used = [verdict for verdict, number in self.counts.items() if number]
        columns = [Column("operation", lambda row: row[0]), *(_column(verdict) for verdict in used)]
        found: list[Content] = [Table(columns, list(self.by_operation().items()), what="operations")]
        reasons = sorted((case for case in self.cases if case.why), key=lambda case: _ORDER.index(case.verdict))
        if reasons:
            found.append(Table(_REASONS, reasons, what="cases", limit=limit))
        return [*found, Text(self.title, "title")]

    def html(self) -> str:
        """A page that needs no other file: the verdicts by operation, and all reasons."""
        contents = self._sections(None)
        return page(f"irexec conform {self.runtime}", html([contents[-1], *contents[:-1]]))

    def badge(self) -> str:
        """An SVG of one line: the share of the cases with a bound that are inside, and the number of failures."""
        failed = sum(self.counts[verdict] for verdict in FAILURES)
        bounded = self.counts[INSIDE] + self.counts[OUTSIDE]
        text = f"{failed} wrong" if failed else f"{self.counts[INSIDE]} of {bounded} inside"
        return badge("conformance", text, is_good=not self.has_failed)

    def junit(self) -> str:
        """A JUnit document: an output outside is a failure, a crash an error; cases without a verdict of the bounds are
        skipped, with the reason."""
        suite = Element("testsuite", name=f"irexec conform {self.runtime}", tests=str(len(self.cases)))
        suite.set("failures", str(self.counts[OUTSIDE]))
        suite.set("errors", str(self.counts[CRASHED]))
        suite.set("skipped", str(sum(self.counts[verdict] for verdict in _SKIPPED)))
        for case in self.cases:
            node = SubElement(suite, "testcase", classname=f"{case.type}-{case.since}", name=case.case)
            if case.verdict not in (INSIDE, CLOSE):
                kind = {CRASHED: "error", OUTSIDE: "failure"}.get(case.verdict, "skipped")
                text = " ".join((case.verdict, *case.codes))
                SubElement(node, kind, message=visible(f"{text}: {case.why}"))
        indent(suite)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suite, encoding="unicode")}\n'


_SKIPPED = (OPEN, DIFFERS, REFUSED, INEXPRESSIBLE)
_ORDER = (CRASHED, OUTSIDE, DIFFERS, OPEN, REFUSED, INEXPRESSIBLE)
_SHOWN = 20
_REASONS = [
    Column("operation", lambda case: f"{case.type}-{case.since}"),
    Column("case", "case"),
    Column("verdict", lambda case: " ".join((case.verdict, *case.codes))),
    Column("reason", "why", kind="sentence"),
]


def _column(verdict: str) -> Column:
    def number(row: Any) -> int:
        return int(row[1][verdict])

    return Column(verdict, number, "number")


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
        InputError: the runtime or arithmetic does not exist, it has no properties or does not say its arithmetic, or a
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


_README = """# Cases of irexec conform

`index.json` lists the cases. Each has a folder with

- `model.xml`, `model.bin`: one operation, OpenVINO IR of version 11;
- `input_0.npy`, ...: the inputs, in the order of the model's Parameters;
- `expected_0.npy`, ...: the exact result of each output, rounded to its type, in the order of the Results;
- `low_0.npy`, `high_0.npy`, ...: the bounds of an output that has some, as f64 or as integers.

Read a model, run it with its inputs, and compare each output that has bounds:

1. The shape is that of `expected`, or the output is wrong.
2. Where `low` and `high` are NaN, the element must be NaN.
3. Where `low` is -inf and `high` is inf, anything is right, NaN too.
4. Elsewhere the element must not be NaN, and `low <= element <= high`.

An element that breaks a rule is one that no correct implementation of the arithmetic in `index.json` gives. An output
without bounds may be compared with `expected` by a tolerance; a difference is not an error by itself. A case that an
engine does not run is not an error either.

Types that NumPy lacks, such as bf16, are stored as f32 that have been rounded to the type; types of less than eight
bits are stored in i8 or u8. Of several indices that are right for equal elements `low` and `high` are the smallest and
the largest that any implementation gives.
"""


@dataclass(frozen=True)
class Corpus(Report):
    """Cases that were written.

    Attributes:
        folder: with index.json, README.md and a folder for each case.
        cases: number of cases.
        bounded: number of outputs that have bounds.
        outputs: number of outputs.
    """

    folder: str
    cases: int
    bounded: int
    outputs: int

    def sections(self) -> list[Content]:
        """One line."""
        outputs = f"bounds for {self.bounded} of {counted(self.outputs, 'output')}"
        return [Text(f"{self.folder}: {counted(self.cases, 'case')}, {outputs}", "title")]


def build_corpus(
    folder: str | Path, options: ConformOptions | None = None, advance: Callable[[float], object] = silent
) -> Corpus:
    """Write the cases as files: model, inputs, expected results and bounds.

    Args:
        folder: to write; it must be absent or empty.
        options: the choice of cases, and the arithmetic of the bounds, f32 unless given.
        advance: called with the share of the work that is done.

    Raises:
        InputError: the folder has files, or a pattern matches no operation.
        ModelError: a file cannot be written.
    """
    options, target = options or ConformOptions(), Path(folder)
    stated = arithmetic(options.arithmetic or "f32")
    pairs = chosen(options.ops)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} is not an empty folder")
    index: list[dict[str, Any]] = []
    for row in cases(pairs, options.seed, options.cases):
        expected = reference_run(row)
        if expected is not None:
            index.append(_written(row, target, expected, case_bounds(row, stated)))
        advance(1 / (len(pairs) * options.cases))
    target.mkdir(parents=True, exist_ok=True)
    _write(target / "README.md", _README.encode())
    document = {"schema": 1, "arithmetic": stated.name, "seed": options.seed, "cases": index}
    _write(target / "index.json", f"{json.dumps(document, indent=1)}\n".encode())
    outputs = [one for case in index for one in case["outputs"]]
    return Corpus(str(target), len(index), sum(one["bounded"] for one in outputs), len(outputs))


def _written(row: Case, target: Path, made: Any, bounds: Sequence[object]) -> dict[str, Any]:
    model, fed, expected = made
    name = f"{row.type}-{int(row.since)}-{row.name}"
    folder = target / name
    folder.mkdir(parents=True, exist_ok=True)
    save_model(model, folder / "model.xml")
    for i, array in enumerate(fed):
        _save(folder / f"input_{i}.npy", array)
    outputs = []
    for i, (array, bound) in enumerate(zip(expected, bounds, strict=True)):
        _save(folder / f"expected_{i}.npy", array)
        is_bounded = isinstance(bound, Interval) and array.dtype.kind != "O"
        if isinstance(bound, Interval) and is_bounded:
            _save(folder / f"low_{i}.npy", bound.low)
            _save(folder / f"high_{i}.npy", bound.high)
        outputs.append({"bounded": is_bounded, "reason": getattr(bound, "reason", "")})
    elements = [x.element.name for x in row.inputs]
    return {
        "name": name, "type": row.type, "since": int(row.since), "case": row.name, "elements": elements,
        "outputs": outputs,
    }  # fmt: skip


def _save(path: Path, array: np.ndarray) -> None:
    with new_file(path, flushes=False) as file:
        # Text has no type of its own in a .npy that needs no pickle.
        np.save(file, array.astype(np.str_) if array.dtype.kind == "O" else array, allow_pickle=False)


def _write(path: Path, content: bytes) -> None:
    with new_file(path) as file:
        file.write(content)
