"""A runtime, its name, the results that it returns, and a process of its own, which its errors may end without harm."""

from __future__ import annotations

import copy
import functools
import json
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.model import Model, Port
from irexec.analysis.shape_inference import infer_shapes
from irexec.compile.memory_limit import MemoryLimit
from irexec.dtypes.elements import F32, I32, Element, round_to
from irexec.errors import EngineError, InputError, RunTimeoutError
from irexec.io.files import Closing
from irexec.io.processes import LineProcess
from irexec.ir.facts import Fact
from irexec.ir.graph import Input, Node, Value
from irexec.ir.order import Names, values_of_copy
from irexec.messages import counted
from irexec.runtime.inputs import bind_inputs
from irexec.tools.arrays.files import open_arrays, write_npz
from irexec.tools.engines.engine import EngineJob
from irexec.tools.engines.releases import PACKAGES, Release, clean_environment, command_of, environments_folder

RUNTIMES = ("irexec", "reference", "openvino", "onnxruntime", "onnx")
"""Names of the runtimes; "reference" is irexec with reference kernels, "onnx" the evaluator of the package onnx.

After "openvino" and "onnxruntime" a release may follow, such as openvino==2024.1.0, and after "openvino:" a device,
such as GPU. "command:" with a command after it is a runtime too, see irexec.tools.engines.runtimes.kinds.
"""

_WITH_COLON = ("openvino", "command")


def runtime_kind(name: str) -> str:
    """The part of the name of a runtime before its release and its colon, or the name itself.

    Raises:
        InputError: a runtime of that name does not exist.
    """
    engine, colon, rest = name.partition(":")
    kind, equals, version = engine.partition("==")
    is_known = kind in (_WITH_COLON if colon else RUNTIMES) and not (colon and not rest.strip())
    if not is_known or (equals and (kind not in PACKAGES or not all(map(str.isdigit, version.split("."))))):
        raise InputError(
            f"there is no runtime {name!r}, expected one of {', '.join(RUNTIMES)}, openvino:DEVICE, openvino==RELEASE, "
            "onnxruntime==RELEASE or command:COMMAND"
        )
    return kind


def default_functions(name: str) -> str:
    """The name in irexec.bounds.FUNCTIONS that a runtime is held to: CPUs round divisions and roots correctly."""
    kind, device = runtime_kind(name), name.partition(":")[2]
    return "ieee" if kind in RUNTIMES and device in ("", "CPU") else "opencl"


def release_of(name: str) -> Release | None:
    """The release that the name of a runtime has, such as openvino==2024.1.0; None for what is installed here."""
    kind, equals, version = name.partition(":")[0].partition("==")
    return Release(kind, version) if equals and kind in PACKAGES else None


@dataclass(frozen=True)
class ObservedCopy:
    """The copy.

    Attributes:
        model: with one Result for each value that is asked for, in this order, and no other.
        inputs: the layer names of its Parameters, in the order of those of the model; each is unique.
        types: the element types that the Parameters take.
    """

    model: Model
    inputs: tuple[str, ...]
    types: tuple[Element | None, ...]


def observed(model: Model, values: Sequence[Value], elements: Sequence[Element | None]) -> ObservedCopy:
    """A copy that gives these values of a model.

    Tensors of types that NumPy lacks go in and out in f32 or i32, through a Convert: other runtimes have no arrays of
    these types.

    Args:
        model: a model, which is not changed.
        values: of the graph itself.
        elements: the element type of each value; None where it is not known.
    """
    made = copy.copy(model)
    # The reader of version 10 changes the types of inputs and outputs; names of tensors may occur twice, and none is
    # needed.
    made.version, own = 11, values_of_copy(model, made)
    for value in own.values():
        value.names = []
    made.nodes = [node for node in made.nodes if node.type != "Result"]
    adding = _Adding(made)
    parameters = [node for node in made.parameters if node.outputs]
    inputs = [adding.parameter(node) for node in parameters]
    for i, (value, element) in enumerate(zip(map(own.__getitem__, values), elements, strict=True)):
        # The value itself, or what an Assign passes on: in OpenVINO its output cannot be read.
        source = value.node.inputs[0] if value.node.type == "Assign" and value.node.inputs else None
        given = value if source is None else source
        adding.result(adding.replaced.get(given, given), element, i)
    return ObservedCopy(made, tuple(node.name for node in parameters), tuple(inputs))


def fed(inputs: Sequence[Port], arrays: Mapping[str, np.ndarray], made: ObservedCopy) -> dict[str, np.ndarray]:
    """The inputs of a model by the names and in the types of the copy.

    Raises:
        InputError: they do not fit.
    """
    bound = bind_inputs(inputs, dict(arrays))
    if len(bound) != len(made.inputs):
        raise InputError(f"{counted(len(bound), 'input')} for {counted(len(made.inputs), 'Parameter')}")
    return {
        name: array if element is None or element.kind == "string" else array.astype(element.carrier, copy=False)
        for name, array, element in zip(made.inputs, bound, made.types, strict=True)
    }


class _Adding:
    """Layers that are added to a graph.

    Attributes:
        replaced: the replacements of Parameters whose type was changed.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.replaced: dict[Value, Value] = {}
        self._next = max((node.id for node in model.nodes), default=-1) + 1
        self._names = Names()

    def parameter(self, node: Node) -> Element | None:
        """Let a Parameter have a name of its own, and take a type that NumPy has; that type."""
        node.name = self._names.free(node.name)
        value = node.outputs[0]
        declared = Fact(None, None) if value.fact is None else value.fact
        if declared.element is None or _is_given(declared.element):
            return declared.element
        carried = carried_type(declared.element)
        node.attributes["element_type"] = carried.name
        value.fact = Fact(carried, declared.shape)
        converted = self.convert(value, declared.element)
        for other in self.model.nodes:
            for port in other.ports:
                if port.source is value and other is not converted.node:
                    port.source = converted
        self.replaced[value] = converted
        return carried

    def result(self, value: Value, element: Element | None, index: int) -> None:
        """A Result of a value."""
        if element is not None and not _is_given(element):
            value = self.convert(value, carried_type(element))
        self._node("Result", f"irexec.result.{index}", value)

    def convert(self, value: Value, element: Element) -> Value:
        """The value, converted."""
        node = self._node("Convert", f"irexec.convert.{self._next}", value)
        node.attributes["destination_type"] = element.name
        shape = None if value.fact is None else value.fact.shape
        node.outputs.append(Value(node, 0, Fact(element, shape)))
        return node.outputs[0]

    def _node(self, type: str, name: str, value: Value) -> Node:
        node = Node(self._next, name, type, "opset1", [Input(value, value.fact)])
        self._next += 1
        self.model.nodes.append(node)
        return node


def _is_given(element: Element) -> bool:
    return element.native or element.kind in ("string", "boolean")


def carried_type(element: Element) -> Element:
    """A type that NumPy has for the values of one that it lacks."""
    return F32 if element.is_float else I32


Arrays = Mapping[str, np.ndarray]
"""Arrays by the names of a model's inputs."""


class Runtime(Closing, ABC):
    """A model in a runtime.

    Args:
        name: of the runtime.
        model: the graph whose values can be asked for.

    Attributes:
        inputs: of the model.
        worker: the process of the engine, in which other models may run too; None for a runtime without one.
    """

    worker: Worker | None = None

    def __init__(self, name: str, model: Model) -> None:
        self.name, self.model = name, model
        self.inputs: list[Port] = model.inputs

    @functools.cached_property
    def _facts(self) -> Mapping[Value, Fact]:
        return infer_shapes(self.model, tolerant=True).facts

    def _element(self, value: Value) -> Element | None:
        return self._facts[value].element if value in self._facts else None

    @property
    def version(self) -> str:
        """The version of another runtime; "" before it has run."""
        return ""

    @property
    def unused(self) -> str:
        """A sentence about a default of the runtime that was switched off for this model; "" for none."""
        return ""

    @property
    def precision(self) -> str:
        """The type, such as f16, that another runtime computes floats in; "" where it does not say, or has not run."""
        return ""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs of the file that another runtime runs, if it is not written from the model."""
        return ()

    def gives(self, value: Value) -> bool:
        """Whether the runtime can be asked for a value of the graph."""
        return True

    @abstractmethod
    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        """Run several times, from the initial state of variables on, which go from run to run.

        Args:
            runs: the inputs of each run, by the names of ``inputs``.
            values: of the graph itself, none of those inside bodies; only such as it ``gives``.

        Returns:
            For each run one array for each value, in the carrier of its element type.

        Raises:
            NodeError, UnsupportedError: irexec cannot run the model.
            EngineError: another runtime cannot, or its process ended.
            InputError: the inputs do not fit.
            RunTimeoutError: it takes longer than the timeout.
        """

    def run(self, inputs: Arrays, values: Sequence[Value]) -> list[np.ndarray]:
        """The arrays of a single run; see ``run_all``."""
        return self.run_all([inputs], values)[0]

    def close(self) -> None:
        """End what the runtime needs, such as a process."""


def in_carrier(array: np.ndarray, element: Element | None) -> np.ndarray:
    """An array of a runtime in the carrier of the element type, if it is of another type of the same kind."""
    if element is None or element.kind == "string" or array.dtype == element.carrier:
        return array
    floats = array.dtype.kind == "f" and element.is_float
    whole = array.dtype.kind in "iub" and not element.is_float
    if not floats and not whole:
        return array
    cast = array.astype(element.carrier)
    return cast if element.native else round_to(element, cast)


class Worker(Closing):
    """Runs models in an engine, whose process is started at the first request, and again after it has ended.

    Args:
        engine: a key of irexec.tools.engines.engine.LOADERS.
        timeout: seconds that one request may take; None for any.
        release: a release of the engine in an environment of its own; None for the one that is installed here.
        environments: the folder of its environment; None for the default one.

    Raises:
        UnsupportedError: the folder has no such release.
    """

    def __init__(
        self,
        engine: str,
        timeout: float | None = None,
        release: Release | None = None,
        environments: str | None = None,
    ) -> None:
        self.engine, self.timeout = engine, timeout
        self._name = str(release or engine)
        self._command = command_of(release, environments_folder(environments)) if release else None
        self.version, self.precision = "", ""
        self._process: LineProcess | None = None

    def run(self, job: EngineJob, runs: Sequence[Arrays], what: str) -> list[list[np.ndarray]]:
        """Load a model and run it, with state from run to run.

        Args:
            job: the model to load; its ``inputs`` are not used.
            runs: the inputs of each run.
            what: the model, for messages.

        Returns:
            The outputs of each run.

        Raises:
            EngineError: the engine refuses the model or the inputs, or its process ended.
            RunTimeoutError: it took longer than the timeout.
        """
        with tempfile.TemporaryDirectory(prefix="irexec-run-") as name:
            folder = Path(name)
            files = [{key: str(folder / f"{key}{i}.npz") for key in ("inputs", "outputs")} for i in range(len(runs))]
            for arrays, pair in zip(runs, files, strict=True):
                with open(pair["inputs"], "xb") as file:
                    write_npz(file, arrays)
            self._ask({"job": asdict(job) | {"engine": self.engine, "inputs": files[0]["inputs"]}, "runs": files}, what)
            return [_outputs(pair["outputs"]) for pair in files]

    def _ask(self, request: object, what: str) -> None:
        if self._process is None:
            environment = clean_environment() if self._command else None
            self._process = LineProcess(
                "irexec.tools.engines.runtimes.worker", name=self._name, command=self._command, environment=environment
            )
        try:
            self._process.ask(json.dumps(request))
            answer = self._process.answer(what, self.timeout)
            self.version, self.precision = answer["version"], answer["precision"]
        except EngineError as error:
            if error.exit_code is not None:
                self.close()
            raise
        except (RunTimeoutError, KeyboardInterrupt):
            self.close()
            raise

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.stop()
            self._process = None


class ProcessRuntime(Runtime):
    """A runtime whose engine is in a process of its own, or in one that several models share.

    Args:
        name: of the runtime.
        model: the graph whose values can be asked for.
        threads: of the engine.
        worker: the process; one of its own unless given.
        timeout: seconds that a call may take, where the process is its own.
        environments: the folder of the environments of releases.

    Raises:
        UnsupportedError: the release that the name says is not there.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        *,
        threads: int | None = None,
        timeout: float | None = None,
        worker: Worker | None = None,
        environments: str | None = None,
    ) -> None:
        super().__init__(name, model)
        self._threads = threads
        self._is_shared = worker is not None
        self.worker: Worker = worker or Worker(runtime_kind(name), timeout, release_of(name), environments)

    @property
    def version(self) -> str:
        """That of the engine's package."""
        return self.worker.version

    @property
    def precision(self) -> str:
        return self.worker.precision

    def _ask(self, path: Path, runs: Sequence[Arrays], what: str, **settings: Any) -> list[list[np.ndarray]]:
        """The outputs of the model in a file, for each run; ``what`` is its name in messages.

        ``settings`` are further ones of the EngineJob.
        """
        engine = self.worker.engine
        return self.worker.run(EngineJob(engine, str(path), "", threads=self._threads, **settings), runs, what)

    def close(self) -> None:
        """End the process, unless it is shared."""
        if not self._is_shared:
            self.worker.close()


def _outputs(path: str) -> list[np.ndarray]:
    with open_arrays(path, memory=MemoryLimit()) as file:
        return [file.read(str(i)) for i in range(len(file.names))]
