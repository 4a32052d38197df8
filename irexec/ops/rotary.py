"""Normalization by the root mean square, and rotary position embeddings, as OpenVINO's plugins fuse them."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from irexec.dtypes.elements import Element
from irexec.errors import check
from irexec.ir.dims import Size, broadcastable_to, may_equal, shape_text
from irexec.ir.facts import Fact
from irexec.schema.opdef import FloatTensor, IntegerTensor, Rank, widened
from irexec.schema.registry import op
from irexec.schema.rotary import RotaryAttributes
from irexec.schema.shape_rules import sizes_of

Table = Annotated[FloatTensor, Rank(2, 4)]
Positions = Annotated[IntegerTensor, Rank(2, 4)]
Rotated = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@op("RMS", since="ie_internal_opset", unread=True, tolerance=1e-5)
def rms(
    data: Annotated[FloatTensor, Rank(1, None)], scale: FloatTensor | None = None, *, epsilon: float,
    output_type: Element | None = None, elementwise_affine: bool = True,
) -> np.ndarray:  # fmt: skip
    """data / sqrt(mean of the squares of the last axis + epsilon), times scale where there is one.

    f16 is computed in f32. Source: RMS; elementwise_affine is that of openvino 2026.4, which has no scale without it.
    """
    x = widened(data)
    mean = (x * x).mean(-1, keepdims=True) if x.shape[-1] else np.zeros((*x.shape[:-1], 1), x.dtype)
    found = x / np.sqrt(mean + x.dtype.type(epsilon))
    found = found if scale is None else found * widened(scale)
    return np.asarray(found, data.dtype if output_type is None else output_type.carrier)


@rms.shape_rule
def _rms_shape(data: Fact, scale: Fact | None = None, *, output_type: Element | None) -> Fact:
    if scale is not None and scale.shape is not None and data.shape is not None:
        text = f"scale has shape {shape_text(scale.shape)}, which is not broadcast to {shape_text(data.shape)}"
        check(broadcastable_to(scale.shape, data.shape), text)
    return Fact(output_type or data.element, data.shape)


@op("RoPE", since="ie_internal_opset", unread=True, tolerance=1e-5)
def rope(
    data: Annotated[FloatTensor, Rank(3, 4)], cos: Annotated[FloatTensor, Rank(2, 4)],
    sin: Annotated[FloatTensor, Rank(2, 4)], positions: Positions | None = None, *, attributes: RotaryAttributes,
) -> np.ndarray:  # fmt: skip
    """Rotary position embeddings: the first rotary_ndims numbers of each head are rotated in pairs, by an angle of the
    position.

    Pairs are number i and i + rotary_ndims / 2; data are (batch, heads, tokens, size), with input_trans0213 (batch,
    tokens, heads, size), and cos and sin tables of all positions, or of those that ``positions`` picks. With
    is_interleaved and is_chatglm pairs are neighbours, and the first table holds both factors. Of is_chatglm, (tokens,
    batch, columns), and is_qwen, (batch, tokens, columns), the columns slice_start to slice_stop are taken apart into
    heads.
    f16 is computed in f32. Source: openvino 2026.4 ``rope.cpp`` of the CPU plugin.
    """
    x, partner, cosines, sines = rotary_factors(data, cos, sin, positions, attributes)
    found = widened(x) * widened(cosines) + widened(partner) * widened(sines)
    return np.ascontiguousarray(arranged(found, attributes), data.dtype)


def arranged(x: np.ndarray, attributes: RotaryAttributes) -> np.ndarray:
    """Rotated heads with their axes in the order of the output."""
    swaps = attributes.config_is_interleaved and attributes.config_output_trans0213
    return x.swapaxes(1, 2) if swaps else x


def rotary_factors(
    data: np.ndarray, cos: np.ndarray, sin: np.ndarray, positions: np.ndarray | None, attributes: RotaryAttributes
) -> Rotated:
    """The heads, the partner of each number in its pair, and the factors of both: 1 and 0 where nothing is rotated,
    and with the sign in the second."""
    a = attributes
    x = data[..., a.config_slice_start : a.config_slice_stop] if a.config_slice_stop > a.config_slice_start else data
    if a.config_is_chatglm or a.config_is_qwen:
        whole = a.config_head_cnt * a.config_head_size
        x = x[..., :whole].reshape(*x.shape[:2], a.config_head_cnt, a.config_head_size)
    if a.config_is_chatglm:
        cosines, sines = cos[:, :, None, :, 0], cos[:, :, None, :, 1]
    elif a.config_is_qwen:
        cosines, sines = (_picked(t, positions, x.shape[1], 1, from_end=True) for t in (cos, sin))
    elif a.config_is_interleaved:
        half = a.config_rotary_ndims // 2
        cosines, sines = cos[:, :, None, half : 2 * half], cos[:, :, None, :half]
    else:
        x = x.swapaxes(1, 2) if a.config_input_trans0213 else x
        tables = (t.reshape((1,) * (4 - t.ndim) + t.shape) for t in (cos, sin))
        cosines, sines = (_picked(t, positions, x.shape[2], 2, from_end=False) for t in tables)
    return _paired(x, cosines, sines, a)


def _picked(table: np.ndarray, positions: np.ndarray | None, tokens: int, axis: int, from_end: bool) -> np.ndarray:
    """The rows of the tokens of a table whose positions are along ``axis``."""
    size = table.shape[axis]
    if positions is None:
        if size == 1 and not from_end:
            return table
        check(size >= tokens, f"a table of {size} positions does not have those of {tokens} tokens")
        begin = size - tokens if from_end else 0
        return table[(slice(None),) * axis + (slice(begin, begin + tokens),)]
    check(
        not positions.size or (positions.min() >= 0 and positions.max() < size),
        f"positions are {positions.min(initial=0)} to {positions.max(initial=0)}, the table has {size}",
    )
    # (batch, tokens), or (batch, heads, tokens, 1).
    index = positions[:, None, :, None] if positions.ndim == 2 else positions
    index = index.swapaxes(1, 2) if axis == 1 else index
    text = f"positions of shape {shape_text(positions.shape)} are not those of a table of {shape_text(table.shape)}"
    pairs = [*zip(table.shape, index.shape, strict=True)]
    check(all(a == b or 1 in (a, b) for i, (a, b) in enumerate(pairs) if i not in (axis, 3)), text)
    shape = [a if b == 1 else b for a, b in pairs]
    shape[axis], shape[3] = index.shape[axis], table.shape[3]
    wide = np.broadcast_to(table, [n if i != axis else size for i, n in enumerate(shape)])
    return np.take_along_axis(wide, np.broadcast_to(index, shape).astype(np.int64), axis)


def _paired(x: np.ndarray, cosines: np.ndarray, sines: np.ndarray, attributes: RotaryAttributes) -> Rotated:
    is_neighbour = attributes.config_is_interleaved or attributes.config_is_chatglm
    for table in (cosines, sines):
        text = f"a table of shape {shape_text(table.shape)} is not broadcast to heads of {shape_text(x.shape)}"
        check(broadcastable_to(table.shape[:-1], x.shape[:-1]), text)
    count = cosines.shape[-1] if attributes.config_is_qwen else attributes.config_rotary_ndims
    check(
        count % 2 == 0 and count <= x.shape[-1],
        f"{count} numbers of a head are to be rotated, expected an even number of at most {x.shape[-1]}",
    )
    check(
        cosines.shape[-1] == sines.shape[-1] == (count // 2 if is_neighbour else count),
        f"tables have rows of {cosines.shape[-1]} and {sines.shape[-1]} numbers for {count} that are rotated",
    )
    numbers = np.arange(count)
    order = numbers ^ 1 if is_neighbour else np.roll(numbers, count // 2)
    sign = np.where(order > numbers, -1, 1).astype(sines.dtype)
    columns = numbers // 2 if is_neighbour else numbers
    rest = x[..., count:]
    ones, zeros = (
        np.full((*table.shape[:-1], rest.shape[-1]), value, table.dtype) for table, value in ((cosines, 1), (sines, 0))
    )
    return (
        x,
        np.concatenate([x[..., order], rest], -1),
        np.concatenate([cosines[..., columns], ones], -1),
        np.concatenate([sines[..., columns] * sign, zeros], -1),
    )


@rope.shape_rule
def _rope_shape(
    data: Fact, cos: Fact, sin: Fact, positions: Fact | None = None, *, attributes: RotaryAttributes
) -> Fact:
    a = attributes
    for name in ("support_2d_rope", "support_3d_rope", "use_rope_cache", "is_ltx_video"):
        check(not getattr(a, f"config_{name}"), f"config.{name} is not computed")
    check(
        a.config_gather_position_arg_id in (0, 3) and (positions is None) == (a.config_gather_position_arg_id == 0),
        f"config.gather_position_arg_id is {a.config_gather_position_arg_id}, expected the index of positions, 3, or 0",
    )
    check(
        not a.config_output_trans0213 or a.config_is_interleaved,
        "config.output_trans0213 is not computed without config.is_interleaved",
    )
    ranks = (3,) if a.config_is_interleaved else (4,) if a.config_is_chatglm or a.config_is_qwen else (2, 4)
    for name, table in (("cos", cos), ("sin", sin)):
        check(table.rank in (None, *ranks), f"{name} has rank {table.rank}, expected {' or '.join(map(str, ranks))}")
    if positions is not None:
        check(positions.rank in (None, 2, 4), f"positions have rank {positions.rank}, expected 2 or 4")
    pair = cos.shape[-1] if a.config_is_chatglm and cos.shape is not None else 2
    check(may_equal(pair, 2), f"cos has {pair} numbers for each angle, expected 2")
    if a.config_is_chatglm or a.config_is_qwen:
        first, second, columns = sizes_of(data, 3, "data")
        width, needed = _sliced(columns, a), a.config_head_cnt * a.config_head_size
        check(
            not isinstance(width, int) or width >= needed, f"data have {width} columns, expected {needed} for the heads"
        )
        return Fact(data.element, (first, second, a.config_head_cnt, a.config_head_size))
    batch, second, third, size = sizes_of(data, 4, "data")
    if a.config_is_interleaved:
        swaps = a.config_output_trans0213
    else:
        swaps, size = a.config_input_trans0213, _sliced(size, a)
    return Fact(data.element, (batch, third, second, size) if swaps else (batch, second, third, size))


def _sliced(columns: Size, attributes: RotaryAttributes) -> Size:
    """The number of columns between slice_start and slice_stop; all where the slice is empty."""
    start, stop = attributes.config_slice_start, attributes.config_slice_stop
    if stop <= start:
        return columns
    check(not isinstance(columns, int) or stop <= columns, f"config.slice_stop is {stop}, data have {columns} columns")
    return stop - start
