"""Layers that compute each element from elements at the same position."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.legacy_sweep.network import Network, Port
from tests.legacy_sweep.registry import GENERATORS, VERSIONS, chance, generates, pick, shape_of, size, values

ANY = (2, 3, 4, 5, 6, 7)
RECENT = (5, 6, 7)

# The types of one input without attributes, each with the range of the values.
_PLAIN = {
    "Sigmoid": (-6, 6), "TanH": (-4, 4), "ReLU6": (-2, 8), "Exp": (-3, 3), "Abs": (-2, 2), "Acos": (-0.9, 0.9),
    "Acosh": (1.1, 4), "Asin": (-0.9, 0.9), "Asinh": (-3, 3), "Atan": (-3, 3), "Atanh": (-0.9, 0.9),
    "Ceil": (-3, 3), "Cos": (-3, 3), "Cosh": (-3, 3), "Erf": (-3, 3), "Floor": (-3, 3), "Log": (0.1, 5),
    "Neg": (-2, 2), "Reciprocal": (0.3, 3), "Sign": (-2, 2), "Sin": (-3, 3), "Sinh": (-3, 3), "Softplus": (-5, 5),
    "Softsign": (-3, 3), "Tan": (-1.2, 1.2), "Not": (-2, 2),
}  # fmt: skip


def _plain(kind: str, low: float, high: float) -> None:
    def make(net: Network) -> None:
        x = values(net, shape_of(net, size(net, 1, 5)), low, high)
        if chance(net, 0.3):
            x[net.rng.random(x.shape) < 0.3] = 0 if low < 0 else x.flat[0]
        net.layer(kind, [net.input(x)], [x.shape])

    make.__doc__ = f"{kind} of values from {low} to {high}."
    GENERATORS[kind] = make
    VERSIONS[kind] = ANY if kind in ("Sigmoid", "TanH", "ReLU6") else RECENT


for _kind, (_low, _high) in _PLAIN.items():
    _plain(_kind, _low, _high)


@generates("ReLU")
def relu(net: Network) -> None:
    x = net.input(values(net, shape_of(net, size(net, 1, 5))))
    slope = pick(net, None, 0.1, -0.5, "1e-1")
    net.layer("ReLU", [x], [x.shape], {} if slope is None else {"negative_slope": slope})


@generates("ELU", versions=(3, 4, 5, 6, 7))
def elu(net: Network) -> None:
    x = net.input(values(net, shape_of(net, size(net, 2, 4))))
    net.layer("ELU", [x], [x.shape], pick(net, {}, {"alpha": 0.5}, {"alpha": "1.0"}))


@generates("PReLU")
def prelu(net: Network) -> None:
    shape = shape_of(net, size(net, 2, 5))
    shared = chance(net, 0.3)
    x = net.input(values(net, shape))
    data = {"channel_shared": pick(net, int(shared), bool(shared))} if shared or chance(net) else {}
    net.layer("PReLU", [x], [shape], data, {"weights": values(net, (1 if shared else shape[1],))})


@generates("Clamp")
def clamp(net: Network) -> None:
    x = net.input(values(net, shape_of(net, size(net, 1, 5))))
    low = float(values(net, (), -1, 0))
    net.layer("Clamp", [x], [x.shape], {"min": low, "max": low + size(net, 0, 2)})


@generates("Power")
def power(net: Network) -> None:
    x = net.input(values(net, shape_of(net, size(net, 1, 5))))
    data = {"power": pick(net, 1, 2, -1, 0.5, 3, "1.000000", 0, -2), "scale": pick(net, 1, 0.5, -2, "1e-1", 0)}
    data["shift"] = pick(net, 0, 1, -0.25, 3)
    net.layer("Power", [x], [x.shape], data)


@generates("HardSigmoid", versions=RECENT)
def hard_sigmoid(net: Network) -> None:
    x = net.input(values(net, shape_of(net, size(net, 1, 4)), -4, 4))
    net.layer("HardSigmoid", [x], [x.shape], pick(net, {}, {"alpha": 0.3, "beta": 0.4}))


@generates("Selu", versions=RECENT)
def selu(net: Network) -> None:
    x = net.input(values(net, shape_of(net, size(net, 1, 4))))
    net.layer("Selu", [x], [x.shape], pick(net, {}, {"alpha": 1.5, "gamma": 1.1}))


@generates("Swish", versions=(6, 7))
def swish(net: Network) -> None:
    x = net.input(values(net, shape_of(net, size(net, 1, 4))))
    net.only = ("2020.4",)
    net.layer("Swish", [x], [x.shape], pick(net, {}, {"alpha": 0.5}))


@generates("Activation")
def activation(net: Network) -> None:
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("sigmoid", {}), ("Sigmoid", {}), ("tanh", {}), ("TanH", {}), ("elu", {}), ("elu", {"alpha": 0.5}), ("relu", {}),
        ("relu", {"negative_slope": 0.2}), ("relu6", {}), ("clamp", {"min": -1, "max": 0.5}), ("logistic", {}),
        ("exp", {}), ("not", {}), ("prelu", {}),
    ]  # fmt: skip
    kind, data = kinds[int(net.rng.integers(len(kinds)))]
    shape = shape_of(net, size(net, 2, 5))
    x = values(net, shape, -4, 8 if kind == "relu6" else 4)
    if kind == "not":
        x[net.rng.random(shape) < 0.4] = 0
    blobs = {"weights": values(net, (shape[1],))} if kind == "prelu" else {}
    net.layer("Activation", [net.input(x)], [shape], {"type": kind, **data}, blobs)


_OF_TWO = ("sum", "mul", "prod", "max", "min", "sub", "div", "squared_diff", "pow")
_TRUTHS = (
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
    "logical_xor",
)  # fmt: skip


@generates("Eltwise")
def eltwise(net: Network) -> None:
    old = net.version < 5
    operation = str(pick(net, *(("sum", "mul", "prod", "max") if old else (*_OF_TWO, *_TRUTHS))))
    shape = shape_of(net, size(net, 1, 5), 2, 4)
    shapes = [shape, shape]
    if not old and chance(net):
        shapes[1] = tuple(1 if chance(net, 0.4) else n for n in shape)[size(net, 0, len(shape) - 1) :]
    elif operation in ("sum", "mul", "max"):
        shapes += [shape] * size(net, 0, 2)
    if operation != "pow" and operation != "div" and chance(net, 0.3):
        shapes[:2] = reversed(shapes[:2])
    inputs = [net.input(_operand(net, operation, s, i)) for i, s in enumerate(shapes)]
    data: dict[str, Any] = {"operation": operation}
    if operation == "sum":
        data = pick(net, data, {}, {**data, "coeff": [pick(net, 1.0, 0.5, -2.0) for _ in shapes]})
    net.layer("Eltwise", inputs, [shape], data)


def _operand(net: Network, operation: str, shape: tuple[int, ...], index: int) -> np.ndarray:
    if operation in _TRUTHS:
        return net.rng.integers(-1, 2, shape).astype(np.float32)
    if operation == "pow" and index == 0:
        return values(net, shape, 0.1, 3)
    if operation == "div" and index == 1:
        return values(net, shape, 0.5, 3)
    return values(net, shape)


@generates("Select", versions=RECENT)
def select(net: Network) -> None:
    shape = shape_of(net, size(net, 1, 4), 1, 4)
    condition = net.rng.integers(0, 2, shape).astype(np.int32)
    branches = [net.input(values(net, shape)) for _ in range(2)]
    net.layer("Select", [net.input(condition), *branches], [shape])


@generates("ScaleShift")
def scale_shift(net: Network) -> None:
    shape = shape_of(net, size(net, 2, 5))
    x = net.input(values(net, shape))
    # With 2 axes and no biases the engines read what is behind the weights.
    has_biases = len(shape) == 2 or chance(net, 0.6)
    blobs = {"weights": values(net, (shape[1],)), "biases": values(net, (shape[1],)) if has_biases else None}
    net.layer("ScaleShift", [x], [shape], {}, blobs)


@generates("BatchNormalization")
def batch_normalization(net: Network) -> None:
    shape = shape_of(net, 4)
    x = net.input(values(net, shape))
    blobs = {"weights": values(net, (shape[1],), 0.1, 2), "biases": values(net, (shape[1],))}
    net.layer("BatchNormalization", [x], [shape], {"epsilon": pick(net, 0.001, "1e-5", 0.1)}, blobs)


@generates("FakeQuantize", versions=(6, 7))
@generates("Quantize", versions=(5,))
def fake_quantize(net: Network) -> None:
    shape = shape_of(net, size(net, 2, 4), 2, 4)
    per_channel = len(shape) == 4 and chance(net)
    ends = (1, shape[1], *(1,) * (len(shape) - 2)) if per_channel else (1,) * len(shape)
    low, out = values(net, ends, -2, -0.5), values(net, ends, -1, 0)
    x = net.input(values(net, shape, -3, 3))
    levels = int(pick(net, 2, 3, 16, 255, 256))
    arrays = [low, low + 2.5, out, out + 1.5]
    (y,) = net.layer(net.type, [x, *map(net.const, arrays)], [shape], {"levels": levels})
    # The engines run no network that ends here.
    net.layer("Eltwise", [y, net.input(values(net, shape))], [shape], {"operation": "sum"})
    # A value beside the middle of two levels may round either way.
    net.atol = 1e-4 + 1.01 / (levels - 1) if levels > 16 else 1e-4


@generates("Convert", versions=(6, 7))
def convert(net: Network) -> None:
    to = str(pick(net, "I32", "FP32"))
    x: Port = net.input(values(net, shape_of(net, size(net, 1, 4)), -9, 9))
    (y,) = net.layer("Convert", [x], [x.shape], {"precision": to}, precision=to)
    # The engines run no network that ends here.
    net.layer("Eltwise", [y, y], [x.shape], {"operation": "sum"}, precision=to)
