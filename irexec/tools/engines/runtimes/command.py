"""A runtime that is a command of the user, called once for each run.

The command is called with three more arguments:

1. the path of a model, an IR of version 11 with its .bin beside it, with one Result for each tensor that is asked for;
2. the path of a .npz with the inputs, by the names of the model's Parameters;
3. the path of a .npz to write: the values of the Results in the order of the file, ``numpy.savez(path, *values)``.

Exit code 0 says that it ran, another one that it refuses the model. Types that NumPy lacks, such as bf16, go in and
out as f32 or i32.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.api import save_model
from irexec.errors import EngineError, InputError, RunTimeoutError, UnsupportedError
from irexec.ir.graph import Value
from irexec.messages import counted
from irexec.tools.arrays.files import open_arrays, write_npz
from irexec.tools.commands import last_line, run_command, split_command
from irexec.tools.engines.runtimes.runtime import Arrays, Runtime, fed, in_carrier, observed


class CommandRuntime(Runtime):
    """A model in a command.

    Args:
        name: "command:" and the command, see ``split_command``; no shell runs it.
        model: the graph whose values can be asked for.
        timeout: seconds that a run may take.

    Raises:
        InputError: the command is empty, or a quote is not closed.
    """

    def __init__(self, name: str, model: Model, *, timeout: float | None = None) -> None:
        super().__init__(name, model)
        command = name.partition(":")[2]
        try:
            self._arguments = split_command(command)
        except ValueError as error:
            raise InputError(f"{command!r} is not a command: {str(error).lower()}") from None
        self._timeout = timeout
        self._facts = infer_shapes(model, tolerant=True).facts

    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        if len(runs) > 1 and any(node.type == "ReadValue" for node in self.model.walk()):
            raise UnsupportedError("a command is called once for each run, and keeps no state from run to run")
        elements = [self._facts[value].element if value in self._facts else None for value in values]
        made = observed(self.model, values, elements)
        with tempfile.TemporaryDirectory(prefix="irexec-command-") as folder:
            path = Path(folder) / "model.xml"
            save_model(made.model, path)
            outputs = [self._outputs(path, fed(self.inputs, arrays, made), len(values)) for arrays in runs]
        return [
            [in_carrier(array, element) for array, element in zip(given, elements, strict=True)] for given in outputs
        ]

    def _outputs(self, model: Path, arrays: Arrays, count: int) -> list[np.ndarray]:
        inputs, outputs = model.with_name("inputs.npz"), model.with_name("outputs.npz")
        outputs.unlink(missing_ok=True)
        with open(inputs, "wb") as file:
            write_npz(file, arrays)
        code, said = run_command([*self._arguments, str(model), str(inputs), str(outputs)], self._timeout)
        if code is None:
            raise RunTimeoutError(f"{self.name} takes longer than {self._timeout:g} s")
        if code or not outputs.exists():
            why = f"ended with exit code {code}" if code else "wrote no outputs"
            text = ": ".join(filter(None, (f"{self.name} {why}", last_line(said))))
            # A code of its own is an answer; a signal is a crash.
            raise EngineError(text, engine=self.name, exit_code=code if code < 0 else None)
        with open_arrays(outputs, ".npz") as file:
            given = [file.read(name) for name in file.names]
        if len(given) != count:
            raise EngineError(f"{self.name} gives {len(given)} of {counted(count, 'tensor')}", engine=self.name)
        return given
