"""Repairing a Reshape whose constant pattern keeps an input from having another size."""

from __future__ import annotations

import math

import numpy as np

from irexec.analysis.attributes import typed_attribute
from irexec.analysis.model import find_port
from irexec.analysis.shape_inference import ShapeInference
from irexec.authoring.editing import Editing
from irexec.errors import InputError, NodeError
from irexec.io.annotations import layout_of
from irexec.ir.dims import PartialShape, is_static, shape_text
from irexec.ir.facts import Fact
from irexec.ir.graph import Node
from irexec.ir.order import needed, topological

_FACTOR = 7
"""The size of the axis is tried with this many times what it is."""


def unfreeze(editing: Editing, key: str | int, axis: int | None) -> None:
    """Repair what a constant blocks; see Editor.unfreeze."""
    port = find_port(editing.model.inputs, key)
    shape = port.shape
    if shape is None or not shape:
        raise InputError(f"input {port.name!r} has the shape {shape_text(shape)}: no axis can be unfrozen")
    layout = layout_of(port.node.outputs[0])
    where = (layout.find("N") if layout else 0) if axis is None else axis
    if not -len(shape) <= where < len(shape) or (axis is None and where < 0):
        raise InputError(f"input {port.name!r} has the shape {shape_text(shape)}: there is no axis {where}")
    size = shape[where]
    if not isinstance(size, int):
        raise InputError(f"axis {where} of input {port.name!r} has any size already: {shape_text(shape)}")
    tried = list(shape)
    tried[where] = size * _FACTOR
    before = needed(editing.model)
    if not _repaired(editing, port.node, Fact(port.element, tuple(tried))):
        raise InputError(f"no constant blocks another size of axis {where} of input {port.name!r}")
    editing.drop_unneeded(before)


def _repaired(editing: Editing, parameter: Node, tried: Fact) -> int:
    """Infer the model with the size that is tried, and repair each Reshape on the way; the number of repairs."""
    walk, count = ShapeInference(tolerant=True), 0
    before = set(editing.facts.inference.failures)
    for node in topological(editing.model)[0]:
        if node is parameter:
            walk.inference.facts[node.outputs[0]] = tried
            continue
        if node.type == "Reshape":
            count += _repair(editing, node, walk)
        walk.node(node)
    failed = next(
        (node for node in editing.model.nodes if node in walk.inference.failures and node not in before), None
    )
    if failed is not None:
        constants = [repr(v.node.name) for v in failed.inputs if v is not None and v.node.constant is not None]
        why = f" with the constants {', '.join(constants)}" if constants else ""
        raise NodeError(
            f"layer {failed.name!r} ({failed.type}){why} keeps the size and cannot be repaired: "
            f"{getattr(walk.inference.failures[failed], 'reason', walk.inference.failures[failed])}",
            node=failed.name,
        )
    return count


def _repair(editing: Editing, node: Node, walk: ShapeInference) -> bool:
    """Give a Reshape a pattern with which its output has as many elements as its input, whatever the size."""
    data, pattern = node.inputs[:2]
    if data is None or pattern is None or pattern.node.constant is None:
        return False
    source, now = editing.facts[data].shape, walk.inference.facts[data].shape
    target = editing.facts[node.outputs[0]].shape
    axis = _changed_axis(source, now)
    if axis is None or not is_static(source) or not is_static(target) or not is_static(now):
        return False
    place = _axis_of_output(source, axis, target)
    if place is None:
        return False
    found = list(target)
    keeps = place == axis and target[place] == source[axis] and typed_attribute(node, "special_zero") is True
    found[place] = 0 if keeps else -1
    known = editing.facts[pattern].ints("the pattern")
    if known is None or known[place] in (0, -1):
        # The pattern is right as it is.
        return False
    constant = editing.add.constant(np.array(found, np.int64), name=f"{pattern.node.name}/unfrozen")
    walk.inference.facts[constant] = editing.facts[constant]
    node.ports[1].source = constant
    return True


def _changed_axis(source: PartialShape, now: PartialShape) -> int | None:
    """The only axis that has another size; None if there is none, or several."""
    if source is None or now is None or len(source) != len(now):
        return None
    axes = [axis for axis, (a, b) in enumerate(zip(source, now, strict=True)) if a != b]
    return axes[0] if len(axes) == 1 else None


def _axis_of_output(source: tuple[int, ...], axis: int, target: tuple[int, ...]) -> int | None:
    """The axis of the output along which the elements of an axis of the input come, outermost first."""
    before = math.prod(source[:axis])
    if axis < len(target) and math.prod(target[:axis]) == before and target[axis] % source[axis] == 0:
        return axis
    for place in range(len(target)):
        if math.prod(target[:place]) == before:
            return place
    return None
