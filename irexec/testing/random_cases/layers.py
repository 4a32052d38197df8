"""Normalization, quantization, interpolation and recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from irexec.testing import Case, Typed, typed
from irexec.testing.case_generator import CaseGenerator, Table, model
from irexec.testing.random_cases.elementwise import AXIS

RANDOM_CASES = Table()
_FLOATS = ("f32", "f32", "f32", "f16", "bf16")


@RANDOM_CASES.row(("MVN", 2), ("MVN", 6))
def mvn(gen: CaseGenerator, type: str, since: int) -> Case:
    normalize, eps = gen.chance(), gen.pick(1e-9, 1e-5, 0.01, 0.5)
    if since == 2:
        across = gen.pick(None, True, False)
        return model(
            type,
            since,
            gen.tensor(gen.shape(2, 5, 0), _FLOATS),
            across_channels=across,
            reduction_axes=gen.pick(None, [2, 3], [1, 2, 3], [1], [-1]),
            normalize_variance=normalize,
            eps=eps,
        )
    shape = gen.shape(1, 5, 0)
    mode = gen.pick("inside_sqrt", "outside_sqrt")
    return model(
        type,
        since,
        gen.tensor(shape, _FLOATS),
        gen.ints(gen.axes(len(shape))),
        normalize_variance=normalize,
        eps=eps,
        eps_mode=mode,
    )


@RANDOM_CASES.row(("BatchNormInference", 1), ("BatchNormInference", 5))
def batch_norm_inference(gen: CaseGenerator, type: str, since: int) -> Case:
    shape, kind = gen.shape(2, 5, 0), gen.pick(*_FLOATS)
    data, channels = gen.tensor(shape, kind), shape[1:2]
    gamma, beta, mean = (gen.tensor(channels, kind) for _ in range(3))
    variance = gen.tensor(channels, kind, 0.1, 3)
    inputs = (data, gamma, beta) if since == 5 else (gamma, beta, data)
    return model(type, since, *inputs, mean, variance, epsilon=gen.pick(1e-5, 1e-3, 0.1))


@RANDOM_CASES.row(("NormalizeL2", 1))
def normalize_l2(gen: CaseGenerator, type: str, since: int) -> Case:
    shape = gen.shape(1, 4, 0)
    return model(
        type,
        since,
        gen.tensor(shape, _FLOATS),
        gen.ints(gen.axes(len(shape), 0)),
        eps=gen.pick(1e-9, 1e-3, 0.5),
        eps_mode=gen.pick("add", "max"),
    )


@RANDOM_CASES.row(("LRN", 1))
def lrn(gen: CaseGenerator, type: str, since: int) -> Case:
    shape = gen.shape(2, 5, 0)
    axes = gen.pick([1], list(range(2, len(shape))) or [1])
    numbers = {
        "alpha": gen.pick(1e-4, 0.5, 1.0),
        "beta": gen.pick(0.75, 0.5, 2.0),
        "bias": gen.pick(1.0, 2.0),
        "size": gen.pick(1, 2, 3, 4, 5),
    }
    return model(type, since, gen.tensor(shape, ("f32", "f32", "f16")), gen.ints(axes, ("i64",)), **numbers)


@RANDOM_CASES.row(("GRN", 1))
def grn(gen: CaseGenerator, type: str, since: int) -> Case:
    return model(type, since, gen.tensor(gen.shape(2, 4, 0), _FLOATS), bias=gen.pick(1e-6, 0.1, 1.0))


@RANDOM_CASES.row(("GroupNormalization", 12))
def group_normalization(gen: CaseGenerator, type: str, since: int) -> Case:
    shape, groups, kind = gen.shape(2, 5, 0), gen.size(1, 3), gen.pick(*_FLOATS)
    shape[1] = groups * gen.size(1, 3)
    inputs = (gen.tensor(sizes, kind) for sizes in (shape, shape[1:2], shape[1:2]))
    return model(type, since, *inputs, num_groups=groups, epsilon=gen.pick(1e-5, 0.01))


@RANDOM_CASES.row(("FakeQuantize", 1))
def fake_quantize(gen: CaseGenerator, type: str, since: int) -> Case:
    shape, kind = gen.shape(0, 4, 0), gen.pick("f32", "f32", "f16")
    mode, axis = gen.pick(None, "numpy", "none", "pdpd"), gen.pdpd_axis(shape)

    def bound(low: float, high: float) -> Typed:
        limits = gen.pick([], [1] * len(shape), gen.shrunk(shape))
        if mode in ("none", "pdpd"):
            limits = shape if mode == "none" else gen.aligned(shape, axis)
        return gen.tensor(limits, kind, low, high)

    lows, highs = bound(-3, -0.1), bound(0.1, 3)
    return model(
        type,
        since,
        gen.tensor(shape, kind, -4, 4),
        lows,
        highs,
        bound(-3, 3),
        bound(-3, 3),
        levels=gen.pick(2, 3, 16, 255, 256),
        **{"auto_broadcast": mode, AXIS: axis if mode == "pdpd" else None},
    )


_COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")


@RANDOM_CASES.row(("Interpolate", 1))
def interpolate_1(gen: CaseGenerator, type: str, since: int) -> Case:
    rank = gen.pick(3, 4, 4, 5)
    axes = list(range(2, rank)) if gen.chance(0.7) else sorted(gen.some(range(rank), 1, 3))
    attributes: dict[str, Any] = {
        "axes": axes,
        "mode": gen.pick("nearest", "linear", "cubic"),
        "align_corners": gen.pick(None, True, False),
    }
    return model(
        type,
        since,
        gen.tensor([*gen.sizes(2, 1, 2), *gen.sizes(rank - 2, 1, 6)], ("f32", "f32", "f16")),
        gen.ints(gen.sizes(len(axes), 1, 9)),
        **attributes,
    )


@RANDOM_CASES.row(("Interpolate", 4), ("Interpolate", 11))
def interpolate(gen: CaseGenerator, type: str, since: int) -> Case:
    mode = gen.pick(
        "nearest", "linear", "linear_onnx", "cubic", *(("bilinear_pillow", "bicubic_pillow") if since == 11 else ())
    )
    pillow = mode.endswith("pillow")
    rank = 4 if pillow else gen.pick(2, 3, 4, 4, 4, 5)
    shape = gen.shape(rank, rank, 0)
    some = sorted(gen.some(range(rank), 1, 3))
    axes = [rank - 2, rank - 1] if pillow else list(range(min(2, rank - 1), rank)) if gen.chance(0.7) else some
    pads = [[gen.size(0, 2) for _ in shape] if gen.chance(0.15) and not pillow else [0] * rank for _ in range(2)]
    given = [shape[axis] + pads[0][axis] + pads[1][axis] for axis in axes]
    sizes = gen.sizes(len(axes), 1, 9)
    by = gen.pick("sizes", "scales")
    scales = [
        max(gen.pick(reference / size, 0.5, 1.0, 1.5, 2.0), 1.01 / size)
        for reference, size in zip(sizes, given, strict=True)
    ]
    attributes: dict[str, Any] = {
        "mode": mode,
        "shape_calculation_mode": by,
        "antialias": gen.pick(None, False, False, True),
        "cube_coeff": gen.pick(None, -0.5),
        "coordinate_transformation_mode": gen.pick(None, *_COORDINATES),
        "nearest_mode": gen.pick(None, *_NEAREST),
        "pads_begin": pads[0],
        "pads_end": pads[1],
    }
    data = gen.tensor(shape, ("f32", "f32", "f16", "u8", "i8") if since == 11 else ("f32", "f32", "f16"))
    # OpenVINO takes no negative axes.
    where = gen.ints(axes)
    if since == 4:
        return model(type, since, data, gen.ints(sizes), typed("f32", scales), where, **attributes)
    return model(type, since, data, gen.ints(sizes) if by == "sizes" else typed("f32", scales), where, **attributes)


_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _activations(gen: CaseGenerator, family: str) -> dict[str, Any]:
    """Names of functions for the gates. They are always written: the plugin fails on sequences that leave them out."""
    default = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}[family]
    names = [gen.pick("sigmoid", "tanh", "relu") for _ in default] if gen.chance(0.4) else default
    return {"activations": names, "clip": gen.pick(None, None, 0.3, 1.0)}


def _weights(
    gen: CaseGenerator, family: str, size: int, inputs: int, reset: bool | None, lead: list[int], kind: str
) -> list[Typed]:
    """W, R and B, for one or two directions."""
    gates = _GATES[family]
    biases = gates + 1 if reset else gates
    shapes = [gates * size, inputs], [gates * size, size], [biases * size]
    return [gen.tensor([*lead, *shape], kind, -1, 1) for shape in shapes]


@RANDOM_CASES.row(("RNNCell", 1), ("GRUCell", 3), ("LSTMCell", 1), ("LSTMCell", 4))
def cell(gen: CaseGenerator, type: str, since: int) -> Case:
    family, kind = type.removesuffix("Cell"), gen.pick("f32", "f32", "f16")
    batch, inputs, size = gen.sizes(3, 1, 4)
    reset = gen.pick(None, True, False) if family == "GRU" else None
    states = [gen.tensor([batch, size], kind, -1, 1) for _ in range(2 if family == "LSTM" else 1)]
    weights = _weights(gen, family, size, inputs, reset, [], kind)
    attributes = {"hidden_size": size, "linear_before_reset": reset, **_activations(gen, family)}
    given = weights if gen.chance(0.95) or (type, since) == ("LSTMCell", 1) else weights[:2]
    return model(type, since, gen.tensor([batch, inputs], kind, -1, 1), *states, *given, **attributes)


@RANDOM_CASES.row(("RNNSequence", 5), ("GRUSequence", 5), ("LSTMSequence", 5))
def sequence(gen: CaseGenerator, type: str, since: int) -> Case:
    family, kind = type.removesuffix("Sequence"), gen.pick("f32", "f32", "f16")
    batch, inputs, size, steps = gen.sizes(4, 1, 4)
    direction = gen.pick("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    reset = gen.pick(None, True, False) if family == "GRU" else None
    states = [gen.tensor([batch, ways, size], kind, -1, 1) for _ in range(2 if family == "LSTM" else 1)]
    lengths = gen.ints(np.full(batch, steps) if gen.chance() else gen.sizes(batch, 1, steps))
    weights = _weights(gen, family, size, inputs, reset, [ways], kind)
    attributes = {
        "hidden_size": size,
        "direction": direction,
        "linear_before_reset": reset,
        **_activations(gen, family),
    }
    return model(type, since, gen.tensor([batch, steps, inputs], kind, -1, 1), *states, lengths, *weights, **attributes)
