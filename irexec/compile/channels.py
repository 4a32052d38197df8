"""Products with constant weights, and element-wise neighbours written as a scale and a shift of each channel."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from irexec.backend.compressed import CompressedSource
from irexec.compile.graph import CompileValue, Operation
from irexec.dtypes.elements import F32, F64


@dataclass(frozen=True)
class Channels:
    """The channels of a tensor next to a product, and where they are in the weights.

    Attributes:
        axis: of the tensor.
        rank: of the tensor.
        count: their number.
        weights_shape: the shape in which a vector of them broadcasts to the weights.
    """

    axis: int
    rank: int
    count: int
    weights_shape: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in which a vector of them broadcasts to the tensor."""
        return tuple(self.count if axis == self.axis else 1 for axis in range(self.rank))


@dataclass(frozen=True)
class Product:
    """A convolution or MatMul with constant weights.

    Attributes:
        data, weights: indexes of the inputs.
        outputs: the channels of the result.
        inputs: the channels of the data, for convolutions.
        takes_shift: whether a shift of the data is the same shift of every element of the result, which padding
            prevents.
    """

    operation: Operation
    data: int
    weights: int
    outputs: Channels
    inputs: Channels | None = None
    takes_shift: bool = False


def product_of(operation: Operation) -> Product | str | None:
    """The product that an operation is; why its weights cannot be changed; None if it is not a product."""
    make = _PRODUCTS.get(operation.type)
    if make is None or operation.chain is not None:
        return None
    shapes = [value.fact.shape for value in operation.inputs[:2]]
    if None in shapes or operation.output.fact.shape is None:
        return "a rank is not known"
    product = make(operation)
    if product is None:
        return "its weights are not constants"
    weights = operation.inputs[product.weights]
    if weights.fact.element not in (F32, F64):
        return f"weights of {weights.fact.element} would be rounded again"
    if isinstance(weights.constant, CompressedSource):
        return "its weights stay compressed"
    if len(weights.uses) > 1:
        return "its weights are read elsewhere too"
    return product


def _weights_of(operation: Operation, index: int = 1) -> tuple[int, ...] | None:
    value = operation.inputs[index]
    return None if value.constant is None or not value.fact.is_static else value.fact.static_shape


def _convolution(operation: Operation) -> Product | None:
    shape, layout = _weights_of(operation), _LAYOUTS[operation.type]
    if shape is None:
        return None

    def channels(letter: str) -> Channels:
        sizes = [size if name in ("g", letter) else 1 for name, size in zip(layout, shape, strict=False)]
        ones = (1,) * (len(shape) - len(layout))
        return Channels(1, len(shape) - ("g" in layout), math.prod(sizes), (*sizes, *ones))

    # Windows of a transposed convolution overlap, so that a shift of the data would not be the same everywhere.
    takes_shift = layout.endswith("oi") and _is_unpadded(operation)
    return Product(operation, 0, 1, channels("o"), channels("i"), takes_shift)


def _is_unpadded(operation: Operation) -> bool:
    attributes = operation.attributes["attributes"]
    explicit = attributes.auto_pad == "explicit" and not any((*attributes.pads_begin, *attributes.pads_end))
    return explicit or attributes.auto_pad == "valid"


def _matmul(operation: Operation) -> Product | None:
    """The features of the weights are the columns of the result, or its rows where the weights are on the left."""
    rank, ranks = operation.output.fact.rank or 0, [value.fact.rank or 0 for value in operation.inputs]
    right = operation.inputs[1].constant is not None
    shape = _weights_of(operation, int(right))
    if shape is None or min(ranks[int(right)], rank) < 2 or (not right and ranks[1] < 2):
        return None
    transposed = operation.attributes["transpose_b" if right else "transpose_a"]
    along = len(shape) - (1 if right != transposed else 2)
    vector = tuple(size if axis == along else 1 for axis, size in enumerate(shape))
    return Product(
        operation, 1 - int(right), int(right), Channels(rank - (1 if right else 2), rank, shape[along], vector)
    )


_LAYOUTS = {
    "Convolution": "oi",
    "GroupConvolution": "goi",
    "ConvolutionBackpropData": "io",
    "GroupConvolutionBackpropData": "gio",
}
"""The axes of weights before those of the kernel: groups, outputs and inputs."""

_PRODUCTS: Mapping[str, Callable[[Operation], Product | None]] = dict.fromkeys(_LAYOUTS, _convolution) | {
    "MatMul": _matmul
}

_LARGE = 2.0**40


@dataclass(frozen=True)
class Affine:
    """``scale * x + shift`` for each channel, in f64."""

    scale: np.ndarray
    shift: np.ndarray

    @staticmethod
    def identity(channels: Channels) -> Affine:
        """Scale 1 and shift 0."""
        return Affine(np.ones(channels.count), np.zeros(channels.count))

    def after(self, first: Affine) -> Affine:
        """This applied to the result of ``first``."""
        return Affine(self.scale * first.scale, self.scale * first.shift + self.shift)

    @property
    def is_moderate(self) -> bool:
        """Whether weights and sums in f32 can take it without overflow and without becoming subnormal."""
        scale, shift = np.abs(self.scale), np.abs(self.shift)
        return bool(((scale < _LARGE) & ((scale > 1 / _LARGE) | (scale == 0)) & (shift < _LARGE)).all())


def affine_of(operation: Operation, channels: Channels) -> tuple[CompileValue, Affine] | None:
    """The data of an operation that scales and shifts each channel, with scale and shift; None for others."""
    if operation.chain is not None:
        return None
    found = (
        _batch_norm(operation, channels) if operation.type == "BatchNormInference" else _arithmetic(operation, channels)
    )
    if found is None:
        return None
    data, shape = found[0].fact, found[0].fact.shape
    fits = shape is not None and len(shape) == channels.rank and shape[channels.axis] == channels.count
    return found if fits and data.element is operation.output.fact.element else None


def _arithmetic(operation: Operation, channels: Channels) -> tuple[CompileValue, Affine] | None:
    if operation.type not in _ARITHMETIC or operation.attributes.get("auto_broadcast", "numpy") != "numpy":
        return None
    for side in (1, 0):
        constant = _vector(operation.inputs[side], channels)
        if constant is not None:
            found = _ARITHMETIC[operation.type](constant, side)
            return None if found is None else (operation.inputs[1 - side], found)
    return None


def _vector(value: CompileValue, channels: Channels) -> np.ndarray | None:
    """The values of a constant that has one for each channel, or one for all."""
    known, shape = value.known, value.fact.shape or ()
    if value.constant is None or known is None or len(shape) > channels.rank or value.fact.element not in (F32, F64):
        return None
    whole = (1,) * (channels.rank - len(shape)) + tuple(shape)
    if any(size != 1 and (axis != channels.axis or size != channels.count) for axis, size in enumerate(whole)):
        return None
    return np.broadcast_to(known.reshape(-1).astype(np.float64), channels.count)


def _batch_norm(operation: Operation, channels: Channels) -> tuple[CompileValue, Affine] | None:
    inputs = operation.inputs
    if operation.definition is None or channels.axis != 1:
        return None
    data = inputs[0] if operation.definition.since == 5 else inputs[2]
    vectors = [_known_vector(value, channels.count) for value in inputs if value is not data]
    if len(vectors) != 4:
        return None
    gamma, beta, mean, variance = vectors
    if gamma is None or beta is None or mean is None or variance is None:
        return None
    scale = gamma / np.sqrt(variance + operation.attributes["epsilon"])
    return data, Affine(scale, beta - mean * scale)


def _known_vector(value: CompileValue, count: int) -> np.ndarray | None:
    known = value.known
    if value.constant is None or known is None or value.fact.element not in (F32, F64) or known.size != count:
        return None
    return known.reshape(-1).astype(np.float64)


_ARITHMETIC: dict[str, Callable[[np.ndarray, int], Affine | None]] = {
    "Multiply": lambda c, side: Affine(c, np.zeros_like(c)),
    "Divide": lambda c, side: Affine(1 / c, np.zeros_like(c)) if side == 1 else None,
    "Add": lambda c, side: Affine(np.ones_like(c), c),
    "Subtract": lambda c, side: Affine(np.ones_like(c), -c) if side == 1 else Affine(-np.ones_like(c), c),
}


def scaled(weights: np.ndarray, scale: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The weights with each channel scaled in f64 and rounded once."""
    result = np.empty_like(weights)
    np.multiply(weights, scale.reshape(shape), out=result, casting="same_kind")
    return result
