"""Checks of irexec against a runtime, another version of the model, an .onnx file, or recorded tensors."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

import numpy as np

from irexec.analysis.evaluate import DEFAULT_PRECISION, Precision, precision_argument
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.api import ModelLike, as_model
from irexec.compile.memory_limit import MemoryLimit
from irexec.dtypes.elements import Element
from irexec.errors import EngineError, InputError, IrexecError, NodeError, RunTimeoutError
from irexec.ir.graph import Node, Value
from irexec.ir.order import ancestors
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.arrays.agreement import Tolerance, agreement_of
from irexec.tools.commands import irexec_command
from irexec.tools.compare.blame import is_more_than_rounding
from irexec.tools.compare.comparison import TensorRow
from irexec.tools.compare.inputs import inner_inputs, recorded_inputs
from irexec.tools.compare.options import RTOL, CompareOptions
from irexec.tools.compare.pairs import GUESSES, VALUE, TensorPair
from irexec.tools.compare.rows import Found, agreement, tolerance_of
from irexec.tools.compare.run import ComparedModels, compared_models
from irexec.tools.engines.runtimes import Worker, open_runtime, precision_beside, require_runtime
from irexec.tools.observing.sides import ModelSide, RecordedSide, is_recorded
from irexec.tools.reduce.blame import Blame, blame
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.checks import Check, Failure, Files, given_options
from irexec.tools.reduce.output import source_digest
from irexec.tools.reduce.recording import BOUNDARY, after_run
from irexec.tools.run.input_sources import GivenInputs, InputSource
from irexec.tools.run.result_files import with_state
from irexec.tools.run.shapes import Shapes, read_with_shapes


class AgainstRuntime(Check):
    """A check against another runtime.

    Args:
        name: the runtime.
        rtol, atol: the tolerances; by default those of the command that shows the failure.
        precision: precision of f16 and bf16; by default that of the runtime.
        timeout: maximum time of each runtime in seconds.

    Raises:
        UnsupportedError: the runtime is not installed.
    """

    def __init__(
        self,
        name: str,
        *,
        rtol: float | None = None,
        atol: float | None = None,
        precision: Precision | None = None,
        timeout: float | None = None,
    ) -> None:
        require_runtime(name)
        self.name, self.rtol, self.atol, self.timeout = name, rtol, atol, timeout
        self.precision: Precision = precision or precision_beside(name)

    @property
    def identity(self) -> Sequence[object]:
        return ("against", self.name, self.rtol, self.atol, self.precision)


class RuntimeCheck(AgainstRuntime):
    """Whether OpenVINO, or irexec's reference kernels ("reference"), and irexec differ on a candidate."""

    _is_first = True

    @cached_property
    def _worker(self) -> Worker | None:
        return Worker(self.name, self.timeout) if self.name == "openvino" else None

    def __call__(self, candidate: Candidate) -> Failure | None:
        given = _given(candidate.model)
        if not given:
            return None
        values = list(given.values())
        ours = self._ours(candidate, values)
        try:
            theirs = self._theirs(candidate, values)
        except InputError:
            # An input of a part may have a type that the runtime does not accept.
            if self._is_first:
                raise
            return None
        self._is_first = False
        if isinstance(theirs, Failure):
            # The reference kernels have the shape rules of irexec: if both refuse a model, they agree.
            return None if isinstance(ours, Failure) and self.name == "reference" else theirs
        if ours is None or isinstance(ours, Failure):
            return ours
        facts = infer_shapes(candidate.model, tolerant=True).facts
        for (name, value), a, b in zip(given.items(), ours, theirs, strict=True):
            found = difference(name, facts[value].element, a, b, self.name, self.rtol, self.atol)
            if found is not None:
                return found
        return None

    def after_run(self, model: Model, inputs: Mapping[str, np.ndarray]) -> Model | None:
        return after_run(model, inputs, self.precision, self.timeout)

    def command(self, files: Files) -> list[str]:
        options = [*files.input_options, *given_options(rtol=self.rtol, atol=self.atol)]
        precision = [f"--precision={self.precision}"] if self.precision != precision_beside(self.name) else []
        return irexec_command("compare", files.model, "--b-runtime", self.name, *options, *precision)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()

    def _ours(self, candidate: Candidate, values: Sequence[Value]) -> list[np.ndarray] | Failure | None:
        """Values of irexec, or its refusal of the candidate; None after a timeout."""
        try:
            session = CompiledModel(candidate.model, precision=self.precision).session()
            return session.values(candidate.inputs, values, timeout=self.timeout)
        except RunTimeoutError:
            return None
        except (IrexecError, MemoryError) as error:
            reason = error.reason if isinstance(error, NodeError) else str(error)
            return Failure(f"irexec refuses: {essence(reason)}", f"irexec refuses what {self.name} runs: {error}")

    def _theirs(self, candidate: Candidate, values: Sequence[Value]) -> list[np.ndarray] | Failure:
        try:
            with open_runtime(
                self.name, candidate.model, precision=self.precision, timeout=self.timeout, worker=self._worker
            ) as runtime:
                return runtime.run(candidate.inputs, values)
        except RunTimeoutError:
            return Failure("timeout", f"{self.name} takes longer than {self.timeout:g} s")
        except EngineError as error:
            if error.exit_code is not None:
                return Failure(f"exit code {error.exit_code}", str(error))
            return Failure(f"{self.name} refuses: {essence(str(error))}", str(error))
        except InputError:
            raise
        except IrexecError as error:
            reason = error.reason if isinstance(error, NodeError) else str(error)
            return Failure(f"{self.name} refuses: {essence(reason)}", f"{self.name} refuses the model: {error}")


def _given(model: Model) -> dict[str, Value]:
    """Values of Results and values assigned to variables, by their names in messages."""
    results = {f"result {port.name!r}": port.node for port in model.outputs}
    assigned = {
        f"variable {node.attributes.get('variable_id')!r}": node for node in model.nodes if node.type == "Assign"
    }
    found = {name: next(iter(node.inputs), None) for name, node in (results | assigned).items()}
    return {name: value for name, value in found.items() if value is not None}


def difference(
    result: str,
    element: Element | None,
    ours: np.ndarray,
    theirs: np.ndarray,
    runtime: str,
    rtol: float | None,
    atol: float | None,
) -> Failure | None:
    """The difference of a result between irexec and a runtime; None if they agree."""
    usual = RTOL.get(str(element), RTOL["f32"]) if rtol is None else rtol
    tolerance = Tolerance(rtol=usual, atol=usual if atol is None else atol, scaled=atol is None)
    found = agreement_of(result, theirs, ours, tolerance, "irexec")
    if found.agrees:
        return None
    # One kind for values and shapes: other values may lead to another number of boxes.
    return Failure("results differ", f"{result} of {runtime}: {found.message}")


_NAMED = (
    r"cannot run .*?: (?=\S)",
    r"(?:While validating node|Exception happened).*?(?:with friendly_name '[^']*'|$):?",
    r"'[^']*'|\"[^\"]*\"",
    r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}",
    r"\S*[/\\]\S*",
    r"[-+]?\d[\w.]*",
)


def essence(message: str) -> str:
    """The text of an error without names, locations and values: equal for one error about several layers and shapes."""
    for pattern in _NAMED:
        message = re.sub(pattern, "_", message)
    return re.sub(r"[\s_]+", " ", message).strip()[:300]


_PART_OF_MEMORY = 4
"""Tensors of the other version take at most this fraction of the available memory, as a divisor."""
_STARTS = 8
"""Maximum number of differing layers with agreeing inputs that are checked first."""


class OtherModelCheck(Check):
    """Whether results of a part differ from the same tensors of another version of the model.

    Both run once and are compared tensor by tensor. Parts are cut at common tensors and have the tensors of the other
    version as inputs: only a part with a fault of its own differs.

    Args:
        other: the right version: a model, its path, or the path of a .npz or of a folder of ``infer --dump-layers``.
        shapes: shapes of inputs, for a model that cannot be read without them.
        rtol, atol: the tolerances; by default those of ``irexec compare``.
        precision: precision of f16 and bf16.
        timeout: maximum time of each run in seconds.
    """

    def __init__(
        self,
        other: str | os.PathLike[str] | Model,
        *,
        shapes: Shapes | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        precision: Precision = DEFAULT_PRECISION,
        timeout: float | None = None,
    ) -> None:
        self.other = other
        self.precision: Precision = precision
        self._options = CompareOptions(
            shapes=shapes, rtol=rtol, atol=atol, runs=1, precision=precision, timeout=timeout
        )
        self._model: Model | None = None
        self._pairs: dict[tuple[int, int], TensorPair] = {}
        self._agreeing: set[Value] = set()
        self._independent: list[Found] = []
        self._hidden: dict[Value, TensorRow] = {}

    @property
    def identity(self) -> Sequence[object]:
        return ("against", source_digest(self.other), self._options.rtol, self._options.atol, self.precision)

    def inputs(self, model: Model, *, others: bool) -> Mapping[str, np.ndarray]:
        """See Check: recorded inputs."""
        with ExitStack() as stack:
            if isinstance(self.other, Model) or not is_recorded(Path(self.other)):
                return {}
            found = recorded_inputs(RecordedSide(Path(self.other), MemoryLimit(), stack), model)
        missing = [str(port) for port in model.inputs if port.name not in found]
        if missing and not others:
            raise InputError(f"{self.other} does not hold the inputs of its tensors ({', '.join(missing)}): give them")
        return found

    def reference(self, model: Model, inputs: Sequence[np.ndarray]) -> Mapping[Value, np.ndarray]:
        self._model = model
        given = {port.name: array for port, array in zip(model.inputs, inputs, strict=True)}
        with ExitStack() as stack:
            sources = GivenInputs([InputSource(None, "random")], [given])
            made = compared_models(stack, self.other, model, sources, self._options)
            other = made.evidence.a
            if isinstance(other, ModelSide) and inner_inputs(other.model, model):
                raise InputError(f"the model is itself a part of {other.label}: irexec compare shows how it differs")
            self._made, self._independent = made, made.independent
            return self._values(made)

    def begin_with(self, state: Mapping[str, np.ndarray]) -> None:
        if isinstance(self.other, Model):
            self.other = with_state(self.other, state)
        elif not is_recorded(Path(self.other)):
            self.other = with_state(read_with_shapes(str(self.other), None, self._options.shapes or {}), state)

    def after_run(self, model: Model, inputs: Mapping[str, np.ndarray]) -> Model | None:
        """See Check: the other version continues from the state after its own run."""
        side, later = self._made.evidence.a, after_run(model, inputs, self.precision, self._options.timeout)
        if later is None or not isinstance(side, ModelSide):
            return None
        own = after_run(side.model, self._made.evidence.inputs.a[0], self.precision, self._options.timeout)
        self.other = own or self.other
        return later

    def _values(self, made: ComparedModels) -> dict[Value, np.ndarray]:
        """Tensors of the other version for all compared values; the equal tensor of the model if axes may differ."""
        rows = {found.value: found.row for found in made.rows.outer}
        size = sum(8 * math.prod(row.shape) for row in rows.values())
        near = self._near(made, rows) if size > MemoryLimit().left() // _PART_OF_MEMORY else rows.keys()
        pairs = [pair for pair in made.rows.pairs.tensors if pair.b in near]
        self._pairs = {(pair.b.node.id, pair.b.index): pair for pair in pairs}
        # A fault within the tolerance: only its own layer shows it.
        self._hidden = {
            one.value: one.row
            for one in self._independent
            if one.row.follows is False and one.row.agreement.differing == 0
        }
        self._agreeing = {value for value, row in rows.items() if row.agreement.agrees}
        of_a = made.evidence.tensors("A", [pair.a for pair in pairs])
        found: dict[Value, np.ndarray] = {}
        equal: list[Value] = []
        for pair in pairs:
            arrays = of_a.arrays.get(pair.a)
            if pair.b in self._agreeing and (
                pair.how == VALUE or arrays is None or arrays[0].shape != rows[pair.b].shape
            ):
                equal.append(pair.b)
            elif arrays is not None:
                found[pair.b] = arrays[0]
        own = made.evidence.tensors("B", equal)
        return found | {value: own.arrays[value][0] for value in equal if value in own.arrays}

    def _near(self, made: ComparedModels, rows: Mapping[Value, TensorRow]) -> set[Value]:
        """Inputs and outputs of the parts of ``starts``, which are needed if not all values fit into memory."""
        nodes = {node for part in self._starts(made, rows) for node in part}
        values = {value for node in nodes for value in (*node.inputs, *node.outputs) if value is not None}
        return values & rows.keys()

    def starts(self, reference: Collection[Value]) -> Sequence[Sequence[Node]]:
        """See Check: each differing layer with agreeing inputs, with the layers in front of it that are not
        compared."""
        return self._starts(self._made, reference)

    def _starts(self, made: ComparedModels, known: Collection[Value]) -> list[list[Node]]:
        constant = made.evidence.b.constant
        targets = dict.fromkeys(made.evidence.b.order[found.positions[0]] for found in self._independent)

        def is_known(value: Value) -> bool:
            return value in known or value.node in constant or value.node.type == "Parameter"

        return [list(ancestors([node], is_known)) for node in list(targets)[:_STARTS]]

    def __call__(self, candidate: Candidate) -> Failure | None:
        if candidate.model is self._model:
            first = self._independent[0].row if self._independent else None
            return None if first is None else self._failure(first.b.tensor, first.agreement.message)
        try:
            results = candidate.results(self.precision, self._options.timeout)
        except (IrexecError, MemoryError):
            return None
        for port, value in _given_inputs(candidate):
            pair = self._pairs.get((value.node.id, value.index))
            if pair is None or port not in candidate.expected:
                continue
            if pair.how in GUESSES and not reads_inputs(candidate.model):
                # Two exporters compute sizes and masks in other layers: no input shows that it is a fault.
                continue
            evidence, rows = self._made.evidence, self._made.rows
            found = agreement(evidence, pair, candidate.expected[port], results[port], rows.are_reordered)
            if not found.agrees:
                return self._failure(port, found.message)
            row = self._hidden.get(pair.b)
            if row is not None and is_more_than_rounding(found, tolerance_of(evidence, pair)):
                return self._failure(port, row.agreement.message)
        return None

    def _failure(self, name: str, message: str) -> Failure:
        return Failure("values differ", f"{name!r} differs, where A is {self._made.evidence.a.label}: {message}")

    def blame(self, candidate: Candidate) -> Blame | None:
        if self._model is None or not self._independent:
            return None
        by_id = {node.id: node for node in self._model.nodes}
        kept = [by_id[node.id] for node in candidate.layers if node.id in by_id]
        results = [
            by_id[value.node.id].outputs[value.index] for _, value in _given_inputs(candidate) if value.node.id in by_id
        ]
        last = max(self._independent, key=lambda one: one.order)
        return blame(kept, results, self._agreeing, last, self._made)

    def command(self, files: Files) -> list[str]:
        options = [*files.input_options, *given_options(rtol=self._options.rtol, atol=self._options.atol)]
        precision = precision_argument(self.precision)
        return irexec_command("compare", files.expected or "", files.model, *options, *precision)


def reads_inputs(model: Model) -> bool:
    """Whether a layer of a model reads an input."""
    parameters = set(model.parameters)
    return any(value is not None and value.node in parameters for node in model.nodes for value in node.inputs)


def _given_inputs(candidate: Candidate) -> list[tuple[str, Value]]:
    """The results of a candidate, each with its value."""
    found = [(port.name, port.node.inputs[0]) for port in candidate.model.outputs if port.node.inputs]
    return [(name, value) for name, value in found if value is not None]


_RTOL, _ATOL = 1e-4, 1e-5
"""The default tolerances of ``irexec infer --assert``."""


class OnnxFileCheck(AgainstRuntime):
    """Whether results of irexec differ from tensors of "onnxruntime", or of the reference evaluator of onnx ("onnx").

    The runtime runs the whole file once. Parts have its tensors as inputs: the smallest part is the translation of few
    nodes.
    """

    def reference(self, model: Model, inputs: Sequence[np.ndarray]) -> Mapping[Value, np.ndarray]:
        with open_runtime(self.name, model, timeout=self.timeout) as runtime:
            layers = [node for node in model.nodes if node.type not in BOUNDARY]
            values = [value for node in layers for value in node.outputs if runtime.gives(value)]
            arrays = {port.name: array for port, array in zip(runtime.inputs, inputs, strict=True)}
            return dict(zip(values, runtime.run(arrays, values), strict=True))

    def __call__(self, candidate: Candidate) -> Failure | None:
        if not candidate.expected:
            return None
        try:
            results = candidate.results(self.precision, self.timeout)
        except (IrexecError, MemoryError):
            return None
        for port in candidate.model.outputs:
            if port.name in candidate.expected:
                rtol, atol = _RTOL if self.rtol is None else self.rtol, _ATOL if self.atol is None else self.atol
                expected, result = candidate.expected[port.name], f"result {port.name!r}"
                found = difference(result, port.element, results[port.name], expected, self.name, rtol, atol)
                if found is not None:
                    return found
        return None

    def command(self, files: Files) -> list[str]:
        expected = [] if files.expected is None else ["--assert", files.expected]
        options = [*expected, *given_options(rtol=self.rtol, atol=self.atol), *precision_argument(self.precision)]
        return irexec_command("infer", files.model, *files.input_options, *options)


RUNTIMES = ("openvino", "onnxruntime", "onnx", "reference")


def check_against(
    other: ModelLike,
    *,
    shapes: Shapes | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    precision: Precision | None = None,
    timeout: float | None = None,
) -> Check:
    """The check that fails if a candidate differs from a runtime, or from the right version of the model.

    Args:
        other: one of RUNTIMES; or the right version: a model, a path that read_model accepts, or the path of recorded
            tensors; see OtherModelCheck.
        shapes: shapes of inputs, for a model that cannot be read without them.
        rtol, atol: the tolerances; by default those of ``irexec compare``.
        precision: precision of f16 and bf16; by default that of the runtime.
        timeout: maximum time of each run in seconds.

    Raises:
        InputError: ``other`` is neither a runtime nor a file.
        UnsupportedError: the runtime is not installed.
    """
    if isinstance(other, str) and other in RUNTIMES:
        kind = OnnxFileCheck if other in ("onnxruntime", "onnx") else RuntimeCheck
        return kind(other, rtol=rtol, atol=atol, precision=precision, timeout=timeout)
    if not isinstance(other, str | os.PathLike):
        other = as_model(other)
    elif not Path(other).exists():
        raise InputError(f"--against {other} is neither a file or folder nor a runtime ({', '.join(RUNTIMES)})")
    return OtherModelCheck(
        other, shapes=shapes, rtol=rtol, atol=atol, precision=precision or DEFAULT_PRECISION, timeout=timeout
    )
