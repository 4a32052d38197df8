"""Winograd's F(m x m, 3 x 3): the m * m results of a tile from (m + 2) * (m + 2) products instead of 9 * m * m.

Everything is computed channels last, whatever the layout of data and result: then each of the two axes of a tile is
transformed by one small product, which reads the overlapping tiles and writes the results where they lie in memory, so
that nothing is gathered or scattered. In between there is one product for each point of a tile. A block of rows of
tiles stays in cache from the padded data to the end of the chain; where tiles are few and outputs many, threads share
the points of all tiles instead, so that no product is cut. Source: Lavin and Gray, "Fast Algorithms for Convolutional
Neural Networks".

The error against direct convolution is 3e-7 of the largest result in float32 for m = 2 and 64 input channels, 2e-6 for
m = 4 and 8e-6 for m = 6; it grows with the root of the number of channels.

The matrices are made by the Toom-Cook construction from m + 1 points and infinity. Source: Blahut, "Fast Algorithms for
Signal Processing", chapter 5; for the choice of points Barabasz et al., "Error Analysis and Improving the Accuracy of
Winograd Convolution for Deep Neural Networks".
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irexec.backend.convolution.filter_weights import FilterKernel, FilterWeights, Packed
from irexec.backend.convolution.geometry import Geometry, Region, longest, split, strided
from irexec.backend.convolution.output import BoundOutput, Output
from irexec.backend.kernel import SHARES, KernelContext, Task
from irexec.backend.products import HAS_SMALL_PRODUCTS, multiply_rows, panel_width
from irexec.backend.scratch import Scratch

if TYPE_CHECKING:
    from fractions import Fraction

    Rows = list[list[Fraction]]

# Points by m. With 1/2 in place of 2 the error is a third.
_POINTS = {
    2: (0, 1, -1),
    4: (0, 1, -1, 0.5, -2),
    6: (0, 1, -1, 2, -2, 0.5, -0.5),
}
TILES = tuple(_POINTS)
# Input channels up to which the error of m = 6 is at most 1e-5 of the largest result.
_EXACT_ENOUGH = 64

# Bytes of transformed tiles and of their products that a block should have. Where there are many channels, the weights
# are read from memory for each block, so that blocks are larger.
_BLOCK = 3 << 19
_MANY_BLOCK = 3 << 20
_MANY = 192
# Nanoseconds that a byte of weights is worth: a larger tile holds more weights all the time, and saves little where
# tiles are few.
_HELD = 0.13


class Tiling:
    """The tiles of a convolution in blocks of rows, and the estimated cost of the kernel.

    Args:
        tile: m.

    Attributes:
        points: m + 2.
        down, across: numbers of tiles.
        by_points: whether threads share the points of all tiles of an image.
        rows: the rows of tiles of each block.
    """

    def __init__(self, geometry: Geometry, tile: int) -> None:
        self.geometry, self.tile, self.points = geometry, tile, tile + 2
        self.down, self.across = (-(-count // tile) for count in geometry.windows.counts)
        self.by_points = 3 * self.down * self.across < geometry.outputs
        blocks = SHARES if self.by_points else self._blocks()
        self.rows = split(self.down, -(-self.down // blocks))

    def _blocks(self) -> int:
        """Number of blocks of rows of tiles: a multiple of ``SHARES``, of which a block may be half too large."""
        g = self.geometry
        size = _MANY_BLOCK if min(g.inputs, g.outputs) >= _MANY else _BLOCK
        rows = max(1, size // (self.points**2 * self.across * g.computed.itemsize * (g.inputs + g.outputs)))
        least = -(-self.down // rows)
        fewer = max(1, least // SHARES) * SHARES
        return fewer if 2 * least <= 3 * fewer else fewer + SHARES

    @property
    def block_pixels(self) -> int:
        """Pixels of the result in the largest block."""
        return longest(self.rows) * self.tile * self.geometry.windows.counts[1]

    @functools.cached_property
    def workspaces(self) -> tuple[int, int]:
        """Bytes of scratch of all threads, and for a block without those of the chain."""
        rows = longest(self.rows)
        g, m, width = self.geometry, self.tile, self.across * self.tile + 2
        tiles = self.points**2 * (self.down if self.by_points else rows) * self.across * (g.inputs + g.outputs)
        data = (rows * m + 2) * width * g.inputs
        half = self.points * rows * width * max(g.inputs, g.outputs)
        own = max(data + half, half + g.outputs * self.block_pixels)
        item = g.computed.itemsize
        return (tiles * item + 256, own * item + 1024) if self.by_points else (0, (tiles + own) * item + 1024)

    def cost(self, data_last: bool, result_last: bool) -> float:
        """Nanoseconds, for data and a result that are channels last or not."""
        g, points = self.geometry, self.points
        tiles = self.down * self.across
        weights = points**2 * g.outputs * g.inputs
        # The weights come from memory once for each block of tiles, and from the second-level cache for every
        # ``rows_at_once`` rows of a product.
        rows_at_once = max(8, 1_000_000 // (g.inputs * 64))
        blocks = 1 if self.by_points else len(self.rows)
        reads = 0.15 * blocks + 0.2 * max(blocks, tiles / rows_at_once)
        rate, slower = _speed(g.inputs)
        product = 2 * weights * tiles / rate + weights * reads
        # A transform of the inner axis is a call of BLAS for each row of points of a tile.
        calls = points * tiles * 2 * 130
        moved = points**2 * tiles * (g.inputs * 0.25 + g.outputs * 0.2)
        copied = g.pixels * (g.inputs * (0.3 if data_last else 0.9) + g.outputs * (0.05 if result_last else 0.8))
        # Where it saves next to nothing, the larger error is not worth it.
        handicap = 1.05 if self.tile == 6 else 1.0
        held = weights * g.computed.itemsize * _HELD
        work = product + slower * (calls + moved + copied)
        return handicap * g.images * work + 30_000 * blocks + held


def _speed(channels: int) -> tuple[float, float]:
    """GFLOP/s of the products of points, and the time of transforms relative to an AVX-512 core.

    Without BLAS's kernels for small matrices both suffer from few input channels (VGG-16, U-Net and YOLOv8 on AVX2).
    """
    if HAS_SMALL_PRODUCTS:
        return (100, 1) if channels <= _MANY else (85, 1)
    return 85 * channels / (channels + 25), 1 + 32 / channels


class Winograd(FilterKernel):
    """3 x 3 with stride and dilation 1 and one group, for known weights of float32."""

    def __init__(self, task: Task, tiling: Tiling) -> None:
        g = self.geometry = tiling.geometry
        tile = self.tile = tiling.tile
        self.points, self.down, self.across, self.rows = tiling.points, tiling.down, tiling.across, tiling.rows
        self.by_points = tiling.by_points
        self.output = Output(task, g.computed)
        make = functools.partial(transform_weights, tile)
        shape = (1, g.outputs, g.inputs, 3, 3)
        weights = FilterWeights(task.constants[1], ("winograd", tile), make, shape, g.computed)
        super().__init__(f"Winograd F({tile}x{tile}, 3x3)", weights)
        self.shared_workspace, own = tiling.workspaces
        self.workspace = own + self.output.workspace(g.outputs, tiling.block_pixels)

    @functools.cached_property
    def regions(self) -> list[Region]:
        """The region that each block reads."""
        g, m = self.geometry, self.tile
        top, left = g.windows.pads_begin
        width = self.across * m + 2
        sizes = ((part.start, part.stop - part.start) for part in self.rows)
        return [Region(g.sizes, (first * m - top, -left), (down * m + 2, width)) for first, down in sizes]

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        g, x = self.geometry, inputs[0]
        packed = self.weights.packed(None)
        out = self.output.bind(context, outputs[0], inputs, packed.spread)
        if self.by_points:
            for image in range(g.images):
                self._run_by_points(context, x[image], packed, out, image)
        else:

            def block(index: int, scratch: Scratch) -> None:
                image, number = divmod(index, len(self.rows))
                tiles = self._tiles(scratch, self.rows[number], g.inputs)
                multiplied = self._tiles(scratch, self.rows[number], packed.rows)
                self._transform(scratch, x[image], number, tiles)
                self._multiply(scratch, tiles, packed, multiplied, slice(None))
                self._finish(scratch, multiplied, packed, out, image, number)

            context.parallel(g.images * len(self.rows), block)
        out.end()

    def _run_by_points(
        self, context: KernelContext, image: np.ndarray, packed: Packed, out: BoundOutput, number: int
    ) -> None:
        """Compute one image; its rows of tiles are shared before and after the points."""
        assert context.shared is not None, "a plan gives every kernel the scratch that its threads share"
        context.shared.clear()
        tiles, multiplied = (
            self._tiles(context.shared, slice(0, self.down), channels)
            for channels in (self.geometry.inputs, packed.rows)
        )
        points = split(self.points**2, -(-(self.points**2) // SHARES))

        def transform(index: int, scratch: Scratch) -> None:
            self._transform(scratch, image, index, tiles[:, :, self.rows[index]])

        def multiply(index: int, scratch: Scratch) -> None:
            self._multiply(scratch, tiles, packed, multiplied, points[index])

        def finish(index: int, scratch: Scratch) -> None:
            self._finish(scratch, multiplied[:, :, self.rows[index]], packed, out, number, index)

        context.parallel(len(self.rows), transform)
        context.parallel(len(points), multiply)
        context.parallel(len(self.rows), finish)

    def _tiles(self, scratch: Scratch, rows: slice, channels: int) -> np.ndarray:
        """Memory for transformed tiles or their products: (points, points, rows of tiles, tiles, channels)."""
        shape = self.points, self.points, rows.stop - rows.start, self.across, channels
        return scratch.take(shape, self.geometry.computed)

    def _transform(self, scratch: Scratch, image: np.ndarray, number: int, out: np.ndarray) -> None:
        """Write the transformed tiles of a block."""
        g, m, points = self.geometry, self.tile, self.points
        mark = scratch.mark()
        down, across, channels = out.shape[2:]
        width = across * m + 2
        data = self.regions[number].of(scratch, image, g.computed, channels_last=True, copies=True)
        half = scratch.take((points, down, width * channels), g.computed)
        transform = matrix(m, "input", g.computed)
        item = g.computed.itemsize
        pixel, row = channels * item, width * channels * item
        tile_rows = strided(data.transpose(1, 2, 0), (down, points, width * channels), (m * row, row, item))
        scratch.do(np.matmul, transform, tile_rows, out=half.swapaxes(0, 1))
        tiles = strided(half, (points, down, across, points, channels), (down * row, row, m * pixel, pixel, item))
        scratch.do(np.matmul, transform, tiles, out=out.transpose(0, 2, 3, 1, 4))
        scratch.release(mark)

    @staticmethod
    def _multiply(scratch: Scratch, tiles: np.ndarray, packed: Packed, out: np.ndarray, points: slice) -> None:
        """Write the products of some points of all tiles."""
        left, result = (x.reshape(x.shape[0] ** 2, -1, x.shape[-1])[points] for x in (tiles, out))
        multiply_rows(scratch, left, packed.array[points], result)

    def _finish(
        self, scratch: Scratch, multiplied: np.ndarray, packed: Packed, out: BoundOutput, image: int, number: int
    ) -> None:
        """Write a block of the result from its products."""
        height, width = self.geometry.windows.counts
        part, channels = self.rows[number], slice(0, packed.rows)
        first, last = part.start * self.tile, min(part.stop * self.tile, height)
        pixels = slice(first * width, last * width)
        result = out.block(scratch, image, channels, pixels)
        mark = scratch.mark()
        self._untransform(scratch, multiplied, last - first, result)
        scratch.release(mark)
        out.finish(scratch, result, image, channels, pixels)

    def _untransform(self, scratch: Scratch, multiplied: np.ndarray, rows: int, result: np.ndarray) -> None:
        """Write ``rows`` rows of results to (outputs, pixels)."""
        m, width = self.tile, self.geometry.windows.counts[1]
        points, _, down, across, outputs = multiplied.shape
        dtype = multiplied.dtype
        transform = matrix(m, "output", dtype)
        half = scratch.take((points, down, across, m, outputs), dtype)
        scratch.do(np.matmul, transform, multiplied.transpose(0, 2, 3, 1, 4), out=half)
        columns = half.reshape(points, down, across * m * outputs)[:, :, : width * outputs].swapaxes(0, 1)
        is_direct = result.strides[0] == result.itemsize and result.strides[1] == outputs * result.itemsize
        values = result.T.reshape(rows, width * outputs) if is_direct else scratch.take((rows, width * outputs), dtype)
        whole, rest = divmod(rows, m)
        if whole:
            scratch.do(np.matmul, transform, columns[:whole], out=values[: whole * m].reshape(whole, m, -1))
        if rest:
            scratch.do(np.matmul, transform[:rest], columns[whole], out=values[whole * m :])
        if not is_direct:
            scratch.do(np.copyto, result, values.reshape(-1, outputs).T)


@functools.cache
def matrix(tile: int, which: str, dtype: np.dtype) -> np.ndarray:
    """One of the matrices of F(tile, 3), see minimal_filtering."""
    exact = getattr(minimal_filtering(tile, 3, _POINTS[tile]), which)
    return np.array([[float(value) for value in row] for row in exact], dtype)


def transform_weights(tile: int, weights: np.ndarray) -> np.ndarray:
    """(1, O, I, 3, 3) to (points, panels, I, outputs of a panel)."""
    _, outputs, inputs, _, _ = weights.shape
    panel = panel_width(outputs, inputs)
    found = transformed(tile, weights[0])
    return np.ascontiguousarray(found.reshape(len(found), inputs, outputs // panel, panel).transpose(0, 2, 1, 3))


def transformed(tile: int, weights: np.ndarray) -> np.ndarray:
    """Weights (O, I, 3, 3) as those of the points (points, I, O), computed in float64."""
    outputs, inputs, _, _ = weights.shape
    once = matrix(tile, "filter", np.dtype(np.float64))
    both = np.kron(once, once)
    made = np.empty((len(both), inputs, outputs), weights.dtype)
    for part in split(inputs, max(1, (1 << 16) // outputs)):
        some = weights[:, part].transpose(2, 3, 1, 0).reshape(9, -1).astype(np.float64)
        made[:, part] = (both @ some).reshape(len(both), -1, outputs)
    return made


def suits(g: Geometry, tile: int) -> bool:
    """Whether the algorithm applies, and its error is small enough."""
    w = g.windows
    fits = (
        g.groups == 1 and w.kernel == (3, 3) and set(w.strides) == set(w.dilations) == {1} and g.computed == np.float32
    )
    return fits and min(w.counts) >= 3 and (tile < 6 or g.inputs <= _EXACT_ENOUGH)


class Matrices(NamedTuple):
    """Results are ``output @ ((filter @ taps) * (input @ data))``.

    Attributes:
        input: (m + r - 1, m + r - 1).
        filter: (m + r - 1, r).
        output: (m, m + r - 1).
    """

    input: Rows
    filter: Rows
    output: Rows


def minimal_filtering(results: int, taps: int, points: Sequence[Fraction | float]) -> Matrices:
    """The exact matrices of F(results, taps) for ``results + taps - 2`` different points, taken exactly."""
    # Loaded only where a kernel is made.
    from fractions import Fraction

    at = [Fraction(point) for point in points]
    size = results + taps - 1
    if len(at) != size - 1:
        raise ValueError(f"F({results}, {taps}) takes {size - 1} points, not {len(at)}")
    others = [[q for q in at if q != p] for p in at]
    scales = [math.prod(p - q for q in rest) for p, rest in zip(at, others, strict=True)]
    data = [[*_polynomial(rest), Fraction(0)] for rest in others] + [_polynomial(at)]
    filters = [[p**i / scale for i in range(taps)] for p, scale in zip(at, scales, strict=True)]
    filters.append([Fraction(i == taps - 1) for i in range(taps)])
    output = [[*(p**i for p in at), Fraction(i == results - 1)] for i in range(results)]
    return Matrices(data, filters, output)


def _polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients of the polynomial with these roots, the constant one first."""
    from fractions import Fraction

    found = [Fraction(1)]
    for root in roots:
        found = [below - root * here for below, here in zip([Fraction(0), *found], [*found, Fraction(0)], strict=True)]
    return found
