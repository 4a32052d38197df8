"""Open axes of inputs: sizes for them, and open axes of which a layer allows one size only, or a few.

An axis of 1 hides faults of attention, masks, positions and windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from irexec.analysis.model import Model, Port
from irexec.analysis.shape_inference import Inference, infer_shapes
from irexec.ir import codes
from irexec.ir.dims import ANY, Dim, PartialShape, Size, high, is_static, low, shape_text
from irexec.ir.facts import Fact
from irexec.ir.findings import Finding
from irexec.ir.graph import ModelGraph, Node, Value
from irexec.ir.order import topological
from irexec.messages import listed

SizesOf = Callable[[Sequence[Port], Mapping[str, tuple[int, ...]]], "list[tuple[int, ...]] | None"]
"""Chooses shapes for inputs, beside the known shapes of others by name; None if no choice is found."""

_SCALES = ((2, 7, 64), (1, 7, 64), (2, 8, 64), (2, 64, 64), (1, 8, 224), (1, 4096, 256), (2, 2, 2))
"""Sizes of axis 0, of later axes, and of the axes of an image, tried in this order. Equal axes of several inputs get
equal sizes, as those of tokens and their mask."""
_IMAGE = 4
"""Number of axes of an input whose open axes, but for the first one, may be those of an image."""
_AXES, _WRITTEN = 8, 12
"""Maximum number of elements of a shape that is searched for sizes, and of sizes that are tried."""
_LARGEST = 4096
"""Maximum size of an image that is searched for a Reshape of one size."""
_BESIDE = 64
"""Sizes beside each other for which an axis counts as open."""
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
        declared = [_faults(infer_shapes(model, tolerant=True)) for model in models]

        def inferred(scale: tuple[int, int, int]) -> tuple[list[tuple[int, ...]], list[Inference]]:
            chosen = [_chosen(port.shape or (), scale, batch) for port in ports]
            shapes: dict[str, tuple[int, ...]] = {**(known or {}), **found}
            shapes |= {name: shape for port, shape in zip(ports, chosen, strict=True) for name in port.names}
            return chosen, [_inferred(model, shapes) for model in models]

        # Sizes that all layers take, although a Reshape cuts its data, are the second best.
        scales, taken = list(_SCALES), None
        for i, scale in enumerate(scales):
            chosen, made = inferred(scale)
            if all(_faults(one) <= before for one, before in zip(made, declared, strict=True)):
                return chosen
            if taken is None and all(one.failures.keys() <= before for one, before in zip(made, declared, strict=True)):
                taken = chosen
            if i == 0:
                sizes = sorted({size for one in made for size in _written(one)})[:_WRITTEN]
                scales += [(first, size, size) for size in sizes for first in (2, 1, size)]
                rows = next((node for one in made for node in _faults(one) if _row_of(node, one)), None)
                if rows is not None and (size := _flattened(rows, lambda size: inferred((2, size, size))[1])):
                    scales[1:1] = [(2, size, size), (1, size, size)]
        return taken

    return choose


def _row_of(node: Node, inference: Inference) -> tuple[int, ...]:
    """The axes of a row of a Reshape to [-1, axes...]; () for other layers."""
    pattern = node.inputs[1] if node.type == "Reshape" and len(node.inputs) == 2 else None
    known = None if pattern is None or pattern not in inference.facts else inference.facts[pattern].value
    if known is None or known.dtype.kind not in "iu" or known.ndim != 1 or known.size < 2 or known[0] != -1:
        return ()
    return tuple(map(int, known[1:])) if (known[1:] > 0).all() else ()


def _data_of(node: Node, inference: Inference) -> tuple[int, ...] | None:
    data = node.inputs[0]
    shape = None if data is None or data not in inference.facts else inference.facts[data].shape
    return shape if shape is not None and is_static(shape) else None


def _is_cut(node: Node, inference: Inference) -> bool:
    """True for a Reshape whose rows are neither axes of its data nor parts of one: another size gives it more rows.

    A network that flattens 16 channels of 3 x 3 to [-1, 144] also takes 16 x 111 x 111: as 1,369 rows of each image.
    """
    row = _row_of(node, inference)
    shape = _data_of(node, inference) if row else None
    if not shape or 0 in shape:
        return False
    # Windows that are put together to an image are several rows in one, and have axes.
    size, first = math.prod(row), 1 if len(row) == 1 < len(shape) else 0
    inner = {axis: math.prod(shape[axis + 1 :]) for axis in range(first, len(shape))}
    return not any(size % inside == 0 and shape[axis] % (size // inside) == 0 for axis, inside in inner.items())


def _faults(inference: Inference) -> set[Node]:
    """Layers that do not accept their inputs, and each Reshape that cuts its data into other rows."""
    return {*inference.failures, *(value.node for value in inference.facts if _is_cut(value.node, inference))}


def _flattened(node: Node, inferred: Callable[[int], Sequence[Inference]]) -> int:
    """The size of an image for which a Reshape has one row for each; 0 if there is none."""
    least, most = 1, _LARGEST
    while least < most:
        size = (least + most) // 2
        made = [one for one in inferred(size) if _data_of(node, one)]
        both = [(math.prod((_data_of(node, one) or ())[1:]), math.prod(_row_of(node, one))) for one in made]
        elements, row = max(both, default=(0, 1))
        if elements == row:
            return size
        least, most = (size + 1, most) if elements < row else (least, size)
    return 0


def failing(model: Model, shapes: Mapping[str, tuple[int, ...]]) -> set[Node]:
    """The layers of a model with a fault where inputs have these shapes, by name."""
    return _faults(_inferred(model, shapes))


def _inferred(model: Model, shapes: Mapping[str, tuple[int, ...]]) -> Inference:
    given = {}
    for port in model.inputs:
        shape = next((shapes[name] for name in (port.name, *port.names) if name in shapes), None)
        if shape is not None:
            given[port.node] = Fact(port.element, shape)
    return infer_shapes(model, given, tolerant=True)


def _written(inference: Inference) -> Iterator[int]:
    """Sizes that layers with a fault have in their inputs, such as the pattern of a Reshape."""
    for node in inference.failures:
        for value in node.inputs:
            known = None if value is None or value not in inference.facts else inference.facts[value].value
            if known is not None and known.dtype.kind in "iu" and known.size <= _AXES:
                yield from (int(size) for size in known.reshape(-1) if size > 1)


def _chosen(shape: Sequence[Size], scale: tuple[int, int, int], batch: int | None) -> tuple[int, ...]:
    first, others, image = scale
    first = first if batch is None else batch
    return tuple(
        size
        if isinstance(size, int)
        else within(size, image if axis and len(shape) >= _IMAGE else others if axis else first)
        for axis, size in enumerate(shape)
    )


def within(size: Dim, wanted: int) -> int:
    top = high(size)
    return max(1, low(size), wanted if top is None else min(wanted, top))


def what_hides(
    model: Model, shapes: Mapping[str, tuple[int, ...]], facts: Mapping[Value, Fact], is_stated: bool = False
) -> str:
    """Inputs with an open axis of size 1, and the layers that show no fault then; "" if every axis can show one.

    Args:
        model: the model, with the shapes that it declares.
        shapes: the shapes of a run by names of inputs.
        facts: facts of the values with these shapes.
        is_stated: True if the model declares shapes that the user gave it; each axis counts as open then.
    """
    declared = {port.name: None if is_stated else port.shape for port in model.inputs}
    ones = {name: _open_ones(shape, shapes[name]) for name, shape in declared.items() if name in shapes}
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


def frozen_findings(model: ModelGraph, inference: Inference) -> Iterator[Finding]:
    """Layers that take one size only of an axis that an input leaves open; none in a model with faults."""
    if not inference.failures and not model.problems:
        for one in frozen_axes(Model.of(model)):
            yield one.layer.finding(codes.FROZEN_AXIS, f"the input {one}")


@dataclass(frozen=True)
class FrozenAxis:
    """An open axis of an input, for which only one size was found, or some beside each other.

    Attributes:
        port: the input.
        axis: of the input.
        sizes: the smallest and the largest of them.
        layer: the first layer that does not take another size.
        declared: the range that the input declares, where it leaves the size out.
    """

    port: Port
    axis: int
    sizes: tuple[int, int]
    layer: Node
    declared: Size | None = None

    def __str__(self) -> str:
        sizes = " to ".join(map(str, dict.fromkeys(self.sizes)))
        fault = f"takes {sizes} only: {self.layer.type} {self.layer.name!r} is made for it"
        if self.declared is not None:
            return f"{self.port.name!r} declares {self.declared} for axis {self.axis}, but {fault}"
        return f"{self.port.name!r} leaves axis {self.axis} open, but {fault}"


def frozen_axes(model: Model, shapes: Mapping[str, tuple[int, ...]] | None = None) -> list[FrozenAxis]:
    """The open axes for which all layers take one size, or some beside each other, and no other one that is tried.

    Where the declared ranges have no size that all layers take, the size may lie outside of them.

    Args:
        model: the model, with the shapes that it declares.
        shapes: shapes by names of inputs that the model takes; they are looked for unless they are given.
    """
    ports = [port for port in model.inputs if port.shape is not None and not is_static(port.shape)]
    if not ports:
        return []
    if shapes is None:
        shapes = {port.name: port.shape for port in model.inputs if port.shape is not None and is_static(port.shape)}
        choose = sizes_for(model)
        chosen = choose(ports, shapes) or choose([_opened(port) for port in ports], shapes)
        if chosen is None:
            return []
        shapes |= {port.name: shape for port, shape in zip(ports, chosen, strict=True)}
    search = _Frozen(model, shapes)
    return [
        one for port in ports if len(port.shape or ()) == len(shapes.get(port.name, ()))
        for axis, size in enumerate(port.shape or ()) if isinstance(size, Dim)
        if (one := search.frozen(port, axis, size)) is not None
    ]  # fmt: skip


def _opened(port: Port) -> Port:
    """An input that takes any size along each axis that it leaves open."""
    return replace(port, shape=tuple(one if isinstance(one, int) else ANY for one in port.shape or ()))


class _Frozen:
    """The search for other sizes of axes.

    Args:
        model: the model.
        shapes: shapes by names of inputs that it takes.
    """

    def __init__(self, model: Model, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._model, self._shapes, self._before = model, shapes, failing(model, shapes)
        self._known: dict[tuple[tuple[int, ...], ...], set[Node]] = {}

    def frozen(self, port: Port, axis: int, size: Dim) -> FrozenAxis | None:
        """The axis with its few sizes; None if there are others that all layers take."""
        own = self._shapes[port.name][axis]
        layer: Node | None = None
        # Tokens and their mask change together; the height and width of an image need not.
        equal = [
            (one.name, i) for one in self._model.inputs for i, dim in enumerate(one.shape or ())
            if isinstance(dim, Dim) and self._shapes.get(one.name, ())[i : i + 1] == (own,) and bool(i) is bool(axis)
        ]  # fmt: skip

        def refuses(other: int) -> bool:
            nonlocal layer
            faults = self._faults(equal, other)
            if not faults or not self._faults([(port.name, axis)], other):
                return False
            in_order = chain(topological(self._model)[0], self._model.walk())
            layer = layer or next(node for node in in_order if node in faults)
            return True

        others = dict.fromkeys(within(size, wanted) for wanted in (2 * own, 3 * own, own // 2))
        if not all(other == own or refuses(other) for other in others):
            return None
        ends = [own, own]
        # A stride leaves some sizes beside each other the same.
        for end, step in enumerate((-1, 1)):
            while ends[1] - ends[0] < _BESIDE and within(size, ends[end] + step) == ends[end] + step:
                if refuses(ends[end] + step):
                    break
                ends[end] += step
        is_declared = low(size) <= own <= (high(size) or own)
        if layer is None or ends[1] - ends[0] >= _BESIDE:
            return None
        return FrozenAxis(port, axis, (ends[0], ends[1]), layer, None if is_declared else size)

    def _faults(self, axes: Sequence[tuple[str, int]], size: int) -> set[Node]:
        """The layers that do not take another size of some axes."""
        changed = {name: list(shape) for name, shape in self._shapes.items()}
        for name, axis in axes:
            changed[name][axis] = size
        shapes = {name: tuple(shape) for name, shape in changed.items()}
        key = tuple(shapes.values())
        if key not in self._known:
            self._known[key] = failing(self._model, shapes) - self._before
        return self._known[key]
