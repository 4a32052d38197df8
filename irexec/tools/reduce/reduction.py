"""The reduction of a model to its smallest failing part."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from irexec.analysis.execution_graph import refuse_execution_graph
from irexec.analysis.model import Model, find_port
from irexec.analysis.submodel import with_shapes
from irexec.api import ModelLike, as_model
from irexec.errors import InputError, ModelError
from irexec.ir.graph import Node, Value
from irexec.messages import counted, listed
from irexec.records import Record
from irexec.runtime.inputs import bind_inputs
from irexec.tools.engines.runtimes import OWN, precision_beside
from irexec.tools.reduce.answers import Answers
from irexec.tools.reduce.blame import Blame
from irexec.tools.reduce.bodies import inner_wholes
from irexec.tools.reduce.candidate import BOUNDARY, Candidate, Part, Whole, named_inputs, named_results
from irexec.tools.reduce.checks.against import RUNTIMES, check_against
from irexec.tools.reduce.checks.check import Check
from irexec.tools.reduce.digests import arrays_digest, model_digest
from irexec.tools.reduce.later_runs import RUNS
from irexec.tools.reduce.output import Output
from irexec.tools.reduce.recording import Recording
from irexec.tools.reduce.search import Step, Trials, smallest
from irexec.tools.run.given_inputs import GivenInputs
from irexec.tools.run.input_sources import InputSource, files_read, sample_inputs
from irexec.tools.run.run_options import RunOptions
from irexec.tools.run.shapes import read_with_shapes, reshape

_Source = str | os.PathLike[str] | Model
_Inputs = Sequence[InputSource] | Mapping[str | int, Any]


class DoesNotFail(InputError):
    """The model itself does not fail: there is nothing to reduce."""


@dataclass(frozen=True, kw_only=True)
class ReduceOptions(RunOptions):
    """Options of a reduction.

    Attributes:
        output: the .xml to write; None writes nothing.
        keep_shapes: whether parts keep unknown sizes of the model, in place of the sizes of the run.
        resume: resume an interrupted reduction of the same output.
        timeout: maximum time in seconds of the run that records values.
    """

    output: str | None = None
    keep_shapes: bool = False
    resume: bool = False
    timeout: float | None = None


@dataclass(frozen=True)
class ReducedLayer(Record):
    """A layer of the smallest model.

    Attributes:
        id, name, type: as in the original model.
        inner: number of layers in its bodies.
        line: the line of the .xml; None for a model that was not read from one.
    """

    id: int
    name: str
    type: str
    inner: int = 0
    line: int | None = None


@dataclass(frozen=True)
class Reduction(Record):
    """The result of a reduction.

    Attributes:
        model: the path of the original model; "" without a file.
        output: the .xml of the smallest failing model; None without a file.
        inputs: the .npz of its inputs; None without inputs or a file.
        failure: the failure in one sentence.
        kind: the kind of failure of all accepted candidates.
        command: the arguments of the command that shows the failure; empty without a file.
        before, after: number of layers before and after, layers of bodies included, without Parameters, Constants and
            Results.
        layers: the layers of the smallest model.
        parameters, constants: number of its inputs and constants.
        checks: number of checked candidates.
        recalled: number of answers from earlier checks, of this run or an interrupted one.
        seconds: time of this run.
        notes: unexpected facts.
        blame: the layers at fault, for a model beside another version of it.
        found: the smallest model itself, with its inputs.
    """

    model: str
    output: str | None
    inputs: str | None
    failure: str
    kind: str
    command: tuple[str, ...]
    before: int
    after: int
    layers: tuple[ReducedLayer, ...]
    parameters: int
    constants: int
    checks: int
    recalled: int
    seconds: float
    notes: tuple[str, ...]
    blame: Blame | None
    found: Candidate = field(repr=False, metadata={"json": False})

    def __repr__(self) -> str:
        """The layers and their failure."""
        names = listed([f"{layer.name} ({layer.type})" for layer in self.layers], 3)
        layers = f"{self.before} -> {self.after} layers, {counted(self.checks, 'check')}"
        return f"<Reduction {layers}: {names or 'no layer'}; {self.failure}>"


def reduce(
    model: ModelLike,
    check: Check | None = None,
    inputs: Sequence[InputSource] | Mapping[str | int, Any] = (),
    options: ReduceOptions | None = None,
    *,
    against: ModelLike | None = None,
    notify: Callable[[str], None] = lambda text: None,
    progress: Callable[[Step], None] = lambda step: None,
) -> Reduction:
    """Find the smallest part of a model that fails as the model does.

    Args:
        model: a model, or a path that read_model accepts; it is not changed.
        check: decides about the failure of a candidate. It is not closed.
        inputs: arrays for its inputs, or their sources; by default random ones.
        options: the output, and options of parts.
        against: in place of ``check``, a runtime ("openvino", "onnxruntime", "onnx", "reference"), or the right version
            of the model: a candidate fails if its values differ. ``check_against`` has more arguments.
        notify: receives unexpected facts.
        progress: called after each check.

    Raises:
        DoesNotFail: the model itself passes the check.
        InputError: an option, input or file does not fit, or a file of the user would be overwritten.
        ModelError, NodeError, UnsupportedError: the model or a file cannot be read or written.
    """
    if not isinstance(model, str | os.PathLike):
        model = as_model(model)
    if check is not None and against is None:
        return _reduction(model, check, inputs, options or ReduceOptions(), notify, progress)
    if check is not None or against is None:
        raise InputError("give either check, or against: the runtime or model that is right")
    beside = against if isinstance(against, str) and against in RUNTIMES else OWN[0]
    options = options or ReduceOptions(precision=precision_beside(beside))
    with check_against(against, shapes=options.shapes, precision=options.precision, timeout=options.timeout) as made:
        return _reduction(model, made, inputs, options, notify, progress)


def _reduction(
    model: _Source,
    check: Check,
    inputs: _Inputs,
    options: ReduceOptions,
    notify: Callable[[str], None],
    progress: Callable[[Step], None],
) -> Reduction:
    start = time.monotonic()
    output = None if options.output is None else Output(options.output)
    if output is not None:
        output.check(_files_read(model, options, inputs))
    read = _read(model, inputs, options)
    _refuse_damage(read, check)
    arrays = _inputs(read, check, inputs, options.seed, notify)
    answers = _answers(model, read, arrays, check, options, output)
    trials = Trials(check, answers, progress, _nowhere if output is None else output.offer)
    failing, reference, run = _failing_run(read, arrays, check, trials)
    try:
        notes = _reduced(failing, arrays, reference, trials, check, options)
    except BaseException:
        if output is not None and trials.smallest.model is not failing:
            output.complete(trials.smallest)
            count = count_layers(trials.smallest.model)
            notify(f"{output.model} has the smallest part so far, of {count} layers; --resume continues")
        raise
    if output is not None:
        output.complete(trials.smallest)
        answers.delete()
    if run > 1:
        notes.append(f"it fails in run {run}: its variables begin with what the runs before leave")
    return _report(read, check, trials, output, notes, time.monotonic() - start)


def _failing_run(
    model: Model, arrays: Sequence[np.ndarray], check: Check, trials: Trials
) -> tuple[Model, Mapping[Value, np.ndarray], int]:
    """The model in the state before its first failing run, values of another runtime for it, and the number of this
    run.

    Raises:
        DoesNotFail: no run fails.
    """
    later: Model | None = model
    run = 0
    while later is not None and run < RUNS:
        model, run = later, run + 1
        reference, inputs = check.reference(model, arrays), named_inputs(model, arrays)
        results = named_results(model, [node.inputs[0] if node.inputs else None for node in model.results], reference)
        if trials.first(Candidate(model, inputs, results)) is not None:
            return model, reference, run
        later = check.after_run(model, inputs)
    runs = f" in any of {run} runs" if run > 1 else ""
    raise DoesNotFail(f"the model does not fail this check{runs}, so that there is nothing to reduce")


def _nowhere(candidate: Candidate) -> None:
    return


def _files_read(
    model: _Source,
    options: ReduceOptions,
    inputs: _Inputs,
) -> Mapping[str, str]:
    sources = () if isinstance(inputs, Mapping) else inputs
    if not isinstance(model, Model):
        return files_read(str(model), options.weights, sources)
    return {str(path): "the model" for path in (model.path, model.bin_path) if path is not None} | files_read(
        "", None, sources
    )


def _read(
    model: _Source,
    inputs: _Inputs,
    options: ReduceOptions,
) -> Model:
    """The model with the shapes of the options."""
    if isinstance(model, Model):
        read = copy.copy(model)
    else:
        given = GivenInputs(arrays=[inputs]) if isinstance(inputs, Mapping) else GivenInputs(inputs)
        read = read_with_shapes(str(model), options.weights, options.shapes or {}, given=given)
    refuse_execution_graph(read)
    reshape(read, options.shapes or {}, tolerant=True)
    return read


def _refuse_damage(model: Model, check: Check) -> None:
    """Raise ModelError for a damaged model, which can be reduced to a finding only: it can neither run nor be
    written."""
    damage = next((problem for problem in model.problems if problem.severity == "error"), None)
    if damage is not None and not check.takes_damage:
        where = damage.at(str(model.path or "the model"))
        raise ModelError(f"{where}: {damage.message}; a damaged model can be reduced only to a finding")


def _inputs(
    model: Model,
    check: Check,
    inputs: _Inputs,
    seed: int,
    notify: Callable[[str], None],
) -> list[np.ndarray]:
    """An array for each input of a model, in order; of one element for a finding if the rank is unknown."""
    ports = [replace(port, shape=(1,)) if port.shape is None and check.takes_damage else port for port in model.inputs]
    known = check.inputs(model, others=bool(inputs))
    if isinstance(inputs, Mapping):
        named = {find_port(ports, key).name: array for key, array in inputs.items()} if known else inputs
        return bind_inputs(ports, {**known, **named})
    left = [port for port in ports if port.name not in known]
    return bind_inputs(ports, {**known, **(sample_inputs(inputs, left, seed, notify) if left or not known else {})})


def _answers(
    model: _Source,
    read: Model,
    arrays: Sequence[np.ndarray],
    check: Check,
    options: ReduceOptions,
    output: Output | None,
) -> Answers:
    """Answers of earlier checks; kept in a file if the model comes from a file and output is written."""
    if output is None or isinstance(model, Model):
        if options.resume:
            raise InputError("only a reduction of a file that is written to a file can be resumed")
        return Answers(None, {}, resume=False)
    about = {"inputs": arrays_digest(arrays), "check": list(check.identity), "keep_shapes": options.keep_shapes}
    return Answers(output.state, {"model": model_digest(read, str(model)), **about}, resume=options.resume)


def _reduced(
    model: Model,
    arrays: Sequence[np.ndarray],
    reference: Mapping[Value, np.ndarray],
    trials: Trials,
    check: Check,
    options: ReduceOptions,
) -> list[str]:
    """Find the smallest candidate; returns notes about it."""
    position = {node: i for i, node in enumerate(model.nodes)}
    starts = [[position[node] for node in nodes] for nodes in check.starts(reference)]
    found, notes = _taken_apart(model, arrays, reference, starts, trials, options)
    while found is not None:
        whole, part = found
        part = smallest(whole, part, trials)
        inner = None if reference else _failing_body(whole, whole.kept(part), trials)
        found = None if inner is None else (inner, inner.everything)
    if not trials.smallest.layers:
        notes.append(
            "it fails without any layer: a Parameter or a Result fails, or the check does not depend on the model"
        )
    return notes


def _taken_apart(
    model: Model,
    arrays: Sequence[np.ndarray],
    reference: Mapping[Value, np.ndarray],
    starts: Sequence[Sequence[int]],
    trials: Trials,
    options: ReduceOptions,
) -> tuple[tuple[Whole, Part] | None, list[str]]:
    """The model with the shapes of its inputs, or with its declared shapes if it fails only with these, and a failing
    part.

    Args:
        starts: positions of the layers of parts that are checked before the whole model.
    """
    for keep in (True,) if options.keep_shapes else (False, True):
        shapes = {} if keep else {node.id: array.shape for node, array in zip(model.parameters, arrays, strict=True)}
        fixed = with_shapes(model, shapes)
        inputs = dict(zip(fixed.parameters, arrays, strict=True))
        copies = {
            a: b
            for node, copied in zip(model.nodes, fixed.nodes, strict=True)
            for a, b in zip(node.outputs, copied.outputs, strict=True)
        }
        known = {copies[value]: array for value, array in reference.items()}
        recording = Recording.of(
            fixed,
            inputs,
            seed=options.seed,
            keep_shapes=keep,
            timeout=options.timeout,
            precision=options.precision,
            reference=known,
        )
        whole = Whole.of(recording)
        for part in (*(whole.part_of(positions) for positions in starts), whole.everything):
            if trials(whole, part):
                only_so = keep and not options.keep_shapes
                return (whole, part), [
                    "it fails only with the sizes that the model leaves open, which are kept"
                ] if only_so else []
    return None, ["it does not fail any more once it is taken apart, so that it stays as it is"]


def _failing_body(whole: Whole, kept: Sequence[Node], trials: Trials) -> Whole | None:
    """A body of the remaining layers that fails as a model of its own; None without one."""
    bodies = (inner for node in kept if node.bodies for inner in inner_wholes(whole, node))
    return next((inner for inner in bodies if trials(inner, inner.everything)), None)


def _report(
    model: Model, check: Check, trials: Trials, output: Output | None, notes: Sequence[str], seconds: float
) -> Reduction:
    best, failure = trials.smallest, trials.failure
    files = None if output is None else output.files(best)
    types = [node.type for node in best.model.nodes]
    return Reduction(
        model=str(model.path or ""), output=None if files is None else files.model,
        inputs=None if files is None else files.inputs,
        failure=failure.text, kind=failure.kind, command=() if files is None else tuple(check.command(files)),
        before=count_layers(model), after=count_layers(best.model),
        layers=tuple(ReducedLayer(node.id, node.name, node.type, _inner(node), node.line) for node in best.layers),
        parameters=types.count("Parameter"), constants=types.count("Constant"),
        checks=trials.checks, recalled=trials.recalled, seconds=seconds, notes=tuple(notes),
        blame=check.blame(best), found=best,
    )  # fmt: skip


def count_layers(model: Model) -> int:
    """Number of layers of a model, layers of bodies included, without Parameters, Constants and Results."""
    return sum(node.type not in BOUNDARY for node in model.walk())


def _inner(node: Node) -> int:
    return sum(inner.type not in BOUNDARY for body in node.bodies.values() for inner in body.graph.walk())
