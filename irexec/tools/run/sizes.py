"""Sizes for inputs that a model leaves open: an axis of 1 hides faults of attention, masks, positions and windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from irexec.analysis.model import Model, Port
from irexec.analysis.shape_inference import infer_shapes
from irexec.ir.dims import Dim, PartialShape, Size, high, is_static, low, shape_text
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.ir.order import topological
from irexec.messages import listed

SizesOf = Callable[[Sequence[Port], Mapping[str, tuple[int, ...]]], "list[tuple[int, ...]] | None"]
"""Chooses shapes for inputs, beside the known shapes of others by name; None if no choice is found."""

_SCALES = ((2, 7, 64), (1, 7, 64), (2, 8, 64), (2, 64, 64), (1, 8, 224), (1, 4096, 256), (2, 2, 2))
"""Sizes of axis 0, of later axes, and of the axes of an image, tried in this order. Equal axes of several inputs get
equal sizes, as those of tokens and their mask."""
_IMAGE = 4
"""Number of axes of an input whose open axes, but for the first one, may be those of an image."""
_WINDOWS = ("Convolution", "GroupConvolution")
_SHOWN = 3
"""Maximum number of types of layers that a sentence names."""


def sizes_for(*models: Model, known: Mapping[str, tuple[int, ...]] | None = None, batch: int | None = None) -> SizesOf:
    """A choice of sizes with which shape inference of models has no fault that the declared shapes do not have.

    Args:
        models: models that share inputs by name.
        known: the shapes of inputs that have arrays, by name.
        batch: size of the first axis; 2 or 1 unless given.
    """

    def choose(ports: Sequence[Port], found: Mapping[str, tuple[int, ...]]) -> list[tuple[int, ...]] | None:
        declared = [set(infer_shapes(model, tolerant=True).failures) for model in models]
        for scale in _SCALES:
            chosen = [_chosen(port.shape or (), scale, batch) for port in ports]
            shapes: dict[str, tuple[int, ...]] = {**(known or {}), **found}
            shapes |= {name: shape for port, shape in zip(ports, chosen, strict=True) for name in port.names}
            if all(failing(model, shapes) <= before for model, before in zip(models, declared, strict=True)):
                return chosen
        return None

    return choose


def failing(model: Model, shapes: Mapping[str, tuple[int, ...]]) -> set[Node]:
    """The layers of a model that do not accept inputs of these shapes, by name."""
    given = {}
    for port in model.inputs:
        shape = next((shapes[name] for name in (port.name, *port.names) if name in shapes), None)
        if shape is not None:
            given[port.node] = Fact(port.element, shape)
    return set(infer_shapes(model, given, tolerant=True).failures)


def frozen_axes(model: Model, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Sentences about open axes with one possible size, each with the layer that is made for it.

    Args:
        model: the model, with the shapes that it declares.
        shapes: shapes by names of inputs that the model takes.
    """
    axes = [
        (port, axis, size)
        for port in model.inputs
        if port.name in shapes and port.shape is not None and len(port.shape) == len(shapes[port.name])
        for axis, size in enumerate(port.shape)
        if isinstance(size, Dim)
    ]
    before = failing(model, shapes)
    found = []
    for port, axis, size in axes:
        own = shapes[port.name][axis]
        # Tokens and their mask change together; the height and width of an image need not.
        equal = [(one, i) for one, i, _ in axes if shapes[one.name][i] == own and bool(i) is bool(axis)]
        layers: list[Node] = []
        for other in dict.fromkeys(_within(size, wanted) for wanted in (own + 1, 2 * own, 3 * own, own // 2)):
            results = [failing(model, _with(shapes, one, other)) - before for one in (equal, [(port, axis)])]
            if other != own and not all(results):
                break
            layers += [node for node in topological(model)[0] if node in results[0]][:1] if other != own else []
        else:
            if layers:
                text = f"{port.name!r} leaves axis {axis} open, but takes {own} only"
                found.append(f"{text}: {layers[0].type} {layers[0].name!r} is made for it")
    return found


def _with(
    shapes: Mapping[str, tuple[int, ...]], axes: Sequence[tuple[Port, int]], size: int
) -> dict[str, tuple[int, ...]]:
    """The shapes with another size of some axes."""
    changed = {name: list(shape) for name, shape in shapes.items()}
    for port, axis in axes:
        changed[port.name][axis] = size
    return {name: tuple(shape) for name, shape in changed.items()}


def _chosen(shape: Sequence[Size], scale: tuple[int, int, int], batch: int | None) -> tuple[int, ...]:
    first, others, image = scale
    first = first if batch is None else batch
    return tuple(
        size
        if isinstance(size, int)
        else _within(size, image if axis and len(shape) >= _IMAGE else others if axis else first)
        for axis, size in enumerate(shape)
    )


def _within(size: Dim, wanted: int) -> int:
    top = high(size)
    return max(1, low(size), wanted if top is None else min(wanted, top))


def what_hides(model: Model, shapes: Mapping[str, tuple[int, ...]], facts: Mapping[Value, Fact]) -> str:
    """Inputs with an open axis of size 1, and the layers that show no fault then; "" if every axis can show one.

    Args:
        model: the model, with the shapes that it declares.
        shapes: the shapes of a run by names of inputs.
        facts: facts of the values with these shapes.
    """
    ones = {port.name: _open_ones(port.shape, shapes[port.name]) for port in model.inputs if port.name in shapes}
    narrow = [f"{name}{shape_text(shapes[name])}" for name, axes in ones.items() if axes]
    # A batch of 1 hides nothing of a window over an image.
    has_windows = any(axis for axes in ones.values() for axis in axes)
    types = [type for type in dict.fromkeys(_blind(model, facts)) if has_windows or type not in _WINDOWS]
    return f"{', '.join(narrow)}, which shows no fault of {listed(types, _SHOWN)}" if narrow and types else ""


def _open_ones(declared: PartialShape, shape: tuple[int, ...]) -> list[int]:
    """The axes of size 1 that a model leaves open."""
    sizes = declared if declared is not None and len(declared) == len(shape) else [None] * len(shape)
    return [axis for axis, one in enumerate(sizes) if shape[axis] == 1 and not isinstance(one, int)]


def _blind(model: Model, facts: Mapping[Value, Fact]) -> Iterator[str]:
    """Types of layers with one element where they compare, mix or order several."""
    for node in model.nodes:
        shapes = [facts[value].shape if value is not None and value in facts else None for value in node.inputs]
        if not shapes or shapes[0] is None or not is_static(shapes[0]):
            continue
        data = shapes[0]
        if node.type in ("Softmax", "LogSoftmax"):
            axis = int(node.attributes.get("axis", "1"))
            is_blind = -len(data) <= axis < len(data) and data[axis] == 1
        elif node.type == "ScaledDotProductAttention":
            keys = shapes[1] if len(shapes) > 1 else None
            is_blind = keys is not None and len(keys) > 1 and keys[-2] == 1
        elif node.type in ("LSTMSequence", "GRUSequence", "RNNSequence"):
            is_blind = len(data) > 1 and data[1] == 1
        elif node.type in _WINDOWS:
            kernel = shapes[1] if len(shapes) > 1 else None
            is_blind = len(data) > 2 and set(data[2:]) == {1} and kernel is not None and set(kernel[2:]) != {1}
        else:
            is_blind = False
        if is_blind:
            yield node.type
