"""Postprocessing of an output as layers of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irexec.analysis.model import Port, find_port
from irexec.authoring.cutting import add_result
from irexec.authoring.editing import Editing
from irexec.authoring.preprocessing import Preprocessing, embed_preprocessing
from irexec.dtypes.elements import ElementLike, as_element
from irexec.errors import InputError
from irexec.ir.dims import shape_text
from irexec.ir.graph import Node, Value
from irexec.messages import listed


def append(editing: Editing, kind: str, output: str | int | None, options: Mapping[str, Any]) -> None:
    """Append postprocessing to an output; see Editor.append."""
    if kind not in _KINDS:
        raise InputError(f"{kind!r} is not one of {', '.join(_KINDS)}")
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
