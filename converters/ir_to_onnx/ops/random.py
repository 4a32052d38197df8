"""Random operations: of the same distribution, with ONNX's own random numbers."""

from __future__ import annotations

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.shape import as_i64
from converters.ir_to_onnx.registry import composed
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F32, F64, I64, Element

_OTHER_NUMBERS = "its random numbers have the same distribution, but are others"


def _unit(ctx: ExportContext, shape: Tensor, kind: Element, seed: int) -> Tensor:
    """Random numbers in [0, 1) of a computed shape."""
    assert kind.onnx is not None
    ctx.remark(_OTHER_NUMBERS)
    like = ctx.emit("Expand", ctx.constant(0, kind), shape)
    start = float(seed) if seed else None
    return ctx.emit("RandomUniformLike", like, dtype=kind.onnx.number, low=0.0, high=1.0, seed=start, element=kind)


@composed("RandomUniform")
def random_uniform(
    ctx: ExportContext, shape: Tensor, min_val: Tensor, max_val: Tensor, *, output_type: str, global_seed: int,
    op_seed: int, alignment: str,
) -> Tensor:  # fmt: skip
    """RandomUniformLike, Mul, Add; Floor for integers. The numbers are others than those of OpenVINO."""
    kind = min_val.element
    work = F64 if kind.bits > 32 or (not kind.is_float and kind.bits == 32) else F32
    low, high = (ctx.cast(ctx.reshape(x, []), work) for x in (min_val, max_val))
    unit = _unit(ctx, as_i64(ctx, shape), work, global_seed or op_seed)
    spread = ctx.emit("Mul", unit, ctx.emit("Sub", high, low))
    if not kind.is_float:
        spread = ctx.emit("Floor", spread)
    return ctx.cast(ctx.emit("Add", spread, low), kind)


@composed("Multinomial")
def multinomial(
    ctx: ExportContext, probs: Tensor, num_samples: Tensor, *, convert_type: str, with_replacement: bool,
    log_probs: bool, global_seed: int, op_seed: int,
) -> Tensor:  # fmt: skip
    """Cumulative probabilities below RandomUniformLike are counted; without replacement TopK of Gumbel noise."""
    rank, seed = probs.require_rank("the probabilities"), global_seed or op_seed
    rows = ctx.cast(probs, F32)
    count = ctx.reshape(as_i64(ctx, num_samples), [1])
    if not with_replacement:
        logs = rows if log_probs else ctx.emit("Log", rows)
        unit = _unit(ctx, ctx.emit("Shape", rows), F32, seed)
        noise = ctx.emit("Neg", ctx.emit("Log", ctx.emit("Neg", ctx.emit("Log", unit))))
        return ctx.emit_all("TopK", 2, ctx.emit("Add", logs, noise), count, axis=-1)[1]
    weights = ctx.emit("Exp", rows) if log_probs else rows
    sums = ctx.emit("CumSum", weights, ctx.constant(rank - 1))
    total = ctx.slice(sums, -1, None, -1)
    lead = [ctx.slice(ctx.emit("Shape", rows), 0, 1, 0)] if rank == 2 else []
    chosen = ctx.emit("Mul", _unit(ctx, ctx.concat(*lead, count), F32, seed), total)
    below = ctx.emit("Less", ctx.unsqueeze(sums, -2), ctx.unsqueeze(chosen, -1))
    return ctx.reduce("ReduceSum", ctx.cast(below, I64), [-1])
