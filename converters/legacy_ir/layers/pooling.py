"""Pooling: the number of windows is the declared one."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.registry import translates
from converters.legacy_ir.windows import Windows, windows
from irexec.dtypes.elements import F32, I64
from irexec.errors import check
from irexec.ir import legacy_codes
from irexec.ir.graph import Value

Ints = tuple[int, ...]


@translates("Pooling")
def pooling(
    layer: Layer, data: Value, *, pool_method: Literal["max", "avg"] = "max", exclude_pad: bool = False,
    rounding_type: str = "floor",
) -> Value:  # fmt: skip
    """Maximum or mean of each window.

    A mean counts the pixels of the image or, without ``exclude_pad``, those of the padded image: a window that hangs
    over, because the number of windows is rounded up, counts those to the end of the padding (2020.4).
    """
    data = layer.f32(data)
    shape, declared = layer.shape(data), layer.size()
    check(len(shape) in (3, 4, 5), f"the input has rank {len(shape)}, expected 3 to 5")
    check(len(declared) == len(shape), f"the output declares {len(declared)} axes, the input has {len(shape)}")
    given, zeros = windows(layer, len(shape) - 2), (0,) * (len(shape) - 2)
    if pool_method == "avg" and not exclude_pad and _hangs_over(given, shape[2:], declared[2:]):
        data, given, exclude_pad = _padded(layer, data, given), replace(given, pads_begin=zeros, pads_end=zeros), True
        shape = layer.shape(data)
    arguments = _arguments(given, shape[2:], declared[2:])
    if pool_method == "max":
        return layer.emit("MaxPool", data, version=1, **arguments)
    if len(shape) == 5 and not exclude_pad and any((*given.pads_begin, *given.pads_end)):
        layer.note(
            legacy_codes.AGAINST_DESCRIPTION,
            "the engines leave out the padding of a mean of 3 axes; here it is included",
        )
    return layer.emit("AvgPool", data, version=1, exclude_pad=exclude_pad, **arguments)


def _hangs_over(given: Windows, inputs: Ints, outputs: Ints) -> bool:
    """Whether a window ends behind the padding."""
    ends = zip(given.total_pads(inputs, outputs), given.pads_begin, given.pads_end, strict=True)
    return given.auto_pad == "explicit" and any(total > begin + end for total, begin, end in ends)


def _padded(layer: Layer, data: Value, given: Windows) -> Value:
    """The image with its padding."""
    if not any((*given.pads_begin, *given.pads_end)):
        return data
    pads = [layer.constant([0, 0, *side], I64) for side in (given.pads_begin, given.pads_end)]
    return layer.emit("Pad", data, *pads, layer.constant(0.0, F32), version=1, pad_mode="constant")


def _arguments(given: Windows, inputs: Ints, outputs: Ints) -> dict[str, object]:
    """The arguments with which there are as many windows as the file declares."""
    arguments: dict[str, object] = {
        "kernel": given.kernel, "strides": given.strides, "pads_begin": given.pads_begin, "pads_end": given.pads_end,
    }  # fmt: skip
    total = given.total_pads(inputs, outputs)
    if given.auto_pad in ("same_upper", "same_lower"):
        if all(there == -(-here // stride) for here, there, stride in zip(inputs, outputs, given.strides, strict=True)):
            return arguments | {"auto_pad": given.auto_pad}
        begin = tuple(max(0, pads // 2 if given.auto_pad == "same_upper" else -(-pads // 2)) for pads in total)
        return arguments | _pads(replace(given, pads_begin=begin), total)
    for rounding in ("floor", "ceil"):
        if outputs == _counts(given, inputs, ceil=rounding == "ceil"):
            return arguments | {"rounding_type": rounding}
    # Some axes are rounded up and others down, as where a last window would start behind the image: pads at the end are
    # moved instead. A mean that counts them has none here.
    return arguments | _pads(given, total)


def _counts(given: Windows, inputs: Ints, *, ceil: bool) -> Ints:
    rows = zip(inputs, given.pads_begin, given.pads_end, given.kernel, given.strides, strict=True)
    room = [(here + begin + end - kernel, stride) for here, begin, end, kernel, stride in rows]
    return tuple((-(-free // stride) if ceil else free // stride) + 1 for free, stride in room)


def _pads(given: Windows, total: Ints) -> dict[str, object]:
    """Pads with which rounding down gives the declared sizes; pixels at the end may belong to no window."""
    rest = [pads - begin for pads, begin in zip(total, given.pads_begin, strict=True)]
    for left, stride in zip(rest, given.strides, strict=True):
        check(-left < stride, f"the declared sizes leave out the last {-left} pixels of the input")
    return {"pads_begin": given.pads_begin, "pads_end": tuple(max(0, left) for left in rest)}
