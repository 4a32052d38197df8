"""Parts that operations of one family share: recurrent cells, prior boxes, element-wise operations.

Attributes of recurrent cells and of the sequences that run a cell over time; kernels, shape rules and fast kernels
share them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from irexec.dtypes.elements import BOOLEAN, Element
from irexec.ir.facts import Fact
from irexec.schema.attributes import Floats, Positive
from irexec.schema.opdef import NUMERIC, ElementSet
from irexec.schema.registry import op
from irexec.schema.shape_rules import Broadcasting, broadcast, pdpd_start, unify_elements

Names = tuple[str, ...]
Direction = Literal["forward", "reverse", "bidirectional"]

LSTM_ACTIVATIONS: Names = ("sigmoid", "tanh", "tanh")
GRU_ACTIVATIONS: Names = ("sigmoid", "tanh")
RNN_ACTIVATIONS: Names = ("tanh",)


@dataclass(frozen=True, kw_only=True)
class CellAttributes:
    """RNNCell, and the attributes of every cell; alpha and beta are the parameters of the activations, in their order.

    The default activations are written out, as OpenVINO refuses an empty list.
    """

    hidden_size: Positive
    activations: Names = RNN_ACTIVATIONS
    activations_alpha: Floats = ()
    activations_beta: Floats = ()
    clip: float = 0.0


@dataclass(frozen=True, kw_only=True)
class LSTMCellAttributes(CellAttributes):
    """LSTMCell-4."""

    activations: Names = LSTM_ACTIVATIONS


@dataclass(frozen=True, kw_only=True)
class LSTMCell1Attributes(LSTMCellAttributes):
    """LSTMCell-1: ``input_forget`` couples the input gate to the forget gate."""

    input_forget: bool = False
    weights_format: Literal["fico", "ifco", "icof", "ifoc", "iofc"] = "fico"


@dataclass(frozen=True, kw_only=True)
class GRUCellAttributes(CellAttributes):
    """GRUCell: with ``linear_before_reset`` the reset gate is applied after the product with R, which has a bias of its
    own."""

    activations: Names = GRU_ACTIVATIONS
    linear_before_reset: bool = False

    @property
    def bias_count(self) -> int:
        """The number of biases of each hidden unit."""
        return 4 if self.linear_before_reset else 3


@dataclass(frozen=True, kw_only=True)
class SequenceAttributes(CellAttributes):
    """RNNSequence, and the attributes of every sequence."""

    direction: Direction

    @property
    def reversed_directions(self) -> tuple[bool, ...]:
        """Whether each direction reads the sequences backwards."""
        return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[self.direction]


@dataclass(frozen=True, kw_only=True)
class LSTMSequenceAttributes(SequenceAttributes):
    """LSTMSequence."""

    activations: Names = LSTM_ACTIVATIONS


@dataclass(frozen=True, kw_only=True)
class GRUSequenceAttributes(SequenceAttributes, GRUCellAttributes):
    """GRUSequence."""

    activations: Names = GRU_ACTIVATIONS


def sequence_of(cell: CellAttributes, direction: Direction) -> SequenceAttributes | None:
    """The attributes of the sequence that runs a cell of these attributes; None for a cell that no sequence has."""
    if isinstance(cell, LSTMCell1Attributes) and cell.input_forget:
        return None
    shared = {field.name: getattr(cell, field.name) for field in dataclasses.fields(CellAttributes)}
    if isinstance(cell, GRUCellAttributes):
        return GRUSequenceAttributes(**shared, linear_before_reset=cell.linear_before_reset, direction=direction)
    return SequenceAttributes(**shared, direction=direction)


@dataclass(frozen=True, kw_only=True)
class PriorBoxAttributes:
    """Attributes of version 1."""

    min_size: Floats = ()
    max_size: Floats = ()
    aspect_ratio: Floats = ()
    flip: bool = False
    clip: bool = False
    step: float = 0.0
    offset: float
    variance: Floats = ()
    scale_all_sizes: bool = True
    fixed_ratio: Floats = ()
    fixed_size: Floats = ()
    density: Floats = ()

    @property
    def max_first(self) -> bool:
        """Whether the box of sqrt(min * max) stands before those of the ratios."""
        return True


@dataclass(frozen=True, kw_only=True)
class PriorBox8Attributes(PriorBoxAttributes):
    """Attributes of version 8."""

    min_max_aspect_ratios_order: bool = True

    @property
    def max_first(self) -> bool:
        """Whether the box of sqrt(min * max) stands before those of the ratios."""
        return self.min_max_aspect_ratios_order


@dataclass(frozen=True, kw_only=True)
class PriorBoxClusteredAttributes:
    """Attributes of PriorBoxClustered."""

    width: Floats = (1.0,)
    height: Floats = (1.0,)
    clip: bool = True
    step: float = 0.0
    step_w: float = 0.0
    step_h: float = 0.0
    offset: float
    variance: Floats = ()


class CellBox(NamedTuple):
    """A box of every cell, in pixels.

    Attributes:
        back, forward: subtracted from the centre of the cell, then added to it, along both axes.
        column, row: added to the centre, along x and y.
        half_width, half_height: of the box.
        clipped: whether it is clipped at the borders of the image.
    """

    back: float
    forward: float
    column: float
    row: float
    half_width: float
    half_height: float
    clipped: bool


def ratios_of(aspect_ratio: Sequence[float], flip: bool) -> list[np.float32]:
    """1 and the other ratios without repetition, each followed by its inverse with ``flip``."""
    found = [np.float32(1)]
    for ratio in map(np.float32, aspect_ratio):
        if all(abs(float(ratio - other)) >= 1e-6 for other in found):
            found += [ratio, 1 / ratio] if flip else [ratio]
    return found


def fixed_boxes(attributes: PriorBoxAttributes) -> list[CellBox]:
    """The boxes of fixed sizes; a size, half of it and a shift are truncated, as in the reference. The plugin halves
    exactly."""
    half = np.float32(0.5)
    boxes: list[CellBox] = []
    for size, density in zip(map(np.float32, attributes.fixed_size), map(int, attributes.density), strict=False):
        whole, shift = int(size), int(size / np.float32(density))
        ratios = attributes.fixed_ratio or ratios_of(attributes.aspect_ratio, attributes.flip)[1:]
        roots = [np.sqrt(np.float32(ratio)) for ratio in ratios]
        shapes = [(float(size * half * root), float(size * half / root)) for root in roots]
        if not attributes.fixed_ratio:
            shapes.insert(0, (whole / 2, whole / 2))
        shifts = [(column * shift, row * shift) for row in range(density) for column in range(density)]
        boxes += [CellBox(whole // 2, shift / 2, *moved, *shape, True) for shape in shapes for moved in shifts]
    return boxes


def centred_boxes(min_sizes: Sequence[float], attributes: PriorBoxAttributes) -> list[CellBox]:
    """The boxes of ``min_sizes``, in pixels, in the centre of the cell."""
    half, shapes, scale_all = np.float32(0.5), [], attributes.scale_all_sizes
    ratios = ratios_of(attributes.aspect_ratio, attributes.flip)[1:]
    for i, size in enumerate(map(np.float32, min_sizes)):
        larger = [np.sqrt(size * np.float32(maximum)) * half for maximum in attributes.max_size[i : i + 1] if scale_all]
        with_ratios = scale_all or i == len(min_sizes) - 1
        side = (size if scale_all else np.float32(min_sizes[0])) * half
        squares = [(side, side) for side in larger]
        others = [(side * np.sqrt(ratio), side / np.sqrt(ratio)) for ratio in ratios if with_ratios]
        shapes += [(size * half, size * half), *(squares + others if attributes.max_first else others + squares)]
    return [CellBox(0, 0, 0, 0, float(width), float(height), False) for width, height in shapes]


def unchanged(data: Fact) -> Fact:
    """The shape rule where the result has the element type and the shape of ``data``."""
    return Fact(data.element, data.shape)


def tested(data: Fact) -> Fact:
    """The shape rule where the result says of each element of ``data`` whether something holds."""
    return Fact(BOOLEAN, data.shape)


def align(a: np.ndarray, b: np.ndarray, mode: str, axis: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The two arrays reshaped so that NumPy's broadcasting does what ``auto_broadcast`` and its axis ask."""
    if mode != "pdpd" or b.ndim == 0:
        return a, b
    start = pdpd_start(a.ndim, b.ndim, axis)
    sizes = b.shape[: a.ndim - start]
    return a, b.reshape(sizes + (1,) * (a.ndim - start - len(sizes)))


def alignment(attributes: Mapping[str, Any]) -> tuple[str, int | None]:
    """``auto_broadcast`` and the axis of pdpd among the attributes of a layer: the last arguments of ``align``."""
    return attributes.get("auto_broadcast", "numpy"), attributes.get("auto_broadcast_axis")


def define(
    type: str,
    since: int,
    function: Callable[..., Any],
    doc: str,
    *,
    elements: ElementSet = NUMERIC,
    result: Element | None = None,
    **flags: Any,
) -> None:
    """Register version ``since`` of operation ``type``: ``function`` of two broadcast tensors.

    Args:
        doc: the first sentence of the docstring.
        elements: the element types of the inputs, which must be the same.
        result: the element type of the result; None for the type of the inputs.
    """

    def kernel(
        a: np.ndarray, b: np.ndarray, *, auto_broadcast: Broadcasting = "numpy", auto_broadcast_axis: int | None = None
    ) -> np.ndarray:
        a, b = align(a, b, auto_broadcast, auto_broadcast_axis)
        return np.asarray(function(a, b))

    kernel.__doc__ = f"{doc} Source: {type}-{since}."
    kernel.__annotations__ |= dict.fromkeys(("a", "b"), Annotated[np.ndarray, elements])
    definition = op(type, since, **flags)(kernel)

    @definition.shape_rule
    def shape_rule(a: Fact, b: Fact, *, auto_broadcast: Broadcasting, auto_broadcast_axis: int | None) -> Fact:
        shared = unify_elements(a, b)
        return Fact(result or shared, broadcast([a.shape, b.shape], auto_broadcast, auto_broadcast_axis))
