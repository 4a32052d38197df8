"""Judgements with the files that show them: the smallest model with the verdict, its inputs, their interval, a script,
a report.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from irexec.analysis.builder import packed
from irexec.analysis.evaluate import rounded
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.api import ModelLike
from irexec.bounds import Interval, Unbounded, arithmetic
from irexec.compile.passes.quantise_activations import quantised_products
from irexec.errors import InputError, IrexecError, RunTimeoutError
from irexec.io import write
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node, Value
from irexec.messages import counted, listed, silent
from irexec.tools.arrays.files import write_npz
from irexec.tools.commands import irexec_command
from irexec.tools.engines.runtimes import DYNAMIC_QUANTIZATION, Arrays, runtime_kind
from irexec.tools.images import Notify
from irexec.tools.judge.evidence import Evidence
from irexec.tools.judge.judgement import Bundle, JudgedLayer, Judgement, JudgeOptions, Verdict
from irexec.tools.judge.opponent import Opponent, Tensors
from irexec.tools.judge.run import judge, judged_case
from irexec.tools.judge.step import Case
from irexec.tools.observing.alone import Alone
from irexec.tools.observing.sides import ModelSide
from irexec.tools.reduce import Candidate, Check, DoesNotFail, reduce
from irexec.tools.reduce.checks import Failure, Files
from irexec.tools.reduce.recording import BOUNDARY
from irexec.tools.run.input_sources import InputSource
from irexec.tools.run.result_files import with_state


def results_beside(
    candidate: Candidate, options: JudgeOptions, arithmetic_name: str, seen: Tensors | None = None
) -> list[tuple[np.ndarray | None, Interval | Unbounded]]:
    """The results of a model in the runtime, each beside its interval from the inputs of the model.

    Args:
        candidate: the model and its inputs.
        options: the runtime.
        arithmetic_name: the arithmetic that it is held to.
        seen: the results if they were recorded; they are not computed then.
    """
    model = candidate.model
    results = [value for node in model.results for value in node.inputs if value is not None]
    with ExitStack() as stack:
        opponent = Opponent(model, options, stack)
        given = opponent.observed([candidate.inputs], results)[0] if seen is None else seen
        inference = infer_shapes(model, tolerant=True)
        groups = quantised_products(model, inference, options.group or 0)
        held = arithmetic(arithmetic_name, opponent.functions)
        side = ModelSide("part", model, options.runtime)
        evidence = Evidence(opponent, side, inference.facts, held, groups=groups)
        inputs = {port.node.outputs[0]: candidate.inputs[port.name] for port in model.inputs}
        return [(given.get(value), evidence.bound(value, inputs)[0]) for value in results]


class OutsideCheck(Check):
    """Whether a result lies outside of its interval from the inputs of the candidate.

    Args:
        options: the runtime.
        arithmetic_name: the arithmetic that it is held to.
    """

    def __init__(self, options: JudgeOptions, arithmetic_name: str) -> None:
        self._options, self._arithmetic = options, arithmetic_name

    @property
    def identity(self) -> Sequence[object]:
        return ("outside", self._options.runtime, self._arithmetic)

    def __call__(self, candidate: Candidate) -> Failure | None:
        try:
            found = results_beside(candidate, self._options, self._arithmetic)
        except RunTimeoutError:
            raise
        except IrexecError:
            # The runtime does not take this part.
            return None
        for actual, bound in found:
            if actual is None or isinstance(bound, Unbounded) or bound.exact.shape != actual.shape:
                continue
            if bound.outside(actual).any():
                return Failure("outside", f"a result is outside of the interval of {self._arithmetic}")
        return None

    def command(self, files: Files) -> list[str]:
        return _command(self._options, files)


class VerdictCheck(Check):
    """Whether the judgement of a candidate has the same verdict, about a layer of the same type.

    Args:
        options: the runtime.
        wanted: the judgement of the whole model.
    """

    def __init__(self, options: JudgeOptions, wanted: Judgement) -> None:
        self._options = replace(options, arithmetic=wanted.arithmetic)
        self._verdict: Verdict = wanted.verdict
        self._types = tuple(sorted({one.layer.type for one in wanted.at[:1]}))
        self._names = {one.layer.name for one in wanted.at} | {name for one in wanted.at for name in one.region}
        self._starts: list[Node] = []

    @property
    def identity(self) -> Sequence[object]:
        return ("judge", self._options.runtime, self._verdict, *self._types)

    def reference(self, model: Model, inputs: Sequence[np.ndarray]) -> Mapping[Value, np.ndarray]:
        self._starts = [node for node in model.nodes if node.name in self._names]
        return {}

    def starts(self, reference: Collection[Value]) -> Sequence[Sequence[Node]]:
        return [self._starts] if self._starts else []

    def __call__(self, candidate: Candidate) -> Failure | None:
        try:
            found = judge(candidate.model, candidate.inputs, self._options)
        except RunTimeoutError:
            raise
        except IrexecError:
            return None
        types = tuple(sorted({one.layer.type for one in found.at[:1]}))
        is_same = (found.verdict, types) == (self._verdict, self._types)
        return Failure(found.verdict, found.sentence) if is_same else None

    def command(self, files: Files) -> list[str]:
        return _command(self._options, files)


def _command(options: JudgeOptions, files: Files) -> list[str]:
    properties = [f"-p={name}={value}" for name, value in (options.properties or {}).items()]
    held = [f"--arithmetic={options.arithmetic}"] if options.arithmetic else []
    held += [f"--functions={options.functions}"] if options.functions else []
    held += [f"--dynamic-quantization={options.dynamic_quantization}"] if options.dynamic_quantization else []
    return irexec_command("judge", files.model, *files.input_options, "--runtime", options.runtime, *properties, *held)


_SEEDS = 3
_SMALL = 8
"""Constants of fewer elements are scales, shapes and axes, and stay."""


def without_weights(candidate: Candidate, check: Check) -> tuple[Candidate, tuple[str, ...]]:
    """The candidate with random weights, if it fails with them.

    All weights are replaced together; if that does not fail, each for itself.

    Returns:
        The candidate, and the names of the constants that keep their values, since the failure needs them.
    """
    names = [node.name for node in candidate.model.nodes if _is_weight(node)]
    for seed in range(_SEEDS):
        made = _with_random(candidate, names, seed)
        if check(made) is not None:
            return made, ()
    replaced: list[str] = []
    for name in names:
        if check(_with_random(candidate, [*replaced, name], 0)) is not None:
            replaced.append(name)
    return _with_random(candidate, replaced, 0), tuple(name for name in names if name not in replaced)


def _is_weight(node: Node) -> bool:
    one = node.constant
    return one is not None and one.count >= _SMALL and (one.element.is_float or one.element.bits <= 8)


def _with_random(candidate: Candidate, names: Sequence[str], seed: int) -> Candidate:
    model = copy.copy(candidate.model)
    rng = np.random.default_rng(seed)
    for node in model.nodes:
        if node.name in names and node.constant is not None:
            array = constant_value(node.constant)
            node.constant = packed(rounded(_random_like(array, rng), node.constant.element), node.constant.element)
    return Candidate(model, candidate.inputs, candidate.expected)


def _random_like(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Normal values of the same mean and standard deviation; integers evenly from the same range."""
    if array.dtype.kind in "iub":
        low, high = int(array.min()), int(array.max())
        return rng.integers(low, high + 1, array.shape).astype(array.dtype)
    finite = array[np.isfinite(array)].astype(np.float64)
    mean, deviation = (float(finite.mean()), float(finite.std())) if finite.size else (0.0, 1.0)
    limits = (finite.min(), finite.max()) if finite.size else (-1.0, 1.0)
    # Variances stay positive, and scales in their range.
    values = np.clip(rng.normal(mean, deviation, array.shape), *limits)
    return np.asarray(values, array.dtype)


def judge_into(
    folder: str,
    model: ModelLike,
    inputs: Arrays | Sequence[Arrays] | None = None,
    options: JudgeOptions | None = None,
    *,
    sources: Sequence[InputSource] = (),
    strip_weights: bool = False,
    notify: Notify = silent,
    output: str | None = None,
) -> Judgement:
    """Judge a runtime, and write a bundle unless it agrees or loses its state; arguments are those of ``judge``.

    Args:
        folder: the folder of the bundle.
        strip_weights: whether the model in it gets random weights, where the verdict allows it.

    Raises:
        InputError: the folder has files, weights of a recording are to be replaced, or as ``judge``.
    """
    _check_folder(Path(folder))
    case = judged_case(model, inputs, options or JudgeOptions(), sources, notify, output)
    found = case.judgement
    if found.verdict == "agrees":
        return found
    if found.is_bug and found.at[0].layer.type == "ReadValue":
        # The script of a bundle runs one step.
        note = "no bundle is written: a state that is not kept shows in two steps"
        return replace(found, notes=(*found.notes, note))
    return replace(found, bundle=write_bundle(case, Path(folder), strip_weights))


def _check_folder(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not an empty folder")


def write_bundle(case: Case, folder: Path, strip_weights: bool = False) -> Bundle:
    """Write the files into a folder, which is made if it does not exist.

    Raises:
        InputError: the folder has files, or weights of a recording are to be replaced.
    """
    if strip_weights and case.is_recorded:
        raise InputError("other weights have other results, which are not in the recording: no --strip-weights")
    _check_folder(folder)
    candidate, check, recorded = _smallest(case)
    kept: tuple[str, ...] | None = None
    if strip_weights and check is not None:
        candidate, kept = without_weights(candidate, check)
    folder.mkdir(parents=True, exist_ok=True)
    # In the order of the inputs, since the script has no other names.
    inputs = {port.name: candidate.inputs[port.name] for port in candidate.model.inputs}
    intervals = _arrays(results_beside(candidate, case.options, case.judgement.arithmetic, recorded))
    made = Bundle(
        str(folder), ("report.md", "check.py", "inputs.npz", "interval.npz", "model.xml", "model.bin"),
        _count(case.side.model), _count(candidate.model), kept,
    )  # fmt: skip
    report = _report(case.judgement, made, case.options)
    beside: dict[Path, Callable[[IO[bytes]], object]] = {
        folder / "inputs.npz": lambda file: write_npz(file, inputs),
        folder / "interval.npz": lambda file: write_npz(file, intervals),
        folder / "check.py": lambda file: file.write(_script(case).encode()),
        folder / "report.md": lambda file: file.write(report.encode()),
    }
    write(candidate.model, folder / "model.xml", beside)
    return made


def _smallest(case: Case) -> tuple[Candidate, Check | None, Tensors | None]:
    """The smallest model with the verdict, the check that found it, and its recorded results."""
    found, options = case.judgement, case.options
    accused = found.at[0] if found.at and found.verdict in ("bug", "fusion") else None
    if accused is not None:
        candidate, recorded = _region(case, accused)
        if case.is_recorded:
            return candidate, None, recorded
        check = OutsideCheck(options, found.arithmetic)
        if check(candidate) is not None:
            return _reduced(candidate, check), check, None
    # The model, whose variables begin with the state before the judged step.
    state = {value.node.attributes["variable_id"]: array for value, array in case.state.items()}
    whole = Candidate(with_state(case.side.model, state) if state else case.side.model, case.inputs)
    if case.is_recorded:
        results = [value for node in case.side.model.results for value in node.inputs if value is not None]
        return whole, None, {value: case.seen[value] for value in results if value in case.seen}
    verdict = VerdictCheck(options, found)
    return _reduced(whole, verdict), verdict, None


def _reduced(candidate: Candidate, check: Check) -> Candidate:
    try:
        inputs: dict[str | int, Any] = dict(candidate.inputs.items())
        return reduce(candidate.model, check, inputs).found
    except DoesNotFail:
        # The fault is not there in a second run; the whole model is what there is.
        return candidate


def _region(case: Case, accused: JudgedLayer) -> tuple[Candidate, Tensors]:
    """The accused layers with the inputs that the runtime had, and the value that it gave."""
    names = set(accused.region)
    inner = {value for node in case.side.order if node.name in names for value in node.outputs}
    value = next(value for value in case.seen if value.name == accused.layer.tensor)
    given = {source: array for source, array in case.seen.items() if source not in inner}
    made = Alone(case.side, given, infer_shapes(case.side.model, tolerant=True).facts).model([value], given)
    return Candidate(made.model, made.inputs), {made.values[value]: case.seen[value]}


def _arrays(beside: Sequence[tuple[np.ndarray | None, Interval | Unbounded]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for i, (actual, bound) in enumerate(beside):
        if isinstance(bound, Interval) and bound.exact.dtype.kind != "O":
            found |= {f"low_{i}": bound.low, f"high_{i}": bound.high, f"exact_{i}": bound.exact}
        if actual is not None:
            found[f"actual_{i}"] = actual
    return found


def _count(model: Model) -> int:
    return sum(node.type not in BOUNDARY for node in model.nodes)


def _script(case: Case) -> str:
    name = case.options.runtime
    kind = "openvino" if case.is_recorded else runtime_kind(name)
    device = name.partition(":")[2] if kind == "openvino" and ":" in name else "CPU"
    properties = dict(case.options.properties or {})
    if case.options.group is not None:
        properties[DYNAMIC_QUANTIZATION] = str(case.options.group)
    if device == "CPU":
        properties = {"INFERENCE_PRECISION_HINT": "f32"} | properties
    return _SCRIPT.format(device=json.dumps(device), properties=json.dumps(properties))


_SCRIPT = '''"""Runs model.xml in OpenVINO, and counts the values outside of the interval of correct implementations."""

import sys

import numpy as np
import openvino as ov

device = sys.argv[1] if len(sys.argv) > 1 else {device}
compiled = ov.Core().compile_model("model.xml", device, {properties})
inputs, interval = np.load("inputs.npz"), np.load("interval.npz")
results = compiled([inputs[name] for name in inputs.files])
wrong = 0
for i in range(len(compiled.outputs)):
    if f"low_{{i}}" in interval.files:
        ends = interval[f"low_{{i}}"], interval[f"high_{{i}}"]
        low, high, value = (np.asarray(array, np.float64) for array in (*ends, results[i]))
        is_open = np.isneginf(low) & np.isposinf(high) | np.isnan(low) & np.isnan(value)
        outside = np.count_nonzero(~((low <= value) & (value <= high) | is_open))
        wrong += outside
        print(f"output {{i}}: {{outside}} of {{value.size}} values outside of their interval")
print(f"OpenVINO {{ov.__version__}} on {{device}}: {{'wrong' if wrong else 'right'}}")
sys.exit(1 if wrong else 0)
'''


def _report(found: Judgement, bundle: Bundle, options: JudgeOptions) -> str:
    version = f" {found.version}" if found.version else ""
    properties = ", ".join(f"{name}={value}" for name, value in (options.properties or {}).items())
    lines = [
        f"# {found.runtime}{version}: {found.verdict}", "", f"{found.sentence}.", "",
        f"- Arithmetic: {found.arithmetic}. Properties: {properties or 'none'}.",
        f"- The model has {counted(bundle.after, 'layer')} of {bundle.before}.",
        "- `inputs.npz` has its inputs. `interval.npz` has, for output 0, the ends of the interval in which the values",
        "  of every correct implementation lie, the exact result, and the values of the runtime: `low_0`, `high_0`,",
        "  `exact_0`, `actual_0`.",
        "- `python check.py` runs the model in OpenVINO and counts the values outside of the interval. It needs",
        "  openvino and numpy.",
    ]  # fmt: skip
    if bundle.kept is not None:
        kept = f", but those of {listed(bundle.kept, 5)}, which the verdict needs" if bundle.kept else ""
        lines.append(f"- Weights are random{kept}.")
    lines += ["", "| Layer | Type | Values outside | Worst | Interval |", "| --- | --- | --- | --- | --- |"]
    for one in found.at:
        ends = "" if one.low is None else f"{one.low:.9g} to {one.high:.9g}"
        value = "" if one.value is None else f"{one.value:.9g}"
        lines.append(f"| {one.layer.name} | {one.layer.type} | {one.outside} of {one.elements} | {value} | {ends} |")
    return "\n".join(lines) + "\n"
