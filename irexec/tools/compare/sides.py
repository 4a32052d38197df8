"""The two sides of a comparison: a model in a runtime, or tensors that were recorded in files."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.model import Model
from irexec.api import ModelLike, as_model
from irexec.compile.memory_limit import MemoryLimit
from irexec.dtypes.elements import F16, I32, I64, Element, element_of
from irexec.errors import InputError, ModelError
from irexec.io.reading import read_json
from irexec.ir.graph import Graph, Node, Value, graphs
from irexec.ir.order import topological
from irexec.tools.arrays.files import ArrayFile, open_arrays
from irexec.tools.run.given_inputs import GivenInputs
from irexec.tools.run.shapes import Shapes, read_with_shapes

_INDEX = "index.json"


@dataclass
class ModelSide:
    """A model.

    Attributes:
        label: its name in messages.
        model: the model.
        runtime: the name of its runtime.
        order: its layers in topological order.
    """

    label: str
    model: Model
    runtime: str
    order: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.order = ordered(self.model)

    @property
    def has_state(self) -> bool:
        """Whether the model has variables."""
        return any(node.type == "ReadValue" for node in self.order)


ARITHMETIC = "irexec.arithmetic"
"""A name beside those of the tensors: the text under it is the arithmetic of the recording, such as bf16."""


class RecordedSide:
    """Tensors in a .npz, or in a folder that ``infer --dump-layers`` wrote.

    Attributes:
        label: the name of the file in messages.
        names: all names of tensors; a tensor may have several.
        arithmetic: the arithmetic of the recording; "" if it is not stated.
    """

    def __init__(self, path: Path, memory: MemoryLimit, stack: ExitStack) -> None:
        """``stack`` closes the file."""
        self.label = str(path)
        self._memory = memory
        self._files = dict(_of_folder(path)) if path.is_dir() else {}
        self._archive: ArrayFile | None = None
        self._layouts: dict[str, Callable[[np.ndarray], np.ndarray]] = {}
        if not path.is_dir():
            self._archive = stack.enter_context(open_arrays(path, ".npz", memory))
            if not self._archive.named:
                raise InputError(f"{path} is one array without a name, expected a .npz")
        names = tuple(self._files) if self._archive is None else self._archive.names
        self.arithmetic = str(self.read(ARITHMETIC)) if ARITHMETIC in names else ""
        self.names = tuple(name for name in names if name != ARITHMETIC)

    @functools.cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the tensors as they are stored."""
        return {name: self._stored(name).shape for name in self.names}

    def arrange(self, layouts: Mapping[str, Callable[[np.ndarray], np.ndarray]]) -> None:
        """Let some tensors be read in another layout than the stored one."""
        self._layouts = dict(layouts)

    @functools.cached_property
    def elements(self) -> dict[str, Element]:
        """The element types that the tensors of numbers are stored in; a large file is read once for it."""
        arrays = ((name, self.read(name).dtype) for name in self.names)
        return {name: element_of(dtype) for name, dtype in arrays if dtype.kind in "fiub"}

    @property
    def are_halves(self) -> bool:
        """Whether all floating-point tensors, one at least, are stored as f16."""
        floats = {element for element in self.elements.values() if element.is_float}
        return floats == {F16}

    def read(self, name: str) -> np.ndarray:
        """The tensor of a name.

        Raises:
            ModelError: it cannot be read, or takes too much memory.
        """
        array = self._stored(name)
        return self._layouts[name](array) if name in self._layouts else array

    def _stored(self, name: str) -> np.ndarray:
        if self._archive is not None:
            return self._archive.read(name)
        with open_arrays(self._files[name], ".npy", self._memory) as file:
            return file.read("")


AnySide = ModelSide | RecordedSide


def _of_folder(folder: Path) -> Iterator[tuple[str, Path]]:
    """The names of tensors and their files.

    Raises:
        ModelError: the folder was not written by irexec.
    """
    try:
        for entry in read_json(folder / _INDEX)["tensors"]:
            path = folder / Path(entry["file"]).name
            for name in dict.fromkeys([entry["name"], *entry["tensor_names"]]):
                if not isinstance(name, str):
                    raise TypeError("a name that is not text")
                yield name, path
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelError(
            f"{folder} is not a folder that infer --dump-layers wrote: it has no readable {_INDEX}"
        ) from None


def is_recorded(path: Path) -> bool:
    """Whether a path is that of recorded tensors."""
    return path.is_dir() or path.suffix.lower() in (".npz", ".npy")


def open_side(
    stack: ExitStack,
    source: ModelLike,
    weights: str | None,
    runtime: str,
    memory: MemoryLimit,
    shapes: Shapes,
    given: GivenInputs,
    of: AnySide | None = None,
) -> AnySide:
    """A side from a model, from a path that read_model accepts, or from the path of recorded tensors.

    Args:
        stack: closes open files.
        source, weights, runtime: the model, its .bin and its runtime.
        memory: the limit for recorded tensors.
        shapes, given: see ``read_with_shapes``.
        of: the other side, if ``shapes`` and ``given`` name its inputs.

    Raises:
        ModelError: a file cannot be read.
        ConversionError: an ONNX model cannot be converted.
    """
    if not isinstance(source, str | os.PathLike):
        model = as_model(source)
        return ModelSide(str(model.path or model.name or "the model"), model, runtime)
    path = Path(source)
    if is_recorded(path):
        return RecordedSide(path, memory, stack)
    ports = of.model.inputs if isinstance(of, ModelSide) else None
    return ModelSide(str(source), read_with_shapes(str(source), weights, shapes, of=ports, given=given), runtime)


def ordered(graph: Graph) -> list[Node]:
    """The layers of a graph in topological order; layers on cycles come last."""
    order, stuck = topological(graph)
    return order + stuck


def computed(order: Sequence[Node]) -> Iterator[Value]:
    """Computed tensors of a graph: without Constants, Parameters, outputs of an Assign, and outputs without a reader.

    A Constant that is a Result counts, and so does the first output of a layer.
    """
    read = {value for node in order for value in node.inputs}
    results = {value for node in order if node.type == "Result" for value in node.inputs}
    for node in order:
        for value in node.outputs:
            if value in results or (
                node.type not in ("Parameter", "Constant", "Assign") and (value in read or value.index == 0)
            ):
                yield value


def computed_from_shapes(model: Model) -> set[Node]:
    """Layers with results from constants alone, and layers of integers from shapes, layers of bodies included."""
    found = {node for graph in graphs(model) for node in constant_layers(graph)}
    for graph in graphs(model):
        for node in topological(graph)[0]:
            sources = [value.node for value in node.inputs if value is not None]
            are_integers = all(value.fact is not None and value.fact.element in (I32, I64) for value in node.outputs)
            if sources and are_integers and all(one.type in ("ShapeOf", "Constant") or one in found for one in sources):
                found.add(node)
    return found
