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
from irexec.analysis.open_sizes import sizes_for
from irexec.analysis.submodel import with_shapes
from irexec.api import ModelLike, as_model
from irexec.errors import InputError, ModelError
from irexec.ir.graph import Node, Value
from irexec.ir.order import values_of_copy
from irexec.messages import counted, listed, silent
from irexec.records import Record
from irexec.runtime.inputs import bind_inputs
from irexec.tools.engines.runtimes import OWN, precision_beside
from irexec.tools.reduce.against import RUNTIMES, check_against
from irexec.tools.reduce.blame import Blame
from irexec.tools.reduce.candidate import Candidate, Part, Whole, inner_wholes, named_inputs, named_results
from irexec.tools.reduce.checks import Check
from irexec.tools.reduce.output import Answers, ReductionFiles, arrays_digest, model_digest
from irexec.tools.reduce.recording import RUNS, RecordedRun, count_layers
from irexec.tools.reduce.search import Step, Trials, smallest
from irexec.tools.run.input_sources import (
    STEP_SEED,
    GivenInputs,
    InputSource,
    every_source,
    files_read,
    sample_inputs,
    sources_of_step,
)
from irexec.tools.run.result_files import read_state, with_state
from irexec.tools.run.shapes import RunOptions, read_with_shapes, reshape


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
        steps: maximum number of runs of a model with state until it fails, see ``sources_of_step``; None for RUNS runs
            on the same inputs.
        load_state: a .npz with the arrays of variables before the first run, by variable_id.
    """

    output: str | None = None
    keep_shapes: bool = False
    resume: bool = False
    timeout: float | None = None
    steps: int | None = None
    load_state: str | None = None


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
    inputs: Sequence[InputSource] | Mapping[Any, Any] = (),
    options: ReduceOptions | None = None,
    *,
    against: ModelLike | None = None,
    notify: Callable[[str], None] = silent,
    progress: Callable[[Step], None] = silent,
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
    for one in () if isinstance(inputs, Mapping) else inputs:
        if not isinstance(one, InputSource):
            raise InputError(
                f"expected inputs by name, such as {{'x': array}}, or sources, and not {type(one).__name__}"
            )
    if not isinstance(model, str | os.PathLike):
        model = as_model(model)
    if check is not None and against is None:
        return _Reducing(model, check, inputs, options or ReduceOptions(), notify).run(progress)
    if check is not None or against is None:
        raise InputError("give either check, or against: the runtime or model that is right")
    beside = against if isinstance(against, str) and against in RUNTIMES else OWN[0]
    options = options or ReduceOptions(precision=precision_beside(beside))
    with check_against(against, shapes=options.shapes, precision=options.precision, timeout=options.timeout) as made:
        return _Reducing(model, made, inputs, options, notify).run(progress)


@dataclass
class _Reducing:
    """One reduction, with the arguments of ``reduce``."""

    source: str | os.PathLike[str] | Model
    check: Check
    inputs: Sequence[InputSource] | Mapping[Any, Any]
    options: ReduceOptions
    notify: Callable[[str], None]

    def run(self, progress: Callable[[Step], None]) -> Reduction:
        """The reduction; the files are written."""
        start = time.monotonic()
        output = None if self.options.output is None else ReductionFiles(self.options.output)
        if output is not None:
            output.check(self._files_read())
        read = self._read()
        steps = [self._arrays(read, step) for step in range(1, (self.options.steps or 1) + 1)]
        answers = self._answers(read, [array for arrays in steps for array in arrays], output)
        trials = Trials(self.check, answers, progress, silent if output is None else output.offer)
        runs = steps if self.options.steps is not None else steps * RUNS
        failing, reference, run = _failing_run(read, runs, self.check, trials)
        try:
            notes = self._reduced(failing, runs[run - 1], reference, trials)
        except BaseException:
            if output is not None and trials.smallest.model is not failing:
                output.complete(trials.smallest)
                count = count_layers(trials.smallest.model)
                self.notify(f"{output.model} has the smallest part so far, of {count} layers; --resume continues")
            raise
        if output is not None:
            output.complete(trials.smallest)
            answers.delete()
        if run > 1:
            notes.append(f"it fails in run {run}: its variables begin with what the runs before leave")
        return _report(read, self.check, trials, output, notes, time.monotonic() - start)

    def _files_read(self) -> Mapping[str, str]:
        sources: Sequence[InputSource] = () if isinstance(self.inputs, Mapping) else self.inputs
        if self.options.steps is not None:
            sources = every_source(sources, self.options.steps)
        if not isinstance(self.source, Model):
            return files_read(str(self.source), self.options.weights, sources)
        paths = (self.source.path, self.source.bin_path)
        return {str(path): "the model" for path in paths if path is not None} | files_read("", None, sources)

    def _read(self) -> Model:
        """The model with the shapes of the options.

        Raises:
            ModelError: it is damaged, and the check is not about a finding: it can neither run nor be written.
        """
        shapes = self.options.shapes or {}
        if isinstance(self.source, Model):
            read = copy.copy(self.source)
        else:
            inputs = self.inputs
            given = (
                GivenInputs(arrays=[inputs])
                if isinstance(inputs, Mapping)
                else GivenInputs(inputs, steps=self.options.steps)
            )
            read = read_with_shapes(str(self.source), self.options.weights, shapes, given=given)
        refuse_execution_graph(read)
        reshape(read, shapes, tolerant=True)
        if self.options.load_state is not None:
            state = read_state(self.options.load_state)
            read = with_state(read, state)
            self.check.begin_with(state)
        damage = next((problem for problem in read.problems if problem.severity == "error"), None)
        if damage is not None and not self.check.takes_damage:
            where = damage.at(str(read.path or "the model"))
            raise ModelError(f"{where}: {damage.message}; a damaged model can be reduced only to a finding")
        return read

    def _arrays(self, model: Model, step: int) -> list[np.ndarray]:
        """An array for each input of a model in a step, in order; of one element for a finding of unknown rank."""
        inputs, takes_damage = self.inputs, self.check.takes_damage
        ports = [replace(port, shape=(1,)) if port.shape is None and takes_damage else port for port in model.inputs]
        known = self.check.inputs(model, others=bool(inputs))
        if isinstance(inputs, Mapping):
            named = {find_port(ports, key).name: array for key, array in inputs.items()} if known else inputs
            return bind_inputs(ports, {**known, **named})
        left = [port for port in ports if port.name not in known]
        steps, seed = self.options.steps, self.options.seed + STEP_SEED * (step - 1)
        own = inputs if steps is None else sources_of_step(inputs, step, steps)
        shapes = {name: array.shape for name, array in known.items()}
        if known and not left:
            return bind_inputs(ports, known)
        sampled = sample_inputs(own, left, seed, self.notify, sizes=sizes_for(model, known=shapes))
        return bind_inputs(ports, {**known, **sampled})

    def _answers(self, read: Model, arrays: Sequence[np.ndarray], output: ReductionFiles | None) -> Answers:
        """Answers of earlier checks; kept in a file if the model comes from a file and output is written."""
        resume, keep_shapes = self.options.resume, self.options.keep_shapes
        if output is None or isinstance(self.source, Model):
            if resume:
                raise InputError("only a reduction of a file that is written to a file can be resumed")
            return Answers(None, {}, resume=False)
        about = {"inputs": arrays_digest(arrays), "check": list(self.check.identity), "keep_shapes": keep_shapes}
        return Answers(output.state, {"model": model_digest(read, str(self.source)), **about}, resume=resume)

    def _reduced(
        self, model: Model, arrays: Sequence[np.ndarray], reference: Mapping[Value, np.ndarray], trials: Trials
    ) -> list[str]:
        """Find the smallest candidate; returns notes about it."""
        position = {node: i for i, node in enumerate(model.nodes)}
        starts = [[position[node] for node in nodes] for nodes in self.check.starts(reference)]
        found, notes = self._taken_apart(model, arrays, reference, starts, trials)
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
        self, model: Model, arrays: Sequence[np.ndarray], reference: Mapping[Value, np.ndarray],
        starts: Sequence[Sequence[int]], trials: Trials,
    ) -> tuple[tuple[Whole, Part] | None, list[str]]:  # fmt: skip
        """The model with the shapes of its inputs, or with its declared shapes if it fails only with these, and a
        failing part.

        Args:
            starts: positions of the layers of parts that are checked before the whole model.
        """
        for keep in (True,) if self.options.keep_shapes else (False, True):
            shapes = {node.id: array.shape for node, array in zip(model.parameters, arrays, strict=True)}
            fixed = with_shapes(model, {} if keep else shapes)
            copies = values_of_copy(model, fixed)
            recording = RecordedRun(
                fixed,
                dict(zip(fixed.parameters, arrays, strict=True)),
                seed=self.options.seed,
                keep_shapes=keep,
                timeout=self.options.timeout,
                precision=self.options.precision,
                reference={copies[value]: array for value, array in reference.items()},
            )
            whole = Whole.of(recording)
            for part in (*(whole.part_of(positions) for positions in starts), whole.everything):
                if trials(whole, part):
                    only_so = keep and not self.options.keep_shapes
                    note = "it fails only with the sizes that the model leaves open, which are kept"
                    return (whole, part), [note] if only_so else []
        return None, ["it no longer fails once it is taken apart, so that it stays as it is"]


def _failing_run(
    model: Model, runs: Sequence[Sequence[np.ndarray]], check: Check, trials: Trials
) -> tuple[Model, Mapping[Value, np.ndarray], int]:
    """The model in the state before its first failing run, values of another runtime for it, and the number of this
    run.

    Args:
        runs: the inputs of each run, in order.

    Raises:
        DoesNotFail: no run fails.
    """
    later: Model | None = model
    run = 0
    while later is not None and run < len(runs):
        model, arrays, run = later, runs[run], run + 1
        reference, inputs = check.reference(model, arrays), named_inputs(model, arrays)
        results = named_results(model, [node.inputs[0] if node.inputs else None for node in model.results], reference)
        if trials.first(Candidate(model, inputs, results)) is not None:
            return model, reference, run
        later = check.after_run(model, inputs)
    tried = f" in any of {run} runs" if run > 1 else ""
    raise DoesNotFail(f"the model does not fail this check{tried}, so that there is nothing to reduce")


def _failing_body(whole: Whole, kept: Sequence[Node], trials: Trials) -> Whole | None:
    """A body of the remaining layers that fails as a model of its own; None without one."""
    bodies = (inner for node in kept if node.bodies for inner in inner_wholes(whole, node))
    return next((inner for inner in bodies if trials(inner, inner.everything)), None)


def _report(
    model: Model, check: Check, trials: Trials, output: ReductionFiles | None, notes: Sequence[str], seconds: float
) -> Reduction:
    best, failure = trials.smallest, trials.failure
    files = None if output is None else output.files(best)
    types = [node.type for node in best.model.nodes]
    return Reduction(
        model=str(model.path or ""), output=None if files is None else files.model,
        inputs=None if files is None else files.inputs,
        failure=failure.text, kind=failure.kind, command=() if files is None else tuple(check.command(files)),
        before=count_layers(model), after=count_layers(best.model),
        layers=tuple(map(_reduced_layer, best.layers)),
        parameters=types.count("Parameter"), constants=types.count("Constant"),
        checks=trials.checks, recalled=trials.recalled, seconds=seconds, notes=tuple(notes),
        blame=check.blame(best), found=best,
    )  # fmt: skip


def _reduced_layer(node: Node) -> ReducedLayer:
    inner = sum(count_layers(body.graph) for body in node.bodies.values())
    return ReducedLayer(node.id, node.name, node.type, inner, node.line)
