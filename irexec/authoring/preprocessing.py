"""Preprocessing of inputs and postprocessing of outputs as layers of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from irexec.analysis.builder import Operand
from irexec.analysis.model import Port, find_port
from irexec.authoring.editing import Editing
from irexec.authoring.surgery import add_result
from irexec.dtypes.elements import F32, Element, ElementLike, as_element
from irexec.errors import InputError
from irexec.io.payload import layout_of, parse_layout, set_layout
from irexec.ir.dims import ANY, PartialShape, Shape, Size, shape_text
from irexec.ir.graph import Node, Value
from irexec.ir.shape_text import write_shape
from irexec.messages import counted, listed

ResizeMode = Literal["linear", "cubic", "nearest"]
_LAYOUTS = {"NHWC": "NCHW", "NCHW": "NHWC", "HWC": "CHW", "CHW": "HWC"}


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """Preprocessing of one input, computed in the order of the attributes: arguments of Editor.embed_preprocessing."""

    element: ElementLike | None = None
    size: tuple[int | None, int | None] = (None, None)
    resize: ResizeMode | None = None
    reverse_channels: bool = False
    mean: float | Sequence[float] | None = None
    scale: float | Sequence[float] | None = None
    layout: str | None = None
    model_layout: str | None = None


def embed_preprocessing(editing: Editing, key: str | int, wanted: Preprocessing) -> None:
    """Embed preprocessing at an input; see Editor.embed_preprocessing."""
    port = find_port(editing.model.inputs, key)
    if port.element is None:
        raise InputError(f"the element type of input {port.name!r} is not known")
    _Embedding(editing, port, wanted).run()


class _Embedding:
    """The layers between one input and its readers."""

    def __init__(self, editing: Editing, port: Port, wanted: Preprocessing) -> None:
        self._editing, self._port, self._wanted = editing, port, wanted
        value = port.node.outputs[0]
        declared = layout_of(value) if wanted.model_layout is None else _parsed(wanted.model_layout)
        self._needs_layout = bool(
            wanted.layout or wanted.resize or wanted.reverse_channels or _many(wanted.mean) or _many(wanted.scale)
        )
        self._inner = declared or (_guessed(port, wanted.layout) if self._needs_layout else None)
        self._outer = _parsed(wanted.layout) if wanted.layout else self._inner
        self._check_layouts()
        self._value = value

    def run(self) -> None:
        node, readers = self._port.node, self._editing.readers(self._value)
        given = self._element if self._wanted.element is None else as_element(self._wanted.element)
        node.attributes |= {"element_type": given.name, "shape": write_shape(self._given_shape())}
        self._editing.settle_facts(node)
        if self._outer is not None:
            set_layout(node.outputs[0], self._outer)
        self._convert(self._computed_in(given))
        self._resize()
        if self._wanted.reverse_channels:
            order = np.arange(self._size("C"), dtype=np.int64)[::-1].copy()
            self._add("Gather", order, np.int64(self._axis("C")))
        for type, numbers in (("Subtract", self._wanted.mean), ("Divide", self._wanted.scale)):
            if numbers is not None:
                if type == "Divide" and not np.all(numbers):
                    raise InputError(f"scale {numbers} divides {self._port.name!r} by 0")
                self._add(type, self._per_channel(numbers))
        if self._inner is not None and self._outer is not None and self._inner != self._outer:
            self._add("Transpose", np.array([self._outer.index(letter) for letter in self._inner], np.int64))
        self._convert(self._element)
        for reader, index in readers:
            reader.ports[index].source = self._value

    @property
    def _element(self) -> Element:
        assert self._port.element is not None
        return self._port.element

    def _computed_in(self, given: Element) -> Element:
        """The element type of the arithmetic: that of the model, if it is one of floats."""
        wanted = self._wanted
        if wanted.mean is None and wanted.scale is None and wanted.resize is None:
            return self._element
        return self._element if self._element.is_float else given if given.is_float else F32

    def _check_layouts(self) -> None:
        inner, outer, shape = self._inner, self._outer, self._port.shape
        if inner is None or outer is None:
            return
        name = self._port.name
        if shape is not None and len(shape) != len(inner):
            raise InputError(f"input {name!r} has the shape {shape_text(shape)}, which the layout {inner} does not fit")
        if sorted(inner) != sorted(outer):
            raise InputError(f"input {name!r}: the layout {outer} has not the axes of the model's layout {inner}")

    def _given_shape(self) -> PartialShape:
        """The shape in which the input is given."""
        shape, inner, outer = self._port.shape, self._inner, self._outer
        if shape is None or inner is None or outer is None:
            return shape
        sizes: dict[str, Size] = dict(zip(inner, shape, strict=True))
        if self._wanted.resize is not None:
            for letter, size in zip("HW", self._wanted.size, strict=True):
                sizes[letter] = ANY if size is None else size
        return tuple(sizes[letter] for letter in outer)

    def _add(self, type: str, *inputs: Operand, **attributes: Any) -> None:
        name = f"{self._port.node.name}/{type.lower()}"
        self._value = self._editing.add.emit(type, self._value, *inputs, name=name, **attributes)

    def _convert(self, element: Element) -> None:
        if self._editing.facts[self._value].element is not element:
            self._add("Convert", destination_type=element)

    def _axis(self, letter: str) -> int:
        layout = self._outer
        if layout is None or letter not in layout:
            raise InputError(f"the layout of input {self._port.name!r}, {layout}, has no axis {letter}")
        return layout.index(letter)

    def _size(self, letter: str) -> int:
        """The size of an axis of the model, which must be known."""
        shape = _ranked(self._port)
        if self._inner is None or letter not in self._inner:
            raise InputError(f"the layout of input {self._port.name!r}, {self._inner}, has no axis {letter}")
        size = shape[self._inner.index(letter)]
        if not isinstance(size, int):
            raise InputError(
                f"input {self._port.name!r} has the shape {shape_text(shape)}: the size of axis {letter} is not known"
            )
        return size

    def _resize(self) -> None:
        mode = self._wanted.resize
        if mode is None:
            return
        if mode not in get_args(ResizeMode):
            raise InputError(f"the mode of resizing {mode!r} is not one of {', '.join(get_args(ResizeMode))}")
        axes = np.array([self._axis("H"), self._axis("W")], np.int64)
        if any(size is not None and size < 1 for size in self._wanted.size):
            raise InputError(f"images of {'x'.join(map(str, self._wanted.size))} cannot be resized")
        sizes = np.array([self._size("H"), self._size("W")], np.int64)
        rank = len(_ranked(self._port))
        self._add(
            "Interpolate", sizes, axes, mode=mode, shape_calculation_mode="sizes", pads_begin=(0,) * rank,
            pads_end=(0,) * rank, coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_floor",
        )  # fmt: skip

    def _per_channel(self, numbers: float | Sequence[float]) -> np.ndarray:
        element = self._editing.facts[self._value].element
        values = np.asarray(numbers, np.float32 if element is None else element.carrier).reshape(-1)
        if not np.isfinite(values.astype(np.float64)).all():
            raise InputError(f"{numbers} for {self._port.name!r} is not finite as {element}")
        rank = len(_ranked(self._port))
        if values.size == 1:
            return values.reshape((1,) * rank)
        if values.size != self._size("C"):
            raise InputError(
                f"{values.size} numbers are given for {counted(self._size('C'), 'channel')} of {self._port.name!r}"
            )
        shape = [1] * rank
        shape[self._axis("C")] = values.size
        return values.reshape(shape)


def _many(numbers: float | Sequence[float] | None) -> bool:
    return numbers is not None and np.size(np.asarray(numbers)) > 1


def _ranked(port: Port) -> Shape:
    if port.shape is None:
        raise InputError(f"the rank of input {port.name!r} is not known")
    return port.shape


def _parsed(layout: str) -> str:
    found = parse_layout(layout)
    if found is None or len(set(found)) != len(found):
        raise InputError(f"{layout!r} is not a layout such as NHWC")
    return found


def _guessed(port: Port, outer: str | None) -> str:
    """The layout of a model that declares none."""
    shape = _ranked(port)
    if outer is not None and _parsed(outer) not in _LAYOUTS:
        raise InputError(
            f"the layout of the model is not known for the layout {outer} of input {port.name!r}: give the model layout"
        )
    candidates = [layout for layout in _LAYOUTS if len(layout) == len(shape)]
    fitting = [layout for layout in candidates if shape[layout.index("C")] in (1, 3, 4)]
    if len(fitting) != 1:
        raise InputError(
            f"the layout of input {port.name!r} with the shape {shape_text(shape)} is not known: it must be given"
        )
    return fitting[0]


def append(editing: Editing, kind: str, output: str | int | None, options: Mapping[str, Any]) -> None:
    """Append postprocessing to an output; see Editor.append."""
    if kind not in _KINDS:
        raise InputError(f"postprocessing {kind!r} is not one of {', '.join(_KINDS)}")
    make, allowed = _KINDS[kind]
    unknown = sorted(set(options) - set(allowed))
    if unknown:
        known = f"; it has {', '.join(allowed)}" if allowed else ""
        raise InputError(f"{kind} has no option {unknown[0]!r}{known}")
    for name, value in options.items():
        _check_option(kind, name, value)
    ports = editing.model.outputs
    if output is None and len(ports) != 1 and kind != "nms":
        raise InputError(
            f"the model has {len(ports)} outputs: {listed([port.name for port in ports], 5)}; one must be named"
        )
    port = find_port(ports, 0 if output is None else output, "output")
    make(editing, port, **options)


def _check_option(kind: str, name: str, value: Any) -> None:
    """Raise InputError for an option of another type."""
    wanted, text = _OPTIONS[name]
    fits = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
    if value is not None and not fits:
        raise InputError(f"{kind}: the option {name} is {value!r}, expected {text}")
    if name in ("k", "max") and value < 1:
        raise InputError(f"{kind}: the option {name} is {value}, expected at least 1")


def set_element(editing: Editing, key: str, element: ElementLike) -> None:
    """Convert an input or output; see Editor.set_element."""
    outputs = [port for port in editing.model.outputs if key == port.name or key in port.names]
    if outputs and not any(key in port.names for port in editing.model.inputs):
        _appended(editing, outputs[0], "Convert", destination_type=as_element(element))
    else:
        embed_preprocessing(editing, key, Preprocessing(element=element))


def _source(port: Port) -> Value:
    source = port.node.inputs[0]
    assert source is not None
    return source


def _appended(editing: Editing, port: Port, type: str, *inputs: Any, **attributes: Any) -> Value:
    """The output of an operation on an output of the model, in whose place it is given under the same name."""
    source = _source(port)
    made = editing.add.emit(type, source, *inputs, name=f"{source.node.name}/{type.lower()}", **attributes)
    first = made[0] if isinstance(made, tuple) else made
    _give(editing, port.node, source, first)
    return made


def _give(editing: Editing, result: Node, source: Value, made: Value) -> None:
    """Let a Result give another value, under the same name, unless that is the name of an input."""
    result.ports[0].source = made
    is_input = source.node.type == "Parameter"
    if not is_input:
        editing.move_names(source, made)
    if not made.names:
        made.names = [made.label if is_input else source.label]


def _axis(editing: Editing, port: Port, axis: int | None) -> int:
    """The axis given, or that of the classes: the last, but the second of images."""
    shape = editing.facts[_source(port)].shape
    if shape is None or not shape:
        raise InputError(f"output {port.name!r} has the shape {shape_text(shape)}: it has no axis of classes")
    if axis is None:
        return 1 if len(shape) >= 4 else len(shape) - 1
    if not -len(shape) <= axis < len(shape):
        raise InputError(f"output {port.name!r} has the shape {shape_text(shape)}: there is no axis {axis}")
    return axis % len(shape)


def _softmax(editing: Editing, port: Port, axis: int | None = None) -> None:
    _appended(editing, port, "Softmax", axis=_axis(editing, port, axis))


def _sigmoid(editing: Editing, port: Port) -> None:
    _appended(editing, port, "Sigmoid")


def _argmax(editing: Editing, port: Port, axis: int | None = None) -> None:
    """The index of the first maximum, i64, without the axis."""
    where, source = _axis(editing, port, axis), _source(port)
    _, indices = _topk_of(editing, source, 1, where)
    made = editing.add.emit("Squeeze", indices, np.array([where], np.int64), name=f"{source.node.name}/argmax")
    _give(editing, port.node, source, made)


def _topk(editing: Editing, port: Port, k: int = 5, axis: int | None = None) -> None:
    """The k largest values in falling order, and as a further output their indices, i64."""
    source = _source(port)
    values, indices = _topk_of(editing, source, k, _axis(editing, port, axis))
    _give(editing, port.node, source, values)
    indices.names = [f"{values.names[0]}_indices"]
    add_result(editing, indices)


def _topk_of(editing: Editing, source: Value, k: int, axis: int) -> tuple[Value, Value]:
    made: tuple[Value, Value] = editing.add.emit(
        "TopK", source, np.int64(k), axis=axis, mode="max", sort="value", index_element_type="i64", stable=True,
        name=f"{source.node.name}/topk",
    )  # fmt: skip
    return made


def _nms(
    editing: Editing,
    port: Port,
    boxes: str | None = None,
    scores: str | None = None,
    iou: float = 0.5,
    score: float = 0.0,
    max: int = 100,
    center: bool = False,
) -> None:
    """Further outputs: the indices (batch, class, box) of the boxes that are kept, their scores, and their number."""
    if boxes is None or scores is None:
        raise InputError("nms needs the options boxes and scores, which name outputs of the model")
    ports = editing.model.outputs
    sources = [_source(find_port(ports, name, "output")) for name in (boxes, scores)]
    threshold = [np.float32(iou), np.float32(score)]
    made = editing.add.emit(
        "NonMaxSuppression", *sources, np.int64(max), *threshold, box_encoding="center" if center else "corner",
        sort_result_descending=False, output_type="i64", name="nms",
    )  # fmt: skip
    for value, name in zip(made, ("selected_indices", "selected_scores", "valid_outputs"), strict=True):
        value.names = [name]
        add_result(editing, value)


_INTEGER, _NUMBER, _NAME = (int | np.integer, "a whole number"), (int | float | np.number, "a number"), (str, "a name")
_OPTIONS: Mapping[str, tuple[Any, str]] = {
    "axis": _INTEGER, "k": _INTEGER, "max": _INTEGER, "iou": _NUMBER, "score": _NUMBER,
    "boxes": _NAME, "scores": _NAME, "center": (bool, "true or false"),
}  # fmt: skip
"""The type of each option, and its description."""
_KINDS: Mapping[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "softmax": (_softmax, ("axis",)),
    "sigmoid": (_sigmoid, ()),
    "argmax": (_argmax, ("axis",)),
    "topk": (_topk, ("k", "axis")),
    "nms": (_nms, ("boxes", "scores", "iou", "score", "max", "center")),
}
"""The postprocessing steps, each with its function and its options."""
