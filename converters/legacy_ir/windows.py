"""Windows of convolution and pooling: kernel, strides, pads and dilations, in the forms of all versions.

From version 3 on they are lists whose first number is that of the outermost axis; version 2 has ``kernel-x`` and
``kernel-y``, of which x is the last axis.
"""

from __future__ import annotations

from dataclasses import dataclass

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.objections import WrongAttributeError
from converters.legacy_ir.registry import parsed
from irexec.ir import legacy_codes

Ints = tuple[int, ...]


@dataclass(frozen=True)
class Windows:
    """The windows of a layer, by spatial axis.

    Attributes:
        kernel, strides, pads_begin, pads_end, dilations: one entry for each spatial axis.
        auto_pad: "explicit", "same_upper", "same_lower" or "valid".
    """

    kernel: Ints
    strides: Ints
    pads_begin: Ints
    pads_end: Ints
    dilations: Ints
    auto_pad: str

    @property
    def extent(self) -> Ints:
        """The sizes of a window, gaps of the dilation included."""
        return tuple((kernel - 1) * dilation + 1 for kernel, dilation in zip(self.kernel, self.dilations, strict=True))

    def total_pads(self, inputs: Ints, outputs: Ints) -> Ints:
        """Sum of the pads at both ends with which windows over ``inputs`` are as many as ``outputs``."""
        rows = zip(inputs, outputs, self.strides, self.extent, strict=True)
        return tuple((there - 1) * stride + extent - here for here, there, stride, extent in rows)

    @property
    def explicit(self) -> dict[str, Ints]:
        """The arguments of an operation without its kernel and ``auto_pad``."""
        return {
            "strides": self.strides, "pads_begin": self.pads_begin, "pads_end": self.pads_end,
            "dilations": self.dilations,
        }  # fmt: skip


def windows(layer: Layer, rank: int) -> Windows:
    """The windows of a layer with ``rank`` spatial axes; raises WrongAttributeError for a missing or wrong list."""
    kernel = _list(layer, "kernel", rank, None)
    begin = _list(layer, "pads_begin", rank, (0,) * rank, ("pad_x", "pad_y"))
    end = _list(layer, "pads_end", rank, begin, ("pad_r", "pad_b"))
    auto_pad = layer.attributes.get("auto_pad", "") or "explicit"
    if "auto_pad" in layer.attributes and auto_pad == "explicit":
        text = (
            "the engines take an auto_pad that is empty or explicit for same_upper, or refuse it; here the pads count"
        )
        layer.note(legacy_codes.AGAINST_DESCRIPTION, text)
    if auto_pad not in ("explicit", "same_upper", "same_lower", "valid"):
        raise WrongAttributeError(f"auto_pad {auto_pad!r} is not same_upper, same_lower or valid")
    if auto_pad == "valid":
        begin = end = (0,) * rank
    strides = _list(layer, "strides", rank, (1,) * rank, ("stride_x", "stride_y"))
    dilations = _list(layer, "dilations", rank, (1,) * rank, ("dilation_x", "dilation_y"))
    return Windows(kernel, strides, begin, end, dilations, auto_pad)


def _list(layer: Layer, name: str, rank: int, default: Ints | None, old: tuple[str, str] | None = None) -> Ints:
    """A list of one number for each axis; ``old`` are the names of version 2, that of x first."""
    texts = layer.attributes
    names = old or (f"{name}_x", f"{name}_y")
    if name in texts:
        found = parsed(name, tuple[int, ...], texts[name])
    elif rank == 2 and (names[0] in texts or names[1] in texts):
        before = default or (1, 1)
        # y comes first in a list.
        found = tuple(
            parsed(key, int, texts[key]) if key in texts else number
            for key, number in zip(reversed(names), before, strict=True)
        )
    elif default is None:
        raise WrongAttributeError(f"the attribute {name} is missing")
    else:
        return default
    if len(found) != rank:
        raise WrongAttributeError(f"{name} has {len(found)} numbers, the input {rank} spatial axes")
    return found
