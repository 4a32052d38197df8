"""Layers with indices: choice, order, reduction, counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.legacy_sweep.network import Network
from tests.legacy_sweep.registry import chance, generates, pick, shape_of, size, values

RECENT = (5, 6, 7)


def distinct(net: Network, shape: tuple[int, ...]) -> np.ndarray:
    """Random f32 values of which no two are equal."""
    count = int(np.prod(shape))
    return (net.rng.permutation(count).astype(np.float32) - count // 2).reshape(shape) / 4


@generates("Gather", versions=RECENT)
def gather(net: Network) -> None:
    shape = shape_of(net, size(net, 1, 4), 1, 4)
    axis = size(net, 0, len(shape) - 1)
    chosen = shape_of(net, size(net, 1, 2), 1, 3)
    indices = net.rng.integers(0, shape[axis], chosen).astype(pick(net, np.float32, np.int32))
    data = {"axis": pick(net, axis, axis - len(shape))}
    out = (*shape[:axis], *chosen, *shape[axis + 1 :])
    net.layer("Gather", [net.input(values(net, shape)), net.input(indices)], [out], data)


@generates("GatherTree", versions=RECENT)
def gather_tree(net: Network) -> None:
    steps, batch, beams = size(net, 2, 5), size(net, 1, 3), size(net, 1, 4)
    shape = (steps, batch, beams)
    ids = net.rng.integers(0, 9, shape).astype(np.float32)
    parents = net.rng.integers(0, beams, shape).astype(np.float32)
    lengths = net.rng.integers(1, steps + 1, batch).astype(np.float32)
    inputs = [net.input(array) for array in (ids, parents, lengths, np.array([9], np.float32))]
    net.layer("GatherTree", inputs, [shape])


@generates("ArgMax", versions=(3, 4, 5, 6, 7))
def arg_max(net: Network) -> None:
    shape = shape_of(net, 4, 1, 4)
    whole = chance(net, 0.4)
    axis = size(net, 1, 3)
    top = size(net, 1, min(3, int(np.prod(shape[1:])) if whole else shape[axis]))
    out_max = size(net, 0, 1)
    data: dict[str, Any] = {"top_k": top, "out_max_val": out_max}
    if whole:
        out: tuple[int, ...] = (shape[0], 2 if out_max else 1, top, 1)
    else:
        data["axis"] = axis
        out = tuple(top if i == axis else n for i, n in enumerate(shape))
    net.layer("ArgMax", [net.input(distinct(net, shape))], [out], data)


@generates("TopK", versions=(6, 7))
def top_k(net: Network) -> None:
    shape = shape_of(net, size(net, 1, 4), 1, 5)
    axis = size(net, 0, len(shape) - 1)
    k = size(net, 1, shape[axis])
    out = tuple(k if i == axis else n for i, n in enumerate(shape))
    data = {
        "axis": pick(net, axis, axis - len(shape)),
        "mode": pick(net, "max", "min"),
        "sort": pick(net, "value", "index"),
    }
    source = net.input(distinct(net, shape))
    count = net.const(np.array([k], np.int32), "I32")
    one = net.version < 7 or chance(net, 0.3)
    outputs, kinds = ([out], ["FP32"]) if one else ([out, out], ["FP32", "I32"])
    net.layer("TopK", [source, count], outputs, data, precisions=kinds)


_REDUCTIONS = ("Sum", "Mean", "Prod", "Min", "Max", "L1", "L2", "SumSquare", "LogSum", "LogSumExp", "And", "Or")


@generates(*(f"Reduce{name}" for name in _REDUCTIONS), versions=RECENT)
def reduction(net: Network) -> None:
    kind = net.type.removeprefix("Reduce")
    shape = shape_of(net, size(net, 2, 5), 1, 4)
    axes = sorted(int(a) for a in net.rng.permutation(len(shape))[: size(net, 1, len(shape) - 1)])
    keep = chance(net)
    out = tuple(1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes)
    # ReduceMax starts at 0 in both releases.
    positive = kind in ("Max", "LogSum")
    x = values(net, shape, 0.25 if positive else -1.5, 1.5)
    if kind in ("And", "Or"):
        x = net.rng.integers(0, 2, shape).astype(np.float32)
    given = [a - len(shape) if chance(net, 0.2) else a for a in axes]
    data = {"keep_dims": keep}
    net.layer(f"Reduce{kind}", [net.input(x), net.const(np.array(given, np.int32), "I32")], [out], data)


@generates("OneHot", versions=(6, 7))
def one_hot(net: Network) -> None:
    shape, depth = shape_of(net, size(net, 1, 3), 1, 4), size(net, 1, 5)
    axis = size(net, -1, len(shape))
    indices = net.rng.integers(0, depth + 1, shape).astype(np.float32)
    data: dict[str, Any] = {"axis": axis, "depth": depth}
    if chance(net):
        data |= {"on_value": "2.0", "off_value": "-1.0"}
    at = len(shape) if axis == -1 else axis
    net.layer("OneHot", [net.input(indices)], [(*shape[:at], depth, *shape[at:])], data)


@generates("Bucketize", versions=(7,))
def bucketize(net: Network) -> None:
    shape = shape_of(net, size(net, 1, 3), 1, 5)
    bounds = np.sort(distinct(net, (size(net, 1, 5),)))
    x = net.rng.choice(np.concatenate([bounds, bounds + 0.1, bounds - 9]), shape).astype(np.float32)
    data = {"with_right_bound": chance(net)}
    inputs = [net.input(x), net.input(bounds)]
    net.layer("Bucketize", inputs, [shape], data, precision="I32", precisions=["I32"])


@generates("Range", versions=(6, 7))
def arange(net: Network) -> None:
    start, step, count = float(size(net, -3, 3)), float(pick(net, 1, 2, -1, 0.5)), size(net, 1, 6)
    ends = [np.array([v], np.float32) for v in (start, start + count * step, step)]
    net.layer("Range", [net.input(v) for v in ends], [(count,)])


@generates("Fill", versions=(6, 7))
def fill(net: Network) -> None:
    shape = shape_of(net, size(net, 1, 4), 1, 4)
    dims = net.input(np.array(shape, np.int32), "I32")
    net.layer("Fill", [dims, net.input(values(net, (1,)))], [shape])


@generates("Unique", versions=(7,))
def unique(net: Network) -> None:
    count = size(net, 1, 8)
    x = net.rng.integers(0, 5, count).astype(np.float32)
    data = {"sorted": chance(net), "return_inverse": chance(net), "return_counts": chance(net)}
    outputs = 1 + int(data["return_inverse"]) + int(data["return_counts"])
    net.layer("Unique", [net.input(x)], [(count,)] * outputs, data)


@generates("CTCGreedyDecoder", versions=(3, 4, 5, 6, 7))
def ctc_greedy_decoder(net: Network) -> None:
    steps, batch, classes = size(net, 2, 7), size(net, 1, 3), size(net, 2, 4)
    logits = net.rng.permuted(np.tile(np.arange(classes, dtype=np.float32), (steps, batch, 1)), axis=2)
    mask = (np.arange(steps)[:, None] < net.rng.integers(1, steps + 1, batch)).astype(np.float32)
    data = {"ctc_merge_repeated": size(net, 0, 1)}
    net.layer("CTCGreedyDecoder", [net.input(logits), net.input(mask)], [(batch, steps, 1, 1)], data)


@generates("Const", versions=RECENT)
def const(net: Network) -> None:
    shape = shape_of(net, size(net, 1, 4), 1, 4)
    x = net.input(values(net, shape))
    net.layer("Eltwise", [x, net.const(values(net, shape))], [shape], {"operation": "mul"})
