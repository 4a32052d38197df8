"""Random graphs judged in other runtimes, as `irexec judge` does: a false accusation fails.

Each graph is judged in all runtimes of ``--runtimes``, one after the other: OpenVINO in f32, bf16 and f16, ONNX Runtime,
which gets the graph as irexec exports it, irexec with kernels chosen at random, and the reference kernels whose tensors
are rounded to f16, bf16 or the factors of tf32. One graph of four is large. A runtime that refuses a graph is asked once.
Accusations of OpenVINO that are known to be true are in ``tests.bounds.true_accusations``, and do not fail.
``--case NUMBER --write FOLDER`` writes a graph.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from irexec import save_model
from irexec.analysis.model import Model
from irexec.api import to_onnx
from irexec.bounds import ARITHMETICS
from irexec.compile.steps import ReferenceCall, Step
from irexec.dtypes.elements import F8E8M0, F32
from irexec.errors import IrexecError, RunTimeoutError, UnsupportedError
from irexec.ir.graph import Value
from irexec.runtime import execute
from irexec.tools.arrays.files import write_npz
from irexec.tools.compare import options as compare_options
from irexec.tools.engines.runtimes import Arrays, Runtime, Worker, open_runtime
from irexec.tools.engines.runtimes.kinds import OwnRuntime
from irexec.tools.judge import JudgeOptions, judge, opponent
from tests.bounds.true_accusations import is_known
from tests.graphs.choices import any_kernels, short_blocks
from tests.graphs.making import Made, make
from tests.sweep.kind import Case, Kind, Outcome

RUNTIMES: Mapping[str, str] = {
    "openvino": "f32", "openvino-bf16": "bf16", "openvino-f16": "f16", "onnxruntime": "f32", "irexec": "f32",
    "numpy-f16": "f16", "numpy-bf16": "bf16", "numpy-tf32": "tf32",
}  # fmt: skip
"""The arithmetic of each runtime."""
_NAME = "command:numpy"
_PRODUCTS = {
    "MatMul", "Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData", "Einsum"
}  # fmt: skip
_ACCUSATIONS = ("bug", "fusion")
_TIMEOUT = 60.0
_MEMORY = Path("/dev/shm")
_SMALL = (1, 6)
_EVERY = 4
"""One graph in this number has the usual number of steps."""


class Sweep(Kind):
    """The random graphs of tests.graphs."""

    cases = 300

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--runtimes", default=",".join(RUNTIMES), help=f"of {', '.join(RUNTIMES)}; default: all")
        add("--some", type=int, metavar="N", help="each graph in the first and in N of the other runtimes")
        add("--write", type=Path, metavar="FOLDER", help="write the graphs and the inputs of their first run")

    def names(self) -> list[str]:
        return ["graphs"]

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """The verdicts about a graph."""
        # One process of each runtime for all graphs: to start it takes longer than a run. The files of the runs are
        # small and many, so they are kept in memory where there is a file system for it.
        with (
            mock.patch.object(tempfile, "tempdir", str(_MEMORY) if _MEMORY.is_dir() else None),
            Worker("openvino", _TIMEOUT) as openvino,
            Worker("onnxruntime", _TIMEOUT) as onnxruntime,
        ):
            self._workers = {"openvino": openvino, "onnxruntime": onnxruntime}
            yield self._outcomes

    def _outcomes(self, number: int) -> Iterator[Outcome]:
        made = make(number, None if number % _EVERY == 0 else _SMALL)
        if self.options.write is not None:
            _write(number, made, self.options.write)
            yield Outcome("written")
            return
        names = self.options.runtimes.split(",")
        if self.options.some is not None:
            others = names[1:]
            step = max(1, len(others) // max(1, self.options.some))
            names = [*names[:1], *(others[(number + i * step) % len(others)] for i in range(self.options.some))]
        for name in names:
            yield self._judged(number, made, name)

    def _judged(self, number: int, made: Made, name: str) -> Outcome:
        with ExitStack() as stack:
            stack.enter_context(self._opening(name, number))
            try:
                found = _judged(stack, made, name)
            except IrexecError as error:
                return Outcome(f"{name}: refused", f"{type(error).__name__}: {error}")
        is_accused = found.verdict in _ACCUSATIONS
        if is_accused and name.startswith("openvino") and is_known(found):
            return Outcome(f"{name}: known fault", found.sentence)
        return Outcome(f"{name}: {found.verdict}", found.sentence, fails=is_accused)

    @contextmanager
    def _opening(self, runtime: str, number: int) -> Iterator[None]:
        """Let what judge opens be this runtime, in the process of all graphs."""

        def opened(name: str, model: Model, **options: Any) -> Runtime:
            if name == _NAME:
                return Numpy(model, runtime, number)
            if name not in self._workers:
                return open_runtime(name, model, **options)
            return _AskedOnce(open_runtime(name, model, **(options | {"worker": self._workers[name]})))

        with ExitStack() as stack:
            for module in (opponent, compare_options):
                stack.enter_context(mock.patch.object(module, "open_runtime", opened))
            yield


class _AskedOnce(Runtime):
    """A runtime whose results alone are asked for first, so that a model that it refuses ends the judgement."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime.name, runtime.model)
        self._runtime, self._known = runtime, dict[tuple[Value, ...], Any]()
        self.inputs = runtime.inputs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    version = property(lambda self: self._runtime.version)
    precision = property(lambda self: self._runtime.precision)

    def gives(self, value: Value) -> bool:
        return self._runtime.gives(value)

    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        if not self._known:
            results = tuple(dict.fromkeys(v for node in self.model.results for v in node.inputs if v is not None))
            try:
                self._known[results] = self._runtime.run_all(runs, results)
            except RunTimeoutError:
                raise
            except IrexecError as error:
                raise RunTimeoutError(str(error)) from None
        if tuple(values) in self._known:
            return self._known.pop(tuple(values))  # type: ignore[no-any-return]
        return self._runtime.run_all(runs, values)


class Numpy(Runtime):
    """irexec with kernels chosen at random, or the reference kernels with tensors of f32 rounded to another type."""

    def __init__(self, model: Model, kind: str, seed: int) -> None:
        super().__init__(_NAME, model)
        self._kind, self._seed = kind, seed

    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        if self._kind == "irexec":
            with any_kernels(self._seed), short_blocks(self._seed):
                return OwnRuntime("irexec", self.model).run_all(runs, values)
        with _rounding(RUNTIMES[self._kind]):
            return OwnRuntime("reference", self.model, precision="f32").run_all(runs, values)


@contextmanager
def _rounding(arithmetic: str) -> Iterator[None]:
    """Each step of the reference kernels reads and returns tensors of f32 that are rounded as the arithmetic rounds."""
    original, held = execute._Runner._call, ARITHMETICS[arithmetic]

    def rounded(array: Any, round_: Callable[[np.ndarray], np.ndarray]) -> Any:
        is_float = isinstance(array, np.ndarray) and array.dtype == np.float32
        with np.errstate(over="ignore", invalid="ignore"):
            return round_(array).astype(np.float32) if is_float else array

    def call(self: Any, step: Step, reference: ReferenceCall, arrays: list[Any]) -> None:
        if any(fact.element is F8E8M0 for fact in step.report.facts):
            # It has no zero, to which its smallest number is rounded.
            pass
        elif step.report.type in _PRODUCTS:
            arrays = [rounded(one, held.nearest_factor) for one in arrays]
        elif step.report.type not in ("ReadValue", "Assign"):
            arrays = [rounded(one, held.nearest) for one in arrays]
        original(self, step, reference, arrays)
        for slot, fact in zip(step.outputs, step.report.facts, strict=True):
            if slot >= 0 and fact.element is F32:
                self.slots[slot] = rounded(self.slots[slot], held.nearest)

    with mock.patch.object(execute._Runner, "_call", call):
        yield


def _judged(stack: ExitStack, made: Made, name: str) -> Any:
    options: dict[str, Any] = {"timeout": _TIMEOUT, "threads": 1}
    if name != "onnxruntime":
        names = [port.name for port in made.model.inputs]
        if name.startswith("openvino"):
            options |= {"runtime": "openvino", "properties": {"INFERENCE_PRECISION_HINT": RUNTIMES[name]}}
        else:
            options |= {"runtime": _NAME, "arithmetic": RUNTIMES[name]}
        return judge(made.model, dict(zip(names, made.runs[0], strict=True)), JudgeOptions(**options))
    path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "graph.onnx"
    proto = to_onnx(made.model)
    path.write_bytes(proto.SerializeToString())
    if len(proto.graph.input) != len(made.runs[0]):
        raise UnsupportedError("a state is an input of the exported graph")
    feeds = dict(zip([one.name for one in proto.graph.input], made.runs[0], strict=True))
    return judge(path, feeds, JudgeOptions(runtime=name, **options))


def _write(seed: int, made: Made, folder: Path) -> None:
    """Write the graph of a seed and the inputs of its first run."""
    folder.mkdir(parents=True, exist_ok=True)
    save_model(made.model, folder / f"graph{seed}.xml")
    names = [port.name for port in made.model.inputs]
    with (folder / f"inputs{seed}.npz").open("wb") as file:
        write_npz(file, dict(zip(names, made.runs[0], strict=True)))
