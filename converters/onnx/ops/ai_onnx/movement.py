"""Transposition, concatenation, splitting and reversal."""

from __future__ import annotations

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import Context
from converters.onnx.limits import check_unrolled
from converters.onnx.registry import translates
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.messages import counted


@translates("Transpose")
def transpose(b: Context, x: Value, *, perm: list[int] | None = None) -> Value:
    """Without perm the order of the axes is reversed."""
    return b.emit("Transpose", x, list(perm) if perm else list(reversed(range(b.rank(x)))))


@translates("Concat")
def concat(b: Context, *inputs: Value, axis: int = 1) -> Value:
    return b.emit("Concat", *inputs, axis=axis)


@translates("Concat", since=4)
def concat_4(b: Context, *inputs: Value, axis: int) -> Value:
    return b.emit("Concat", *inputs, axis=axis)


@translates("Split")
def split_1(
    b: Context, x: Value, lengths: Value | None = None, *, axis: int = 0, split: list[int] | None = None
) -> tuple[Value, ...]:
    return _split(b, x, axis, b.constant(list(split)) if split else lengths, len(b.outputs))


@translates("Split", since=13)
def split_13(b: Context, x: Value, lengths: Value | None = None, *, axis: int = 0) -> tuple[Value, ...]:
    return _split(b, x, axis, lengths, len(b.outputs))


@translates("Split", since=18)
def split_18(
    b: Context, x: Value, lengths: Value | None = None, *, axis: int = 0, num_outputs: int | None = None
) -> tuple[Value, ...]:
    """Into num_outputs parts, the last of which may be smaller."""
    parts = len(b.outputs) if num_outputs is None else num_outputs
    if parts < max(len(b.outputs), 1):
        raise OpError(f"num_outputs is {parts} for {counted(len(b.outputs), 'output')}")
    check_unrolled(parts, "the parts")
    shape = b.fact(x).shape
    size = None if shape is None else shape[b.axis(axis, x)]
    if lengths is None and (not isinstance(size, int) or size % parts):
        part = Expression(b, b.emit("Divide", b.emit("Add", b.size(x, axis), b.constant(parts - 1)), b.constant(parts)))
        repeated = b.full(part.value, b.constant([parts - 1]))
        lengths = b.emit("Concat", repeated, b.constant([-1]), axis=0)
    return _split(b, x, axis, lengths, parts)


def _split(b: Context, x: Value, axis: int, lengths: Value | None, parts: int) -> tuple[Value, ...]:
    if lengths is not None:
        return tuple(b.emit("VariadicSplit", x, b.constant(axis), lengths))
    return tuple(b.emit("Split", x, b.constant(axis), num_splits=parts))


@translates("DepthToSpace")
def depth_to_space(b: Context, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    _check_mode(mode)
    return b.emit("DepthToSpace", x, mode="depth_first" if mode == "CRD" else "blocks_first", block_size=blocksize)


@translates("SpaceToDepth")
def space_to_depth(b: Context, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    """Opset 28 added CRD."""
    _check_mode(mode)
    return b.emit("SpaceToDepth", x, mode="depth_first" if mode == "CRD" else "blocks_first", block_size=blocksize)


def _check_mode(mode: str) -> None:
    if mode not in ("DCR", "CRD"):
        raise OpError(f"mode is {mode!r}, expected DCR or CRD")


@translates("ReverseSequence", since=10)
def reverse_sequence(b: Context, x: Value, sequence_lens: Value, *, batch_axis: int = 1, time_axis: int = 0) -> Value:
    return b.emit("ReverseSequence", x, sequence_lens, batch_axis=batch_axis, seq_axis=time_axis)
