"""com.microsoft: linear attention and the causal convolution before it, of padded and of packed sequences.

Source: onnxruntime ``docs/ContribOperators.md``.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, cast

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.algorithms.linear_attention import (
    Tokens,
    UpdateRule,
    needed,
    packed_linear_attention,
    recurrence,
    repeat_heads_of_tokens,
)
from converters.onnx.algorithms.sequences import Sequences, check_captured
from converters.onnx.algorithms.windows import causal_convolution
from converters.onnx.context import Matrix, Tensor3, Tensor4, TranslationContext, Vector, required
from converters.onnx.graphs import check_convertible, check_unrolled
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import F32, I64
from irexec.errors import OpError, check
from irexec.ir.graph import Value
from irexec.schema.opdef import Rank

Activation = Literal["none", "silu", "swish"]


@translates("LinearAttention", domain=COM_MICROSOFT)
def linear_attention(
    ctx: TranslationContext, query: Tensor3, key: Tensor3, value: Tensor3,
    past_state: Annotated[Value, Rank(4, 5)] | None = None, decay: Tensor3 | None = None, beta: Tensor3 | None = None,
    *, q_num_heads: int, kv_num_heads: int, scale: float = 0.0, update_rule: UpdateRule = "gated_delta",
    chunk_size: int = 64, state_window: int = 0,
) -> tuple[Value, ...]:  # fmt: skip
    """LinearAttention of ai.onnx, also with more key heads than query heads, and with the last states in a window."""
    smaller, larger = sorted((q_num_heads, kv_num_heads))
    if smaller < 1 or larger % smaller:
        raise OpError(f"q_num_heads is {q_num_heads} and kv_num_heads {kv_num_heads}, expected multiples")
    past_state = _before_window(ctx, past_state, state_window)
    y, last, states = packed_linear_attention(
        ctx, query, key, value, past_state, decay, beta, (q_num_heads, kv_num_heads), scale, update_rule,
        with_states=state_window > 0,
    )  # fmt: skip
    if states is not None:
        # The last steps along the first axis, after zeros where there are too few.
        rank = ctx.rank(states)
        begins = [state_window, *[0] * (rank - 1)]
        padded = ctx.emit("Pad", states, begins, [0] * rank, ctx.constant(0, states), pad_mode="constant")
        last = ctx.slice(padded, -state_window, None, 0)
    return y, ctx.convert(last, ctx.element(query if past_state is None else past_state))


def _before_window(ctx: TranslationContext, past: Value | None, window: int) -> Value | None:
    """The state before the first step: of a window the last one."""
    check(0 <= window <= 8, f"state_window is {window}, expected 0 to 8")
    return past if past is None or not window else ctx.gather(past, ctx.constant(-1), 0)


@translates("LinearAttentionGate", domain=COM_MICROSOFT)
def linear_attention_gate(
    ctx: TranslationContext, a: Value, dt_bias: Value, decay_scale: Value, b: Value | None = None
) -> tuple[Value | None, ...]:
    """decay_scale * softplus(a + dt_bias) and sigmoid(b), in f32."""
    wide = Expression(ctx, ctx.convert(a, F32)) + Expression(ctx, dt_bias)
    decay = Expression(ctx, ctx.emit("SoftPlus", wide.value)) * Expression(ctx, decay_scale)
    beta = None if b is None else Expression(ctx, b).to(F32).sigmoid().to(ctx.element(b)).value
    return decay.to(ctx.element(a)).value, beta


@translates("CausalConvWithState", domain=COM_MICROSOFT)
def causal_conv_with_state(
    ctx: TranslationContext, x: Value, w: Annotated[Value, Rank(3, 5)], bias: Vector | None = None,
    past_state: Value | None = None, *, activation: Activation = "none", ndim: int = 1, dilation: int = 1,
    channels_last: int = 0, state_window: int = 0, state_channels_last: int = -1, state_length: int = 0,
    state_update_capacity: int = 0, input_channel_offset: int = 0, input_channels: int = 0,
) -> tuple[Value, ...]:  # fmt: skip
    """CausalConvWithState of ai.onnx, also dilated, channels last, and with the last states in a window.

    The attributes that only ONNX Runtime's CUDA kernel has are refused, and more than one spatial axis: the document
    does not say how the axes that are not causal are padded.
    """
    others = {
        "state_channels_last": (state_channels_last, -1), "state_length": (state_length, 0), "ndim": (ndim, 1),
        "state_update_capacity": (state_update_capacity, 0), "input_channel_offset": (input_channel_offset, 0),
        "input_channels": (input_channels, 0),
    }  # fmt: skip
    for name, (value, default) in others.items():
        check_convertible(value == default, f"{name} {value}")
    past_state = _before_window(ctx, past_state, state_window)
    check(dilation >= 1, f"dilation is {dilation}, expected 1 or more")
    shape = None
    if channels_last:
        shape = ctx.slice(ctx.shape_of(x), 2, ctx.rank(x), 0)
        x = _channels_first(ctx, x)
        past_state = None if past_state is None else _channels_first(ctx, past_state)
    check(ctx.rank(x) == 3, "the data has more axes than batch, channels and time")
    y, states, padded, length = causal_convolution(ctx, x, w, bias, past_state, activation, dilation)
    if state_window:
        states = _states(ctx, x, padded, length, state_window)
    if shape is None:
        return y, states
    return _channels_last(ctx, y, shape, 0), _channels_last(ctx, states, shape, 1 if state_window else 0)


def _channels_first(ctx: TranslationContext, x: Value) -> Value:
    """(batch, time, channels...) as (batch, channels, time)."""
    flat = ctx.emit("Reshape", x, [0, 0, -1], special_zero=True) if ctx.rank(x) != 3 else x
    return ctx.transpose(flat, [0, 2, 1])


def _channels_last(ctx: TranslationContext, x: Value, channels: Value, leading: int) -> Value:
    """(..., channels, time) as (..., time, channels...); ``leading`` axes precede the batch."""
    rank = 3 + leading
    moved = ctx.transpose(x, [*range(rank - 2), rank - 1, rank - 2])
    front = ctx.slice(ctx.shape_of(moved), 0, rank - 1, 0)
    return ctx.emit("Reshape", moved, ctx.emit("Concat", front, channels, axis=0), special_zero=False)


def _states(ctx: TranslationContext, x: Value, padded: Value, length: Expression, window: int) -> Value:
    """The last values of the padded data after each of the last ``window`` steps, zeros before the first."""
    if ctx.ints_if_known(length.value) == (0,):
        sizes = ctx.slice(ctx.shape_of(x), 0, 2, 0)
        return ctx.full(ctx.constant(0, x), ctx.emit("Concat", [window], sizes, [0], axis=0))
    step = Expression(ctx, ctx.size(x, 2)) - window + arange(ctx, 0, window)
    index = (step + 1).maximum(0).column() + arange(ctx, 0, Expression(ctx, ctx.scalar(length.value)))
    slots = ctx.transpose(ctx.gather(padded, index.value, 2), [2, 0, 1, 3])
    return (step < 0).unsqueeze(1, 2, 3).select(0, Expression(ctx, slots)).value


@translates("VarlenCausalConvWithState", domain=COM_MICROSOFT)
def varlen_causal_conv_with_state(
    ctx: TranslationContext, x: Matrix, w: Tensor3, cumulative_sequence_length: Vector, bias: Vector | None,
    initial_state: Tensor3, capture_count: Vector | None = None, kernel_delta: Value | None = None,
    previous_mask: Value | None = None, *, activation: Activation = "none", dilation: int = 1,
    state_update_capacity: int = 0, delta_offset: int = 0, group_size: int = 1,
) -> tuple[Value, ...]:  # fmt: skip
    """A causal convolution of packed sequences, each after its own state: one product per tap of the kernel."""
    is_plain = kernel_delta is None and previous_mask is None
    check_convertible(is_plain, "kernel_delta and previous_mask, of CUDA alone,")
    check_captured(state_update_capacity, capture_count)
    taps = ctx.static(w, "the weights")[2]
    check(taps > 0, "the kernel has no taps")
    check_unrolled(taps, "the taps of the kernel")
    sequences = Sequences(ctx, x, cumulative_sequence_length)
    length = (taps - 1) * dilation
    states = ctx.transpose(initial_state, [0, 2, 1])
    products = []
    for tap in range(taps):
        # The value that far before each token: of the sequence, or of its state.
        value = sequences.at(x, sequences.local - (taps - 1 - tap) * dilation, states, length)
        weight = ctx.transpose(ctx.gather(w, ctx.constant(tap), 2), [1, 0])
        products.append((value * Expression(ctx, weight)).value)
    result = ctx.added(*products, bias)
    result = result if activation == "none" else ctx.emit("Swish", result)
    ends = sequences.lengths.column() - length + arange(ctx, 0, length)
    # Without a state nothing is gathered: OpenVINO's CPU plugin divides by the number of indices.
    last = ctx.transpose(sequences.of_each(x, ends, states, length).value, [0, 2, 1]) if length else initial_state
    if not state_update_capacity or capture_count is None:
        return result, last
    slots = arange(ctx, 0, state_update_capacity).unsqueeze(0)
    counts = Expression(ctx, ctx.convert(capture_count, I64)).minimum(sequences.lengths).column()
    captured = sequences.of_each(x, slots.minimum(sequences.lengths.column() - 1), states, length)
    return result, last, (slots < counts).unsqueeze(2).select(captured, 0).value


@translates("GatedDeltaNet", domain=COM_MICROSOFT)
def gated_delta_net(
    ctx: TranslationContext, query: Annotated[Value, Rank(2, 4)], key: Annotated[Value, Rank(3, 4)] | None = None,
    value: Annotated[Value, Rank(3, 4)] | None = None, cu_seqlens: Vector | None = None, decay: Value | None = None,
    beta: Value | None = None, initial_state: Tensor4 | None = None, a_log: Value | None = None,
    dt_bias: Value | None = None, capture_count: Value | None = None, state_update_active: Value | None = None, *,
    update_rule: UpdateRule = "gated_delta", scale: float = 0.0, qk_l2_norm: int = 0,
    gate_activation: Literal["none", "softplus", "qwen", "sigmoid", "kda"] = "none",
    beta_activation: Literal["none", "sigmoid"] = "none", gate_lower_bound: float = -5.0, chunk_size: int = 64,
    state_update_capacity: int = 0,
) -> tuple[Value | None, ...]:  # fmt: skip
    """Linear attention of packed tokens; the states are (batch, heads, value size, key size).

    The third output has the decays, keys and added values of the first steps, whatever capture_count is. Sequences of
    several lengths are padded: the steps after the end of one leave its state as it is. Keys and queries
    are divided by the root of their sum of squares plus 1e-12, as in ONNX Runtime.
    """
    check_captured(state_update_capacity, capture_count)
    if key is None or value is None:
        query, key, value = _unpacked(ctx, query, initial_state)
    spelled = ctx.rank(query) == 4
    if not spelled and cu_seqlens is None and initial_state is None:
        raise OpError("initial_state is missing, which has the number of sequences without cu_seqlens")
    check(not spelled or cu_seqlens is None, "cu_seqlens needs tokens of rank 3")
    heads, key_size = (ctx.static_size(query, axis, "the queries") for axis in (-2, -1))
    states, value_size = (ctx.static_size(value, axis, "the values") for axis in (-2, -1))
    if heads < 1 or states % heads:
        raise OpError(f"{states} heads of values are not a multiple of {heads} heads of queries")
    decay, beta = needed(update_rule, decay, beta)
    layout = _Layout(ctx, query, cu_seqlens, initial_state, spelled)
    q, k = (layout.padded(ctx.convert(x, F32), [heads, key_size]) for x in (query, key))
    if qk_l2_norm:
        q, k = ((x / ((x * x).sum(-1) + 1e-12).sqrt()).value for x in (Expression(ctx, q), Expression(ctx, k)))
    shared = k
    q, k = (repeat_heads_of_tokens(ctx, x, states) for x in (q, k))
    gate = None
    if decay is not None:
        width = key_size if ctx.rank(decay) == ctx.rank(query) else 1
        raw = layout.padded(ctx.convert(decay, F32), [states, width])
        gate = ctx.unsqueeze(_gate(ctx, raw, a_log, dt_bias, gate_activation, gate_lower_bound), [4])
    rate = None
    if beta is not None:
        rate = layout.padded(ctx.convert(beta, F32), [states, 1, 1])
        rate = ctx.emit("Sigmoid", rate) if beta_activation == "sigmoid" else rate
    tokens = Tokens(
        ctx.unsqueeze(q, [3]), ctx.unsqueeze(k, [4]), layout.padded(ctx.convert(value, F32), [states, 1, value_size]),
        gate, rate, layout.active,
    )  # fmt: skip
    if initial_state is None:
        sizes = ctx.emit("Concat", layout.batch.value, ctx.constant([states, key_size, value_size]), axis=0)
        initial = ctx.full(ctx.constant(0.0), sizes)
    else:
        initial = ctx.transpose(initial_state, [0, 1, 3, 2])
    done = recurrence(ctx, tokens, initial, scale or 1 / math.sqrt(key_size), with_added=state_update_capacity > 0)
    y = layout.packed(ctx.convert(done.read, ctx.element(query)), [states, value_size])
    last = ctx.transpose(done.last, [0, 1, 3, 2])
    if done.added is None:
        return y, last, None
    one = ctx.slice(k, 0, 1, 3)
    factors = ctx.full(ctx.constant(1.0), ctx.shape_of(one)) if gate is None else gate
    update = _captured(ctx, [factors, shared, done.added], state_update_capacity)
    if state_update_active is None:
        return y, last, update
    is_off = Expression(ctx, ctx.scalar(state_update_active)).equals(0)
    return y, last, is_off.select(0, Expression(ctx, update)).value


def _captured(ctx: TranslationContext, parts: list[Value], count: int) -> Value:
    """The first steps of each part (batch, time, ...), one part after the other in a row per sample."""
    rows = []
    for part in parts:
        rank = ctx.rank(part)
        ends = [0, count, *[0] * (rank - 2)]
        padded = ctx.emit("Pad", part, [0] * rank, ends, ctx.constant(0, part), pad_mode="constant")
        first = ctx.slice(padded, 0, count, 1)
        rows.append(ctx.emit("Reshape", first, [0, -1], special_zero=True))
    return ctx.emit("Concat", *rows, axis=1)


def _unpacked(ctx: TranslationContext, packed: Value, state: Value | None) -> list[Value]:
    """Queries, keys and values of the packed last axis, split into heads."""
    state = required(state, "initial_state is missing, which packed queries, keys and values need")
    heads, value_size, key_size = ctx.static(state, "initial_state")[1:]
    width = ctx.sizes(packed)[-1]
    rest = width - heads * value_size if isinstance(width, int) else -1
    if rest < 0 or not key_size or rest % (2 * key_size):
        raise OpError(f"the packed queries, keys and values {ctx.fact(packed)} do not fit the state {ctx.fact(state)}")
    lengths = [rest // 2, rest // 2, heads * value_size]
    lead = ctx.rank(packed) - 1
    parts = ctx.emit("VariadicSplit", packed, ctx.constant(lead), lengths)
    shapes = [(-1, key_size), (-1, key_size), (heads, value_size)]
    return [
        ctx.emit("Reshape", part, [*[0] * lead, *shape], special_zero=True)
        for part, shape in zip(parts, shapes, strict=True)
    ]


def _gate(
    ctx: TranslationContext, raw: Value, a_log: Value | None, dt_bias: Value | None, activation: str, bound: float
) -> Value:
    """The factor of the state from (batch, time, heads, 1 or key size)."""
    if activation == "none":
        return ctx.emit("Exp", raw)
    if a_log is None or dt_bias is None:
        raise OpError(f"gate_activation {activation} needs a_log and dt_bias")
    heads = ctx.static_size(raw, -2, "the decay")
    x = Expression(ctx, raw) + Expression(ctx, ctx.reshape(dt_bias, [heads, -1]))
    rate = Expression(ctx, ctx.reshape(a_log, [heads, 1])).exp()
    if activation in ("softplus", "qwen"):
        return (-rate * Expression(ctx, ctx.emit("SoftPlus", x.value))).exp().value
    return ((rate * x).sigmoid() * bound).exp().value


class _Layout:
    """Tokens of sequences, and the same padded to (batch, time).

    Attributes:
        batch: the number of sequences, of shape (1).
        active: whether a padded position has a token, (batch, time, 1, 1, 1); None if all have.
    """

    def __init__(
        self, ctx: TranslationContext, query: Value, bounds: Value | None, state: Value | None, spelled: bool
    ) -> None:
        self.ctx, self.spelled, self.active = ctx, spelled, cast("Value | None", None)
        self._sequences = None if bounds is None else Sequences(ctx, query, bounds)
        source = query if spelled else state
        if self._sequences is not None:
            self._longest, source = self._sequences.longest(), self._sequences.lengths.value
            steps = arange(ctx, 0, self._longest)
            self.active = (steps < self._sequences.lengths.column()).unsqueeze(2, 3, 4).value
        self.batch = Expression(ctx, ctx.unsqueeze(ctx.size(cast("Value", source), 0), [0]))

    def padded(self, x: Value, sizes: list[int]) -> Value:
        """(tokens, ...) as (batch, time, *sizes)."""
        ctx = self.ctx
        if self.spelled:
            return ctx.emit("Reshape", x, [0, 0, *sizes], special_zero=True)
        if self._sequences is None:
            shape = ctx.emit("Concat", self.batch.value, [-1, *sizes], axis=0)
            return ctx.emit("Reshape", x, shape, special_zero=False)
        flat = ctx.emit("Reshape", x, [0, *sizes], special_zero=True)
        return self._sequences.padded(flat, self._longest)

    def packed(self, x: Value, sizes: list[int]) -> Value:
        """(batch, time, ...) as the tokens were."""
        ctx = self.ctx
        if self._sequences is None and not self.spelled:
            return ctx.reshape(x, [-1, *sizes])
        padded = ctx.emit("Reshape", x, [0, 0, *sizes], special_zero=True)
        return padded if self._sequences is None else self._sequences.packed(padded, self._longest)
