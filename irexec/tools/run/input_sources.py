"""Inputs for a model from files, images, random values and constants, as ``irexec infer -i`` takes them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from irexec.analysis.evaluate import rounded
from irexec.analysis.model import Model, Port, expected, find_port
from irexec.compile.memory_limit import MemoryLimit
from irexec.dtypes.elements import F32, Element
from irexec.errors import InputError, ModelError, OpError
from irexec.io.onnx_bytes import is_onnx_file, model_names
from irexec.ir.dims import PartialShape, is_static, shape_text, smallest
from irexec.ir.graph import Node
from irexec.ir.shape_text import parse_shape
from irexec.messages import counted, silent
from irexec.reference.limits import SMALL
from irexec.tools.arrays.files import STDIN, ArrayFile, open_arrays
from irexec.tools.images import IMAGE_SUFFIXES, ImageOptions, Notify, read_image
from irexec.tools.run.results import read_lines

if TYPE_CHECKING:
    from irexec.analysis.open_sizes import SizesOf


_LARGEST = np.iinfo(np.intp).max
_GENERATED = ("random", "zeros", "ones")
TEXT = "text:"
"""The beginning of a source that is a string itself."""
STEP = "{}"
"""The place of the number of a step in the name of a file."""
_ACCEPTED = f".npy, .npz or image ({', '.join(IMAGE_SUFFIXES)})"

STEP_SEED = 1000
"""The difference between the seeds of two steps, so that inputs that follow each other share none."""


@dataclass(frozen=True)
class InputSource:
    """One ``-i``: the input that it names, or None, and where its values come from.

    Attributes:
        name: a name of an input, or its position.
        source: a path, "-" for standard input, one of "random", "zeros", "ones", or "text:" and a string.
        step: the number of the step, from 1, and the number of steps; None for the same values in every step. A file of
            arrays that has one more axis than the input has the values of each step along it.
    """

    name: str | None
    source: str
    step: tuple[int, int] | None = None

    @property
    def kind(self) -> Literal["generated", "image", "text", "arrays"]:
        """The kind of the source, by its name: the suffix tells images and texts from other files."""
        if self.source in _GENERATED:
            return "generated"
        if self.source.startswith(TEXT) or self.source.lower().endswith(".txt"):
            return "text"
        return "image" if self.source.lower().endswith(IMAGE_SUFFIXES) else "arrays"

    @property
    def path(self) -> str | None:
        """The file that is read, if there is one."""
        is_file = self.kind != "generated" and self.source != STDIN and not self.source.startswith(TEXT)
        return self.source if is_file else None


def sources_of_step(sources: Sequence[InputSource], step: int, steps: int) -> list[InputSource]:
    """The sources of one step: the name of a file may have {} where its number is, from 1.

    Raises:
        InputError: standard input is to be read in several steps.
    """
    if steps > 1 and any(source.source == STDIN for source in sources):
        raise InputError(f"standard input can be read only once, and there are {steps} steps")
    paths = [one.source.replace(STEP, str(step)) if one.path else one.source for one in sources]
    return [replace(one, source=path, step=(step, steps)) for one, path in zip(sources, paths, strict=True)]


def every_source(sources: Sequence[InputSource], steps: int) -> list[InputSource]:
    """The sources of all steps; errors are those of ``sources_of_step``."""
    return [one for step in range(1, steps + 1) for one in sources_of_step(sources, step, steps)]


def parse_input_source(text: str) -> InputSource:
    """``name=source`` or ``source``.

    Both may contain ``=``: the source is the shortest text after one that is a file or a word, or all of the text if
    that is a file; without one, the text after the last ``=``. After "text:" all of the argument is the source.

    Raises:
        InputError: no source is given.
    """
    before, begin, string = text.partition(TEXT)
    if begin and (not before or before.endswith("=")):
        return InputSource(before[:-1] or None, TEXT + string)
    if not text or text.endswith("="):
        raise InputError(f"-i {text!r} names no file")
    # The name and the source for each "=", the last one first, and for none.
    splits = [InputSource(text[:at] or None, text[at + 1 :]) for at in reversed(range(len(text))) if text[at] == "="]
    splits.append(InputSource(None, text))
    for split in splits:
        if split.source == STDIN or split.kind == "generated" or os.path.exists(split.source):
            return split
    return splits[0]


def input_arrays(
    sources: Sequence[InputSource],
    ports: Sequence[Port],
    *,
    seed: int = 0,
    image: ImageOptions | None = None,
    notify: Notify,
    memory: MemoryLimit | None = None,
    sizes: SizesOf | None = None,
) -> dict[str, np.ndarray]:
    """One array per input that the sources give, by the port's name.

    A source with a name feeds that input; a .npz without one feeds the inputs named by its members; any other file
    feeds the first input without a value. "random", "zeros" and "ones" alone feed every input that is left.

    Args:
        sources: sources to read, in any order.
        ports: the model's inputs.
        seed: for random values.
        image: how images become inputs.
        notify: called with what the user might not expect.
        memory: the limit of each array.
        sizes: chooses the sizes of generated inputs that the model leaves open; each is 1 or its minimum without it.

    Raises:
        InputError: a name or shape does not fit the model, or what is generated takes too much memory.
        ModelError: a file cannot be read, or takes too much memory.
    """
    if sum(source.source == STDIN for source in sources) > 1:
        raise InputError("standard input can be read only once, -i - is given twice")
    for_the_rest = [source.source for source in sources if source.kind == "generated" and source.name is None]
    if len(for_the_rest) > 1:
        raise InputError(
            f"-i {for_the_rest[0]} and -i {for_the_rest[1]} are both for all inputs that are left; "
            "NAME=SOURCE is for one input"
        )
    memory = memory or MemoryLimit()
    reader = _Reader(ports, seed, image or ImageOptions(), notify, memory, sizes)
    with ExitStack() as stack:
        files = {s: stack.enter_context(_opened(s, memory)) for s in dict.fromkeys(sources) if s.kind == "arrays"}
        for source in sorted(sources, key=lambda s: _order(s, files)):
            for name, array in reader.read(source, files).items():
                if name in reader.found:
                    raise InputError(f"input {name!r} is given twice, the second time by {source.source!r}")
                reader.found[name] = array
    return reader.found


def _opened(source: InputSource, memory: MemoryLimit) -> ArrayFile:
    """The file of arrays; a word that is not a file was probably meant as one that generates values."""
    if source.source.isalpha() and not os.path.exists(source.source):
        raise ModelError(f"{source.source}: no such file, and not one of {', '.join(_GENERATED)}")
    return open_arrays(source.source, _ACCEPTED, memory)


def sample_inputs(
    sources: Sequence[InputSource], ports: Sequence[Port], seed: int, notify: Notify, memory: MemoryLimit | None = None,
    sizes: SizesOf | None = None,
) -> dict[str, np.ndarray]:  # fmt: skip
    """The inputs that the sources give, see ``input_arrays``; without any source random ones, which ``notify``
    reports."""
    if ports and not sources:
        notify(f"inputs are random, with seed {seed}; -i gives others")
        sources = [InputSource(None, "random")]
    return input_arrays(sources, ports, seed=seed, notify=notify, memory=memory, sizes=sizes)


def files_read(path: str, weights: str | None, sources: Sequence[InputSource] = ()) -> dict[str, str]:
    """Every file that is read, with what it is: none of them may be overwritten."""
    files = {path: "the model"}
    if weights or (Path(path).name and not is_onnx_file(path)):
        files[weights or str(Path(path).with_suffix(".bin"))] = "the model's weights"
    return files | {source.path: "an input" for source in sources if source.path is not None}


def external_files(model: Model) -> dict[str, str]:
    """Files that are known only when the model is read, each with its kind: they must not be overwritten either."""
    return {str(path): "the model's external data" for path in model.external_files}


def _order(source: InputSource, files: Mapping[InputSource, ArrayFile]) -> int:
    """Sort key: sources with names of inputs come first, sources for all other inputs last."""
    if source.name is not None:
        return 0
    if source.kind == "generated":
        return 3
    return 1 if source.kind == "arrays" and files[source].named else 2


class _Reader:
    """The arrays that are read so far, and the state of reading."""

    def __init__(
        self, ports: Sequence[Port], seed: int, image: ImageOptions, notify: Notify, memory: MemoryLimit,
        sizes: SizesOf | None,
    ) -> None:  # fmt: skip
        self._sizes = sizes
        self.ports, self.seed, self.image, self.notify, self.memory = ports, seed, image, notify, memory
        self.found: dict[str, np.ndarray] = {}

    def read(self, source: InputSource, files: Mapping[InputSource, ArrayFile]) -> dict[str, np.ndarray]:
        if source.kind == "generated":
            return self._generated(source)
        if source.kind == "arrays" and files[source].named and source.name is None:
            return self._by_member(source, files[source])
        port = find_port(self.ports, source.name) if source.name else self._next_free(source)
        if source.kind == "text":
            return {port.name: self._text(source, port)}
        if source.kind == "image":
            return {port.name: read_image(source.source, port, self.image, self.notify, self.memory)}
        return {port.name: _of_step(_only(files[source], source), port, source)}

    def _generated(self, source: InputSource) -> dict[str, np.ndarray]:
        ports = (
            [find_port(self.ports, source.name)] if source.name else [p for p in self.ports if p.name not in self.found]
        )
        shapes = _assumed_shapes(ports)
        if self._sizes is not None and not all(is_static(port.shape) for port in ports):
            # All inputs that are left get their sizes together: tokens have as many as their mask.
            left = [port for port in self.ports if port.name not in self.found and port.shape is not None]
            chosen = self._sizes(left, {name: array.shape for name, array in self.found.items()})
            named = dict(zip((port.name for port in left), chosen or (), strict=False))
            shapes = [named.get(port.name, shape) for port, shape in zip(ports, shapes, strict=True)]
        arrays = {}
        for port, shape in zip(ports, shapes, strict=True):
            if not is_static(port.shape):
                self.notify(
                    f"input {port} gets the shape {shape_text(shape)}: the model leaves sizes open; --shape sets them"
                )
            size = math.prod(shape) * (port.element.carrier.itemsize if port.element else 1)
            try:
                if size >= SMALL:
                    self.memory.check_memory(size, f"shape {shape_text(shape)}")
            except OpError as error:
                raise InputError(f"input {port.name!r}: {error}") from None
            arrays[port.name] = generated_array(source.source, port, shape, self.seed + self.ports.index(port))
        return arrays

    def _text(self, source: InputSource, port: Port) -> np.ndarray:
        """The string, or the lines of a file, in the shape of the input where it has as many elements."""
        is_string = port.element is not None and port.element.kind == "string"
        if not is_string and source.path is None:
            raise InputError(f"input {port.name!r} has element type {port.element}, {source.source!r} is a string")
        if not is_string:
            # The message about other files, of which this is one.
            with _opened(source, self.memory) as file:
                return _only(file, source)
        texts = [source.source[len(TEXT) :]] if source.path is None else read_lines(source.source, "a text")
        lines = np.array(texts, object)
        sizes = [size if isinstance(size, int) else -1 for size in port.shape or (-1,)]
        if port.shape is None or sizes.count(-1) > 1:
            return lines
        known = math.prod(size for size in sizes if size != -1)
        fits = lines.size == known if -1 not in sizes else known > 0 and lines.size % known == 0
        return lines.reshape(sizes if port.shape else ()) if fits else lines

    def _by_member(self, source: InputSource, file: ArrayFile) -> dict[str, np.ndarray]:
        named: dict[str, str] = {}
        ports: dict[str, Port] = {}
        for key in file.names:
            try:
                port = find_port(self.ports, key)
            except InputError as error:
                raise InputError(f"{source.source}: {error}") from None
            if port.name in named:
                raise InputError(
                    f"input {port.name!r} is given twice by {source.source!r}, as {named[port.name]!r} and {key!r}"
                )
            named[port.name], ports[port.name] = key, port
        return {name: _of_step(file.read(key), ports[name], source) for name, key in named.items()}

    def _next_free(self, source: InputSource) -> Port:
        for port in self.ports:
            if port.name not in self.found:
                return port
        raise InputError(f"there is no input left for {source.source!r}: the model has {expected(self.ports)}")


def _only(file: ArrayFile, source: InputSource) -> np.ndarray:
    if source.name is not None and source.name in file.names:
        return file.read(source.name)
    if len(file.names) != 1:
        raise InputError(
            f"{source.source!r} has {counted(len(file.names), 'array')} ({', '.join(file.names)}), "
            f"expected one for {source.name!r}"
        )
    return file.read(file.names[0])


def _of_step(array: np.ndarray, port: Port, source: InputSource) -> np.ndarray:
    """The values of the step of a source, where the array has an axis of steps before those of the input."""
    if source.step is None or port.shape is None or array.ndim != len(port.shape) + 1:
        return array
    step, steps = source.step
    if len(array) != steps:
        raise InputError(
            f"{source.source!r} has {counted(len(array), 'step')} of input {port.name!r}, and there are {steps} steps"
        )
    return np.asarray(array[step - 1])


def _assumed_shapes(ports: Iterable[Port]) -> list[tuple[int, ...]]:
    """Shapes in which every size that is not known is 1, or the minimum of its range; raises InputError for an unknown
    rank."""
    for port in ports:
        if port.shape is None:
            raise InputError(
                f'the rank of input {port.name!r} is not known: give it a shape with --shape "{port.name}[...]"'
            )
    return [smallest(port.shape) for port in ports if port.shape is not None]


def random_array(port: Port, seed: int) -> np.ndarray:
    """Random values that an input takes: floats in [0, 1), small integers, the same for the same seed.

    Raises:
        InputError: its shape or type is not known.
    """
    if not is_static(port.shape):
        raise InputError(
            f'input {port.name!r} has shape {shape_text(port.shape)}: give it one with --shape "{port.name}[...]"'
        )
    return generated_array("random", port, port.shape, seed)


def generated_array(source: str, port: Port, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """An array of ``shape`` for an input: "random", "zeros" or "ones".

    Raises:
        InputError: the type of the input is not known, or no array can be so large.
    """
    element = port.element
    if element is None:
        raise InputError(f"the element type of input {port.name!r} is not known")
    if math.prod(size or 1 for size in shape) * element.carrier.itemsize > _LARGEST:
        raise InputError(f"input {port.name!r} of shape {shape_text(shape)} has more elements than an array can have")
    if source == "random":
        top = 10 if port.selects is None else min(10, port.selects or math.prod(shape)) or 1
        return _random(element, shape, np.random.default_rng(seed), top)
    if element.kind == "string":
        return np.full(shape, "" if source == "zeros" else "1", object)
    return rounded(np.full(shape, source == "ones", element.carrier), element)


def _random(element: Element, shape: tuple[int, ...], rng: np.random.Generator, top: int) -> np.ndarray:
    """Integers are below ``top``."""
    if element.kind == "string":
        return np.full(shape, "text", object)
    if element.kind == "boolean":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if element.is_integer:
        return rng.integers(0, min(top, 1 << (element.bits - 1)), shape).astype(element.carrier)
    return rounded(rng.random(shape, np.float32).astype(element.carrier), element)


@dataclass(frozen=True)
class GivenInputs:
    """The inputs of runs of a model.

    Attributes:
        sources: where inputs come from.
        arrays: of each run, by names or positions of inputs; they may be meant for another model.
        image: how images become inputs.
        steps: number of steps, see ``sources_of_step``; None if sources have no steps.
    """

    sources: Sequence[InputSource] = ()
    arrays: Sequence[Mapping[Any, Any]] = ()
    image: ImageOptions | None = None
    steps: int | None = None

    def shapes(self, ports: Sequence[Port]) -> dict[str, PartialShape]:
        """Shapes of files by names of ports, without several shapes for one port.

        Raises:
            InputError, ModelError: as for input_arrays.
        """
        sources = self.sources if self.steps is None else sources_of_step(self.sources, 1, self.steps)
        files = [source for source in sources if source.path is not None]
        arrays = input_arrays(files, ports, image=self.image, notify=silent)
        found = {name: {array.shape} for name, array in arrays.items()}
        for key, array in (pair for run in self.arrays for pair in run.items()):
            with suppress(InputError):
                found.setdefault(find_port(ports, key).name, set()).add(np.shape(array))
        return {name: shapes.pop() for name, shapes in found.items() if len(shapes) == 1}


def given_runs(
    inputs: Mapping[str, np.ndarray] | Iterable[Mapping[str, np.ndarray]] | None,
) -> list[Mapping[str, np.ndarray]]:
    """The arrays of each run; one mapping is one run.

    Raises:
        InputError: they are not mappings.
    """
    runs = [inputs] if isinstance(inputs, Mapping) else list(() if inputs is None else inputs)
    for run in runs:
        if not isinstance(run, Mapping):
            raise InputError(
                "expected inputs by name, such as {'x': array}, or one such mapping for each run, "
                f"and not {type(run).__name__}"
            )
    return runs


def declared_inputs(path: str) -> list[Port]:
    """The inputs of an ONNX model that cannot be converted, with declared shapes; types are unknown and taken as f32.

    None of a file that cannot be read.
    """
    try:
        declared = model_names(path).inputs
    except (OSError, ValueError):
        declared = {}
    return [
        Port(name, (name,), F32, None if shape is None else parse_shape(shape), Node(i, name, "Parameter", "opset1"))
        for i, (name, shape) in enumerate(declared.items())
    ]


_CHANNELS = 3
_MEAN, _DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
"""Mean and standard deviation of ImageNet, red first, of values from 0 to 1."""


def change_that_agrees(inputs: Mapping[str, np.ndarray], agrees: Callable[[Mapping[str, np.ndarray]], bool]) -> str:
    """The change of one image with which results agree, as a sentence; "" if none does.

    Args:
        inputs: the arrays of a run by names of inputs.
        agrees: runs the model with other inputs; True if the results are then those of the reference.
    """
    for name, array in inputs.items():
        for text, changed in _changes(array):
            if agrees({**inputs, name: changed.astype(array.dtype)}):
                return f"the reference is that of input {name!r} {text}"
    return ""


def _changes(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Changes of an image of three channels."""
    axis = next((axis for axis in (-3, -1) if array.ndim in (3, 4) and array.shape[axis] == _CHANNELS), None)
    if axis is None or array.dtype.kind != "f":
        return
    shape = [1] * array.ndim
    shape[axis] = _CHANNELS
    mean, deviation = _MEAN.reshape(shape), _DEVIATION.reshape(shape)
    scaled = {
        "": array,
        "divided by 255": array / 255,
        "multiplied by 255": array * 255,
        "with the mean and standard deviation of ImageNet": (array - mean) / deviation,
        "divided by 255, with the mean and standard deviation of ImageNet": (array / 255 - mean) / deviation,
        "without the mean and standard deviation of ImageNet": array * deviation + mean,
    }
    for text, changed in scaled.items():
        if text:
            yield text, changed
        yield f"{text}{' and ' if text else ''}with reversed channels (RGB and BGR)", np.flip(changed, axis)
    other, order = (-3, "N,C,H,W") if axis == -1 else (-1, "N,H,W,C")
    stored = array.reshape(np.moveaxis(array, axis, other).shape)
    yield f"with its elements in the order {order}", np.moveaxis(stored, other, axis)
