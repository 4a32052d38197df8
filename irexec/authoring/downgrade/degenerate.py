"""Layers of scalars, and layers with lists of nothing, in forms that every plugin computes right.

Source: the releases 2021.4.2, 2022.3.2, 2023.3.0 and 2024.6.0 themselves (tests.release_sweep).
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

from irexec.analysis.portability.releases import NOT_ASKED, Release
from irexec.authoring.downgrade.layer import EIGHT, ONE, Layer, respells
from irexec.authoring.ends import constant
from irexec.authoring.tensor import Tensor
from irexec.schema.broadcasting import pdpd_start


@respells(NOT_ASKED, "Transpose")
def _transpose(layer: Layer) -> Any:
    """An empty order reverses the axes, which stay where there is one at most: plugins give unwritten memory."""
    order = list(range(layer.rank()))[::-1]
    if layer.static(1) != (0,):
        return None
    return layer.same(1, layer.inputs[0], constant(order, "i64")) if len(order) > 1 else layer.unchanged()


@respells(NOT_ASKED, "Squeeze")
def _squeezed_scalar(layer: Layer) -> Any:
    """A scalar stays, whatever the axes: shape inference refuses them, or the plugin does not know the rank."""
    return layer.unchanged() if layer.rank() == 0 and len(layer.inputs) > 1 else None


@respells(NOT_ASKED, "Softmax", "LogSoftmax")
def _softmax_of_a_scalar(layer: Layer) -> Any:
    """Shape inference of the older version finds no axis: the scalar gets one for a time."""
    if layer.rank():
        return None
    one = layer.same(layer.since, _reshaped(layer.inputs[0], [1]), axis=0)
    return _reshaped(one, [])


@respells(NOT_ASKED, "DFT", "IDFT")
def _no_axes(layer: Layer) -> Any:
    """A transform along no axes: the plugin gives unwritten memory."""
    return layer.inputs[0] if layer.static(1) == (0,) else None


@respells(NOT_ASKED, "DFT", "IDFT", "RDFT", "IRDFT")
def _sizes_of_the_axes(layer: Layer) -> Any:
    """A signal_size of -1 is the size of the axis: some plugins fail to make room for it."""
    if len(layer.inputs) < 3 or not layer.is_known(2) or -1 not in layer.ints(2, "signal_size"):
        return None
    wanted, shape, type = layer.ints(2, "signal_size"), layer.static(), layer.definition.type
    rank = len(shape) - (type != "RDFT")
    sizes = [shape[axis % rank] for axis in layer.ints(1, "axes")]
    if type == "IRDFT":
        sizes[-1] = 2 * (sizes[-1] - 1)
    found = [size if given == -1 else given for given, size in zip(wanted, sizes, strict=True)]
    return layer.same(layer.since, *layer.inputs[:2], constant(found, "i64"))


@respells(NOT_ASKED, "GatherND")
def _of_no_indices(layer: Layer) -> Any:
    """Indices of no axes take the whole data each time: the plugin gives unwritten memory."""
    indices = layer.static(1)
    if indices[-1] or layer.attributes["batch_dims"]:
        return None
    return ONE.broadcast(layer.inputs[0], constant([*indices[:-1], *layer.static()], "i64"))


@respells(NOT_ASKED, "StridedSlice")
def _an_entry_for_each_axis(layer: Layer) -> Any:
    """No ellipsis, and new axes by an Unsqueeze.

    Shape inference counts an ellipsis of no axes as one, and plugins fail for new axes, or for removed ones beside an
    ellipsis, if bounds are computed.
    """
    (count,) = layer.static(1)
    masks = {name: [*layer[name], *[0] * count][:count] for name in _MASKS}
    added, removed, others = masks["new_axis_mask"], masks["shrink_axis_mask"], masks["ellipsis_mask"]
    axes = layer.rank() - sum(not new and not other for new, other in zip(added, others, strict=True))
    fails = any(added) or (any(removed) and any(others))
    if not (any(others) and axes == 0) and not (fails and not layer.is_known(1)):
        return None
    entries: list[int | None] = []
    positions: list[int] = []
    position = 0
    for i in range(count):
        given: list[int | None] = [None] * axes if others[i] else [] if added[i] else [i]
        positions += [position] if added[i] and not others[i] else []
        position += len(given) + int(added[i] and not others[i]) - int(bool(given) and removed[i] and not others[i])
        entries += given
    data = layer.inputs[0]
    if entries:
        bounds = [_picked(layer, index, entries) for index in range(1, len(layer.inputs))]
        spread: dict[str, Any] = {
            name: [int(name in _MASKS[:2]) if i is None else on[i] for i in entries] for name, on in masks.items()
        }
        data = layer.same(1, data, *bounds, **spread)
    return ONE.unsqueeze(data, positions) if positions else data


_MASKS = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")


def _picked(layer: Layer, index: int, entries: list[int | None]) -> Tensor:
    """Entries of a list of bounds; 0, or a stride of 1, where there is None."""
    element, whole = layer.element(index), int(index == 3)
    if layer.is_known(index):
        values = layer.known(index, "bounds")
        return constant(np.array([whole if i is None else values[i] for i in entries]), element)
    pieces = []
    for is_whole, run in groupby(entries, lambda i: i is None):
        picked = [whole if i is None else i for i in run]
        found = constant(picked, element if is_whole else "i64")
        pieces.append(found if is_whole else ONE.gather(layer.inputs[index], found, constant(0, "i64")))
    return ONE.concat(*pieces, axis=0) if len(pieces) > 1 else pieces[0]


@respells(NOT_ASKED, "StridedSlice")
def _one_element(layer: Layer) -> Any:
    """An element whose indices are computed: the plugin has no scalars here."""
    (count,), rank = layer.static(1), layer.rank()
    if layer.is_known(1) or count == 0 or count != rank or list(layer["shrink_axis_mask"]) != [1] * count:
        return None
    found = layer.inputs[0]
    for axis in range(rank):
        index = EIGHT.gather(layer.inputs[1], constant([axis], "i64"), constant(0, "i64"))
        found = EIGHT.gather(found, index, constant(axis, "i64"))
    return _reshaped(found, [])


@respells(NOT_ASKED, "ScatterElementsUpdate")
def _of_no_updates(layer: Layer) -> Any:
    """The data stays: some plugins divide by the number of updates."""
    return layer.unchanged() if 0 in layer.static(1) else None


@respells(NOT_ASKED, "EmbeddingBagPackedSum", "EmbeddingBagPacked")
def _empty_bags(layer: Layer) -> Any:
    """Sums of bags that are all empty are zeros: plugins refuse the indices."""
    count, size = layer.static(1)
    if size:
        return None
    shape = [count, *layer.static()[1:]]
    return ONE.broadcast(layer.number(0), constant(shape, "i64"))


@respells(NOT_ASKED, "Broadcast")
def _aligned_with_the_first_axes(layer: Layer) -> Any:
    """Shape inference takes no data of fewer axes in mode pdpd: it gets axes of size 1 at its end."""
    if layer["mode"] != "pdpd":
        return None
    (count,) = layer.static(1)
    missing = list(range(layer.rank(), count - pdpd_start(count, layer.rank(), layer["mode_axis"])))
    data = ONE.unsqueeze(layer.inputs[0], missing) if missing else layer.inputs[0]
    return ONE.broadcast(data, layer.inputs[1])


@respells(Release(2023, 0), "Eye")
def _half_eye(layer: Layer) -> Any:
    """The plugin has no f16 and bf16 here."""
    element = layer["output_type"]
    if str(element) not in ("f16", "bf16"):
        return None
    return ONE.convert(layer.same(layer.since, output_type="f32"), destination_type=element)


@respells(NOT_ASKED, "Gather")
def _index_before_the_data(layer: Layer) -> Any:
    """An index before the first element gives zeros: the plugin counts it from the end once more."""
    if layer.since < 8 or not layer.is_known(1) or not layer.is_known(2):
        return None
    indices, size = layer.known(1, "indices"), layer.sizes()[layer.axis(layer.ints(2, "axis")[0])]
    if not isinstance(size, int) or not (indices < -size).any():
        return None
    behind = constant(np.where(indices < -size, size, indices), layer.element(1))
    return layer.same(layer.since, layer.inputs[0], behind, layer.inputs[2])


def _reshaped(x: Tensor, shape: list[int]) -> Tensor:
    return ONE.reshape(x, constant(np.array(shape, np.int64), "i64"), special_zero=False)
