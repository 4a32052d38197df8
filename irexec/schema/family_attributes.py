"""Attributes that kernels, shape rules and exporters share: recurrent cells, rotary embeddings, prior boxes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from irexec.schema.attributes import Floats, NonNegative, Positive

Names = tuple[str, ...]
Direction = Literal["forward", "reverse", "bidirectional"]


@dataclass(frozen=True, kw_only=True)
class CellAttributes:
    """RNNCell, and the attributes of every cell; alpha and beta are the parameters of the activations, in their order.

    The default activations are written out, as OpenVINO refuses an empty list.

    Attributes:
        gates: of the weights.
    """

    gates: ClassVar[int] = 1

    hidden_size: Positive
    activations: Names = ("tanh",)
    activations_alpha: Floats = ()
    activations_beta: Floats = ()
    clip: float = 0.0

    @property
    def bias_count(self) -> int:
        """The number of biases of each hidden unit."""
        return self.gates

    @property
    def default_activations(self) -> Names:
        """The activations of the operation; a cell has as many."""
        return type(self).activations

    @property
    def functions(self) -> Names:
        """The activations, by default those of the operation; further names are left out."""
        return (self.activations or self.default_activations)[: len(self.default_activations)]


@dataclass(frozen=True, kw_only=True)
class LSTMCellAttributes(CellAttributes):
    """LSTMCell-4."""

    gates: ClassVar[int] = 4

    activations: Names = ("sigmoid", "tanh", "tanh")


@dataclass(frozen=True, kw_only=True)
class LSTMCell1Attributes(LSTMCellAttributes):
    """LSTMCell-1: ``input_forget`` couples the input gate to the forget gate."""

    input_forget: bool = False
    weights_format: Literal["fico", "ifco", "icof", "ifoc", "iofc"] = "fico"


@dataclass(frozen=True, kw_only=True)
class GRUCellAttributes(CellAttributes):
    """GRUCell: with ``linear_before_reset`` the reset gate is applied after the product with R, which has a bias of its
    own."""

    gates: ClassVar[int] = 3

    activations: Names = ("sigmoid", "tanh")
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
class LSTMSequenceAttributes(SequenceAttributes, LSTMCellAttributes):
    """LSTMSequence."""

    activations: Names = LSTMCellAttributes.activations


@dataclass(frozen=True, kw_only=True)
class GRUSequenceAttributes(SequenceAttributes, GRUCellAttributes):
    """GRUSequence."""

    activations: Names = GRUCellAttributes.activations


@dataclass(frozen=True, kw_only=True)
class AUGRUSequenceAttributes(GRUSequenceAttributes):
    """AUGRUSequence, which has one direction."""

    direction: Literal["forward"] = "forward"


def sequence_of(cell: CellAttributes, direction: Direction) -> SequenceAttributes | None:
    """The attributes of the sequence that runs a cell of these attributes; None for a cell that no sequence has."""
    if isinstance(cell, LSTMCell1Attributes) and cell.input_forget:
        return None
    shared = {field.name: getattr(cell, field.name) for field in dataclasses.fields(CellAttributes)}
    if isinstance(cell, GRUCellAttributes):
        return GRUSequenceAttributes(**shared, linear_before_reset=cell.linear_before_reset, direction=direction)
    return SequenceAttributes(**shared, direction=direction)


@dataclass(frozen=True, kw_only=True)
class RotaryAttributes:
    """RoPE, under the names that OpenVINO writes."""

    config_slice_start: NonNegative = 0
    config_slice_stop: NonNegative = 0
    config_input_trans0213: bool = False
    config_output_trans0213: bool = False
    config_is_interleaved: bool = False
    config_rotary_ndims: NonNegative = 0
    config_is_chatglm: bool = False
    config_support_2d_rope: bool = False
    config_support_3d_rope: bool = False
    config_is_qwen: bool = False
    config_use_rope_cache: bool = False
    config_is_ltx_video: bool = False
    config_head_cnt: NonNegative = 0
    config_head_size: NonNegative = 0
    config_gather_position_arg_id: NonNegative = 0


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


@dataclass(frozen=True, kw_only=True)
class PriorBox8Attributes(PriorBoxAttributes):
    """Attributes of version 8."""

    min_max_aspect_ratios_order: bool = True


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
    max_first = getattr(attributes, "min_max_aspect_ratios_order", True)
    ratios = ratios_of(attributes.aspect_ratio, attributes.flip)[1:]
    for i, size in enumerate(map(np.float32, min_sizes)):
        larger = [np.sqrt(size * np.float32(maximum)) * half for maximum in attributes.max_size[i : i + 1] if scale_all]
        with_ratios = scale_all or i == len(min_sizes) - 1
        side = (size if scale_all else np.float32(min_sizes[0])) * half
        squares = [(side, side) for side in larger]
        others = [(side * np.sqrt(ratio), side / np.sqrt(ratio)) for ratio in ratios if with_ratios]
        shapes += [(size * half, size * half), *(squares + others if max_first else others + squares)]
    return [CellBox(0, 0, 0, 0, float(width), float(height), False) for width, height in shapes]
