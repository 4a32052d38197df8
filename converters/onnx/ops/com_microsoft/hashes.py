"""com.microsoft: hashes of integers and of n-grams, and the path of dynamic time warping.

Source: onnxruntime ``docs/ContribOperators.md``, MurmurHash3 of Austin Appleby (x86, 32 bits).
"""

from __future__ import annotations

from typing import Annotated

from converters.onnx.algorithms.expression import Expression, arange
from converters.onnx.algorithms.sequences import Sequences, check_captured
from converters.onnx.body_builder import BodyBuilder, IterationResult, IterationSlice, build_loop
from converters.onnx.context import Matrix, TranslationContext, Vector
from converters.onnx.graphs import check_unrolled
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.dtypes.elements import I32, I64, U32, U64
from irexec.errors import ConversionError, OpError, check
from irexec.ir.graph import Value
from irexec.schema.opdef import Rank

_END = (1 << 63) - 1


def _signed(bits: int) -> int:
    """32 bits as a signed integer."""
    return (bits & 0xFFFFFFFF) - ((bits & 0x80000000) << 1)


def _down(x: Expression, count: int) -> Expression:
    """The bits of i32 shifted down, zeros above."""
    return (x >> count).masked(32 - count)


def _rotated(x: Expression, count: int) -> Expression:
    return (x << count) ^ _down(x, 32 - count)


@translates("MurmurHash3", domain=COM_MICROSOFT)
def murmur_hash_3(ctx: TranslationContext, x: Value, *, seed: int = 0, positive: int = 1) -> Value:
    """The hash of each integer, computed in i32, whose products wrap."""
    kind = ctx.element(x)
    if kind in (I32, U32):
        words = [Expression(ctx, x).to(I32)]
    elif kind in (I64, U64):
        ctx.warn("OpenVINO's CPU plugin reads integers of 64 bits as 32, whose hashes differ")
        wide = Expression(ctx, x).to(I64)
        words = [wide.to(I32), (wide >> 32).to(I32)]
    else:
        raise ConversionError(f"the hash of {kind} cannot be converted: no operation reads its bytes", unsupported=True)
    y = Expression(ctx, ctx.constant(_signed(seed), I32))
    for word in words:
        y = _rotated(y ^ _rotated(word * _signed(0xCC9E2D51), 15) * _signed(0x1B873593), 13) * 5 + _signed(0xE6546B64)
    y = y ^ 4 * len(words)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        y = (y ^ _down(y, shift)) * _signed(factor)
    y = y ^ _down(y, 16)
    return (y.to(U32) if positive else y).value


@translates("NGramHashMapping", domain=COM_MICROSOFT)
def n_gram_hash_mapping(
    ctx: TranslationContext, input_ids: Matrix, multipliers: Vector, vocab_sizes: Vector,
    past_ids: Matrix | None = None, head_offsets: Vector | None = None, eos_token_id: Value | None = None,
    segment_ids: Matrix | None = None, *, max_ngram_size: int, n_head_per_ngram: int, pad_id: int,
    reset_on_eos: int = 0,
) -> tuple[Value, ...]:  # fmt: skip
    """Hashes of the last n tokens of each token, (batch, time, hashes), and the last tokens for the next call."""
    past = _checked_size(max_ngram_size)
    fill, end = _fill(ctx, input_ids, pad_id, eos_token_id, reset_on_eos)
    history = past_ids
    if history is None:
        batch = ctx.unsqueeze(ctx.size(input_ids, 0), [0])
        history = ctx.full(fill.value, ctx.emit("Concat", batch, [past], axis=0))
    whole = ctx.emit("Concat", history, input_ids, axis=1)

    def shifted(x: Value) -> list[Expression]:
        length = ctx.unsqueeze(ctx.size(input_ids, 1), [0])
        begins = [past - n for n in range(past + 1)]
        parts = [ctx.slice(x, i, (Expression(ctx, length) + i).value, 1) for i in begins]
        return [Expression(ctx, part).unsqueeze(2) for part in parts]

    segments = None
    if segment_ids is not None:
        # The tokens before belong to the first segment.
        first = ctx.gather(segment_ids, [0] * past, 1)
        segments = shifted(ctx.emit("Concat", first, segment_ids, axis=1))
    hashes = _hashes(shifted(whole), segments, fill, end, multipliers, vocab_sizes, head_offsets, n_head_per_ngram)
    return hashes, ctx.slice(whole, -past, None, 1)


@translates("VarlenNGramHashMapping", domain=COM_MICROSOFT)
def varlen_n_gram_hash_mapping(
    ctx: TranslationContext, input_ids: Vector, multipliers: Vector, vocab_sizes: Vector,
    cumulative_sequence_length: Vector, past_ids: Matrix | None = None, head_offsets: Vector | None = None,
    eos_token_id: Value | None = None, segment_ids: Vector | None = None, past_segment_ids: Matrix | None = None,
    capture_count: Vector | None = None, *, max_ngram_size: int, n_head_per_ngram: int, pad_id: int,
    reset_on_eos: int = 0, state_update_capacity: int = 0,
) -> tuple[Value | None, ...]:  # fmt: skip
    """The same for packed sequences, with the segments and states for the next call."""
    past = _checked_size(max_ngram_size)
    check_captured(state_update_capacity, capture_count)
    if segment_ids is None and (past_segment_ids is not None or ctx.needs_output(2)):
        raise OpError("segment_ids is missing")
    fill, end = _fill(ctx, input_ids, pad_id, eos_token_id, reset_on_eos)
    sequences = Sequences(ctx, input_ids, cumulative_sequence_length)
    shape = ctx.emit("Concat", ctx.shape_of(sequences.starts.value), [past], axis=0)
    history = ctx.full(fill.value, shape) if past_ids is None else past_ids
    local = sequences.local

    def shifted(x: Value, before: Value) -> list[Expression]:
        return [sequences.at(x, local - n, before, past) for n in range(past + 1)]

    def trailing(x: Value, before: Value, ends: Expression) -> Value:
        index = ends - past + arange(ctx, 0, past)
        return ctx.emit("Squeeze", sequences.of_each(x, index, before, past).value, [2])

    ids, states = ctx.unsqueeze(input_ids, [1]), ctx.unsqueeze(history, [2])
    lengths = sequences.lengths.column()
    segments, last_segments = None, None
    if segment_ids is not None:
        numbers = ctx.unsqueeze(segment_ids, [1])
        first = ctx.gather(segment_ids, sequences.starts.column().value, 0)
        earlier = ctx.emit("Broadcast", first, shape) if past_segment_ids is None else past_segment_ids
        earlier = ctx.unsqueeze(earlier, [2])
        segments, last_segments = shifted(numbers, earlier), trailing(numbers, earlier, lengths)
    tokens = shifted(ids, states)
    hashes = _hashes(tokens, segments, fill, end, multipliers, vocab_sizes, head_offsets, n_head_per_ngram)
    last = trailing(ids, states, lengths)
    if capture_count is None:
        return hashes, last, last_segments, None
    kept = Expression(ctx, ctx.convert(capture_count, I64)).minimum(sequences.lengths).column()
    captured = []
    for slot in range(state_update_capacity):
        state = Expression(ctx, trailing(ids, states, lengths.minimum(slot + 1)))
        captured.append((kept > slot).select(state, pad_id).value)
    return hashes, last, last_segments, ctx.stacked(captured, 1)


def _checked_size(size: int) -> int:
    """The number of tokens before the last of the longest n-gram."""
    check(size >= 2, f"max_ngram_size is {size}, expected 2 or more")
    check_unrolled(size, "the tokens of an n-gram")
    return size - 1


def _fill(
    ctx: TranslationContext, ids: Value, pad: int, end: Value | None, resets: int
) -> tuple[Expression, Expression | None]:
    """The value of tokens before the first one, and the token after which a text begins anew."""
    limit = 1 << (31 if ctx.element(ids) == I32 else 63)
    check(-limit <= pad < limit, f"pad_id {pad} does not fit {ctx.element(ids)}")
    if end is None:
        return Expression(ctx, ctx.constant(pad, ids)), None
    given = Expression(ctx, ctx.scalar(end))
    return given, given if resets else None


def _hashes(
    tokens: list[Expression], segments: list[Expression] | None, fill: Expression, end: Expression | None,
    multipliers: Value, vocab_sizes: Value, offsets: Value | None, heads: int,
) -> Value:  # fmt: skip
    """The hashes of n-grams of 2 and more tokens, a modulus for each hash.

    ``tokens`` and ``segments`` have those of each token and of the tokens before it, (..., 1).
    """
    ctx = fill.ctx
    if ctx.element(multipliers) == I64:
        ctx.warn("OpenVINO's CPU plugin computes i64 in 32 bits, where hashes differ")
    rows = len(tokens) - 1
    factors = [Expression(ctx, ctx.gather(multipliers, ctx.constant([i]), 0)) for i in range(rows + 1)]
    mixed, products = tokens[0] * factors[0], []
    is_cut: Expression | None = None
    for n in range(1, rows + 1):
        cuts = [] if end is None else [tokens[n].equals(end)]
        cuts += [] if segments is None else [~segments[n].equals(segments[n - 1])]
        for cut in cuts:
            is_cut = cut if is_cut is None else is_cut | cut
        token = tokens[n] if is_cut is None else is_cut.select(fill, tokens[n])
        mixed = mixed ^ token * factors[n]
        products.append(mixed.unsqueeze(ctx.rank(mixed.value)).value)
    axis = ctx.rank(mixed.value) - 1
    sizes = Expression(ctx, vocab_sizes)
    sizes = Expression(ctx, ctx.reshape(sizes.checked("vocab_sizes above 0", sizes > 0).value, [rows, heads]))
    hashes = _remainder(Expression(ctx, ctx.emit("Concat", *products, axis=axis)), sizes)
    flat = Expression(ctx, ctx.emit("Reshape", hashes.value, [*[0] * axis, rows * heads], special_zero=True))
    return (flat if offsets is None else flat + Expression(ctx, offsets)).value


def _remainder(x: Expression, by: Expression) -> Expression:
    """x modulo integers above 0: OpenVINO's CPU plugin divides in f32, which the second step corrects."""
    for _ in range(2):
        x = x - x / by * by
    return (x < 0).select(x + by, x)


@translates("DynamicTimeWarping", domain=COM_MICROSOFT)
def dynamic_time_warping(ctx: TranslationContext, x: Annotated[Value, Rank(2, 3)]) -> Value:
    """The cheapest path from the first to the last element of costs (rows, columns), as (2, steps).

    A loop over the diagonals, whose elements follow from the two before, and a loop along the path from its end.
    """
    costs = x if ctx.rank(x) == 2 else ctx.emit("Squeeze", x, [0])
    rows, columns = (Expression(ctx, ctx.size(costs, axis)) for axis in (0, 1))
    count = rows + columns - 1
    row = arange(ctx, 0, rows)
    column = arange(ctx, 0, count).column() - row
    flat = ctx.reshape(costs, [-1])
    index = row * columns + column.maximum(0).minimum(columns - 1)
    infinite = Expression(ctx, ctx.constant(float("inf")))
    values = Expression(ctx, ctx.gather(flat, index.value, 0))
    diagonals = ((column >= 0) & (column < columns)).select(values, infinite).value
    nothing = ctx.full(infinite.value, (rows + 1).unsqueeze(0).value)
    start = ctx.emit("Concat", ctx.constant([0.0]), ctx.full(infinite.value, rows.unsqueeze(0).value), axis=0)

    def diagonal(builder: BodyBuilder, states: list[Value], parts: list[Value]) -> IterationResult:
        """Minimum over the three elements before each; the first element of a state stands before the first row."""
        inner = builder.inner
        both, above, left = (
            Expression(inner, inner.slice(state, begin, end, 0))
            for state, begin, end in ((states[1], 0, -1), (states[0], 0, -1), (states[0], 1, _END))
        )
        best = both.minimum(above)
        step = (left <= best).select(2, (above < both).select(1, Expression(inner, inner.constant([0]))))
        total = best.minimum(left) + Expression(inner, inner.emit("Squeeze", parts[0], [0]))
        new = inner.emit("Concat", inner.constant([float("inf")]), total.value, axis=0)
        return IterationResult([new, states[0]], [(step.unsqueeze(0).value, IterationSlice(0))])

    steps = build_loop(ctx, [nothing, start], [(diagonals, IterationSlice(0))], diagonal)[2]

    def back(builder: BodyBuilder, states: list[Value], _: list[Value]) -> IterationResult:
        inner = builder.inner
        at = Expression(inner, states[0])
        place = Expression(inner, inner.gather(at.value, [0], 0))
        index = inner.emit("Concat", at.sum(0).value, place.value, axis=0)
        step = inner.emit("GatherND", builder.captured(steps), index)
        new = at - Expression(inner, inner.gather(inner.constant([[1, 1], [1, 0], [0, 1]]), step, 0))
        continues = inner.emit("ReduceLogicalAnd", (new >= 0).value, [0], keep_dims=False)
        return IterationResult([new.value], [(at.unsqueeze(0).value, IterationSlice(0))], continues)

    corner = ctx.emit("Concat", (rows - 1).unsqueeze(0).value, (columns - 1).unsqueeze(0).value, axis=0)
    path = build_loop(ctx, [corner], [], back, bounds=(count.value, ctx.constant(True)))[1]
    forward = ctx.emit("Slice", path, [-1], [-_END], [-1], [0])
    return ctx.convert(ctx.transpose(forward, [1, 0]), I32)
