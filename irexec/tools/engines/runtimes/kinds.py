"""The kinds of runtime: irexec, its reference kernels, OpenVINO, ONNX Runtime, the evaluator of onnx, and commands.

OpenVINO runs in a process of its own; its intermediate values are Results of a copy of the model. ONNX Runtime and the
reference evaluator of onnx run the .onnx file of a model, not its graph in IR.

A command is called once for each run, with three more arguments:

1. the path of a model, an IR of version 11 with its .bin beside it, with one Result for each tensor that is asked for;
2. the path of a .npz with the inputs, by the names of the model's Parameters;
3. the path of a .npz to write: the values of the Results in the order of the file, ``numpy.savez(path, *values)``.

Exit code 0 says that it ran, another one that it refuses the model. Types that NumPy lacks, such as bf16, go in and
out as f32 or i32.
"""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from irexec.analysis.model import Model, Port
from irexec.api import save_model
from irexec.dtypes.elements import Element
from irexec.errors import ConversionError, EngineError, InputError, NodeError, RunTimeoutError, UnsupportedError
from irexec.io.onnx_bytes import is_onnx_file
from irexec.ir.graph import Value
from irexec.ir.order import ancestors
from irexec.messages import counted
from irexec.runtime.compiled_model import CompiledModel
from irexec.runtime.inputs import bind_inputs
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.arrays.files import open_arrays, write_npz
from irexec.tools.commands import last_line, run_command, split_command
from irexec.tools.engines.runtimes.caches import CACHE_PRECISION, CacheTypes, has_caches, with_caches
from irexec.tools.engines.runtimes.runtime import (
    Arrays,
    ProcessRuntime,
    Runtime,
    carried_type,
    fed,
    in_carrier,
    observed,
)


class OwnRuntime(Runtime):
    """irexec in this process.

    Args:
        name: "irexec", or "reference" for the reference kernels.
        model: the model. A layer that cannot run is an error only if a requested value depends on it.
        caches: how caches of attention hold keys and values; see with_caches.
        timeout: seconds that each run may take.
        settings: threads, precision, max_memory, native and dynamic_quantization, as for CompiledModel.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        *,
        caches: CacheTypes | None = None,
        timeout: float | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(name, model)
        self._values = dict[Value, Value]()
        if caches:
            model, self._values = with_caches(model, caches)
        if name == "reference" and settings.get("precision") == "bf16":
            settings["precision"] = "f32"  # Reference kernels do not round operands.
        self._compiled = CompiledModel(model, optimize=name == "irexec", tolerant=True, **settings)
        self._timeout = timeout

    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        values = [self._values.get(value, value) for value in values]
        self._compiled.require([self._compiled.program.own(value) for value in values])
        session, found = self._compiled.session(), list[list[np.ndarray]]()
        for arrays in runs:
            try:
                found.append(session.values(dict(arrays), values, timeout=self._timeout))
            except NodeError as error:
                if not found:
                    raise
                text = f"{self.model.path or self.model.name} runs {counted(len(found), 'step')} (--steps {len(found)})"
                text += f", and not step {len(found) + 1} with the state that it then has: {error}"
                raise NodeError(text, node=error.node, reason=error.reason) from error
        return found


# As written, as far as the CPU plugin can: no bf16, no quantisation of its own, FakeQuantize not in 8 bits.
_PROPERTIES = {
    "INFERENCE_PRECISION_HINT": "f32",
    "EXECUTION_MODE_HINT": "ACCURACY",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "KV_CACHE_PRECISION": "f32",
    "LP_TRANSFORMS_MODE": "NO",
}
_WEIGHTS = ("i8", "u8", "i4", "u4")
"""Types of the weights that MatMul layers read after decompression."""


class OpenVINORuntime(ProcessRuntime):
    """A model in OpenVINO. Each call of ``run_all`` compiles a copy with the values as outputs: pass many at once.

    A copy from which intermediate values are taken is fused less than the model itself.

    Args:
        name: "openvino", with a device after a colon unless it is the CPU.
        model: the graph whose values can be asked for.
        properties: of the plugin, by name. The CPU computes as written unless they say otherwise.
        process: see ProcessRuntime.
    """

    def __init__(self, name: str, model: Model, *, properties: Mapping[str, str] | None = None, **process: Any) -> None:
        super().__init__(name, model, **process)
        self._device = name.partition(":")[2] or "CPU"
        self._preferred = dict(_PROPERTIES) if self._device == "CPU" else {}
        self._properties = dict(properties or {})
        if CACHE_PRECISION in self._properties:
            # The hint is stronger than the property.
            self._preferred.pop("EXECUTION_MODE_HINT", None)

    @property
    def unused(self) -> str:
        if not self._preferred:
            return ""
        nodes = self.model.walk()
        kinds = {(node.type, node.constant is not None and node.constant.element.name in _WEIGHTS) for node in nodes}
        names = []
        if ("FakeQuantize", False) in kinds:
            names.append("LP_TRANSFORMS_MODE=YES")
        elif {("Constant", True), ("MatMul", False)} <= kinds:
            names.append("DYNAMIC_QUANTIZATION_GROUP_SIZE=32")
        if has_caches(self.model):
            names.append(f"{CACHE_PRECISION}=u8")
        names = [f"-p {name}" for name in names if name.partition("=")[0] not in self._properties]
        return f"OpenVINO computed as written; {' '.join(names)} is what it does by default" if names else ""

    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        asked = list(dict.fromkeys([*values, *self._of_loops(values)]))
        made = observed(self.model, asked, list(map(self._element, asked)))
        feeds = [fed(self.inputs, arrays, made) for arrays in runs]
        what = str(self.model.path or self.model.name or "the model")
        with tempfile.TemporaryDirectory(prefix="irexec-openvino-") as folder:
            path = Path(folder) / "model.xml"
            save_model(made.model, path)
            settings = {"options": self._properties, "preferred": self._preferred, "device": self._device}
            outputs = self._ask(path, feeds, what, **settings)
        if any(len(given) != len(asked) for given in outputs):
            raise EngineError(
                f"openvino gives {len(outputs[0])} of {counted(len(asked), 'tensor')} of {what}", engine="openvino"
            )
        position = {value: i for i, value in enumerate(asked)}
        return [[in_carrier(given[position[value]], self._element(value)) for value in values] for given in outputs]

    def _of_loops(self, values: Sequence[Value]) -> list[Value]:
        """Outputs of dynamic shape of loops before the values: the plugin runs no loop with such an unread output."""
        before, facts = ancestors(value.node for value in values), self._facts
        loops = (node for node in self.model.nodes if node in before and len(node.bodies) == 1)
        return [one for node in loops for one in node.outputs if one not in facts or not facts[one].is_static]


_AS_THE_FILE = Tolerance("snr", threshold=40.0)
"""How near the outputs of a copy are to those of the file: observed tensors change which layers are fused."""
_FIRST_BYTES = 1 << 16
# As written: products with weights of 4 bits are computed in f32, where ONNX Runtime itself takes data of 8 bits
# (level 4, its default in the optimizer's selectors and actions for QDQ).
_SETTINGS = {"session.qdq_matmulnbits_accuracy_level": "1"}


class OnnxFileRuntime(Runtime):
    """The .onnx file that a model came from. It gives the values that have the name of a tensor of the file.

    Args:
        model: converted from the file ``model.path``.
        name: of the runtime; by default that of the engine.

    Raises:
        InputError: the model did not come from an .onnx file.
        ConversionError: the file cannot be read.
    """

    engine: ClassVar[str]

    def __init__(self, model: Model, name: str = "", **process: Any) -> None:
        if model.path is None or not is_onnx_file(model.path):
            raise InputError(f"{self.engine} runs .onnx files only, and {model.path or 'the model'} is an IR")
        super().__init__(name or self.engine, model, **process)
        from converters.onnx.reference import tensors_of

        self.path = model.path
        self._tensors = tensors_of(model.path)
        self._names = self._tensors.own | self._tensors.inlined

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs of the file."""
        return self._tensors.outputs

    def gives(self, value: Value) -> bool:
        return self._name(value) is not None

    def _name(self, value: Value) -> str | None:
        names = [name for name in value.names if name in self._names]
        return next((name for name in names if name in self._tensors.own), names[0] if names else None)

    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        """See Runtime. Outputs alone come from the file itself, other tensors from a copy with further outputs.

        Tensors of the bodies of functions need a copy with inlined functions. If the outputs of this copy are not those
        of the file, it is an error, and such tensors are not given from then on.
        """
        elements = list(map(self._element, values))
        names = [self._name(value) or "" for value in values]
        asked = dict(zip(names, elements, strict=True))
        bound = (bind_inputs(self.inputs, dict(arrays)) for arrays in runs)
        feeds = [dict(zip(map(self._input_name, self.inputs), one, strict=True)) for one in bound]
        own = {name: one for name, one in asked.items() if name in self._tensors.own}
        found = self._observed(own, feeds, inlined=False)
        if inner := {name: one for name, one in asked.items() if name not in own}:
            known: dict[str, Element | None] = dict.fromkeys(self.outputs)
            known |= {name: one for name, one in own.items() if name in known}
            copied = self._observed(inner | known, feeds, inlined=True)
            self._check(self._observed(known, feeds, inlined=False), copied)
            found = [one | other for one, other in zip(copied, found, strict=True)]
        return [
            [in_carrier(arrays[name], element) for name, element in zip(names, elements, strict=True)]
            for arrays in found
        ]

    def _observed(
        self, asked: Mapping[str, Element | None], feeds: Sequence[Arrays], *, inlined: bool
    ) -> list[dict[str, np.ndarray]]:
        """Tensors by name in each run, with their element types where they are known."""
        from converters.onnx.reference import write_observed

        if not asked:
            return [{} for _ in feeds]
        carried = [
            None
            if one is None or one.native or not one.bits
            else ("FLOAT" if str(carried_type(one)) == "f32" else "INT32")
            for one in asked.values()
        ]
        is_file = not inlined and asked.keys() <= set(self.outputs) - self._tensors.of_maps and not any(carried)
        if is_file:
            return [dict(zip(asked, arrays, strict=True)) for arrays in self._run(self.path, feeds, list(asked))]
        with tempfile.TemporaryDirectory(prefix="irexec-onnx-") as folder:
            target = Path(folder) / "model.onnx"
            write_observed(self.path, list(asked), carried, target, inlined=inlined)
            return [dict(zip(asked, arrays, strict=True)) for arrays in self._run(target, feeds)]

    def _check(self, file: Sequence[Mapping[str, np.ndarray]], copied: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Raise EngineError if a copy with inlined functions does not compute what the file does."""
        for one, other in zip(file, copied, strict=True):
            agreements = (agreement_of(name, other[name], array, _AS_THE_FILE) for name, array in one.items())
            wrong = next((agreement for agreement in agreements if not agreement.agrees), None)
            if wrong is not None:
                self._names = self._tensors.own
                raise EngineError(
                    f"{self.path}: with its functions inlined, output {wrong.name!r} is another one in {self.name}: "
                    f"{wrong.message}; tensors of their bodies are not observed",
                    engine=self.name,
                )

    def _input_name(self, port: Port) -> str:
        if port.element is not None and not port.element.native and port.element.bits:
            raise UnsupportedError(f"input {port} is of a type that NumPy lacks, of which {self.name} takes no arrays")
        return next((name for name in port.names if name in self._names), port.name)

    @abstractmethod
    def _run(self, path: Path, feeds: Sequence[Arrays], results: Sequence[str] = ()) -> list[list[np.ndarray]]:
        """The outputs of an .onnx file for each run: these results, or all."""


class OnnxRuntime(OnnxFileRuntime, ProcessRuntime):
    """ONNX Runtime, in a process of its own."""

    engine = "onnxruntime"

    def _run(self, path: Path, feeds: Sequence[Arrays], results: Sequence[str] = ()) -> list[list[np.ndarray]]:
        return self._ask(path, feeds, str(self.path), preferred=_SETTINGS, results=tuple(results))


class OnnxReferenceRuntime(OnnxFileRuntime):
    """The reference evaluator of the package onnx, in this process: slow, and as the specification says."""

    engine = "onnx"

    def _run(self, path: Path, feeds: Sequence[Arrays], results: Sequence[str] = ()) -> list[list[np.ndarray]]:
        from converters.onnx.reference import open_evaluator

        try:
            evaluator = open_evaluator(path, results)
            return [evaluator(arrays) for arrays in feeds]
        except ConversionError as error:
            raise EngineError(
                str(error).replace("cannot run the model", f"cannot run {self.path}", 1), engine=self.name
            ) from None


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

    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        if len(runs) > 1 and any(node.type == "ReadValue" for node in self.model.walk()):
            raise UnsupportedError("a command is called once for each run, and keeps no state from run to run")
        elements = list(map(self._element, values))
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
