"""Recurrent cells written out in single operations, and the loop over time that runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from converters.onnx.algorithms.expression import Expression, positions
from converters.onnx.bodies import Frame, Part, Step, iterate
from converters.onnx.context import Context
from irexec.dtypes.elements import I64
from irexec.errors import OpError
from irexec.ir.graph import Value

# Which of alpha and beta an activation takes, and what they are where none is given (None: they must be). That of
# ThresholdedRelu is 1 in the specification and 0 in ONNX Runtime; Affine and ScaledTanh have none in the specification.
_PARAMETERS: dict[str, tuple[float | None, ...]] = {
    "affine": (None, None), "relu": (), "leakyrelu": (0.01,), "thresholdedrelu": (None,), "tanh": (), "scaledtanh": (None, None),
    "sigmoid": (), "hardsigmoid": (0.2, 0.5), "elu": (1.0,), "softsign": (), "softplus": (),
}  # fmt: skip
_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


@dataclass(frozen=True)
class Function:
    """An activation: its name in small letters and its parameters, None where it takes none."""

    name: str
    alpha: float | None = None
    beta: float | None = None


def functions_of(
    default: Sequence[str], direction: str, names: Sequence[str] | None, alphas: Sequence[float] | None, betas: Sequence[float] | None
) -> tuple[tuple[Function, ...], ...]:
    """The activations of each direction. Each takes from ``alphas`` and ``betas`` in turn what it has use for.

    Raises:
        OpError: there is no such direction or activation, or there are too few.
    """
    if direction not in _DIRECTIONS:
        raise OpError(f"direction is {direction!r}, expected {', '.join(_DIRECTIONS)}")
    count = len(default) * _DIRECTIONS[direction]
    chosen = list(names) if names else list(default) * _DIRECTIONS[direction]
    # RNN's default of two names is for one direction too.
    if len(chosen) < count:
        raise OpError(f"activations are {', '.join(chosen)}, expected {count}")
    left = (list(alphas or ()), list(betas or ()))
    functions = [_function(name, *left) for name in chosen[:count]]
    return tuple(tuple(functions[i : i + len(default)]) for i in range(0, count, len(default)))


def _function(name: str, *left: list[float]) -> Function:
    folded = name.lower()
    if folded not in _PARAMETERS:
        raise OpError(f"activation {name!r} is none of {', '.join(_PARAMETERS)}")
    numbers = []
    for numbers_left, default, what in zip(left, _PARAMETERS[folded], ("alpha", "beta"), strict=False):
        number = numbers_left.pop(0) if numbers_left else default
        if number is None:
            raise OpError(f"activation {name} needs {what}, which is not given")
        numbers.append(number)
    return Function(folded, *numbers)


def _apply(x: Expression, function: Function) -> Expression:
    """The activation, written out in single operations where IR has none with these parameters."""
    b, value, alpha, beta = x.b, x.value, function.alpha or 0.0, function.beta or 0.0
    match function.name:
        case "affine":
            return x * alpha + beta
        case "scaledtanh":
            return (x * beta).tanh() * alpha
        case "leakyrelu":
            return Expression(b, b.emit("PRelu", value, b.constant([alpha], value)))
        case "thresholdedrelu":
            return (x > alpha).select(x, Expression(b, b.constant(0, value)))
        case "hardsigmoid":
            return Expression(b, b.emit("HardSigmoid", value, b.constant(alpha, value), b.constant(beta, value)))
        case "elu":
            return Expression(b, b.emit("Elu", value, alpha=alpha))
    types = {"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid", "softsign": "SoftSign", "softplus": "SoftPlus"}
    return Expression(b, b.emit(types[function.name], value))


@dataclass(frozen=True, eq=False)
class Gates:
    """What a cell has to work with in one step.

    Sums have ``ready`` second: OpenVINO's CPU plugin may write a sum over its first operand, and where that is the part of a
    sliced input and the sum becomes a state, the next part is copied over it before it has been read.

    Attributes:
        ready: for each gate the input's part of it, biases included, (B, H).
        recurrence: R, (G * H, H).
        last_bias: the recurrent bias of a GRU's candidate, if it stands behind the reset gate.
        peepholes: (1, H) each, or none.
        functions: the activations.
        clip: limits what goes into them; 0: not.
        input_forget: the forget gate is 1 less the input gate.
    """

    ready: Sequence[Expression]
    recurrence: Expression
    last_bias: Expression | None
    peepholes: Sequence[Expression]
    functions: Sequence[Function]
    clip: float
    input_forget: bool

    def apply(self, i: int, x: Expression) -> Expression:
        """The i-th activation of what is clipped before."""
        if self.clip > 0:
            x = Expression(x.b, x.b.emit("Clamp", x.value, min=-self.clip, max=self.clip))
        return _apply(x, self.functions[i])

    def recurrent(self, hidden: Expression, count: int, *, matrix: Expression | None = None) -> list[Expression]:
        """The state's part of ``count`` gates."""
        b = hidden.b
        product = b.emit("MatMul", hidden.value, (matrix or self.recurrence).value, transpose_b=True)
        if count == 1:
            return [Expression(b, product)]
        return [Expression(b, part) for part in b.emit("Split", product, b.constant(1), num_splits=count)]


Cell = Callable[[Gates, Sequence[Expression]], list[Expression]]


def rnn_cell(gates: Gates, states: Sequence[Expression]) -> list[Expression]:
    """One step of a plain network."""
    return [gates.apply(0, gates.recurrent(states[0], 1)[0] + gates.ready[0])]


def gru_cell(gates: Gates, states: Sequence[Expression]) -> list[Expression]:
    """One step of a GRU; with ``last_bias`` the reset gate comes behind the product."""
    (hidden,) = states
    b, size = hidden.b, hidden.b.static(gates.recurrence.value, "R")[1]
    parts = b.emit("VariadicSplit", gates.recurrence.value, b.constant(0), [2 * size, size])
    both, candidate = Expression(b, parts[0]), Expression(b, parts[1])
    update, reset = (
        gates.apply(0, state + ready) for ready, state in zip(gates.ready[:2], gates.recurrent(hidden, 2, matrix=both), strict=True)
    )
    if gates.last_bias is not None:
        inner = reset * (gates.recurrent(hidden, 1, matrix=candidate)[0] + gates.last_bias)
    else:
        inner = gates.recurrent(reset * hidden, 1, matrix=candidate)[0]
    return [(1 - update) * gates.apply(1, gates.ready[2] + inner) + update * hidden]


def lstm_cell(gates: Gates, states: Sequence[Expression]) -> list[Expression]:
    """One step of an LSTM; the output gate's peephole sees the new cell state."""
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


def unrolled(
    b: Context, cell: Cell, functions: Sequence[Function], x: Value, lengths: Value | None, w: Value, r: Value, bias: Value,
    last_bias: Value | None, peepholes: Value | None, states: Sequence[Value], *, reverse: bool, clip: float, input_forget: bool,
) -> tuple[Value, ...]:  # fmt: skip
    """One direction of a network as a loop over time, in which the input's products are made before.

    Args:
        b: the context.
        cell: one step.
        functions: the activations.
        x: (B, T, I).
        lengths: (B), or None for all of T.
        w, r, bias, last_bias, peepholes: one row each, as Gates has them.
        states: (B, 1, H).
        reverse: from the end of each sequence.
        clip, input_forget: as Gates has them.

    Returns:
        Y (B, 1, T, H) and the last states (B, 1, H).
    """
    ready = Expression(b, b.emit("MatMul", x, b.emit("Squeeze", w, [0]), transpose_b=True)) + Expression(b, bias)
    turned = reverse and lengths is not None
    cut = [(_turned(b, ready.value, lengths) if turned else ready.value, Part(1, reverse and not turned))]
    if lengths is not None:
        cut.append((b.unsqueeze(positions(b, x, 1).value, [0]), Part(1)))
    gate_rows, size = b.static(r, "R")[1:]
    recurrence = b.emit("Squeeze", r, [0])
    ends = None if lengths is None else b.unsqueeze(b.convert(lengths, I64), [1])

    def step(frame: Frame, given: list[Value], parts: list[Value]) -> Step:
        inner = frame.inner
        gates = inner.emit("Squeeze", parts[0], [1])
        split = inner.emit("Split", gates, inner.constant(1), num_splits=gate_rows // size) if gate_rows > size else [gates]
        last = None if last_bias is None else Expression(inner, frame.take(last_bias))
        holes = [] if peepholes is None else inner.emit("Split", frame.take(peepholes), inner.constant(1), num_splits=3)
        work = Gates(
            [Expression(inner, gate) for gate in split], Expression(inner, frame.take(recurrence)), last,
            [Expression(inner, hole) for hole in holes], functions, clip, input_forget,
        )  # fmt: skip
        old = [Expression(inner, state) for state in given]
        new = cell(work, old)
        y = new[0]
        if ends is not None:
            inside = Expression(inner, parts[1]) < Expression(inner, frame.take(ends))
            new = [inside.select(one, before) for one, before in zip(new, old, strict=True)]
            y = inside.select(y, Expression(inner, inner.constant(0, y.value)))
        return Step([state.value for state in new], [(inner.unsqueeze(y.value, [1]), Part(1, reverse and not turned))])

    *last, y = iterate(b, [b.emit("Squeeze", state, [1]) for state in states], cut, step)
    y = _turned(b, y, lengths) if turned else y
    return tuple(b.unsqueeze(value, [1]) for value in (y, *last))


def _turned(b: Context, x: Value, lengths: Value | None) -> Value:
    """Each sequence from its own end; one without numbers as it is."""
    if lengths is None:
        return x
    return b.emit("ReverseSequence", x, b.emit("Maximum", lengths, b.constant(1, lengths)), batch_axis=0, seq_axis=1)
