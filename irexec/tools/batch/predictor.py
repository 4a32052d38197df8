"""A model that runs on batches of items, loaded once in each process that uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.evaluate import DEFAULT_PRECISION, Precision
from irexec.analysis.model import Model, Port, find_port, input_ports, result_values
from irexec.analysis.shape_inference import infer_shapes
from irexec.errors import InputError, NodeError
from irexec.ir.dims import shape_text
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Value
from irexec.ir.order import find_value
from irexec.ir.shape_text import ShapeLike
from irexec.runtime.compiled_model import CompiledModel
from irexec.runtime.program import WeightsMode
from irexec.tools.run.shapes import Shapes, read_with_shapes, reshape

_TRIED = (2, 3)
"""Batch sizes for which shapes are inferred, to see whether results follow."""


@dataclass(frozen=True)
class Batching:
    """Number of items that a run takes.

    Attributes:
        has_axis: whether axis 0 of every input that is not a scalar counts items; otherwise an item is a whole set of
            inputs.
        fixed: the size of that axis; None if any size fits.
        is_divisible: whether axis 0 of every result counts items, too. Otherwise a run takes one item.
    """

    has_axis: bool
    fixed: int | None
    is_divisible: bool

    def size(self, wanted: int | None) -> int:
        """Number of items of a run: ``wanted``, unless the model fixes the number."""
        if not self.has_axis or not self.is_divisible:
            return 1
        return self.fixed or wanted or DEFAULT_SIZE


DEFAULT_SIZE = 8
"""Default number of items of a batch: small batches have the same overhead for each run, large ones need memory."""


def batching_of(model: Model, values: Sequence[Value]) -> Batching:
    """The batching of a model.

    Args:
        model: with facts of its inputs; it is not changed.
        values: the requested results.

    Raises:
        InputError: the model always takes more than one item, and its results cannot be cut.
    """
    ports = [port for port in model.inputs if port.shape != ()]
    shapes = [port.shape for port in ports if port.shape]
    sizes = {shape[0] if isinstance(shape[0], int) else None for shape in shapes}
    if len(shapes) < len(ports) or len(sizes) != 1:
        return Batching(False, None, True)
    (fixed,) = sizes
    if fixed is not None:
        return _fixed(model, ports, values, fixed)
    return Batching(True, None, all(_follows(model, ports, values, size) for size in _TRIED))


def _fixed(model: Model, ports: Sequence[Port], values: Sequence[Value], size: int) -> Batching:
    """The batching of a model whose inputs all have ``size`` at axis 0.

    A size of 1 is a batch even where the results do not have that axis.
    """
    if size == 0:
        return Batching(False, None, True)
    if _follows(model, ports, values, size):
        return Batching(True, size, True)
    if size == 1:
        return Batching(True, 1, False)
    if all(port.shape is not None and len(port.shape) < 4 for port in ports):
        # A vector or matrix as a whole, such as the features of one item.
        return Batching(False, None, True)
    facts = infer_shapes(model, tolerant=True).facts
    other = next(value for value in values if not _counts(facts.get(value), size))
    result = f"{other.node.name!r} of shape {shape_text(facts[other].shape)}"
    raise InputError(
        f"the model takes {size} items at once, and its result {result} cannot be cut into {size}: "
        "--rebatch or --shape may give it a batch of 1"
    )


def _follows(model: Model, ports: Sequence[Port], values: Sequence[Value], size: int) -> bool:
    """True if axis 0 of every value has this size whenever axis 0 of the inputs has it."""
    given = {port.node: Fact(port.element, port.shape) for port in model.inputs}
    given |= {port.node: Fact(port.element, (size, *port.shape[1:])) for port in ports if port.shape}
    facts: Mapping[Value, Fact] = infer_shapes(model, given, tolerant=True).facts
    return all(_counts(facts.get(value), size) for value in values)


def _counts(fact: Fact | None, size: int) -> bool:
    return fact is not None and bool(fact.shape) and fact.shape is not None and fact.shape[0] == size


def rebatch(model: Model) -> None:
    """Let axis 0 of every input that is not a scalar have any size.

    Raises:
        InputError: the model does not accept any size, for instance since a Reshape has the size as a constant.
    """
    shapes: dict[str | int, ShapeLike] = {port.name: (None, *port.shape[1:]) for port in model.inputs if port.shape}
    try:
        model.reshape(shapes)
    except NodeError as error:
        raise InputError(f"the model does not take a batch of another size (--rebatch): {error}") from None


Item = Mapping[str, np.ndarray]
"""The arrays of one item by the names of inputs or of results."""


@dataclass(frozen=True, kw_only=True)
class PredictorOptions:
    """How a model is read and run.

    Attributes:
        bin: the .bin; None is the file of the model's name.
        shapes: new shapes of inputs by name; None is the only input.
        rebatch: let axis 0 of every input have any size.
        tensors: the tensors to give; the Results if empty.
        threads: number of threads of a step. One, since processes share the items.
        weights, precision, max_memory, mmap: as for compile_model.
    """

    bin: str | None = None
    shapes: Shapes | None = None
    rebatch: bool = False
    tensors: tuple[str, ...] = ()
    threads: int | None = 1
    weights: WeightsMode = "auto"
    precision: Precision = DEFAULT_PRECISION
    max_memory: int | None = None
    mmap: bool = True


class Predictor:
    """Runs a model on batches. It can be pickled; the model is loaded when it is first used in a process.

    ``Predictor("model.xml")({"x": array})`` accepts any number of items along axis 0 of every array, and returns
    results along axis 0. A model with a fixed batch size runs several times; the last batch is filled with repeats of
    the last item, and their results are dropped. Every run begins with the initial state of variables.

    Args:
        model: the path of an .xml, or of an .onnx.
        options: how it is read and run.
    """

    def __init__(self, model: str | Path, options: PredictorOptions | None = None) -> None:
        self.path, self.options = str(model), options or PredictorOptions()
        self._loaded: _Loaded | None = None

    def __repr__(self) -> str:
        return f"<Predictor {self.path}>"

    def __getstate__(self) -> dict[str, Any]:
        """State without the loaded model, which each process reads again."""
        return vars(self) | {"_loaded": None}

    def load(self) -> Predictor:
        """Read and compile the model now.

        Raises:
            ModelError, NodeError, UnsupportedError, InputError: as for compile_model.
        """
        _ = self._model
        return self

    @property
    def batching(self) -> Batching:
        """How the model takes several items."""
        return self._model.described.batching

    @property
    def inputs(self) -> list[Port]:
        """The model's inputs."""
        return self._model.described.inputs

    @property
    def results(self) -> list[str]:
        """The names of what it gives."""
        return list(self._model.described.results)

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Run the items along axis 0 of the arrays, and return their results along axis 0.

        Args:
            batch: arrays by the names of inputs, all with the same size at axis 0.

        Returns:
            Arrays by the names of results; one of objects where the results of items differ in shape.

        Raises:
            InputError: a name, shape or type does not fit the model.
            NodeError: the model cannot run them.
        """
        if not isinstance(batch, Mapping):
            raise InputError(f"expected a batch by name, such as {{'x': array}}, and not {type(batch).__name__}")
        sizes = {array.shape[0] if array.ndim else -1 for array in map(np.asarray, batch.values())}
        if len(sizes) != 1 or -1 in sizes:
            raise InputError(
                f"the arrays of a batch have {sorted(sizes)} items along axis 0, expected the same number of each"
            )
        (count,) = sizes
        results = self.predict([{name: np.asarray(array)[i] for name, array in batch.items()} for i in range(count)])
        return {name: stacked([result[name] for result in results]) for name in self.results}

    def predict(self, items: Sequence[Item], size: int | None = None) -> list[dict[str, np.ndarray]]:
        """The results of items whose arrays have the same shapes.

        Args:
            items: arrays by the names of inputs, without the axis that counts items.
            size: number of items in a run if the model leaves it open; None for all at once.

        Raises:
            InputError: a name, shape or type does not fit the model.
            NodeError: the model cannot run them.
        """
        if not items:
            return []
        model = self._model
        arrays = [model.bound(item) for item in items]
        if not model.batches(arrays[0]):
            return [dict(zip(model.described.results, model.run(each), strict=True)) for each in arrays]
        step = self.batching.size(size or len(items))
        return [
            result for start in range(0, len(items), step) for result in model.run_batch(arrays[start : start + step])
        ]

    @property
    def _model(self) -> _Loaded:
        if self._loaded is None:
            self._loaded = _Loaded(described(self.path, self.options), self.options)
        return self._loaded


@dataclass(frozen=True)
class Described:
    """A model before it is compiled.

    Attributes:
        model: read and reshaped.
        inputs: its Parameters.
        results: the names of what it gives, each with its value.
        batching: how it takes several items.
    """

    model: Model
    inputs: list[Port]
    results: dict[str, Value]
    batching: Batching


def described(path: str, options: PredictorOptions) -> Described:
    """Read the model and find out how it takes several items; nothing is compiled.

    Raises:
        ModelError, InputError: it cannot be read, or does not take what the options say.
    """
    model = read_with_shapes(path, options.bin, options.shapes or {}, mmap=options.mmap)
    reshape(model, options.shapes or {}, tolerant=True)
    if options.rebatch:
        rebatch(model)
    results = {name: find_value(model, name) for name in options.tensors} or result_values(model.outputs)
    facts = infer_shapes(Graph(nodes=model.parameters), tolerant=True).facts
    batching = batching_of(model, list(results.values()))
    if options.rebatch and not (batching.has_axis and batching.is_divisible):
        raise InputError(
            "the model does not take a batch of another size (--rebatch): "
            "its results would not have an axis of the same size"
        )
    return Described(model, input_ports(model, facts), results, batching)


class _Loaded:
    """A compiled model with what is known of it."""

    def __init__(self, model: Described, options: PredictorOptions) -> None:
        self.described = model
        self._values = list(model.results.values())
        self._compiled = CompiledModel(
            model.model, threads=options.threads, weights=options.weights, precision=options.precision, tolerant=True,
            max_memory=options.max_memory,
        )  # fmt: skip
        self._compiled.require(self._values)
        self._has_state = bool(self._compiled.variables) or any(node.type == "Assign" for node in model.model.nodes)

    def bound(self, item: Item) -> list[np.ndarray]:
        """The arrays of an item in the order of the inputs, without axis 0 of size 1 if that axis counts items."""
        ports = self.described.inputs
        given = {find_port(ports, name).name: np.asarray(array) for name, array in item.items()}
        missing = [port.name for port in ports if port.name not in given]
        if missing or len(given) != len(item):
            raise InputError(
                f"the item has arrays for {', '.join(map(repr, item))}, the model has {', '.join(map(str, ports))}"
            )
        arrays = [given[port.name] for port in ports]
        if self.described.batching.has_axis and self.described.batching.fixed in (None, 1):
            ranks = [len(port.shape or ()) for port in ports]
            # An axis 0 of size 1 counts the items.
            return [
                array[0] if array.ndim == rank > 0 and array.shape[0] == 1 else array
                for array, rank in zip(arrays, ranks, strict=True)
            ]
        return arrays

    def batches(self, arrays: Sequence[np.ndarray]) -> bool:
        """Whether items of these ranks are stacked; otherwise each of them is all that the inputs take."""
        pairs = list(zip(arrays, self.described.inputs, strict=True))
        if not self.described.batching.has_axis or all(array.ndim == len(port.shape or ()) for array, port in pairs):
            return False
        for array, port in pairs:
            if port.shape is not None and array.ndim != max(0, len(port.shape) - 1):
                raise InputError(f"the item has shape {shape_text(array.shape)} for input {port}")
        return True

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """One run."""
        if self._has_state:
            self._compiled.reset()
        names = [port.name for port in self.described.inputs]
        return self._compiled.values(dict(zip(names, arrays, strict=True)), self._values)

    def run_batch(self, items: Sequence[Sequence[np.ndarray]]) -> list[dict[str, np.ndarray]]:
        """One run of several items, stacked."""
        fixed = self.described.batching.fixed
        filled = [*items, *([items[-1]] * ((fixed or 0) - len(items)))]
        ports = self.described.inputs
        stacked = [_batch([item[i] for item in filled], port) for i, port in enumerate(ports)]
        results = self.run(stacked)
        if not self.described.batching.is_divisible:
            return [dict(zip(self.described.results, results, strict=True))]
        named = list(zip(self.described.results, results, strict=True))
        return [{name: result[i] for name, result in named} for i in range(len(items))]


def _batch(arrays: Sequence[np.ndarray], port: Port) -> np.ndarray:
    """Arrays along a new axis 0; those of an input that is a scalar must be equal, as it is the same for all items."""
    if port.shape != ():
        return np.stack(arrays)
    if any(not np.array_equal(array, arrays[0]) for array in arrays):
        raise InputError(
            f"input {port} is a scalar, which is the same for all items of a batch, and differs: --batch-size 1"
        )
    return arrays[0]


def stacked(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays along a new axis 0; an array of objects where their shapes differ, or there are none."""
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    found = np.empty(len(arrays), object)
    for i, array in enumerate(arrays):
        found[i] = array
    return found
