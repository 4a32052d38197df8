"""Files for an issue tracker: the smallest model with the verdict, its inputs, their interval, a script, a report."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.api import ModelLike
from irexec.bounds import Interval, Unbounded
from irexec.errors import InputError
from irexec.io import write
from irexec.messages import counted, listed, silent
from irexec.tools.arrays.files import write_npz
from irexec.tools.bundling.criterion import OutsideCheck, VerdictCheck, results_beside
from irexec.tools.bundling.stripping import without_weights
from irexec.tools.engines.runtimes import Arrays, runtime_kind
from irexec.tools.images.files import Notify
from irexec.tools.judge.judgement import Bundle, JudgedLayer, Judgement
from irexec.tools.judge.opponent import Tensors
from irexec.tools.judge.options import JudgeOptions
from irexec.tools.judge.run import judged_case
from irexec.tools.judge.step import Case
from irexec.tools.observing.alone import Alone
from irexec.tools.reduce import Candidate, Check, DoesNotFail, reduce
from irexec.tools.reduce.recording import BOUNDARY
from irexec.tools.run.input_sources import InputSource
from irexec.tools.run.result_files import with_state


def judge_into(
    folder: str,
    model: ModelLike,
    inputs: Arrays | Sequence[Arrays] | None = None,
    options: JudgeOptions | None = None,
    *,
    sources: Sequence[InputSource] = (),
    strip_weights: bool = False,
    notify: Notify = silent,
) -> Judgement:
    """Judge a runtime, and write a bundle unless it agrees or loses its state; arguments are those of ``judge``.

    Args:
        folder: the folder of the bundle.
        strip_weights: whether the model in it gets random weights, where the verdict allows it.

    Raises:
        InputError: the folder has files, weights of a recording are to be replaced, or as ``judge``.
    """
    _check_folder(Path(folder))
    case = judged_case(model, inputs, options or JudgeOptions(), sources, notify)
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
    whole = Candidate(_with_state(case), case.inputs)
    if case.is_recorded:
        results = [value for node in case.side.model.results for value in node.inputs if value is not None]
        return whole, None, {value: case.seen[value] for value in results if value in case.seen}
    verdict = VerdictCheck(options, found)
    return _reduced(whole, verdict), verdict, None


def _with_state(case: Case) -> Model:
    """The model, whose variables begin with the state before the judged step."""
    state = {value.node.attributes["variable_id"]: array for value, array in case.state.items()}
    return with_state(case.side.model, state) if state else case.side.model


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
