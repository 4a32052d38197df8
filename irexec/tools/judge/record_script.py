"""A script that records every tensor of a model in OpenVINO, to be run where the device is."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from irexec.errors import InputError
from irexec.io.files import new_file
from irexec.io.writer import check_file
from irexec.messages import silent
from irexec.records import Record
from irexec.tools.arrays.files import write_npz
from irexec.tools.images import Notify
from irexec.tools.judge.options import JudgeOptions
from irexec.tools.judge.run import with_inputs
from irexec.tools.observing.sides import ARITHMETIC
from irexec.tools.run.input_sources import GivenInputs, InputSource, external_files, files_read
from irexec.tools.run.shapes import read_with_shapes


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
    for path in (script, inputs):
        known = files_read(str(model), options.weights, sources) | external_files(read)
        check_file("--record-script", path, known)
    if script.suffix != ".py":
        raise InputError(f"--record-script {output} does not end in .py")
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
