"""The windows of convolution and pooling, and their padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from irexec.errors import OpError
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
