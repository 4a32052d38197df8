"""One run of a model, and its options: everything that is asked for is planned together and comes from the same run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from irexec.analysis.checks.layers import port_findings
from irexec.analysis.model import Model, expected, result_values
from irexec.analysis.open_sizes import sizes_for
from irexec.analysis.shape_inference import infer_shapes
from irexec.compile.memory_limit import MemoryLimit
from irexec.dtypes.elements import STRING
from irexec.errors import InputError, ModelError, NodeError
from irexec.ir.graph import Value
from irexec.ir.order import find_value, unique_names, values_by_name
from irexec.messages import listed, silent
from irexec.runtime.compiled_model import CompiledModel
from irexec.runtime.program import WeightsMode
from irexec.runtime.session import RunProgress
from irexec.tools.arrays.files import STDIN, open_arrays
from irexec.tools.images import ImageOptions
from irexec.tools.run.infer_report import Assertion, InferReport
from irexec.tools.run.input_sources import (
    STEP,
    STEP_SEED,
    GivenInputs,
    InputSource,
    every_source,
    external_files,
    files_read,
    input_arrays,
    sources_of_step,
)
from irexec.tools.run.result_files import check_outputs, check_saved_inputs, write_dump, write_results
from irexec.tools.run.results import predictions, read_labels
from irexec.tools.run.shapes import SessionOptions, read_with_shapes, refused, reshape
from irexec.tools.trapping import TrapOptions

if TYPE_CHECKING:
    from irexec.tools.trapping.report import TrapReport


@dataclass(frozen=True, kw_only=True)
class InferOptions(SessionOptions):
    """The options of a run.

    Attributes:
        image: how images become inputs, and a result becomes an image.
        compressed: ``weights`` of CompiledModel.
        strict: refuse a model in which validate finds an error.
        tensors: the tensors to return; the Results if empty.
        every_tensor: give every tensor of the graph.
        output: the .npz or .png to write.
        dump_folder: the folder to write every tensor to, the inputs among them.
        save_inputs: the .npz to write the inputs to before the run, by their names.
        steps: number of runs one after the other, with state from step to step. Inputs are those of each step, see
            ``sources_of_step``; what is shown is of the last step. The names of ``output`` and ``save_inputs`` may have
            {} where the number of the step is.
        load_state, save_state: the .npz with the arrays of variables before the first step, and after the last one.
        reference: the .npz or .npy to compare with, within ``rtol`` and ``atol``.
        trap: the conditions that stop the run, and the recording; None without a trap.
        topk: number of classes to rank, along ``class_axis``, with the names in the file ``labels``.
        softmax: whether the scores of classes are softmax of the values.
    """

    image: ImageOptions = field(default_factory=ImageOptions)
    compressed: WeightsMode = "auto"
    strict: bool = False
    tensors: tuple[str, ...] = ()
    every_tensor: bool = False
    output: str | None = None
    dump_folder: str | None = None
    save_inputs: str | None = None
    steps: int | None = None
    load_state: str | None = None
    save_state: str | None = None
    reference: str | None = None
    rtol: float = 1e-4
    atol: float = 1e-5
    trap: TrapOptions | None = None
    topk: int | None = None
    class_axis: int | None = None
    softmax: bool = False
    labels: str | None = None


_WARNINGS_SHOWN = 10


@dataclass(frozen=True)
class Notifier:
    """Where a run reports what is not an error, as soon as it is known.

    Attributes:
        note: takes what the user may not expect, such as an image that is stretched.
        warning: takes what is wrong with the model, but does not keep it from running.
    """

    note: Callable[[str], None] = silent
    warning: Callable[[str], None] = silent


@dataclass(frozen=True)
class _Reference:
    """The arrays to compare with, the tensors of the model with their names, and the names without a tensor."""

    arrays: Mapping[str, np.ndarray]
    values: Mapping[str, Value]
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class _Wanted:
    """The requested values by name: for the table and -o, to rank, and to dump."""

    selected: Mapping[str, Value]
    ranked: Mapping[str, Value]
    dumped: Mapping[str, Value]
    reference: _Reference | None

    @property
    def required(self) -> list[Value]:
        """The values without which there is nothing to report."""
        return list(dict.fromkeys([*self.selected.values(), *self.ranked.values(), *self.dumped.values()]))

    @property
    def values(self) -> list[Value]:
        """All values, each of them once."""
        return list(dict.fromkeys([*self.required, *(self.reference.values.values() if self.reference else ())]))


def infer(
    path: str,
    sources: Sequence[InputSource],
    options: InferOptions,
    notifier: Notifier | None = None,
    progress: RunProgress | None = None,
) -> InferReport:
    """Run a model once and give, write and compare whatever ``options`` ask for.

    Args:
        path: the .xml or .onnx.
        sources: where the inputs come from.
        options: the request.
        notifier: receives notes and warnings.
        progress: called after each step of the run with the part of it, of 1, that the step is estimated to take.

    Raises:
        InputError: a name, shape, type or file does not fit the model, or a file of the user would be overwritten.
        ModelError, NodeError, UnsupportedError: a requested file or tensor cannot be read, run or written.
        RunTimeoutError: the run takes longer than the timeout.
    """
    notifier = notifier or Notifier()
    # Every file that the run reads, with what it is: none of them may be overwritten.
    each = sources if options.steps is None else every_source(sources, options.steps)
    files = files_read(path, options.weights, each)
    others = ((options.labels, "the labels"), (options.reference, "the reference"))
    read = files | {file: what for file, what in others if file}
    _check_files(options, read)
    labels = read_labels(options.labels) if options.labels else None
    model = _model(path, sources, options)
    read |= external_files(model)
    _check_files(options, read)
    compiled = options.compiled(model, weights=options.compressed, tolerant=True)
    wanted = _wanted(compiled, options)
    try:
        compiled.require(wanted.required)
    except NodeError as error:
        if not options.shapes:
            raise
        # It is the shapes that do not fit.
        raise refused(options.shapes, error) from None
    _warn(model, compiled, notifier)
    has_state = bool(compiled.program.variables) or any(node.type == "Assign" for node in model.walk())
    if options.save_state is not None and not has_state:
        raise InputError(f"--save-state {options.save_state}: the model changes no variable, and has no state to write")
    if options.load_state is not None:
        # Few runs begin with a state or write one.
        from irexec.tools.run.result_files import read_state

        compiled.variables.update(read_state(options.load_state, MemoryLimit(options.max_memory)))
    trapped, arrays = _run_steps(compiled, wanted, sources, options, read, notifier, progress)
    if trapped is not None and trapped.trap is not None:
        return InferReport({}, trap=trapped)
    takes_text = any(port.element is STRING for port in compiled.inputs)
    ranked = {name: arrays[value] for name, value in wanted.ranked.items()}
    report = InferReport(
        {name: arrays[value] for name, value in wanted.selected.items()},
        tuple(predictions(ranked, options.topk, labels, options.class_axis, softmax=options.softmax))
        if options.topk
        else None,
        _compared(wanted.reference, wanted.selected, arrays, options) if wanted.reference else None,
        None if options.dump_folder is None else len(wanted.dumped),
        trapped,
        takes_text,
    )
    if report.comparison is not None and not report.comparison.agrees and options.steps is None and trapped is None:
        change = _change_of_input(compiled, wanted, sources, options)
        report = replace(report, comparison=replace(report.comparison, change=change))
    # Only now: labels that do not fit the results, for example, leave no file.
    _write(wanted, arrays, options.steps or 1, options, notifier)
    if options.save_state is not None:
        from irexec.tools.run.result_files import write_state

        write_state(options.save_state, compiled.variables)
    if options.dump_folder is not None:
        write_dump(Path(options.dump_folder), {name: (value, arrays[value]) for name, value in wanted.dumped.items()})
    return report


def _change_of_input(
    compiled: CompiledModel, wanted: _Wanted, sources: Sequence[InputSource], options: InferOptions
) -> str:
    """A usual change of an image with which all tensors are those of the reference; "" without one."""
    # Few runs differ from a reference.
    from irexec.tools.run.input_sources import change_that_agrees

    if any(source.source == STDIN for source in sources) or compiled.variables or wanted.reference is None:
        return ""
    reference = wanted.reference
    inputs = _inputs_of_step(compiled, sources, 1, replace(options, save_inputs=None), Notifier())

    def agrees(others: Mapping[str, np.ndarray]) -> bool:
        found = compiled.values(others, wanted.values, timeout=options.timeout)
        arrays = dict(zip(wanted.values, found, strict=True))
        return _compared(reference, wanted.selected, arrays, options).agrees

    return change_that_agrees(inputs, agrees)


def _check_files(options: InferOptions, read: Mapping[str, str]) -> None:
    """Raise before the run what would keep its results, inputs and state from being written."""
    steps = options.steps or 1
    if options.save_inputs is not None and steps > 1 and STEP not in options.save_inputs:
        raise InputError(
            f"--save-inputs {options.save_inputs} is one file for {steps} steps: {STEP} in its name is the step"
        )
    for step in range(1, steps + 1):
        output, inputs = (name and name.replace(STEP, str(step)) for name in (options.output, options.save_inputs))
        check_outputs(output, options.dump_folder, read)
        if inputs is not None:
            check_saved_inputs(inputs, output, read)
    if options.save_state is not None:
        from irexec.tools.run.result_files import check_state_file

        # A state may be read from and written to the same file.
        check_state_file(options.save_state, read)


def _run_steps(
    compiled: CompiledModel,
    wanted: _Wanted,
    sources: Sequence[InputSource],
    options: InferOptions,
    read: Mapping[str, str],
    notifier: Notifier,
    progress: RunProgress | None,
) -> tuple[TrapReport | None, dict[Value, np.ndarray]]:
    """Run all steps; returns the report of the trap and the requested arrays of the last step."""
    steps = options.steps or 1
    share = None if progress is None else lambda part: progress(part / steps)
    trapped: TrapReport | None = None
    arrays: dict[Value, np.ndarray] = {}
    for step in range(1, steps + 1):
        inputs = _inputs_of_step(compiled, sources, step, options, notifier)
        if options.trap is None:
            found = compiled.values(inputs, wanted.values, timeout=options.timeout, progress=share)
        else:
            # Few runs have a trap, and what sets one takes long to load.
            from irexec.tools.trapping.trap import run_with_trap

            trapped, found = run_with_trap(
                compiled, inputs, wanted.values, options.trap, read=read, timeout=options.timeout, progress=share
            )
        is_stopped = trapped is not None and trapped.trap is not None
        arrays = {} if is_stopped else dict(zip(wanted.values, found, strict=True))
        if is_stopped:
            if options.steps is not None:
                notifier.note(f"the run stops in step {step} of {steps}")
            break
        if step < steps and STEP in (options.output or ""):
            _write(wanted, arrays, step, options, notifier)
    return trapped, arrays


def _write(
    wanted: _Wanted, arrays: Mapping[Value, np.ndarray], step: int, options: InferOptions, notifier: Notifier
) -> None:
    """Write the results of a step, if the options say so."""
    if options.output is not None:
        tensors = {name: arrays[value] for name, value in wanted.selected.items()}
        write_results(options.output.replace(STEP, str(step)), tensors, options.image, notifier.note)


def _inputs_of_step(
    compiled: CompiledModel, sources: Sequence[InputSource], step: int, options: InferOptions, notifier: Notifier
) -> dict[str, np.ndarray]:
    """The inputs of a step, which are written if the options say so."""
    inputs = input_arrays(
        sources if options.steps is None else sources_of_step(sources, step, options.steps),
        compiled.inputs,
        seed=options.seed + STEP_SEED * (step - 1),
        image=options.image,
        notify=notifier.note if step == 1 else silent,
        memory=MemoryLimit(options.max_memory),
        sizes=sizes_for(compiled.model),
    )
    # Raise InputError if an input has no value.
    missing = [port.name for port in compiled.inputs if port.name not in inputs]
    if missing:
        raise InputError(
            f"no value is given for {listed([repr(name) for name in missing], 5)}: the model has "
            f"{expected(compiled.inputs)}; -i random generates values"
        )
    if options.save_inputs is not None:
        write_results(options.save_inputs.replace(STEP, str(step)), inputs, options.image, notifier.note)
    return inputs


def _model(path: str, sources: Sequence[InputSource], options: InferOptions) -> Model:
    given = GivenInputs(sources, image=options.image, steps=options.steps)
    model = read_with_shapes(path, options.weights, options.shapes or {}, given=given, mmap=options.mmap)
    if options.strict:
        from irexec.analysis.validate import validate

        errors = [finding for finding in validate(model) if finding.severity == "error"]
        if errors:
            more = f" (and {len(errors) - 1} more errors, see irexec validate)" if len(errors) > 1 else ""
            raise ModelError(f"{errors[0].at(str(model.path))}: {errors[0].code} {errors[0].message}{more}")
    reshape(model, options.shapes or {}, tolerant=True)
    return model


def _warn(model: Model, compiled: CompiledModel, notifier: Notifier) -> None:
    """Report errors of the model that do not keep it from running.

    Such errors are wrong declarations of ports, since shapes are inferred anyway, and faults of unused layers.
    """
    texts = [f"{error}; nothing that is asked for depends on it" for error in compiled.inference.failures.values()]
    # Compiling may change the element types of tensors.
    inference = compiled.inference if compiled.program.runs_as_read else infer_shapes(model, tolerant=True)
    findings = port_findings(compiled.model if compiled.program.runs_as_read else model, inference)
    texts += [f"{finding.at()}: {finding.message}" for finding in findings if finding.severity == "error"]
    for text in texts[:_WARNINGS_SHOWN]:
        notifier.warning(text)
    if len(texts) > _WARNINGS_SHOWN:
        notifier.warning(f"{len(texts) - _WARNINGS_SHOWN} more such warnings, see irexec validate")


def _wanted(compiled: CompiledModel, options: InferOptions) -> _Wanted:
    every = _every_tensor(compiled) if options.every_tensor else {}
    dumped = {} if options.dump_folder is None else _every_tensor(compiled, with_inputs=True)
    named = {name: find_value(compiled.model, name) for name in options.tensors}
    selected = every if options.every_tensor else named or result_values(compiled.outputs)
    # Every tensor of a network has no classes: with --all it is the results that are ranked.
    ranked = (named or result_values(compiled.outputs)) if options.topk else {}
    return _Wanted(selected, ranked, dumped, _reference(compiled, options))


def _every_tensor(compiled: CompiledModel, *, with_inputs: bool = False) -> dict[str, Value]:
    """The computed values: all but the outputs of Constants, and of Parameters that are not requested."""
    inserted = compiled.program.inserted
    others = {"Constant", "Result"} if with_inputs else {"Parameter", "Constant", "Result"}
    nodes = (node for node in compiled.model.nodes if node.type not in others and node not in inserted)
    return unique_names([value for node in nodes for value in node.outputs])


def _reference(compiled: CompiledModel, options: InferOptions) -> _Reference | None:
    if options.reference is None:
        return None
    names = result_values(compiled.outputs) | values_by_name(compiled.model)
    blocked = compiled.inference.blocked(compiled.model)
    with open_arrays(options.reference, memory=MemoryLimit(options.max_memory)) as file:
        keys = {key: key for key in file.names} if file.named else {_only_result(compiled, options.reference): ""}
        known = {name: names[name] for name in keys if name in names and names[name].node not in blocked}
        if not keys:
            raise InputError(f"{options.reference} has no arrays to compare with")
        if not known:
            raise InputError(
                f"no array of {options.reference} ({listed(list(keys), 5)}) "
                "has the name of a tensor or layer of the model"
            )
        arrays = {name: file.read(keys[name]) for name in known}
    return _Reference(arrays, known, tuple(name for name in keys if name not in known))


def _only_result(compiled: CompiledModel, path: str) -> str:
    results = result_values(compiled.outputs)
    if len(results) != 1:
        raise InputError(f"{path} is one array without a name, the model has the results {', '.join(results)}")
    return next(iter(results))


def _compared(
    reference: _Reference, selected: Mapping[str, Value], arrays: Mapping[Value, np.ndarray], options: InferOptions
) -> Assertion:
    from irexec.tools.arrays.agreement import Tolerance, agreement_of

    tolerance = Tolerance(rtol=options.rtol, atol=options.atol)
    values = reference.values
    agreements = (agreement_of(name, arrays[one], reference.arrays[name], tolerance) for name, one in values.items())
    others = tuple(name for name, value in selected.items() if value not in set(values.values()))
    return Assertion(tuple(agreements), reference.unknown, others)
