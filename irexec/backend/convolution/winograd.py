"""Winograd's F(m x m, 3 x 3): the m * m results of a tile from (m + 2) * (m + 2) products instead of 9 * m * m.

Both tile transforms are products with a Kronecker matrix; in between there is one product for each point of a tile. A block
of tiles stays in the second-level cache from the gathered data to the end of the chain. Source: Lavin and Gray, "Fast Algorithms
for Convolutional Neural Networks", with the points 0, 1, -1 for m = 2 and 0, 1, -1, 2, -2 for m = 4.

The error against direct convolution is about 1e-5 of the largest result in float32 for m = 4.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.backend.constants import ConstantStore
from irexec.backend.convolution.geometry import Geometry, is_channels_last, split
from irexec.backend.convolution.output import Output
from irexec.backend.convolution.regions import region
from irexec.backend.convolution.weights import Weights
from irexec.backend.kernel import Context, Kernel, Task
from irexec.backend.products import multiply
from irexec.backend.scratch import Scratch

_INPUT = {
    2: np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, -1, 0, 1]]),
    4: np.array(
        [
            [4, 0, -5, 0, 1, 0],
            [0, -4, -4, 1, 1, 0],
            [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0],
            [0, 2, -1, -2, 1, 0],
            [0, 4, 0, -5, 0, 1],
        ]
    ),
}
_FILTER = {
    2: np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]]) / 2,
    4: np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]) / 24,
}
_OUTPUT = {
    2: np.array([[1, 1, 1, 0], [0, 1, -1, 1]]),
    4: np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]]),
}

# Bytes of transformed tiles and of their products that a block should have, and may have at most.
_BLOCK = 1 << 20
_LIMIT = 6 << 20


class Winograd(Kernel):
    """3 x 3 with stride and dilation 1 and one group, for known weights of float32.

    Args:
        tile: m.
    """

    def __init__(self, task: Task, geometry: Geometry, tile: int) -> None:
        g = self.geometry = geometry
        self.tile, self.points = tile, (tile + 2) ** 2
        self.output = Output(task, g.computed)
        make = functools.partial(_transform_weights, tile)
        self.weights = Weights(task.constants[1], ("winograd", tile), make, (1, g.outputs, g.inputs, 3, 3), g.computed)
        self.reads, self.runs_chain, self.splits = (0,), True, True
        self.algorithm = f"Winograd F({tile}x{tile}, 3x3)"
        self.down, self.across = (-(-count // tile) for count in g.windows.counts)
        self.rows = split(self.down, self._rows())
        self.workspace = self._workspace()
        self.cost = _cost(
            g, tile, self.down * self.across, len(self.rows), is_channels_last(task.input_orders[0]), self.output.channels_last
        )

    def _rows(self) -> int:
        """Rows of tiles in a block."""
        per_row = self.points * self.across * self.geometry.computed.itemsize * max(self.geometry.inputs, self.geometry.outputs)
        return max(1, _BLOCK // per_row)

    def _workspace(self) -> int:
        g = self.geometry
        rows = max(part.stop - part.start for part in self.rows)
        tiles = rows * self.across
        transformed, products = self.points * tiles * g.inputs, self.points * tiles * g.outputs
        data = (rows * self.tile + 2) * (self.across * self.tile + 2) * g.inputs
        elements = max(transformed, products) + max(transformed + data, products)
        return elements * g.computed.itemsize + self.output.workspace(g.outputs, rows * self.tile * g.windows.counts[1]) + 512

    def pack(self, store: ConstantStore) -> None:
        self.weights.pack(store)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: Context) -> None:
        g, x = self.geometry, inputs[0]
        packed = self.weights.packed(None)
        out = self.output.bind(outputs[0], inputs, packed.spread)
        rows = packed.array.shape[1]
        channels = slice(0, rows)
        height, width = g.windows.counts

        def block(index: int, scratch: Scratch) -> None:
            image, number = divmod(index, len(self.rows))
            part = self.rows[number]
            first, last = part.start * self.tile, min(part.stop * self.tile, height)
            pixels = slice(first * width, last * width)
            result = out.block(scratch, image, channels, pixels)
            mark = scratch.mark()
            self._tiles(scratch, x[image], packed.array, part, result.reshape(rows, last - first, width))
            scratch.release(mark)
            out.finish(scratch, result, image, channels, pixels)

        context.parallel(g.images * len(self.rows), block)
        out.end()

    def _tiles(self, scratch: Scratch, image: np.ndarray, weights: np.ndarray, part: slice, result: np.ndarray) -> None:
        """Compute rows of tiles into (outputs, rows, width)."""
        g, down = self.geometry, part.stop - part.start
        count = down * self.across
        outputs = weights.shape[1]
        # Two areas: data and products share one, transformed data and results the other.
        transformed, products = self.points * g.inputs * count, self.points * outputs * count
        first = scratch.take((max(transformed, products),), g.computed)
        mark = scratch.mark()
        tiles = scratch.take((self.points, g.inputs * count), g.computed)
        self._gather(scratch, image, part, tiles)
        spread = first[:transformed].reshape(self.points, g.inputs * count)
        multiply(_kronecker(self.tile, "input", g.computed), tiles, spread)
        scratch.release(mark)
        multiplied = scratch.take((self.points, outputs, count), g.computed)
        np.matmul(weights, spread.reshape(self.points, g.inputs, count), out=multiplied)
        inner = self.tile * self.tile
        values = first[: inner * outputs * count].reshape(inner, outputs * count)
        multiply(_kronecker(self.tile, "output", g.computed), multiplied.reshape(self.points, outputs * count), values)
        _untile(values.reshape(self.tile, self.tile, outputs, down, self.across), result)

    def _gather(self, scratch: Scratch, image: np.ndarray, part: slice, tiles: np.ndarray) -> None:
        """The overlapping tiles of a part, as (points, inputs * tiles)."""
        g, m = self.geometry, self.tile
        down = part.stop - part.start
        top, left = g.windows.pads_begin
        begins = (part.start * m - top, -left)
        data = region(scratch, image, begins, (down * m + 2, self.across * m + 2), g.computed, False)
        c, y, x = data.strides
        shape = (m + 2, m + 2, g.inputs, down, self.across)
        view = np.lib.stride_tricks.as_strided(data, shape, (y, x, c, m * y, m * x), writeable=False)
        np.copyto(tiles.reshape(shape), view)


def _untile(values: np.ndarray, out: np.ndarray) -> None:
    """Write (tile, tile, outputs, down, across) to (outputs, rows, width); what is beyond the border is dropped."""
    tile = len(values)
    for y in range(min(tile, out.shape[1])):
        for x in range(min(tile, out.shape[2])):
            part = out[:, y::tile, x::tile]
            part[...] = values[y, x, :, : part.shape[1], : part.shape[2]]


@functools.cache
def _kronecker(tile: int, which: str, dtype: np.dtype) -> np.ndarray:
    matrix = {"input": _INPUT, "output": _OUTPUT}[which][tile]
    return np.kron(matrix, matrix).astype(dtype)


def _transform_weights(tile: int, weights: np.ndarray) -> np.ndarray:
    """(1, O, I, 3, 3) to (points, O, I), computed in float64."""
    _, outputs, inputs, _, _ = weights.shape
    matrix = np.kron(_FILTER[tile], _FILTER[tile])
    made = np.empty((len(matrix), outputs, inputs), weights.dtype)
    for part in split(outputs, max(1, (1 << 16) // inputs)):
        some = weights[0, part].reshape(-1, 9).T.astype(np.float64)
        made[:, part] = (matrix @ some).reshape(len(matrix), -1, inputs)
    return made


def suits(g: Geometry, tile: int) -> bool:
    """Whether the algorithm applies, and its blocks are not too large."""
    w = g.windows
    fits = g.groups == 1 and w.kernel == (3, 3) and set(w.strides) == set(w.dilations) == {1} and g.computed == np.float32
    if not fits or min(w.counts) < 3:
        return False
    across = -(-w.counts[1] // tile)
    return 2 * (tile + 2) ** 2 * 4 * across * max(g.inputs, g.outputs) <= _LIMIT


def _cost(g: Geometry, tile: int, tiles: int, blocks: int, data_last: bool, result_last: bool) -> float:
    points = (tile + 2) ** 2
    product = 2 * points * g.outputs * g.inputs * tiles / 85 + points * g.outputs * g.inputs * 0.4 * blocks
    gathered = points * g.inputs * tiles * (0.8 + points / 50 + (0.5 if data_last else 0))
    written = tile * tile * g.outputs * tiles * (0.8 + points / 50 + (0.5 if result_last else 0))
    return g.images * (product + gathered + written) + 40_000 * blocks
