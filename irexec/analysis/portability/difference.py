"""The declaration of a difference between implementations: its code, its texts and the layers that have it, and
conditions on their shapes.

    @difference("IR913", "saturated sums of bytes", ("ReduceSum",), "CPU plugin", "values", does=..., ...)
    def _saturated(layer: Layer) -> bool:
        return layer.is_of_bytes()

The declarations were measured: tests/analysis/test_portability.py has a model for each and, with ``--oracle``, asks
OpenVINO.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from irexec.errors import OpError
from irexec.ir import codes
from irexec.ir.dims import Size, high, low
from irexec.ir.order import in_front
from irexec.schema.shape_rules import pdpd_start

if TYPE_CHECKING:
    from irexec.analysis.portability.layer import ExaminedLayer
    from irexec.ir.constants import Constant
    from irexec.ir.graph import Value


NOT_MOVED = frozenset({"u1", "u2", "u3", "u6", "nf4", "f4e2m1"})
"""The element types. u4 and i4 are moved right."""

MOVES = (
    "Gather", "GatherElements", "GatherND", "Slice", "StridedSlice", "Concat", "Split", "VariadicSplit", "Tile",
    "Broadcast", "Pad", "Roll", "DepthToSpace",
)  # fmt: skip
"""The operations, measured with OpenVINO 2026.4. Transpose, Reshape, Unsqueeze and ScatterUpdate are right."""


def may_be(size: Size, value: int) -> bool:
    """Whether a size may have this value."""
    top = high(size)
    return low(size) <= value and (top is None or value <= top)


def is_aligned_at_the_start(layer: ExaminedLayer) -> bool:
    """True if pdpd aligns axes of the second operand, one of them of a size above 1, before the last ones of the
    first."""
    first, second = layer.shape(0), layer.shape(1)
    if layer["auto_broadcast"] != "pdpd" or first is None or second is None:
        return False
    is_before_the_end = pdpd_start(len(first), len(second), layer["auto_broadcast_axis"]) < len(first) - len(second)
    return is_before_the_end and any(size != 1 for size in second)


def aligned_at_the_end(layer: ExaminedLayer) -> bool:
    """Whether the shapes of the two operands fit also with their last axes aligned, as NumPy has it."""
    first, second = layer.shape(0) or (), layer.shape(1) or ()
    pairs = zip(reversed(first), reversed(second), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def windows_beside(layer: ExaminedLayer, *, padded: bool = False) -> bool:
    """True if a window of pooling lies entirely beside the data; False where the shape of the data is not known.

    Args:
        layer: the pooling.
        padded: take the padding as part of the data.
    """
    shape, attributes = layer.shape(), layer.attributes
    if shape is None or attributes is None or len(shape) < 3:
        return False
    try:
        windows = attributes.windows(shape[2:])
    except OpError:
        return False
    begins, sizes = windows.pads_begin, shape[2:]
    if padded:
        sizes = tuple(map(sum, zip(begins, sizes, windows.pads_end, strict=True)))
        begins = (0,) * len(sizes)
    axes = zip(sizes, windows.kernel, windows.strides, windows.dilations, begins, windows.counts, strict=True)
    return any(_lies_beside(*axis) for axis in axes)


def _lies_beside(size: int, kernel: int, stride: int, dilation: int, begin: int, count: int) -> bool:
    extent = dilation * (kernel - 1) + 1
    starts = [-begin, (count - 1) * stride - begin]
    return starts[0] + extent <= 0 or starts[-1] >= size


def decompressed(weights: Value | None) -> tuple[Constant | None, bool, list[tuple[int, ...]]]:
    """The integers of compressed weights, whether a Reshape joins groups, and the shapes of scales and zero points."""
    is_grouped, shapes = False, []
    while weights is not None and weights.node.type in ("Convert", "Subtract", "Multiply", "Reshape"):
        is_grouped |= weights.node.type == "Reshape"
        other = in_front(
            weights.node.inputs[1] if weights.node.type in ("Subtract", "Multiply") else None, ("Convert",)
        )
        if other is not None and other.node.constant is not None:
            shapes.append(tuple(other.node.constant.shape))
        weights = weights.node.inputs[0]
    return (None if weights is None else weights.node.constant), is_grouped, shapes


Who = Literal["CPU plugin", "constant folding", "shape inference", "reader"]
"""Implementations in OpenVINO: the plugin that runs models on a CPU; the reference kernels, with which constants are
computed; shape inference when a model is read; the reader of an .xml."""

Effect = Literal["values", "undefined values", "fails", "shape"]
"""The results have other values, or values that depend on chance; the model is not read, compiled or run; another shape
is inferred."""

Condition = Callable[["ExaminedLayer"], bool]


@dataclass(frozen=True)
class Difference:
    """A difference of one implementation of OpenVINO from the others, or from the specification.

    Attributes:
        code: of its finding.
        types: the operations; none means any.
        who, effect: the implementation, and the effect that a user sees.
        does: one sentence without a full stop: the behaviour of the implementation, and of the others.
        condition: True for a layer that has the difference.
        since, until: the first release that has the difference and the first that no longer has it; None where all
            releases from 2023.0 to 2026.4 are alike.
    """

    code: str
    types: tuple[str, ...]
    who: Who
    effect: Effect
    does: str
    condition: Condition
    since: str | None = None
    until: str | None = None


DIFFERENCES: dict[str, Difference] = {}
"""By code. irexec.analysis.portability has all of them."""


def difference(
    code: str, name: str, types: tuple[str, ...], who: Who, effect: Effect, *, does: str, example: str, repair: str,
    since: str | None = None, until: str | None = None,
) -> Callable[[Condition], Condition]:  # fmt: skip
    """Decorator of a condition: declare a difference and its finding code.

    Args:
        code, name, example, repair: as in irexec.ir.codes.Code; the example is a layer that has the difference.
        types, who, effect, does, since, until: as in Difference.

    Raises:
        ValueError: the code or the name is used already.
    """

    def register(condition: Condition) -> Condition:
        codes.add(code, "info", name, f"{does} (found with --portability)", example, repair)
        DIFFERENCES[code] = Difference(code, types, who, effect, does, condition, since, until)
        return condition

    return register


def layer_xml(operation: str, data: str = "", *ports: str | None, name: str = "") -> str:
    """A layer as an example shows it.

    Args:
        operation: type and opset, such as "Range-4".
        data: the attributes as XML has them.
        ports: precision and sizes of the input ports, such as "I64[2,-1]"; None for a port that is not shown.
        name: of the layer; not shown if it is empty.
    """
    type, opset = operation.rsplit("-", 1)
    named = f'name="{name}" ' if name else ""
    begin = f'<layer {named}type="{type}" version="opset{opset}"'
    shown = [_port_xml(number, text) for number, text in enumerate(ports) if text is not None]
    inside = [f"  <data {data}/>"] if data else []
    inside += ["  <input>", *shown, "  </input>"] if shown else []
    return "\n".join([f"{begin}>", *inside, "</layer>"]) if inside else f"{begin}/>"


def _port_xml(number: int, text: str) -> str:
    precision, _, sizes = text.rstrip("]").partition("[")
    begin = f'    <port id="{number}"' + (f' precision="{precision}"' if precision else "")
    dims = "".join(f"<dim>{size}</dim>" for size in sizes.split(",") if size)
    return f"{begin}>{dims}</port>" if dims else f"{begin}/>"


def always(layer: object) -> bool:
    """Condition of a difference that every layer of its types has."""
    return True
