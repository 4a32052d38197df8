"""The windows of convolution and pooling, their padding, groups and bias."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.messages import counted

_AUTO_PADS = {"NOTSET": "explicit", "": "explicit", "SAME_UPPER": "same_upper", "SAME_LOWER": "same_lower",
"VALID": "valid"}  # fmt: skip


def broadcast_to_axes(values: Sequence[int] | None, rank: int, default: int, name: str) -> list[int]:
    """One value per spatial axis; the default for every axis unless values are given.

    Raises:
        OpError: the number of values is not the number of axes.
    """
    found = list(values) if values else [default] * rank
    if len(found) != rank:
        raise OpError(f"{name} has {counted(len(found), 'value')}, expected {rank}")
    return found


@dataclass(frozen=True, kw_only=True)
class WindowAttributes:
    """The attributes of convolutions in ONNX."""

    auto_pad: Literal["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", ""] = "NOTSET"
    dilations: list[int] | None = None
    kernel_shape: list[int] | None = None
    pads: list[int] | None = None
    strides: list[int] | None = None


@dataclass(frozen=True, kw_only=True)
class PoolAttributes(WindowAttributes):
    """The attributes of pooling in ONNX."""

    # Without field() the default of the class above would be inherited.
    kernel_shape: list[int] = field()
    ceil_mode: int = 0


@dataclass(frozen=True)
class Windows:
    """Windows over the spatial axes; each list has one value per axis.

    Attributes:
        auto_pad: as IR spells it; pads_begin and pads_end have an effect only if it is "explicit".
    """

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads_begin: list[int]
    pads_end: list[int]
    auto_pad: str

    @staticmethod
    def of(kernel: Sequence[int], given: WindowAttributes) -> Windows:
        """The windows of ONNX attributes.

        Raises:
            OpError: a list has the wrong length, or a stride or dilation is not positive.
        """
        rank, mode = len(kernel), _AUTO_PADS[given.auto_pad]
        both = broadcast_to_axes(given.pads, 2 * rank, 0, "pads")
        if mode == "valid":
            both = [0] * (2 * rank)
        strides = broadcast_to_axes(given.strides, rank, 1, "strides")
        dilations = broadcast_to_axes(given.dilations, rank, 1, "dilations")
        for name, values in (("strides", strides), ("dilations", dilations)):
            if any(value < 1 for value in values):
                raise OpError(f"{name} is {values}, expected positive numbers")
        return Windows(list(kernel), strides, dilations, both[:rank], both[rank:], mode)

    @property
    def effective_kernel(self) -> list[int]:
        """The size of a dilated window along each axis."""
        return [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]

    @property
    def is_padded(self) -> bool:
        return any(self.pads_begin) or any(self.pads_end)

    def attributes(self) -> dict[str, Any]:
        """The attributes of IR's convolutions and pooling."""
        return {
            "strides": self.strides, "dilations": self.dilations, "pads_begin": self.pads_begin,
            "pads_end": self.pads_end, "auto_pad": self.auto_pad,
        }  # fmt: skip


def conv_windows(ctx: TranslationContext, w: Value, given: WindowAttributes) -> Windows:
    """The windows of a convolution. An unknown size of the weights is 1 in ``kernel``.

    Raises:
        OpError: kernel_shape contradicts the weights, or the weights have no spatial axes.
    """
    sizes = ctx.sizes(w, "the weights")
    if len(sizes) < 3:
        raise OpError(f"the weights {ctx.fact(w)} have no spatial axes")
    kernel_shape = given.kernel_shape
    if kernel_shape and any(
        isinstance(size, int) and size != k for size, k in zip(sizes[2:], kernel_shape, strict=False)
    ):
        raise OpError(f"kernel_shape is {list(kernel_shape)}, the weights are {ctx.fact(w)}")
    kernel = kernel_shape or [size if isinstance(size, int) else 1 for size in sizes[2:]]
    return Windows.of(broadcast_to_axes(kernel, len(sizes) - 2, 1, "kernel_shape"), given)


def grouped_weights(ctx: TranslationContext, w: Value, group: int, *, transposed: bool) -> Value:
    """Weights with a leading axis of groups: (G, M/G, C/G, ...), or (G, C/G, M/G, ...) if transposed."""
    first, *rest = ctx.sizes(w, "the weights")
    if group < 1 or (isinstance(first, int) and first % group):
        raise OpError(f"{first} {'input' if transposed else 'output'} channels cannot be split into {group} groups")
    known = ctx.shape_if_known(w)
    if known is not None:
        return ctx.reshape(w, [group, known[0] // group, *known[1:]])
    inner = ctx.emit("Slice", ctx.emit("ShapeOf", w, output_type="i64"), [1], [1 + len(rest)], [1])
    return ctx.emit("Reshape", w, ctx.emit("Concat", [group, -1], inner, axis=0), special_zero=False)


def add_bias(ctx: TranslationContext, y: Value, bias: Value | None, rank: int) -> Value:
    """Data of this rank plus one value per channel."""
    return y if bias is None else ctx.added(y, ctx.along_channels(bias, rank))


def convolve(ctx: TranslationContext, x: Value, w: Value, group: int, windows: Windows) -> Value:
    """Convolution, or GroupConvolution if there are several groups."""
    if group == 1:
        return ctx.emit("Convolution", x, w, **windows.attributes())
    return ctx.emit("GroupConvolution", x, grouped_weights(ctx, w, group, transposed=False), **windows.attributes())


def causal_convolution(
    ctx: TranslationContext, x: Value, w: Value, bias: Value | None, past: Value | None, activation: str,
    dilation: int = 1,
) -> tuple[Value, Value, Value, Expression]:  # fmt: skip
    """A depthwise convolution of (batch, channels, time) after the past state, or zeros.

    Returns:
        The result, the last values as the new state, the data after the state, and the length of the state, (1).
    """
    length = ((Expression(ctx, ctx.size(w, 2)) - 1) * dilation).unsqueeze(0).settled()
    if past is not None:
        padded = ctx.emit("Concat", past, x, axis=2)
    else:
        begins = Expression(ctx, ctx.emit("Concat", [0, 0], length.value, axis=0)).settled()
        padded = ctx.emit("Pad", x, begins.value, [0, 0, 0], ctx.constant(0, x), pad_mode="constant")
    windows = Windows.of([1], WindowAttributes(dilations=[dilation]))
    y = add_bias(ctx, ctx.emit("GroupConvolution", padded, ctx.unsqueeze(w, [1]), **windows.attributes()), bias, 3)
    total = Expression(ctx, ctx.size(padded, 2)).unsqueeze(0)
    state = ctx.slice(padded, (total - length).value, total.value, 2)
    return y if activation == "none" else ctx.emit("Swish", y), state, padded, length


def on_channels_last(function: Callable[..., Any], *moved: int) -> Callable[..., Any]:
    """The translator between transpositions: the inputs at these indices and the first output are channels last."""

    def translate(ctx: TranslationContext, *inputs: Value | None, **attributes: Any) -> Any:
        given = [ctx.channels_first(x) if x is not None and i in moved else x for i, x in enumerate(inputs)]
        result = function(ctx, *given, **attributes)
        if isinstance(result, tuple):
            return (ctx.channels_last(result[0]), *result[1:])
        return ctx.channels_last(result)

    return translate
