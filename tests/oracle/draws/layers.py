"""Normalization, quantization, interpolation and recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.oracle.draw import Draw, Table, model
from tests.support.cases import Case, Typed, typed

DRAWS = Table()
_FLOATS = ("f32", "f32", "f32", "f16", "bf16")


@DRAWS.row(("MVN", 2), ("MVN", 6))
def mvn(d: Draw, type: str, since: int) -> Case:
    normalize, eps = d.chance(), d.pick(1e-9, 1e-5, 0.01, 0.5)
    if since == 2:
        across = d.pick(None, True, False)
        return model(type, since, d.tensor(d.shape(2, 5, 0), _FLOATS), across_channels=across, normalize_variance=normalize, eps=eps)
    shape = d.shape(1, 5, 0)
    mode = d.pick("inside_sqrt", "outside_sqrt")
    return model(type, since, d.tensor(shape, _FLOATS), d.ints(d.axes(len(shape))), normalize_variance=normalize, eps=eps, eps_mode=mode)


@DRAWS.row(("BatchNormInference", 1), ("BatchNormInference", 5))
def batch_norm_inference(d: Draw, type: str, since: int) -> Case:
    shape, kind = d.shape(2, 5, 0), d.pick(*_FLOATS)
    data, channels = d.tensor(shape, kind), shape[1:2]
    gamma, beta, mean = (d.tensor(channels, kind) for _ in range(3))
    variance = d.tensor(channels, kind, 0.1, 3)
    inputs = (data, gamma, beta) if since == 5 else (gamma, beta, data)
    return model(type, since, *inputs, mean, variance, epsilon=d.pick(1e-5, 1e-3, 0.1))


@DRAWS.row(("NormalizeL2", 1))
def normalize_l2(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(1, 4, 0)
    return model(
        type, since, d.tensor(shape, _FLOATS), d.ints(d.axes(len(shape), 0)), eps=d.pick(1e-9, 1e-3, 0.5), eps_mode=d.pick("add", "max")
    )


@DRAWS.row(("LRN", 1))
def lrn(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(2, 5, 0)
    axes = d.pick([1], list(range(2, len(shape))) or [1])
    numbers = {"alpha": d.pick(1e-4, 0.5, 1.0), "beta": d.pick(0.75, 0.5, 2.0), "bias": d.pick(1.0, 2.0), "size": d.pick(1, 2, 3, 4, 5)}
    return model(type, since, d.tensor(shape, ("f32", "f32", "f16")), d.ints(axes, ("i64",)), **numbers)


@DRAWS.row(("GRN", 1))
def grn(d: Draw, type: str, since: int) -> Case:
    return model(type, since, d.tensor(d.shape(2, 4, 0), _FLOATS), bias=d.pick(1e-6, 0.1, 1.0))


@DRAWS.row(("GroupNormalization", 12))
def group_normalization(d: Draw, type: str, since: int) -> Case:
    shape, groups, kind = d.shape(2, 5, 0), d.size(1, 3), d.pick(*_FLOATS)
    shape[1] = groups * d.size(1, 3)
    inputs = (d.tensor(sizes, kind) for sizes in (shape, shape[1:2], shape[1:2]))
    return model(type, since, *inputs, num_groups=groups, epsilon=d.pick(1e-5, 0.01))


@DRAWS.row(("FakeQuantize", 1))
def fake_quantize(d: Draw, type: str, since: int) -> Case:
    shape, kind = d.shape(0, 4, 0), d.pick("f32", "f32", "f16")

    def bound(low: float, high: float) -> Typed:
        limits = d.pick([], [1] * len(shape), d.shrunk(shape))
        return d.tensor(limits, kind, low, high)

    lows, highs = bound(-3, -0.1), bound(0.1, 3)
    return model(type, since, d.tensor(shape, kind, -4, 4), lows, highs, bound(-3, 3), bound(-3, 3), levels=d.pick(2, 3, 16, 255, 256))


_COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")


@DRAWS.row(("Interpolate", 1))
def interpolate_1(d: Draw, type: str, since: int) -> Case:
    rank = d.pick(3, 4, 4, 5)
    axes = list(range(2, rank)) if d.chance(0.7) else sorted(d.some(range(rank), 1, 3))
    attributes: dict[str, Any] = {"axes": axes, "mode": d.pick("nearest", "linear", "cubic"), "align_corners": d.pick(None, True, False)}
    return model(
        type,
        since,
        d.tensor([*d.sizes(2, 1, 2), *d.sizes(rank - 2, 1, 6)], ("f32", "f32", "f16")),
        d.ints(d.sizes(len(axes), 1, 9)),
        **attributes,
    )


@DRAWS.row(("Interpolate", 4), ("Interpolate", 11))
def interpolate(d: Draw, type: str, since: int) -> Case:
    mode = d.pick("nearest", "linear", "linear_onnx", "cubic", *(("bilinear_pillow", "bicubic_pillow") if since == 11 else ()))
    pillow = mode.endswith("pillow")
    rank = 4 if pillow else d.pick(2, 3, 4, 4, 4, 5)
    shape = d.shape(rank, rank, 0)
    some = sorted(d.some(range(rank), 1, 3))
    axes = [rank - 2, rank - 1] if pillow else list(range(min(2, rank - 1), rank)) if d.chance(0.7) else some
    pads = [[d.size(0, 2) for _ in shape] if d.chance(0.15) and not pillow else [0] * rank for _ in range(2)]
    given = [shape[axis] + pads[0][axis] + pads[1][axis] for axis in axes]
    sizes = d.sizes(len(axes), 1, 9)
    by = d.pick("sizes", "scales")
    scales = [max(d.pick(wanted / size, 0.5, 1.0, 1.5, 2.0), 1.01 / size) for wanted, size in zip(sizes, given, strict=True)]
    attributes: dict[str, Any] = {
        "mode": mode, "shape_calculation_mode": by, "antialias": d.pick(None, False, False, True), "cube_coeff": d.pick(None, -0.5),
        "coordinate_transformation_mode": d.pick(None, *_COORDINATES), "nearest_mode": d.pick(None, *_NEAREST),
        "pads_begin": pads[0], "pads_end": pads[1],
    }  # fmt: skip
    data = d.tensor(shape, ("f32", "f32", "f16", "u8", "i8") if since == 11 else ("f32", "f32", "f16"))
    # OpenVINO takes no negative axes.
    where = d.ints(axes)
    if since == 4:
        return model(type, since, data, d.ints(sizes), typed("f32", scales), where, **attributes)
    return model(type, since, data, d.ints(sizes) if by == "sizes" else typed("f32", scales), where, **attributes)


_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _activations(d: Draw, family: str) -> dict[str, Any]:
    """Names of functions for the gates. They are always written: the plugin fails on sequences that leave them out."""
    default = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}[family]
    names = [d.pick("sigmoid", "tanh", "relu") for _ in default] if d.chance(0.4) else default
    return {"activations": names, "clip": d.pick(None, None, 0.3, 1.0)}


def _weights(d: Draw, family: str, size: int, inputs: int, reset: bool | None, lead: list[int], kind: str) -> list[Typed]:
    """W, R and B, for one or two directions."""
    gates = _GATES[family]
    biases = gates + 1 if reset else gates
    shapes = [gates * size, inputs], [gates * size, size], [biases * size]
    return [d.tensor([*lead, *shape], kind, -1, 1) for shape in shapes]


@DRAWS.row(("RNNCell", 1), ("GRUCell", 3), ("LSTMCell", 1), ("LSTMCell", 4))
def cell(d: Draw, type: str, since: int) -> Case:
    family, kind = type.removesuffix("Cell"), d.pick("f32", "f32", "f16")
    batch, inputs, size = d.sizes(3, 1, 4)
    reset = d.pick(None, True, False) if family == "GRU" else None
    states = [d.tensor([batch, size], kind, -1, 1) for _ in range(2 if family == "LSTM" else 1)]
    weights = _weights(d, family, size, inputs, reset, [], kind)
    attributes = {"hidden_size": size, "linear_before_reset": reset, **_activations(d, family)}
    given = weights if d.chance(0.95) or (type, since) == ("LSTMCell", 1) else weights[:2]
    return model(type, since, d.tensor([batch, inputs], kind, -1, 1), *states, *given, **attributes)


@DRAWS.row(("RNNSequence", 5), ("GRUSequence", 5), ("LSTMSequence", 5))
def sequence(d: Draw, type: str, since: int) -> Case:
    family, kind = type.removesuffix("Sequence"), d.pick("f32", "f32", "f16")
    batch, inputs, size, steps = d.sizes(4, 1, 4)
    direction = d.pick("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    reset = d.pick(None, True, False) if family == "GRU" else None
    states = [d.tensor([batch, ways, size], kind, -1, 1) for _ in range(2 if family == "LSTM" else 1)]
    lengths = d.ints(np.full(batch, steps) if d.chance() else d.sizes(batch, 1, steps))
    weights = _weights(d, family, size, inputs, reset, [ways], kind)
    attributes = {"hidden_size": size, "direction": direction, "linear_before_reset": reset, **_activations(d, family)}
    return model(type, since, d.tensor([batch, steps, inputs], kind, -1, 1), *states, lengths, *weights, **attributes)
