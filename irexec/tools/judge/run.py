"""The judgement of a runtime: which of the two is wrong, by bounds in place of tolerances.

Of several steps of a model with state it is about the first one with a fault.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.open_sizes import what_hides
from irexec.analysis.shape_inference import infer_shapes
from irexec.analysis.submodel import with_shapes
from irexec.api import ModelLike, as_model
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError
from irexec.ir.dims import is_static
from irexec.ir.facts import Fact
from irexec.ir.writable import refuse_damage
from irexec.messages import counted, silent
from irexec.tools.compare.inputs import Ports, facts_of, recorded_inputs
from irexec.tools.compare.options import CompareOptions
from irexec.tools.engines.runtimes import Arrays
from irexec.tools.images import Notify
from irexec.tools.judge.judgement import Judgement
from irexec.tools.judge.opponent import Opponent, Runs
from irexec.tools.judge.options import JudgeOptions, StepOptions
from irexec.tools.judge.step import Case
from irexec.tools.judge.verdicts import case_of_step
from irexec.tools.observing.sides import ModelSide
from irexec.tools.run.input_sources import GivenInputs, InputSource, given_runs
from irexec.tools.run.result_files import read_state, with_state
from irexec.tools.run.shapes import read_with_shapes, reshape


def judge(
    model: ModelLike,
    inputs: Arrays | Sequence[Arrays] | None = None,
    options: JudgeOptions | None = None,
    *,
    sources: Sequence[InputSource] = (),
    notify: Notify = silent,
    output: str | None = None,
    **settings: Any,
) -> Judgement:
    """Judge a runtime: every layer beside the interval in which correct implementations lie.

    Args:
        model: a model, or a path that read_model accepts; it is not changed.
        inputs: arrays by the names of inputs; one mapping for each of several steps. Other inputs come from the
            recording, or from ``sources``.
        options: the runtime, its properties and its arithmetic.
        sources: sources of other inputs; by default random ones.
        notify: receives unexpected facts.
        output: the .html or .svg to draw the judgement to; None draws nothing.
        settings: single options, in place of ``options``.

    Raises:
        InputError: the options, inputs or shapes do not fit the model, or ``output`` has another suffix.
        UnsupportedError: the runtime is not installed.
        ModelError, ConversionError, EngineError: the model cannot be read, or the runtime does not run it.
        RunTimeoutError: a run takes longer than the timeout.
    """
    options = options or JudgeOptions(**settings)
    return judged_case(model, inputs, options, sources, notify, output).judgement


def judged_case(
    model: ModelLike,
    inputs: Arrays | Sequence[Arrays] | None,
    options: JudgeOptions,
    sources: Sequence[InputSource],
    notify: Notify,
    output: str | None = None,
) -> Case:
    """The judgement together with its model: of several steps the one that the verdict is about; see ``judge``."""
    if output is not None:
        # Most judgements draw nothing.
        from irexec.tools.graph.beside import check_picture, write_picture
        from irexec.tools.judge.picture import picture

        check_picture(output, {})
    case = judged_steps(*given_steps(model, inputs, options, sources, notify), options)
    if output is not None:
        write_picture(output, picture(case))
    return case


def given_steps(
    model: ModelLike,
    inputs: Arrays | Sequence[Arrays] | None,
    options: StepOptions,
    sources: Sequence[InputSource],
    notify: Notify,
) -> tuple[Model, list[Arrays], Model | None]:
    """The model in the shapes of its inputs, the inputs of each step, and the model with open sizes, if it has any;
    see ``judge``."""
    runs = given_runs(inputs)
    if isinstance(model, str | os.PathLike):
        given = GivenInputs(sources, runs, steps=options.steps)
        read = read_with_shapes(str(model), options.weights, options.shapes or {}, given=given)
    else:
        read = as_model(model)
    refuse_damage(read)
    if options.load_state is not None:
        read = with_state(read, read_state(options.load_state, MemoryLimit(options.max_memory)))
    if isinstance(options, JudgeOptions) and options.is_recorded:
        runs, steps = [_recorded(read, runs, options, sources)], 1
    else:
        # The number of steps: that of the options or of the inputs, else 2 for a model with state.
        if len(runs) > 1 and options.steps not in (None, len(runs)):
            raise InputError(f"inputs are given for {counted(len(runs), 'step')}, and steps is {options.steps}")
        has_state = any(node.type == "ReadValue" for node in read.nodes)
        steps = options.steps or (len(runs) if len(runs) > 1 else 2 if has_state else 1)
    return with_inputs(read, runs, steps, options, sources, notify)


def _recorded(
    read: Model, runs: Sequence[Arrays], options: JudgeOptions, sources: Sequence[InputSource]
) -> dict[str, np.ndarray]:
    """The inputs of the one step of a recording: its own, and those that are given."""
    if len(runs) > 1 or options.steps not in (None, 1):
        raise InputError(f"{options.runtime} holds the tensors of one step: no --steps")
    with ExitStack() as stack:
        opponent = Opponent(read, options, stack)
        own = {} if opponent.recorded is None else recorded_inputs(opponent.recorded, read)
        known = own | dict(runs[0] if runs else {})
        if not sources:
            opponent.require_inputs(known)
    return known


def with_inputs(
    read: Model,
    runs: Sequence[Arrays],
    steps: int,
    options: StepOptions,
    sources: Sequence[InputSource],
    notify: Notify,
) -> tuple[Model, list[Arrays], Model | None]:
    """The model in the shapes of its inputs unless these change from step to step, and the inputs of each step by name.

    It keeps its own shapes, too, where those of the inputs fit only the branches of an If that they take.

    Args:
        read: the model.
        runs: given arrays of each step, or one mapping for all.
        steps: number of steps.
        options: options with shapes and the seed, and whether steps were given.
        sources: sources of other inputs, see ``sources_of_step``; random ones differ from step to step.
        notify: receives unexpected facts of the first step.

    Returns the model with open sizes as the third, if it has any.
    """
    if options.shapes:
        reshape(read, options.shapes)
    settings = CompareOptions(seed=options.seed, runs=options.steps, max_memory=options.max_memory)
    ports = Ports(None, ModelSide("", read, "irexec"), {})
    made = list(ports.filled(runs or [{}], sources, settings, steps, notify).b)
    shapes = [{name: array.shape for name, array in arrays.items()} for arrays in made]
    if hidden := what_hides(read, shapes[0], facts_of(read, made), bool(options.shapes)):
        notify(f"the inputs have {hidden}")
    given = {port.node: Fact(port.element, shapes[0][port.name]) for port in read.inputs}
    inner = infer_shapes(read, given, tolerant=True).failures.keys() - set(read.nodes)
    if any(one != shapes[0] for one in shapes) or (inner and not infer_shapes(read, tolerant=True).failures):
        return read, made, None
    is_open = any(not is_static(port.shape) for port in read.inputs)
    fixed = with_shapes(read, {port.node.id: shapes[0][port.name] for port in read.inputs})
    return fixed, made, read if is_open else None


def judged_steps(model: Model, steps: Sequence[Arrays], declared: Model | None, options: JudgeOptions) -> Case:
    """The judgement of the first step with a bug, else of the first one that does not agree, else of the last one."""
    with ExitStack() as stack:
        runs = Runs(model, steps, options, stack, declared)
        cases: list[Case] = []
        while len(cases) < len(steps) and not (cases and cases[-1].judgement.is_bug):
            cases.append(case_of_step(runs, len(cases)))
    if len(steps) == 1:
        return cases[0]
    apart = [case for case in cases if case.judgement.verdict != "agrees"]
    chosen = next((case for case in apart if case.judgement.is_bug), apart[0] if apart else cases[-1])
    found = chosen.judgement
    text = f"step {found.step}:" if apart else f"agrees in {counted(len(cases), 'step')}"
    text += f" {found.sentence}" if apart else found.sentence[6:]
    return replace(chosen, judgement=replace(found, sentence=text))
