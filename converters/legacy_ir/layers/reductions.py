"""Reductions along the axes of the second input, which are kept with size 1 by default."""

from __future__ import annotations

from collections.abc import Callable

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.registry import translates
from irexec.ir import legacy_codes
from irexec.ir.graph import Value


def _reduction(type: str) -> Callable[..., Value]:
    def translate(layer: Layer, data: Value, axes: Value, *, keep_dims: bool = True) -> Value:
        if type.startswith("ReduceLogical"):
            data = layer.boolean(data)
        if type == "ReduceMax":
            layer.note(
                legacy_codes.AGAINST_DESCRIPTION, "ReduceMax of the engines gives 0 in place of a negative maximum"
            )
        return layer.emit(type, data, layer.i64(axes), version=4, keep_dims=keep_dims)

    return translate


for _name in ("Max", "Min", "Mean", "Sum", "Prod", "L1", "L2"):
    translates(f"Reduce{_name}")(_reduction(f"Reduce{_name}"))
translates("ReduceAnd")(_reduction("ReduceLogicalAnd"))
translates("ReduceOr")(_reduction("ReduceLogicalOr"))


@translates("ReduceSumSquare")
def reduce_sum_square(layer: Layer, data: Value, axes: Value, *, keep_dims: bool = True) -> Value:
    """Sum of squares."""
    squares = layer.emit("Multiply", data, data, version=1)
    return layer.emit("ReduceSum", squares, layer.i64(axes), version=1, keep_dims=keep_dims)


@translates("ReduceLogSum")
def reduce_log_sum(layer: Layer, data: Value, axes: Value, *, keep_dims: bool = True) -> Value:
    """Logarithm of the sum."""
    total = layer.emit("ReduceSum", layer.f32(data), layer.i64(axes), version=1, keep_dims=keep_dims)
    return layer.emit("Log", total, version=1)


@translates("ReduceLogSumExp")
def reduce_log_sum_exp(layer: Layer, data: Value, axes: Value, *, keep_dims: bool = True) -> Value:
    """Logarithm of the sum of exponentials."""
    powers = layer.emit("Exp", layer.f32(data), version=1)
    return reduce_log_sum(layer, powers, axes, keep_dims=keep_dims)
