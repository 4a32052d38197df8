"""Layers that move, repeat or drop elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.legacy_sweep.network import Network, Port, Shape
from tests.legacy_sweep.registry import chance, generates, pick, shape_of, size, values

RECENT = (5, 6, 7)


def integers(net: Network, numbers: Any, kind: str | None = None) -> Port:
    """A Const of integers, in the precision of indices that the files of 2019 and 2020 have."""
    kind = kind or str(pick(net, "I32", "I32", "I64")) if net.version >= 7 else "I32"
    return net.const(np.asarray(numbers, {"I32": np.int32, "I64": np.int64}[kind]), kind)


@generates("Concat")
def concat(net: Network) -> None:
    shape = list(shape_of(net, size(net, 2, 5), 1, 4))
    axis = size(net, 0, len(shape) - 1)
    sizes = [size(net, 1, 3) for _ in range(size(net, 1, 4))]
    inputs = [net.input(values(net, (*shape[:axis], n, *shape[axis + 1 :]))) for n in sizes]
    shape[axis] = sum(sizes)
    data = {} if axis == 1 and chance(net) else {"axis": axis}
    net.layer("Concat", inputs, [tuple(shape)], data)


@generates("Split", "Slice")
def split(net: Network) -> None:
    shape = list(shape_of(net, size(net, 2, 5), 1, 4))
    axis, pieces = size(net, 0, len(shape) - 1), size(net, 1, 3)
    name = net.type
    sizes = [shape[axis]] * pieces if chance(net) else [size(net, 1, 3) for _ in range(pieces)]
    shape[axis] = sum(sizes)
    x = net.input(values(net, tuple(shape)))
    data: dict[str, Any] = {} if axis == 1 and chance(net) else {"axis": axis}
    if name == "Split" and chance(net):
        data["num_split"] = pieces
    outputs = net.layer(name, [x], [(*shape[:axis], n, *shape[axis + 1 :]) for n in sizes], data)
    if chance(net, 0.4):
        # A port that is read is not a result.
        net.layer("ReLU", [outputs[0]], [outputs[0].shape])


@generates("Reshape")
def reshape(net: Network) -> None:
    shape = shape_of(net, size(net, 1, 4), 1, 4)
    count = int(np.prod(shape))
    first = int(pick(net, *(n for n in range(1, count + 1) if count % n == 0)))
    target = [first, count // first] if chance(net) else [count // first, 1, first]
    dim = list(target)
    if chance(net):
        dim[size(net, 0, len(dim) - 1)] = -1
    if target[0] == shape[0] and dim[0] != -1 and chance(net):
        dim[0] = 0
    x = net.input(values(net, shape))
    if net.version >= 5 and chance(net):
        net.layer("Reshape", [x, integers(net, dim)], [tuple(target)])
        return
    data: dict[str, Any] = {"dim": dim}
    if chance(net, 0.3):
        data |= {"axis": 0, "num_axes": -1}
    net.layer("Reshape", [x], [tuple(target)], data)


@generates("Flatten")
def flatten(net: Network) -> None:
    shape = shape_of(net, size(net, 2, 4), 1, 4)
    axis = size(net, 0, len(shape) - 1)
    end = size(net, axis, len(shape) - 1)
    data = {"axis": axis, "end_axis": pick(net, end, end - len(shape))}
    flat = (*shape[:axis], int(np.prod(shape[axis : end + 1])), *shape[end + 1 :])
    net.layer("Flatten", [net.input(values(net, shape))], [flat], data)


@generates("Permute")
def permute(net: Network) -> None:
    shape = shape_of(net, size(net, 2, 5), 1, 4)
    order = [int(i) for i in net.rng.permutation(len(shape))]
    net.layer("Permute", [net.input(values(net, shape))], [tuple(shape[i] for i in order)], {"order": order})


@generates("Tile")
def tile(net: Network) -> None:
    shape = shape_of(net, size(net, 2, 5), 1, 4)
    axis, tiles = size(net, 0, len(shape) - 1), size(net, 1, 3)
    out = tuple(n * tiles if i == axis else n for i, n in enumerate(shape))
    net.layer("Tile", [net.input(values(net, shape))], [out], {"axis": axis, "tiles": tiles})


@generates("Crop")
def crop(net: Network) -> None:
    shape = shape_of(net, 4 if net.version < 5 else pick(net, 2, 4, 5), 2, 6)
    axes = sorted(int(a) for a in net.rng.permutation(len(shape))[: size(net, 1, len(shape))])
    dims = [size(net, 1, shape[a]) for a in axes]
    offsets = [size(net, 0, shape[a] - d) for a, d in zip(axes, dims, strict=True)]
    out = tuple(dims[axes.index(i)] if i in axes else n for i, n in enumerate(shape))
    x = net.input(values(net, shape))
    if net.version == 2:
        inner = "".join(
            f'<crop axis="{a}" offset="{o}" dim="{d}"/>' for a, o, d in zip(axes, offsets, dims, strict=True)
        )
        net.layer("Crop", [x], [out], inner=f"<crop-data>{inner}</crop-data>\n")
        return
    form = size(net, 1, 3)
    if form == 1:
        net.layer("Crop", [x], [out], {"axis": axes, "offset": offsets, "dim": dims})
    elif form == 2:
        ends = [shape[a] - d - o for a, d, o in zip(axes, dims, offsets, strict=True)]
        net.layer("Crop", [x], [out], {"axis": axes, "crop_begin": offsets, "crop_end": ends})
    else:
        net.layer("Crop", [x, net.input(values(net, out))], [out], {"axis": axes, "offset": offsets})


@generates("Pad", versions=RECENT)
def pad(net: Network) -> None:
    shape = shape_of(net, 4 if chance(net) else size(net, 2, 5), 3, 5)
    mode = str(pick(net, "constant", "edge", "reflect", "symmetric"))
    begin, end = ([size(net, 0, 2) for _ in shape] for _ in range(2))
    out = tuple(b + n + e for b, n, e in zip(begin, shape, end, strict=True))
    data: dict[str, Any] = {"pads_begin": begin, "pads_end": end, "pad_mode": mode}
    if mode == "constant" and chance(net):
        data["pad_value"] = pick(net, "1.0", "-0.5")
    net.layer("Pad", [net.input(values(net, shape))], [out], data)


@generates("ShuffleChannels", versions=(6, 7))
def shuffle_channels(net: Network) -> None:
    shape, group = list(shape_of(net, 4, 1, 4)), size(net, 1, 3)
    axis = size(net, 0, 3)
    shape[axis] *= group
    data = {"axis": pick(net, axis, axis - 4), "group": group}
    net.layer("ShuffleChannels", [net.input(values(net, tuple(shape)))], [tuple(shape)], data)


@generates("StridedSlice", versions=(6, 7))
def strided_slice(net: Network) -> None:
    shape = shape_of(net, size(net, 1, 4), 2, 6)
    begin, end, strides = [], [], []
    for n in shape:
        low = size(net, 0, n - 1)
        high = size(net, low + 1, n)
        step = int(pick(net, 1, 1, 2, -1))
        start, stop = (low, high) if step > 0 else (high - 1, low - 1)
        begin.append(start - n if chance(net, 0.2) else start)
        end.append(stop - n if chance(net, 0.2) and stop < n and step > 0 else stop)
        strides.append(step)
    begin_mask, end_mask = ([int(chance(net, 0.8)) for _ in shape] for _ in range(2))
    for i, (step, stop) in enumerate(zip(strides, end, strict=True)):
        if step < 0 and stop < 0:
            # An end of -1 counts from the end.
            end_mask[i] = 0
    shrink = [int(chance(net, 0.2) and begin_mask[i] and strides[i] > 0 and i > 0) for i in range(len(shape))]
    x = values(net, shape)
    index: list[Any] = []
    for b, e, s, use_b, use_e, drop in zip(begin, end, strides, begin_mask, end_mask, shrink, strict=True):
        index.append(b if drop else slice(b if use_b else None, e if use_e else None, s))
    zeros = [0] * len(shape)
    data = {"begin_mask": begin_mask, "end_mask": end_mask, "ellipsis_mask": zeros, "new_axis_mask": zeros, "shrink_axis_mask": shrink}  # fmt: skip
    inputs = [net.input(x), *(net.const(np.array(v, np.int32), "I32") for v in (begin, end, strides))]
    net.layer("StridedSlice", inputs, [x[tuple(index)].shape], data)


@generates("Squeeze", "Unsqueeze", versions=(6, 7))
def squeeze(net: Network) -> None:
    full = list(shape_of(net, size(net, 2, 5), 2, 4))
    axes = sorted(int(a) for a in net.rng.permutation(len(full))[: size(net, 1, len(full) - 1)])
    for axis in axes:
        full[axis] = 1
    less = tuple(n for i, n in enumerate(full) if i not in axes)
    name = net.type
    source, target = (tuple(full), less) if name == "Squeeze" else (less, tuple(full))
    indices = net.const(np.array(axes, np.float32), "FP32") if chance(net, 0.3) else net.const(np.array(axes, np.int32))
    net.layer(name, [net.input(values(net, source)), indices], [target])


@generates("ReverseSequence", versions=(6, 7))
def reverse_sequence(net: Network) -> None:
    shape = shape_of(net, size(net, 2, 4), 1, 4)
    batch, seq = (int(a) for a in net.rng.permutation(len(shape))[:2])
    if chance(net, 0.3):
        batch, seq = 0, 1
    data = {} if (batch, seq) == (0, 1) else {"batch_axis": batch, "seq_axis": seq}
    lengths = net.rng.integers(1, shape[seq] + 1, shape[batch]).astype(np.float32)
    net.layer("ReverseSequence", [net.input(values(net, shape)), net.input(lengths)], [shape], data)


@generates("Broadcast", versions=(6, 7))
def broadcast(net: Network) -> None:
    out = shape_of(net, size(net, 2, 4), 2, 4)
    shape: Shape = tuple(1 if chance(net, 0.5) else n for n in out)[size(net, 0, len(out) - 1) :]
    net.layer("Broadcast", [net.input(values(net, shape)), net.const(np.array(out, np.int32))], [out])


@generates("DepthToSpace", "SpaceToDepth", versions=(6, 7))
def depth_to_space(net: Network) -> None:
    name, block = net.type, size(net, 1, 3)
    batch, channels, height, width = shape_of(net, 4, 1, 3)
    small = (batch, channels * block * block, height, width)
    large = (batch, channels, height * block, width * block)
    source, target = (small, large) if name == "DepthToSpace" else (large, small)
    if channels > 1 or block > 1:
        # 2020.1 ignores the mode, and is wrong with several channels.
        net.only = ("2020.4",)
    data = {"block_size": block, "mode": pick(net, "blocks_first", "depth_first")}
    net.layer(name, [net.input(values(net, source))], [target], data)


@generates("ReorgYolo", versions=(3, 4, 5, 6, 7))
def reorg_yolo(net: Network) -> None:
    stride = size(net, 1, 3)
    batch, height, width = shape_of(net, 3, 1, 3)
    channels = stride * stride * size(net, 1, 2)
    x = net.input(values(net, (batch, channels, height * stride, width * stride)))
    net.layer("ReorgYolo", [x], [(batch, channels * stride * stride, height, width)], {"stride": stride})
