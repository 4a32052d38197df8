"""com.microsoft: an LSTM with quantized weights.

Source: onnxruntime ``docs/ContribOperators.md`` and ``core/providers/cpu/rnn``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from converters.onnx.algorithms.expression import Expression, positions
from converters.onnx.algorithms.recurrent_cells import Function, functions_of, loop_over_time, lstm_cell
from converters.onnx.body_builder import BodyBuilder
from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.quantization import dynamic_quantize_linear
from converters.onnx.ops.ai_onnx.recurrent import Tensor3, initial_state, zero_if_empty
from converters.onnx.ops.com_microsoft.quantization import matmul_integer_to_float
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.schema.inputs import Rank

Parameter = Annotated[Value, Rank(1, 2)]


@dataclass(frozen=True)
class Weights:
    """Quantized weights of one direction: levels (K, N), and scale and zero point, per tensor or per column."""

    levels: Value
    scale: Value
    zero: Value

    def product(self, ctx: TranslationContext, x: Value) -> Value:
        """The product with data that is quantized over its own range."""
        levels, scale, zero = dynamic_quantize_linear(ctx, x)
        return matmul_integer_to_float(ctx, levels, self.levels, scale, self.scale, zero, self.zero)

    def in_body(self, builder: BodyBuilder) -> Weights:
        """The same weights as values of a body."""
        return Weights(*(builder.captured(part) for part in (self.levels, self.scale, self.zero)))


@translates("DynamicQuantizeLSTM", domain=COM_MICROSOFT)
def dynamic_quantize_lstm(
    ctx: TranslationContext, x: Tensor3, w: Tensor3, r: Tensor3, bias: Annotated[Value, Rank(2)] | None,
    sequence_lens: Annotated[Value, Rank(1)] | None, initial_h: Tensor3 | None, initial_c: Tensor3 | None,
    p: Annotated[Value, Rank(2)] | None, w_scale: Parameter, w_zero: Parameter, r_scale: Parameter, r_zero: Parameter,
    *, activation_alpha: list[float] | None = None, activation_beta: list[float] | None = None,
    activations: list[str] | None = None, clip: float = 0.0, hidden_size: int | None = None, input_forget: int = 0,
    direction: Literal["forward", "reverse", "bidirectional"] = "forward",
) -> tuple[Value, ...]:  # fmt: skip
    """An LSTM with W (D, I, 4 * H) and R (D, H, 4 * H); data is quantized over its range, states in every step anew.

    ONNX Runtime with several threads may quantize the states of parts of a batch separately.
    """
    functions = functions_of(("Sigmoid", "Tanh", "Tanh"), direction, activations, activation_alpha, activation_beta)
    size = ctx.static(r, "R")[1] if hidden_size is None else hidden_size
    if size < 1 or ctx.static(r, "R") != (len(functions), size, 4 * size):
        raise OpError(f"R is {ctx.fact(r)}, expected [{len(functions)},{size},{4 * size}]")
    data = ctx.transpose(x, [1, 0, 2])
    states = [initial_state(ctx, state, data, len(functions), size, 0) for state in (initial_h, initial_c)]
    if sequence_lens is not None:
        # Data after the longest sequence does not count; every range includes 0.
        longest = ctx.emit("ReduceMax", ctx.convert(sequence_lens, I64), [0], keep_dims=False)
        counts = (positions(ctx, data, 1) < Expression(ctx, longest)).unsqueeze(0, 2)
        data = counts.select(Expression(ctx, data), Expression(ctx, ctx.constant(0, data))).value
    results = []
    for i in range(len(functions)):
        weights = [
            Weights(
                ctx.emit("Squeeze", _row(ctx, levels, i), [0]), *(ctx.reshape(_row(ctx, part, i), [-1]) for part in of)
            )
            for levels, of in ((w, (w_scale, w_zero)), (r, (r_scale, r_zero)))
        ]
        parts = [None if part is None else _row(ctx, part, i) for part in (bias, p)]
        rows = [_row(ctx, state, i, axis=1) for state in states]
        reverse = direction == "reverse" or i == 1
        results.append(
            _direction(ctx, data, sequence_lens, weights, parts, rows, functions[i], size, reverse, clip, input_forget)
        )
    y, *last = (
        ctx.emit("Concat", *parts, axis=1) if len(parts) > 1 else parts[0] for parts in zip(*results, strict=True)
    )
    last_states = [ctx.transpose(zero_if_empty(ctx, state, sequence_lens), [1, 0, 2]) for state in last]
    return ctx.transpose(y, [2, 1, 0, 3]), *last_states


def _row(ctx: TranslationContext, value: Value, index: int, axis: int = 0) -> Value:
    """The part of one direction, whose axis is kept with size 1."""
    part: Value = ctx.emit("Gather", value, ctx.constant([index]), ctx.constant(axis))
    return part


def _direction(
    ctx: TranslationContext, data: Value, lengths: Value | None, weights: list[Weights], parts: list[Value | None],
    states: list[Value], functions: tuple[Function, ...], size: int, reverse: bool, clip: float, input_forget: int,
) -> tuple[Value, ...]:  # fmt: skip
    """Y (B, 1, T, H) and the last states (B, 1, H)."""
    of_input, of_state = weights
    bias, peepholes = parts
    if bias is None:
        summed = ctx.constant(np.zeros((1, 4 * size)), data)
    else:
        summed = ctx.emit("Add", *ctx.emit("Split", bias, ctx.constant(1), num_splits=2))
    recurrence = ctx.unsqueeze(ctx.transpose(of_state.levels, [1, 0]), [0])
    return loop_over_time(
        ctx, lstm_cell, functions, of_input.product(ctx, data), lengths, recurrence, summed, None, peepholes, states,
        reverse=reverse, clip=clip, input_forget=bool(input_forget),
        recurrent=lambda builder, hidden: of_state.in_body(builder).product(builder.inner, hidden.value),
    )  # fmt: skip
