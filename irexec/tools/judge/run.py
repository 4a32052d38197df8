"""The judgement of a runtime: which of the two is wrong, by bounds in place of tolerances."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from irexec.analysis.model import Model
from irexec.api import ModelLike, as_model
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError
from irexec.ir.writable import refuse_damage
from irexec.messages import counted
from irexec.tools.engines.runtimes import Arrays
from irexec.tools.images.files import Notify
from irexec.tools.judge.judgement import Judgement
from irexec.tools.judge.opponent import Opponent
from irexec.tools.judge.options import JudgeOptions, StepOptions
from irexec.tools.judge.step import Case
from irexec.tools.judge.steps import StepInputs, judged_steps
from irexec.tools.run.given_inputs import GivenInputs, given_runs
from irexec.tools.run.input_sources import InputSource
from irexec.tools.run.shapes import read_with_shapes
from irexec.tools.run.states import read_state, with_state


def judge(
    model: ModelLike,
    inputs: Arrays | Sequence[Arrays] | None = None,
    options: JudgeOptions | None = None,
    *,
    sources: Sequence[InputSource] = (),
    notify: Notify = lambda text: None,
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
        settings: single options, in place of ``options``.

    Raises:
        InputError: the options, inputs or shapes do not fit the model.
        UnsupportedError: the runtime is not installed.
        ModelError, ConversionError, EngineError: the model cannot be read, or the runtime does not run it.
        RunTimeoutError: a run takes longer than the timeout.
    """
    options = options or JudgeOptions(**settings)
    return judged_case(model, inputs, options, sources, notify).judgement


def judged_case(
    model: ModelLike,
    inputs: Arrays | Sequence[Arrays] | None,
    options: JudgeOptions,
    sources: Sequence[InputSource],
    notify: Notify,
) -> Case:
    """The judgement together with its model: of several steps the one that the verdict is about; see ``judge``."""
    return judged_steps(*given_steps(model, inputs, options, sources, notify), options)


def given_steps(
    model: ModelLike,
    inputs: Arrays | Sequence[Arrays] | None,
    options: StepOptions,
    sources: Sequence[InputSource],
    notify: Notify,
) -> tuple[Model, list[Arrays]]:
    """The model in the shapes of its inputs, and the inputs of each step; see ``judge``."""
    runs = given_runs(inputs)
    read = _read(model, runs, options, sources)
    refuse_damage(read)
    if options.load_state is not None:
        read = with_state(read, read_state(options.load_state, MemoryLimit(options.max_memory)))
    if isinstance(options, JudgeOptions) and options.is_recorded:
        runs, steps = [_recorded(read, runs, options, sources)], 1
    else:
        steps = _steps(read, runs, options)
    return StepInputs(runs or [{}], sources, steps, options, notify).fixed(read)


def _recorded(
    read: Model, runs: Sequence[Arrays], options: JudgeOptions, sources: Sequence[InputSource]
) -> dict[str, np.ndarray]:
    """The inputs of the one step of a recording: its own, and those that are given."""
    if len(runs) > 1 or options.steps not in (None, 1):
        raise InputError(f"{options.runtime} holds the tensors of one step: no --steps")
    with ExitStack() as stack:
        opponent = Opponent(read, options, stack)
        known = opponent.inputs() | dict(runs[0] if runs else {})
        if not sources:
            opponent.require_inputs(known)
    return known


def _steps(read: Model, runs: Sequence[Arrays], options: StepOptions) -> int:
    """The number of steps: that of the options or of the inputs, else 2 for a model with state."""
    if len(runs) > 1 and options.steps not in (None, len(runs)):
        raise InputError(f"inputs are given for {counted(len(runs), 'step')}, and steps is {options.steps}")
    has_state = any(node.type == "ReadValue" for node in read.nodes)
    return options.steps or (len(runs) if len(runs) > 1 else 2 if has_state else 1)


def _read(model: ModelLike, runs: Sequence[Arrays], options: StepOptions, sources: Sequence[InputSource]) -> Model:
    if isinstance(model, str | os.PathLike):
        given = GivenInputs(sources, runs, steps=options.steps)
        return read_with_shapes(str(model), options.weights, options.shapes or {}, given=given)
    return as_model(model)
