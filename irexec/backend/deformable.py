"""Fast deformable convolution: the pixels around each moved point are gathered as rows of channels, weighed by one
small product, and multiplied with the weights a block of positions at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from irexec.backend.convolution.columns import channels_last_matrix
from irexec.backend.convolution.filter_weights import FilterKernel, FilterWeights
from irexec.backend.convolution.geometry import Geometry, is_channels_last, multiply_groups, split
from irexec.backend.convolution.output import Output
from irexec.backend.kernel import Candidate, KernelContext, Task
from irexec.backend.products import pixel_product_cost
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch

# Bytes of the gathered pixels of a block.
_GATHERED = 1 << 20


@kernels("DeformableConvolution", since=1)
@kernels("DeformableConvolution", since=8)
@kernels("DeformableConvolution", since="irexec")
def _candidates(task: Task) -> Iterator[Candidate]:
    dtype = _float_type(task)
    if dtype is not None and 0 not in (*task.shape(0), *task.shape(2), *task.output_shape()):
        attributes = task.attributes["attributes"]
        images, _, *sizes = task.shape(0)
        outputs, inputs, *kernel = task.shape(2)
        windows, groups = attributes.windows(sizes, kernel), attributes.group
        geometry = Geometry(dtype, images, groups, outputs // groups, inputs, tuple(sizes), windows)
        yield Candidate(_cost(task, geometry), partial(Deformable, task, geometry))


def _positions(g: Geometry) -> list[slice]:
    """The positions of the result that are computed at once."""
    per_position = g.points * 2 ** len(g.sizes) * g.groups * g.inputs * g.computed.itemsize
    return split(g.pixels, max(16, _GATHERED // per_position))


def _cost(task: Task, g: Geometry) -> float:
    channels = g.images * g.groups * g.inputs
    gathered = channels * g.pixels * g.points * 2 ** len(g.sizes)
    product = g.groups * pixel_product_cost(g.outputs, g.depth, g.pixels, True)
    copied = channels * math.prod(g.sizes) * (0.2 if is_channels_last(task.input_orders[0]) else 0.9)
    return gathered * 0.7 + g.images * product + copied + 100_000 * g.images * len(_positions(g))


def _float_type(task: Task) -> np.dtype | None:
    """The type of the inputs; None if it is not a float type of NumPy."""
    element = task.inputs[0].element
    if element is None or not element.native or any(fact.element not in (None, element) for fact in task.inputs):
        return None
    dtype = np.dtype(element.carrier)
    return dtype if dtype.kind == "f" else None


class Deformable(FilterKernel):
    """Blocks of positions of the result."""

    def __init__(self, task: Task, geometry: Geometry) -> None:
        attributes, g = task.attributes["attributes"], geometry
        self.geometry, self.deformable = geometry, attributes.deformable_group
        self.zero_pad: bool = getattr(attributes, "bilinear_interpolation_pad", False)
        self.has_mask = task.has_input(3)
        self.output = Output(task, g.computed)
        shape = (g.groups, g.outputs, g.inputs, *task.shape(2)[2:])
        weights = FilterWeights(task.constants[2], "channels last", channels_last_matrix, shape, g.computed)
        super().__init__("gathered pixels", weights, (0, 1, 3) if self.has_mask else (0, 1))
        self.records = False
        self.corners, self.positions = 2 ** len(g.sizes), _positions(g)
        self.workspace = self._workspace()

    def _workspace(self) -> int:
        g = self.geometry
        count = max(part.stop - part.start for part in self.positions)
        points = count * g.points * self.deformable
        channels = g.groups * g.inputs
        gathered = count * g.points * channels * (self.corners + 2) * g.computed.itemsize
        return gathered + points * (self.corners + 4) * 16 + self.output.workspace(g.groups * g.outputs, count) + 2048

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        g, d = self.geometry, self.deformable
        packed = self.weights.packed(inputs[2])
        out = self.output.bind(context, outputs[0], inputs, packed.spread)
        rows = packed.rows
        offsets = inputs[1].reshape(g.images, d, g.points, len(g.sizes), g.pixels)
        mask = inputs[3].reshape(g.images, d, g.points, g.pixels) if self.has_mask else None
        starts = self._starts()

        for image in range(g.images):
            pixels = self._pixels(inputs[0][image])

            def block(index: int, scratch: Scratch, image: int = image, pixels: np.ndarray = pixels) -> None:
                part = self.positions[index]
                result = out.block(scratch, image, slice(0, g.groups * rows), part)
                mark = scratch.mark()
                where = [
                    offsets[image, :, :, axis, part].astype(g.computed) + (taps[:, None] + begin[None, part])
                    for axis, (taps, begin) in enumerate(starts)
                ]
                rows_of_pixels, shares = self._corners(where)
                if mask is not None:
                    shares *= mask[image, :, :, part].transpose(2, 1, 0)[..., None]
                columns = self._sample(scratch, pixels, rows_of_pixels, shares)
                by_group = columns.reshape(-1, g.points, g.groups, g.inputs).transpose(2, 0, 1, 3)
                multiply_groups(scratch, by_group.reshape(g.groups, -1, g.depth), packed.array, result)
                scratch.release(mark)
                out.finish(scratch, result, image, slice(0, g.groups * rows), part)

            context.parallel(len(self.positions), block)
        out.end()

    def _starts(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Positions of the taps in a window, and begins of the windows, along each axis."""
        w = self.geometry.windows
        taps = np.indices(w.kernel).reshape(len(w.kernel), -1)
        windows = np.indices(w.counts).reshape(len(w.kernel), -1)
        axes = zip(taps, windows, w.strides, w.dilations, w.pads_begin, strict=True)
        dtype = self.geometry.computed
        return [
            ((tap * dilation).astype(dtype), (window * stride - pad).astype(dtype))
            for tap, window, stride, dilation, pad in axes
        ]

    def _pixels(self, image: np.ndarray) -> np.ndarray:
        """The pixels as rows (pixel, deformable group) of channels, and a last row of zeros."""
        g = self.geometry
        channels = len(image) // self.deformable
        rows = np.empty((math.prod(g.sizes) * self.deformable + 1, channels), g.computed)
        rows[-1] = 0
        rows[:-1].reshape(*g.sizes, len(image))[...] = np.moveaxis(image, 0, -1)
        return rows

    def _corners(self, where: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """For positions (deformable groups, points, count), one array for each axis, the rows of the pixels around them
        and the share that each has, both (count, points, deformable groups, corners)."""
        sizes = self.geometry.sizes
        inside = np.ones(where[0].shape, bool)
        for position, size in zip(where, sizes, strict=True):
            inside &= (position > -1 if self.zero_pad else position >= 0) & (position < size)
        still = [np.where(inside, position, 0) for position in where]
        floors = [np.floor(position) for position in still]
        groups = self.deformable
        rows = np.empty((*inside.T.shape, self.corners), np.intp)
        shares = np.empty(rows.shape, where[0].dtype)
        nowhere = math.prod(sizes) * groups
        for number, corner in enumerate(np.ndindex(*(2,) * len(sizes))):
            share = np.ones(inside.shape, shares.dtype)
            counts = inside
            index = np.zeros(inside.shape, np.intp)
            for position, floor, size, up in zip(still, floors, sizes, corner, strict=True):
                part = position - floor
                share *= part if up else 1 - part
                pixel = floor.astype(np.intp) + up
                if self.zero_pad:
                    counts = counts & (pixel >= 0) & (pixel < size)
                index = index * size + np.clip(pixel, 0, size - 1)
            index = index * groups + np.arange(groups)[:, None, None]
            rows[..., number] = np.where(counts, index, nowhere).transpose(2, 1, 0)
            shares[..., number] = share.transpose(2, 1, 0)
        return rows, shares

    def _sample(self, scratch: Scratch, pixels: np.ndarray, rows: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """The columns (count, points, channels)."""
        count, points, groups, corners = rows.shape
        channels = pixels.shape[1]
        columns = scratch.take((count * points * groups, 1, channels), pixels.dtype)
        mark = scratch.mark()
        gathered = scratch.take((rows.size, channels), pixels.dtype)
        np.take(pixels, rows.reshape(-1), axis=0, out=gathered, mode="clip")
        np.matmul(shares.reshape(-1, 1, corners), gathered.reshape(-1, corners, channels), out=columns)
        scratch.release(mark)
        return columns.reshape(count, points, groups * channels)
