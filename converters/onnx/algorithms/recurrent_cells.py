"""Recurrent cells in single operations, and the loop over time that runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from converters.onnx.algorithms.expression import Expression, positions
from converters.onnx.body_builder import BodyBuilder, IterationResult, IterationSlice, build_loop
from converters.onnx.context import TranslationContext
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value

# Defaults of alpha and beta by activation; None is a required parameter. The specification has no defaults for Affine
# and ScaledTanh; the default of ThresholdedRelu is 1 in the specification and 0 in ONNX Runtime.
_PARAMETERS: dict[str, tuple[float | None, ...]] = {
    "affine": (None, None), "relu": (), "leakyrelu": (0.01,), "thresholdedrelu": (None,), "tanh": (),
    "scaledtanh": (None, None), "sigmoid": (), "hardsigmoid": (0.2, 0.5), "elu": (1.0,), "softsign": (), "softplus": (),
}  # fmt: skip
_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


@dataclass(frozen=True)
class Function:
    """An activation: its name in lower case, and its parameters; None for a parameter that it does not have."""

    name: str
    alpha: float | None = None
    beta: float | None = None


def functions_of(
    default: Sequence[str], direction: str, names: Sequence[str] | None, alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
) -> tuple[tuple[Function, ...], ...]:  # fmt: skip
    """The activations of each direction. An activation with parameters consumes the next of ``alphas`` and ``betas``.

    Raises:
        OpError: an activation is unknown, or there are too few of them.
    """
    count = len(default) * _DIRECTIONS[direction]
    chosen = list(names) if names else list(default) * _DIRECTIONS[direction]
    # RNN's two default names may also be written for one direction.
    if len(chosen) < count:
        raise OpError(f"activations are {', '.join(chosen)}, expected {count}")
    left = (list(alphas or ()), list(betas or ()))
    functions = [_function(name, *left) for name in chosen[:count]]
    return tuple(tuple(functions[i : i + len(default)]) for i in range(0, count, len(default)))


def _function(name: str, *left: list[float]) -> Function:
    folded = name.lower()
    if folded not in _PARAMETERS:
        raise OpError(f"activation {name!r} is not one of {', '.join(_PARAMETERS)}")
    values = []
    for left_values, default, what in zip(left, _PARAMETERS[folded], ("alpha", "beta"), strict=False):
        value = left_values.pop(0) if left_values else default
        if value is None:
            raise OpError(f"activation {name} needs {what}, which is not given")
        values.append(value)
    return Function(folded, *values)


def _apply(x: Expression, function: Function) -> Expression:
    """The activation; in single operations where IR has no operation with these parameters."""
    ctx, value, alpha, beta = x.ctx, x.value, function.alpha or 0.0, function.beta or 0.0
    match function.name:
        case "affine":
            return x * alpha + beta
        case "scaledtanh":
            return (x * beta).tanh() * alpha
        case "leakyrelu":
            return Expression(ctx, ctx.emit("PRelu", value, ctx.constant([alpha], value)))
        case "thresholdedrelu":
            return (x > alpha).select(x, Expression(ctx, ctx.constant(0, value)))
        case "hardsigmoid":
            parameters = ctx.constant(alpha, value), ctx.constant(beta, value)
            return Expression(ctx, ctx.emit("HardSigmoid", value, *parameters))
        case "elu":
            return Expression(ctx, ctx.emit("Elu", value, alpha=alpha))
    types = {"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid", "softsign": "SoftSign", "softplus": "SoftPlus"}
    return Expression(ctx, ctx.emit(types[function.name], value))


@dataclass(frozen=True, eq=False)
class Gates:
    """The values that a cell reads in one time step.

    ``ready`` must be the second operand of sums. OpenVINO's CPU plugin may compute a sum in place of its first operand:
    if that is a slice of an input and the sum is a state, the next slice overwrites the state before it is read.

    Attributes:
        ready: the product of the input plus biases for each gate, (B, H).
        recurrence: R, (G * H, H).
        last_bias: the recurrent bias of a GRU's candidate, if the reset gate multiplies it.
        peepholes: (1, H) each; empty without peepholes.
        functions: the activations.
        clip: the bound of the activations' inputs; 0 means unbounded.
        input_forget: True if the forget gate is 1 - the input gate.
        product: the product of the state and R, in place of a matrix product of floats.
    """

    ready: Sequence[Expression]
    recurrence: Expression
    last_bias: Expression | None
    peepholes: Sequence[Expression]
    functions: Sequence[Function]
    clip: float
    input_forget: bool
    product: Callable[[Expression], Value] | None = None

    def apply(self, i: int, x: Expression) -> Expression:
        """The i-th activation, of the clipped value."""
        if self.clip > 0:
            x = Expression(x.ctx, x.ctx.emit("Clamp", x.value, min=-self.clip, max=self.clip))
        return _apply(x, self.functions[i])

    def recurrent(self, hidden: Expression, count: int, *, matrix: Expression | None = None) -> list[Expression]:
        """The products of the state for ``count`` gates."""
        if self.product is not None:
            return _columns(Expression(hidden.ctx, self.product(hidden)), count)
        product = hidden.ctx.emit("MatMul", hidden.value, (matrix or self.recurrence).value, transpose_b=True)
        return _columns(Expression(hidden.ctx, product), count)


def _columns(x: Expression, count: int) -> list[Expression]:
    """``x`` split into equal parts along axis 1."""
    if count == 1:
        return [x]
    return [Expression(x.ctx, part) for part in x.ctx.emit("Split", x.value, x.ctx.constant(1), num_splits=count)]


Cell = Callable[[Gates, Sequence[Expression]], list[Expression]]


def rnn_cell(gates: Gates, states: Sequence[Expression]) -> list[Expression]:
    """One step of an RNN."""
    return [gates.apply(0, gates.recurrent(states[0], 1)[0] + gates.ready[0])]


def gru_cell(gates: Gates, states: Sequence[Expression]) -> list[Expression]:
    """One step of a GRU; with ``last_bias`` the reset gate multiplies the product."""
    (hidden,) = states
    ctx, size = hidden.ctx, hidden.ctx.static(gates.recurrence.value, "R")[1]
    parts = ctx.emit("VariadicSplit", gates.recurrence.value, ctx.constant(0), [2 * size, size])
    both, candidate = Expression(ctx, parts[0]), Expression(ctx, parts[1])
    update, reset = (
        gates.apply(0, state + ready)
        for ready, state in zip(gates.ready[:2], gates.recurrent(hidden, 2, matrix=both), strict=True)
    )
    if gates.last_bias is not None:
        inner = reset * (gates.recurrent(hidden, 1, matrix=candidate)[0] + gates.last_bias)
    else:
        inner = gates.recurrent(reset * hidden, 1, matrix=candidate)[0]
    return [(1 - update) * gates.apply(1, gates.ready[2] + inner) + update * hidden]


def lstm_cell(gates: Gates, states: Sequence[Expression]) -> list[Expression]:
    """One step of an LSTM; the peephole of the output gate reads the new cell state."""
    hidden, cell = states
    i, o, f, c = (state + ready for ready, state in zip(gates.ready, gates.recurrent(hidden, 4), strict=True))
    if gates.peepholes:
        i, f = i + gates.peepholes[0] * cell, f + gates.peepholes[2] * cell
    i = gates.apply(0, i)
    f = 1 - i if gates.input_forget else gates.apply(0, f)
    cell = f * cell + i * gates.apply(1, c)
    if gates.peepholes:
        o = o + gates.peepholes[1] * cell
    return [gates.apply(0, o) * _apply(cell, gates.functions[2]), cell]


Recurrent = Callable[[BodyBuilder, Expression], Value]
"""Computes the product of the states (B, H) and R inside of a body. States of sequences that have ended are 0."""


def loop_over_time(
    ctx: TranslationContext, cell: Cell, functions: Sequence[Function], product: Value, lengths: Value | None, r: Value,
    bias: Value, last_bias: Value | None, peepholes: Value | None, states: Sequence[Value], *, reverse: bool,
    clip: float, input_forget: bool, recurrent: Recurrent | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    """One direction of a network as a loop over time.

    Args:
        ctx: the context.
        cell: one time step.
        functions: the activations.
        product: the product of the input and W, (B, T, G * H).
        lengths: (B); None if every sequence has length T.
        r, bias, last_bias, peepholes: one row each; see Gates.
        states: (B, 1, H).
        reverse: True to begin at the end of each sequence.
        clip, input_forget: see Gates.
        recurrent: computes the product of the states and R in place of a matrix product of floats.

    Returns:
        Y (B, 1, T, H) and the last states (B, 1, H).
    """
    by_length = reverse and lengths is not None
    ready = ctx.emit("Add", product, bias)
    ready = _reversed(ctx, ready, lengths) if by_length else ready
    sliced = [(ready, IterationSlice(1, reverse and not by_length))]
    if lengths is not None:
        sliced.append((ctx.unsqueeze(positions(ctx, product, 1).value, [0]), IterationSlice(1)))
    shape = ctx.static(r, "R")
    gate_rows, size = shape[1], shape[2]
    recurrence = ctx.emit("Squeeze", r, [0])
    lengths_column = None if lengths is None else ctx.unsqueeze(ctx.convert(lengths, I64), [1])

    def iteration(builder: BodyBuilder, given: list[Value], parts: list[Value]) -> IterationResult:
        inner = builder.inner
        last = None if last_bias is None else Expression(inner, builder.captured(last_bias))
        holes = [] if peepholes is None else _columns(Expression(inner, builder.captured(peepholes)), 3)

        def multiplied(hidden: Expression) -> Value:
            if lengths_column is not None:
                has_begun = Expression(inner, parts[1]) <= Expression(inner, builder.captured(lengths_column))
                hidden = has_begun.select(hidden, Expression(inner, inner.constant(0, hidden.value)))
            return recurrent(builder, hidden) if recurrent is not None else hidden.value

        work = Gates(
            _columns(Expression(inner, inner.emit("Squeeze", parts[0], [1])), gate_rows // size),
            Expression(inner, builder.captured(recurrence)), last, holes, functions, clip, input_forget,
            None if recurrent is None else multiplied,
        )  # fmt: skip
        old = [Expression(inner, state) for state in given]
        new = cell(work, old)
        y = new[0]
        if lengths_column is not None:
            is_within = Expression(inner, parts[1]) < Expression(inner, builder.captured(lengths_column))
            new = [is_within.select(one, before) for one, before in zip(new, old, strict=True)]
            y = is_within.select(y, Expression(inner, inner.constant(0, y.value)))
        return IterationResult(
            [state.value for state in new],
            [(inner.unsqueeze(y.value, [1]), IterationSlice(1, reverse and not by_length))],
        )

    *last, y = build_loop(ctx, [ctx.emit("Squeeze", state, [1]) for state in states], sliced, iteration)
    y = _reversed(ctx, y, lengths) if by_length else y
    return tuple(ctx.unsqueeze(value, [1]) for value in (y, *last))


def _reversed(ctx: TranslationContext, x: Value, lengths: Value | None) -> Value:
    """Every sequence reversed within its own length."""
    if lengths is None:
        return x
    return ctx.emit(
        "ReverseSequence", x, ctx.emit("Maximum", lengths, ctx.constant(1, lengths)), batch_axis=0, seq_axis=1
    )
