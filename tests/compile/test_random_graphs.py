"""Random graphs give the same with every pass, with each pass alone and on two threads as with reference kernels alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irexec
from irexec.analysis.builder import Builder
from irexec.dtypes.elements import F32
from irexec.ir.dims import Dim, is_static
from irexec.ir.graph import Value
from irexec.runtime.compiled_model import CompiledModel
from tests.support.passes import ALONE

Shape = tuple[int, ...]
Draw = Callable[[st.SearchStrategy[Any]], Any]
TOLERANCE = 2e-5


@dataclass
class Recipe:
    """A graph as a list of what to emit, so that it can be built with inputs of known and of unknown shapes.

    Attributes:
        inputs: the shapes of the Parameters.
        layers: type, operands (the number of a value, or a constant), attributes, which output; each gives the next value.
        shapes: of all values, those of the Parameters first.
        targets: values that become Results.
    """

    inputs: list[Shape] = field(default_factory=list)
    layers: list[tuple[str, tuple[int | np.ndarray, ...], dict[str, Any], int]] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)

    def build(self, dynamic: bool = False, targets: Sequence[int] | None = None) -> irexec.Model:
        """The model; with ``dynamic`` nothing but the rank of the inputs is known."""
        builder = Builder("random")
        values = [
            builder.parameter(F32, tuple(Dim() for _ in shape) if dynamic else shape, f"x{i}")
            for i, shape in enumerate(self.inputs)
        ]
        for layer in self.layers:
            values.append(_emit(builder, values, layer))
        for i in self.targets if targets is None else targets:
            builder.result(values[i])
        return builder.model()

    def feeds(self) -> list[np.ndarray]:
        rng = np.random.default_rng(1)
        return [rng.normal(size=shape).astype(np.float32) for shape in self.inputs]

    def __repr__(self) -> str:
        rows = [f"x{i}: {shape}" for i, shape in enumerate(self.inputs)]
        for i, (type, operands, attributes, output) in enumerate(self.layers, len(self.inputs)):
            texts = [
                f"v{o}" if isinstance(o, int) else f"constant{o.shape}" if o.size > 8 else str(o.tolist())
                for o in operands
            ]
            rows.append(f"v{i}: {self.shapes[i]} = {type}({', '.join(texts)}, {attributes})[{output}]")
        return "\n".join([*rows, f"targets {self.targets}"])


def _emit(
    builder: Builder, values: Sequence[Value], layer: tuple[str, tuple[int | np.ndarray, ...], dict[str, Any], int]
) -> Value:
    type, operands, attributes, output = layer
    made = builder.emit(
        type, *(values[o] if isinstance(o, int) else builder.constant(o) for o in operands), **attributes
    )
    return made[output] if isinstance(made, tuple) else made


class _Author:
    """Writes a recipe, one layer after the other, with choices that hypothesis makes."""

    def __init__(self, draw: Draw) -> None:
        self.draw, self.recipe, self.builder = draw, Recipe(), Builder("shapes")
        self.values: list[Value] = []

    def write(self) -> Recipe:
        for _ in range(self.number(1, 2)):
            shape = tuple(self.number(1, 5) for _ in range(self.number(2, 4)))
            self.recipe.inputs.append(shape)
            self.values.append(self.builder.parameter(F32, shape, f"x{len(self.values)}"))
            self.recipe.shapes.append(shape)
        for _ in range(self.number(1, 14)):
            self.draw(st.sampled_from(_KINDS))(self)
        count = len(self.values)
        last = {count - 1} | {self.number(0, count - 1) for _ in range(self.number(0, 3))}
        self.recipe.targets = sorted(last)
        return self.recipe

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def one_of(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def value(self, *ranks: int) -> int | None:
        """A value of one of the ranks; recent ones are likelier, so that graphs get deep."""
        found = [i for i, shape in enumerate(self.recipe.shapes) if not ranks or len(shape) in ranks]
        return None if not found else found[-1 - min(self.number(0, 3) * self.number(0, 2), len(found) - 1)]

    def shape(self, value: int) -> Shape:
        return self.recipe.shapes[value]

    def constant(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        rng = np.random.default_rng(len(self.values))
        return (scale * rng.normal(size=shape)).astype(np.float32)

    def emit(self, type: str, *operands: int | np.ndarray, output: int = 0, **attributes: Any) -> int:
        layer = (type, operands, attributes, output)
        value = _emit(self.builder, self.values, layer)
        self.values.append(value)
        self.recipe.layers.append(layer)
        assert value.fact is not None and is_static(value.fact.shape)
        self.recipe.shapes.append(value.fact.shape)
        return len(self.values) - 1


_UNARY: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Relu", {}), ("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("Abs", {}), ("Negative", {}), ("HSwish", {}), ("Swish", {}), ("Erf", {}),
    ("Gelu", {"approximation_mode": "ERF"}), ("Elu", {"alpha": 0.5}), ("Clamp", {"min": -0.5, "max": 0.8}), ("Identity", {}),
    ("Convert", {"destination_type": F32}),
)  # fmt: skip


def unary(author: _Author) -> None:
    type, attributes = author.one_of(*_UNARY)
    author.emit(type, author.value() or 0, **attributes)


def binary(author: _Author) -> None:
    """With a constant that broadcasts in one way or another, or with an earlier value that fits."""
    value = author.value() or 0
    shape = author.shape(value)
    fitting = [i for i, other in enumerate(author.recipe.shapes) if _fits(other, shape)]
    kind = author.one_of("value", "value", "scalar", "channel", "row", "part", "neutral")
    type = author.one_of("Add", "Add", "Multiply", "Multiply", "Subtract", "Maximum", "SquaredDifference", "Divide")
    other: int | np.ndarray
    if kind == "value" and type != "Divide":
        other = author.one_of(*fitting)
    elif kind == "neutral":
        other = np.full(shape[-1:], 1.0 if type in ("Multiply", "Divide") else 0.0, np.float32)
    else:
        sizes = {
            "channel": [size if i == 1 else 1 for i, size in enumerate(shape)],
            "row": list(shape[-1:]),
            "part": list(shape),
        }
        other = author.constant(*sizes.get(kind, []))
        if type == "Divide":
            other = np.sign(other + 1e-3) * (np.abs(other) + 0.5).astype(np.float32)
    pair = (value, other) if author.one_of(True, True, False) or type == "Divide" else (other, value)
    author.emit(type, *pair)


def _fits(shape: Shape, other: Shape) -> bool:
    return len(shape) <= len(other) and all(a in (1, b) for a, b in zip(shape[::-1], other[::-1], strict=False))


def product(author: _Author) -> None:
    """MatMul with constant weights, or of a value with itself."""
    value = author.value() or 0
    shape = author.shape(value)
    if len(shape) < 2:
        return
    a, b = author.one_of(False, False, True), author.one_of(False, True)
    inner, outer = shape[-2 if a else -1], author.number(1, 6)
    if author.one_of(True, True, False):
        weights = author.constant(*((outer, inner) if b else (inner, outer)), scale=inner**-0.5)
        author.emit("MatMul", value, weights, transpose_a=a, transpose_b=b)
    else:
        author.emit("MatMul", value, value, transpose_a=a, transpose_b=not a)


def convolution(author: _Author) -> None:
    value = author.value(3, 4)
    if value is None:
        return
    channels, *sizes = author.shape(value)[1:]
    spatial = len(sizes)
    kernel = [author.number(1, min(3, size)) for size in sizes]
    windows = {
        "strides": (author.number(1, 2),) * spatial,
        "pads_begin": (author.number(0, 1),) * spatial,
        "pads_end": (author.number(0, 1),) * spatial,
        "dilations": (1,) * spatial,
    }
    kind, outputs = author.one_of("plain", "plain", "grouped", "transposed"), author.number(1, 6)
    scale = (channels * np.prod(kernel)) ** -0.5
    if kind == "transposed":
        windows |= dict.fromkeys(("pads_begin", "pads_end"), (0,) * spatial)
        author.emit(
            "ConvolutionBackpropData", value, author.constant(channels, outputs, *kernel, scale=scale), **windows
        )
    elif kind == "grouped":
        author.emit(
            "GroupConvolution",
            value,
            author.constant(channels, author.number(1, 2), 1, *kernel, scale=scale),
            **windows,
        )
    else:
        author.emit("Convolution", value, author.constant(outputs, channels, *kernel, scale=scale), **windows)


def normalization(author: _Author) -> None:
    value = author.value() or 0
    shape = author.shape(value)
    if len(shape) < 2:
        return
    kind = author.one_of("BatchNormInference", "BatchNormInference", "MVN", "Softmax")
    if kind == "BatchNormInference":
        four = [author.constant(shape[1]) for _ in range(4)]
        author.emit(kind, value, *four[:3], np.abs(four[3]) + 0.5, epsilon=0.1)
    elif kind == "MVN":
        author.emit(kind, value, np.array([-1]), normalize_variance=True, eps=0.1, eps_mode="inside_sqrt")
    else:
        author.emit(kind, value, axis=author.number(0, len(shape) - 1))


def reduction(author: _Author) -> None:
    value = author.value() or 0
    rank = len(author.shape(value))
    axes = [axis for axis in range(rank) if author.one_of(True, False)]
    keep = author.one_of(True, True, False) or rank - len(axes) < 2
    author.emit(author.one_of("ReduceMean", "ReduceSum", "ReduceMax"), value, np.array(axes, np.int64), keep_dims=keep)


def pooling(author: _Author) -> None:
    value = author.value(3, 4)
    if value is None:
        return
    spatial = len(author.shape(value)) - 2
    kernel = tuple(author.number(1, min(2, size)) for size in author.shape(value)[2:])
    common = {"strides": (1,) * spatial, "pads_begin": (0,) * spatial, "pads_end": (0,) * spatial, "kernel": kernel}
    author.emit("AvgPool", value, **common, exclude_pad=True, rounding_type="floor")


def reshape(author: _Author) -> None:
    value = author.value() or 0
    shape = author.shape(value)
    axis = author.number(0, len(shape) - 1)
    kind = author.one_of("merge", "split", "Squeeze", "Unsqueeze", "same")
    if kind == "merge" and len(shape) > 2 and axis + 1 < len(shape):
        target = [*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]]
    elif kind == "split" and len(shape) < 4 and shape[axis] % 2 == 0:
        target = [*shape[:axis], *author.one_of((2, shape[axis] // 2), (shape[axis] // 2, 2)), *shape[axis + 1 :]]
    elif kind == "Squeeze" and shape[axis] == 1 and len(shape) > 2:
        author.emit(kind, value, np.array([axis]))
        return
    elif kind == "Unsqueeze" and len(shape) < 4:
        author.emit(kind, value, np.array([author.number(0, len(shape))]))
        return
    else:
        target = list(shape)
    author.emit("Reshape", value, np.array(target), special_zero=False)


def transpose(author: _Author) -> None:
    value = author.value() or 0
    order = author.draw(st.permutations(range(len(author.shape(value)))))
    author.emit("Transpose", value, np.array(order))


def concat(author: _Author) -> None:
    value = author.value() or 0
    shape = author.shape(value)
    same = [i for i, other in enumerate(author.recipe.shapes) if other == shape]
    if np.prod(shape) < 400:
        author.emit(
            "Concat",
            *(author.one_of(*same) for _ in range(author.number(1, 3))),
            axis=author.number(-1, len(shape) - 1),
        )


def split(author: _Author) -> None:
    value = author.value() or 0
    shape = author.shape(value)
    axis = author.number(0, len(shape) - 1)
    if shape[axis] > 1 and author.one_of(True, False):
        lengths = np.array([1, shape[axis] - 1])
        for output in (0, 1):
            author.emit("VariadicSplit", value, np.array(axis), lengths, output=output)
    elif author.one_of(True, False):
        step = author.one_of(1, 1, 2)
        author.emit(
            "Slice",
            value,
            np.array([author.number(0, shape[axis] - 1)]),
            np.array([99]),
            np.array([step]),
            np.array([axis]),
        )
    else:
        pads = [np.array([author.number(0, 1) if i == axis else 0 for i in range(len(shape))]) for _ in range(2)]
        author.emit("Pad", value, *pads, pad_mode="constant")


_KINDS = (
    unary, unary, unary, binary, binary, binary, product, product, convolution, convolution, normalization, normalization, reduction,
    pooling, reshape, reshape, transpose, transpose, transpose, concat, split,
)  # fmt: skip


@st.composite
def recipes(draw: Draw) -> Recipe:
    return _Author(draw).write()


def check(recipe: Recipe, dynamic: bool) -> None:
    """Results differ at most by a part of the largest value anywhere in the graph, since later layers may cancel it."""
    feeds = recipe.feeds()
    model, static = recipe.build(dynamic), recipe.build(targets=range(len(recipe.shapes)))
    values = list(irexec.compile_model(static, optimize=False)(feeds).values())
    bound = TOLERANCE * max(float(np.abs(value).max(initial=1e-3)) for value in values)
    for optimize, threads in [(False, 1), (True, 1), (True, 2), *((names, 1) for names in ALONE)]:
        compiled = CompiledModel(model, optimize=optimize, threads=threads)
        for _ in range(2):
            for target, array in zip(recipe.targets, compiled(feeds).values(), strict=True):
                expected = values[target]
                assert array.shape == expected.shape
                np.testing.assert_allclose(
                    array, expected, rtol=0, atol=bound, err_msg=f"v{target}, optimize={optimize}, {threads=}"
                )


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@settings(max_examples=25)
@given(recipe=recipes())
@pytest.mark.sampled(4)
def test_random_graphs(dynamic: bool, recipe: Recipe) -> None:
    check(recipe, dynamic)
