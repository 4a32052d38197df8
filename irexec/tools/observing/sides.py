"""The two sides of a comparison: a model in a runtime, or tensors that were recorded in files."""

from __future__ import annotations

import copy
import functools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from irexec.analysis.constant_layers import constant_layers
from irexec.analysis.model import Model
from irexec.api import ModelLike, as_model
from irexec.compile.memory_limit import MemoryLimit
from irexec.dtypes.elements import F16, I32, I64, Element, element_of
from irexec.errors import InputError, ModelError
from irexec.io.reading import read_json
from irexec.ir.dims import PartialShape, Size, high, low
from irexec.ir.facts import Fact
from irexec.ir.graph import Graph, Node, Value, graphs
from irexec.ir.order import topological, walk_with_paths
from irexec.runtime.inputs import channel_orders
from irexec.tools.arrays.files import ArrayFile, open_arrays
from irexec.tools.run.input_sources import GivenInputs
from irexec.tools.run.shapes import Shapes, read_with_shapes

_INDEX = "index.json"
_LETTERS = {3: "NCL", 4: "NCHW", 5: "NCDHW"}
ARITHMETIC = "irexec.arithmetic"
"""A name beside those of the tensors: the text under it is the arithmetic of the recording, such as bf16."""

Facts = Mapping[Value, Fact]
Layout = tuple[int, ...] | None
"""The order of the recorded axes that gives those of the model; None for the recorded elements in the model's shape."""


@dataclass(frozen=True, eq=False)
class ModelSide:
    """A model; what follows from its graph alone is computed once.

    Attributes:
        label: its name in messages.
        model: the model.
        runtime: the name of its runtime.
    """

    label: str
    model: Model
    runtime: str

    @functools.cached_property
    def order(self) -> list[Node]:
        """Its layers in topological order."""
        return ordered(self.model)

    @functools.cached_property
    def positions(self) -> dict[Node, int]:
        """Position of each layer in the topological order of its graph, bodies included."""
        return _positions(self.order)

    @functools.cached_property
    def paths(self) -> dict[Node, str]:
        """Path of the bodies around each layer, layers of bodies included."""
        return {node: path for path, node in walk_with_paths(self.model)}

    @functools.cached_property
    def constant(self) -> set[Node]:
        """Layers that are computed from constants alone."""
        return constant_layers(self.model)

    @functools.cached_property
    def of_shapes(self) -> set[Node]:
        """Layers with results from constants alone, and layers of integers from shapes, layers of bodies included."""
        found = {node for graph in graphs(self.model) for node in constant_layers(graph)}
        for graph in graphs(self.model):
            for node in topological(graph)[0]:
                sources = [value.node for value in node.inputs if value is not None]
                facts = [value.fact for value in node.outputs]
                are_integers = all(fact is not None and fact.element in (I32, I64) for fact in facts)
                from_shapes = all(one.type in ("ShapeOf", "Constant") or one in found for one in sources)
                if sources and are_integers and from_shapes:
                    found.add(node)
        return found

    @functools.cached_property
    def results(self) -> dict[Value, None]:
        """The tensors of its results, in order."""
        return dict.fromkeys(value for node in self.model.results for value in node.inputs if value is not None)

    @property
    def has_state(self) -> bool:
        """Whether the model has variables."""
        return any(node.type == "ReadValue" for node in self.order)


class RecordedSide:
    """Tensors in a .npz, or in a folder that ``infer --dump-layers`` wrote.

    Args:
        path: of the file or folder.
        memory: the limit for the tensors.
        stack: closes the file.

    Attributes:
        label: the name of the file in messages.
        names: all names of tensors; a tensor may have several.
        arithmetic: the arithmetic of the recording; "" if it is not stated.
    """

    def __init__(self, path: Path, memory: MemoryLimit, stack: ExitStack) -> None:
        self.label = str(path)
        self._memory = memory
        self._layouts: Mapping[str, tuple[Layout, tuple[int, ...]]] = {}
        self._files = dict(_of_folder(path)) if path.is_dir() else {}
        self._archive: ArrayFile | None = None
        if not path.is_dir():
            self._archive = stack.enter_context(open_arrays(path, ".npz", memory))
            if not self._archive.named:
                raise InputError(f"{path} is one array without a name, expected a .npz")
        names = tuple(self._files) if self._archive is None else self._archive.names
        self.arithmetic = str(self.read(ARITHMETIC)) if ARITHMETIC in names else ""
        self.names = tuple(name for name in names if name != ARITHMETIC)

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
        if name not in self._layouts:
            return array
        layout, shape = self._layouts[name]
        return array.reshape(shape) if layout is None else array.transpose(layout)

    def arranged(self, pairs: Iterable[tuple[str, Value]], facts: Facts) -> tuple[RecordedSide, list[str]]:
        """The side with its tensors in the layouts of a model, and sentences about them.

        Args:
            pairs: names of tensors, each with the tensor of the model.
            facts: facts of the model's values.
        """
        named = [
            (name, facts[value].static_shape) for name, value in pairs if value in facts and facts[value].is_static
        ]
        stored = {name: self._stored(name).shape for name, _ in named}
        layouts, texts = layouts_of(named, stored)
        shapes, made = dict(named), copy.copy(self)
        made._layouts = {name: (layout, shapes[name]) for name, layout in layouts.items()}
        return made, texts

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


def _positions(order: Sequence[Node]) -> dict[Node, int]:
    found = {node: i for i, node in enumerate(order)}
    for node in order:
        for body in node.bodies.values():
            found |= _positions(ordered(body.graph))
    return found


def layout_of(recorded: Sequence[int], shape: Sequence[int]) -> Layout | str:
    """How a recorded tensor becomes one of the model's shape; "" if it has this shape, or none is known."""
    one, other = tuple(recorded), tuple(shape)
    if one == other:
        return ""
    if len(one) == len(other):
        fitting = [order for order in channel_orders(len(one)) if tuple(one[axis] for axis in order) == other]
        return fitting[0] if len(fitting) == 1 else ""
    is_flat = len(one) == 1 or (len(one) == 2 and one[0] == other[0])
    without_ones = [size for size in one if size != 1] == [size for size in other if size != 1]
    return None if np.prod(one) == np.prod(other) and (is_flat or without_ones) else ""


def layouts_of(
    shapes: Iterable[tuple[str, tuple[int, ...]]], recorded: Mapping[str, Sequence[int]]
) -> tuple[dict[str, Layout], list[str]]:
    """The layouts of recorded tensors that are not of the model's shape, and sentences about them.

    Tensors of sizes that fit in either layout, such as (1, 8, 8, 8), have the layout of the others of their rank, if
    none of these is as in the model.
    """
    found: dict[str, Layout] = {}
    as_in_model: Counter[int] = Counter()
    unclear: list[str] = []
    for name, shape in shapes:
        own = tuple(recorded[name])
        layout = layout_of(own, shape)
        if not isinstance(layout, str):
            found[name] = layout
        elif own == shape and any(tuple(own[axis] for axis in order) == shape for order in channel_orders(len(own))):
            unclear.append(name)
        elif own == shape:
            as_in_model[len(own)] += 1
    for name in unclear:
        rank = len(recorded[name])
        others = Counter(layout for layout in found.values() if layout is not None and len(layout) == rank)
        if others and not as_in_model[rank]:
            found[name] = others.most_common(1)[0][0]
    return found, _sentences(found)


def _sentences(found: Mapping[str, Layout]) -> list[str]:
    texts = []
    for layout, count in Counter(found.values()).items():
        if layout is None:
            texts.append(f"A's tensors are B's flattened or without axes of size 1: {count} of them")
        else:
            first, letters = layout[1] == len(layout) - 1, _LETTERS[len(layout)]
            names = f"{letters[0]}{letters[2:]}{letters[1]}" if first else letters
            axes = ",".join(map(str, layout))
            texts.append(f"A's tensors are B's in {','.join(names)}: axes {axes} of {count}")
    return texts


def as_declared(array: np.ndarray, shape: PartialShape) -> np.ndarray:
    """A recorded input with its channels at the axis where the model has them."""
    if shape is None or len(shape) != array.ndim or _fits(array.shape, shape):
        return array
    moved = [array.transpose(order) for order in channel_orders(array.ndim)]
    return next((one for one in moved if _fits(one.shape, shape)), array)


def _fits(sizes: Sequence[int], shape: Sequence[Size]) -> bool:
    return all(low(own) <= size <= (high(own) or size) for size, own in zip(sizes, shape, strict=True))
