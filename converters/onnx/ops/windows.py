"""What convolution and pooling share: windows and their padding. It translates no operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from irexec.errors import OpError

_AUTO_PADS = {"NOTSET": "explicit", "": "explicit", "SAME_UPPER": "same_upper", "SAME_LOWER": "same_lower", "VALID": "valid"}


def one_each(numbers: Sequence[int] | None, rank: int, default: int, what: str) -> list[int]:
    """One number for each spatial axis: those given, or the default."""
    found = list(numbers) if numbers else [default] * rank
    if len(found) != rank:
        raise OpError(f"{what} has {len(found)} numbers, expected {rank}")
    return found


@dataclass(frozen=True)
class Windows:
    """Windows over the spatial axes, one number of each list for each axis.

    Attributes:
        auto_pad: as IR spells it; begins and ends count only where it is explicit.
    """

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    begins: list[int]
    ends: list[int]
    auto_pad: str

    @staticmethod
    def of(
        kernel: Sequence[int], strides: Sequence[int] | None, dilations: Sequence[int] | None, pads: Sequence[int] | None, auto_pad: str
    ) -> Windows:
        """From ONNX attributes.

        Raises:
            OpError: a list is of the wrong length, or auto_pad has no such value.
        """
        if auto_pad not in _AUTO_PADS:
            raise OpError(f"auto_pad is {auto_pad!r}, expected {', '.join(filter(None, _AUTO_PADS))}")
        rank, mode = len(kernel), _AUTO_PADS[auto_pad]
        both = one_each(pads, 2 * rank, 0, "pads")
        if mode == "valid":
            both = [0] * (2 * rank)
        steps, apart = one_each(strides, rank, 1, "strides"), one_each(dilations, rank, 1, "dilations")
        return Windows(list(kernel), steps, apart, both[:rank], both[rank:], mode)

    @property
    def reaches(self) -> list[int]:
        """How far a window reaches along each axis."""
        return [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]

    @property
    def is_padded(self) -> bool:
        return any(self.begins) or any(self.ends)

    def attributes(self) -> dict[str, Any]:
        """As IR's convolutions and pooling take them."""
        return {
            "strides": self.strides, "dilations": self.dilations, "pads_begin": self.begins, "pads_end": self.ends,
            "auto_pad": self.auto_pad,
        }  # fmt: skip

    def explicit(self, sizes: Sequence[int]) -> Windows:
        """With the padding in numbers: same_* gives ceil(size / stride) windows, the odd pad at the end for same_upper."""
        if not self.auto_pad.startswith("same"):
            return replace(self, auto_pad="explicit")
        begins, ends = [], []
        for size, stride, reach in zip(sizes, self.strides, self.reaches, strict=True):
            total = max(0, (-(-size // stride) - 1) * stride + reach - size)
            begins.append(total // 2 if self.auto_pad == "same_upper" else total - total // 2)
            ends.append(total - begins[-1])
        return replace(self, begins=begins, ends=ends, auto_pad="explicit")

    def rounded_up(self, sizes: Sequence[int]) -> list[int]:
        """How many windows there are where a window may reach beyond the padding, but not start in that behind the data."""
        counts = []
        for size, stride, reach, begin, end in zip(sizes, self.strides, self.reaches, self.begins, self.ends, strict=True):
            count = -(-(size + begin + end - reach) // stride) + 1
            counts.append(count - 1 if (count - 1) * stride >= size + begin else count)
        return counts
