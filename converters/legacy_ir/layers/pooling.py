"""Pooling: the number of windows is the declared one."""

from __future__ import annotations

from typing import Literal

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.registry import translates
from converters.legacy_ir.windows import Windows, windows
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

    A mean counts the pixels of the image or, without ``exclude_pad``, those of the padded image.
    """
    data = layer.f32(data)
    shape, declared = layer.shape(data), layer.size()
    check(len(shape) in (3, 4, 5), f"the input has rank {len(shape)}, expected 3 to 5")
    check(len(declared) == len(shape), f"the output declares {len(declared)} axes, the input has {len(shape)}")
    given = windows(layer, len(shape) - 2)
    arguments = _arguments(given, shape[2:], declared[2:], is_mean=pool_method == "avg" and not exclude_pad)
    if pool_method == "max":
        return layer.emit("MaxPool", data, version=1, **arguments)
    if len(shape) == 5 and not exclude_pad and any((*given.pads_begin, *given.pads_end)):
        layer.note(
            legacy_codes.ENGINE_FAULT, "the engines leave out the padding of a mean of 3 axes; here it is included"
        )
    return layer.emit("AvgPool", data, version=1, exclude_pad=exclude_pad, **arguments)


def _arguments(given: Windows, inputs: Ints, outputs: Ints, *, is_mean: bool) -> dict[str, object]:
    """The arguments with which there are as many windows as the file declares."""
    arguments: dict[str, object] = {
        "kernel": given.kernel, "strides": given.strides, "pads_begin": given.pads_begin, "pads_end": given.pads_end,
    }  # fmt: skip
    total = given.total_pads(inputs, outputs)
    if given.auto_pad in ("same_upper", "same_lower"):
        if all(there == -(-here // stride) for here, there, stride in zip(inputs, outputs, given.strides, strict=True)):
            return arguments | {"auto_pad": given.auto_pad}
        begin = tuple(max(0, pads // 2 if given.auto_pad == "same_upper" else -(-pads // 2)) for pads in total)
        return arguments | _pads(begin, total)
    for rounding in ("floor", "ceil"):
        if outputs == _counts(given, inputs, ceil=rounding == "ceil"):
            return arguments | {"rounding_type": rounding}
    # Some axes are rounded up and others down: pads at the end are moved instead, which a mean over pads would count.
    check(not is_mean, f"no rounding gives the declared sizes {outputs} for the inputs {inputs}")
    return arguments | _pads(given.pads_begin, total)


def _counts(given: Windows, inputs: Ints, *, ceil: bool) -> Ints:
    rows = zip(inputs, given.pads_begin, given.pads_end, given.kernel, given.strides, strict=True)
    room = [(here + begin + end - kernel, stride) for here, begin, end, kernel, stride in rows]
    return tuple((-(-free // stride) if ceil else free // stride) + 1 for free, stride in room)


def _pads(begin: Ints, total: Ints) -> dict[str, object]:
    rest = tuple(pads - first for pads, first in zip(total, begin, strict=True))
    check(min(rest) >= 0, f"the declared sizes leave out the last {-min(rest)} pixels of the input")
    return {"pads_begin": begin, "pads_end": rest}
