"""The judgement of a runtime: which of the two is wrong, by bounds in place of tolerances.

Of several steps of a model with state it is about the first one with a fault. A script records every tensor of a model
in OpenVINO, to be run where the device is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.model import Model, find_port
from irexec.analysis.open_sizes import what_hides
from irexec.analysis.shape_inference import infer_shapes
from irexec.analysis.submodel import with_shapes
from irexec.api import ModelLike, as_model
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError
from irexec.io.files import new_file
from irexec.io.writer import check_file, check_script
from irexec.ir.dims import is_static
from irexec.ir.facts import Fact
from irexec.ir.writable import refuse_damage
from irexec.messages import counted, silent
from irexec.records import Record
from irexec.tools.arrays.files import write_npz
from irexec.tools.compare.inputs import Ports, facts_of, recorded_inputs
from irexec.tools.compare.options import CompareOptions
from irexec.tools.engines.runtimes import Arrays
from irexec.tools.images import Notify
from irexec.tools.judge.judgement import Judgement, JudgeOptions, StepOptions
from irexec.tools.judge.opponent import Opponent, Runs
from irexec.tools.judge.step import Case
from irexec.tools.judge.verdicts import case_of_step
from irexec.tools.observing.sides import ARITHMETIC, ModelSide
from irexec.tools.run.input_sources import GivenInputs, InputSource, external_files, files_read, given_runs
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
        named = {find_port(read.inputs, name).name for name in known}
        if missing := [port.name for port in read.inputs if port.name not in named]:
            # Other inputs make the first layers look wrong.
            text = f"{options.runtime} does not have the input {missing[0]!r} of the model: give it with -i"
            raise InputError(f"{text}, as it was in the recorded run")
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


@dataclass(frozen=True)
class RecordScript(Record):
    """The files that go to the device, together with the model.

    Attributes:
        script: the script.
        inputs: the .npz of the inputs.
    """

    script: str
    inputs: str


def record_script(
    model: str | os.PathLike[str],
    output: str,
    options: JudgeOptions | None = None,
    *,
    sources: Sequence[InputSource] = (),
    notify: Notify = silent,
) -> RecordScript:
    """Write a script, and beside it the inputs: the same for the device and for the judgement.

    Args:
        model: the .xml or .onnx.
        output: the script.
        options: weights, shapes, seed, and properties of the plugin.
        sources: sources of inputs; by default random ones.
        notify: receives unexpected facts.

    Raises:
        InputError: a file that is read, or one that ``output`` does not name, would be overwritten, ``output`` does not
            end in .py, or the options, inputs or shapes do not fit the model.
        ModelError: the model cannot be read, or a file not be written.
    """
    options, script = options or JudgeOptions(), Path(output)
    inputs = script.with_suffix(".inputs.npz")
    read = read_with_shapes(str(model), options.weights, options.shapes or {}, given=GivenInputs(sources, []))
    known = files_read(str(model), options.weights, sources) | external_files(read)
    check_script("--record-script", script, _SCRIPT, known)
    check_file("--record-script", inputs, known)
    if inputs.exists() and not script.exists():
        raise InputError(f"{inputs} exists, and is not the one of {output}: --record-script names another file")
    fixed, (arrays,), _ = with_inputs(read, [], 1, replace(options, steps=None), sources, notify)
    texts = {
        "model": Path(model).name, "inputs": inputs.name, "properties": dict(options.properties or {}),
        "arithmetic": ARITHMETIC,
    }  # fmt: skip
    with new_file(inputs) as file:
        # In the order of the inputs, since the script has no other names.
        write_npz(file, {port.name: arrays[port.name] for port in fixed.inputs})
    with new_file(script) as file:
        file.write(_SCRIPT.format(**{name: json.dumps(one) for name, one in texts.items()}).encode())
    return RecordScript(str(script), str(inputs))


_SCRIPT = '''"""Records every tensor of a model: python FILE [DEVICE] [OUTPUT.npz]; needs openvino and numpy."""

import sys

import numpy as np
import openvino as ov

device = sys.argv[1] if len(sys.argv) > 1 else "CPU"
output = sys.argv[2] if len(sys.argv) > 2 else "recorded.npz"
model = ov.Core().read_model({model})
inputs = dict(np.load({inputs}))
model.reshape({{port: inputs[name].shape for port, name in zip(model.inputs, inputs)}})

names = {{}}
for node in model.get_ordered_ops():
    if node.get_type_name() in ("Parameter", "Constant", "Result", "ReadValue", "Assign"):
        continue
    for i, port in enumerate(node.outputs()):
        if port.get_element_type().get_type_name() in ("f32", "f16", "f64", "i64", "i32", "i8", "u8", "boolean"):
            own = node.get_friendly_name() if i == 0 else f"{{node.get_friendly_name()}}:{{i}}"
            names[node.get_name(), i] = min(port.get_names(), default=own)
            if not any(reader.get_node().get_type_name() == "Result" for reader in port.get_target_inputs()):
                model.add_outputs(port)
compiled = ov.Core().compile_model(model, device, {properties})
results = compiled(list(inputs.values()))
recorded = dict(inputs)
for i, port in enumerate(model.outputs):
    source = port.get_node().input_value(0)
    if (source.get_node().get_name(), source.get_index()) in names:
        recorded[names[source.get_node().get_name(), source.get_index()]] = results[i]
precision = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
np.savez(output, **recorded, **{{{arithmetic}: f"{{precision}} of OpenVINO {{ov.__version__}} on {{device}}"}})
print(f"{{len(recorded)}} tensors of OpenVINO {{ov.__version__}} on {{device}} in {{precision}}")
print("irexec judge", {model}, "--runtime", output)
'''
