"""Constants that are stored as small integers with a scale for each group, and decompressed on request."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from irexec.backend.constants import ConstantSource, ConstantStore
from irexec.dtypes.elements import F16, F32, I4, I8, U4, U8, Element, packed_size, unpack
from irexec.ir.constants import Constant, constant_value

# Number of elements of a block of decompression, which stays in cache.
_BLOCK = 1 << 16

# Smallest and largest magnitude of f16 with all of its 11 significant bits.
_NORMAL_F16 = 2.0**-14, 65504.0

_NIBBLES = (U4, I4)

# Middle of the range of unsigned integers, near which zero points lie.
_MIDDLES = {U4: 8, U8: 128}


class CompressedSource(ConstantSource):
    """(q - zero_point) * scale of integers q, as f32.

    Args:
        packed: the integers, of any integer type.
        zero_point: zero points, which broadcast to the shape of ``packed``; None for zeros.
        scale: scales, which broadcast likewise.
        shape: shape of the result, with the same number of elements in the same order.
        computed: element type in which the model subtracts and multiplies; f16 rounds each result.

    Attributes:
        in_f16: whether the model computes the weights in f16.
        grouped: number of leading axes of ``packed`` along which a scale or zero point varies; at least 1.
        count, groups, group: number of rows (first axis of ``packed``), of groups in a row, and of elements in a
            group, which share a scale.
        stored_scale, stored_zero_point: as the model stores them.
        scale, zero_point: f32 (count, groups).
        middle: offset that ``integers`` subtracts from unsigned integers with zero points, to centre them on 0;
            0 for other integers.
        stored: the integers as a constant of their own.
        bytes: the bytes of the integers as a constant of their own.
        fits_bytes: True if integers of four bits minus their zero points are whole, so that int8 holds them.
    """

    def __init__(
        self,
        packed: Constant,
        zero_point: np.ndarray | None,
        scale: np.ndarray,
        shape: tuple[int, ...],
        computed: Element = F32,
    ) -> None:
        super().__init__(F32, shape, self._decompressed)
        self.packed, self.in_f16 = packed, computed is F16
        self.stored = ConstantSource(packed.element, packed.shape, lambda: constant_value(packed))
        self.stored.raw = packed
        self.bytes = ConstantSource(U8, (packed.size,), lambda: packed.raw[: packed.size])
        self.bytes.raw = packed
        self.stored_scale, self.stored_zero_point = scale.astype(np.float32), zero_point
        grouped = self.grouped = _grouped_axes(packed.shape, scale, zero_point)
        self.count = packed.shape[0] if packed.shape else 1
        self.groups, self.group = math.prod(packed.shape[1:grouped]), math.prod(packed.shape[grouped:])
        self.middle = 0 if zero_point is None else _MIDDLES.get(packed.element, 0)
        magnitudes = np.abs(self.stored_scale[self.stored_scale != 0])
        low, high = float(magnitudes.min(initial=np.inf)), float(magnitudes.max(initial=0))
        zeros = np.zeros(1) if zero_point is None else zero_point
        whole = bool((zeros == np.rint(zeros)).all())
        self.fits_bytes = packed.element in _NIBBLES and whole and bool((np.abs(zeros) <= 16).all())
        self._is_normal = whole and low >= _NORMAL_F16[0] and high * 2 ** (packed.element.bits + 1) <= _NORMAL_F16[1]

    @cached_property
    def scale(self) -> np.ndarray:
        return self._by_group(self.stored_scale)

    @cached_property
    def zero_point(self) -> np.ndarray | None:
        return None if self.stored_zero_point is None else self._by_group(self.stored_zero_point)

    def _by_group(self, parameter: np.ndarray) -> np.ndarray:
        shape = self.packed.shape
        kept = ((1,) * (len(shape) - parameter.ndim) + parameter.shape)[: self.grouped]
        return (
            np.broadcast_to(parameter.reshape(kept), shape[: self.grouped])
            .reshape(self.count, self.groups)
            .astype(np.float32)
        )

    @property
    def row(self) -> int:
        """Number of elements in a row."""
        return self.groups * self.group

    @property
    def has_rows(self) -> bool:
        """True if the result is a matrix of these rows and each row starts at a byte."""
        return self.shape == (self.count, self.row) and self.row * self.packed.element.bits % 8 == 0

    @property
    def is_interleaved(self) -> bool:
        """True if ``integers`` writes the even elements of each group before the odd ones."""
        return self.packed.element in _NIBBLES and self.group % 2 == 0

    def rows(self, first: int, last: int, out: np.ndarray | None = None) -> np.ndarray:
        """Rows of the result, written to ``out``: f32 (rows, row), C-contiguous."""
        target = np.empty((last - first, self.row), np.float32) if out is None else out
        self._unpack(first, last, target)
        self._scale(target.reshape(last - first, self.groups, self.group), slice(first, last))
        return target

    def bytes_by_group(self, store: ConstantStore) -> np.ndarray:
        """The integers minus their zero points: int8 (groups, count, group), made once; they must fit bytes."""
        return store.get([self.stored], "bytes by group", self._by_groups)

    def _by_groups(self, integers: np.ndarray) -> np.ndarray:
        grouped = integers.reshape(self.count, self.groups, self.group).swapaxes(0, 1)
        if self.zero_point is None:
            return grouped.astype(np.int8, order="C")
        zero_point = self.zero_point.astype(np.int8).T[:, :, None]
        return np.subtract(grouped.view(np.int8), zero_point, order="C")

    def rows_of_bytes(self, held: np.ndarray, first: int, last: int, out: np.ndarray) -> np.ndarray:
        """The same as ``rows``, from ``bytes_by_group``."""
        groups = out.reshape(last - first, self.groups, self.group)
        np.copyto(groups, held[:, first:last].swapaxes(0, 1))
        self._scale(groups, slice(first, last), is_centred=True)
        return out

    def integers(self, first: int, last: int, out: np.ndarray) -> None:
        """The integers minus ``middle`` of some rows, written to ``out``: f32 (rows, groups, group); see
        ``is_interleaved``."""
        shape = last - first, self.groups
        if self.is_interleaved:
            half, signed = self.group // 2, self.packed.element is I4
            packed = self._bytes(first, last).reshape(*shape, half)
            _unpack_nibbles(packed, out[..., :half], out[..., half:], signed, self.middle)
        elif self.packed.element in (U8, I8):
            self._copy_bytes(first, last, out, self.middle)
        else:
            target = np.empty((last - first, self.row), np.float32)
            self._unpack(first, last, target)
            np.subtract(target.reshape(out.shape), np.float32(self.middle), out=out)

    def _copy_bytes(self, first: int, last: int, out: np.ndarray, middle: int = 0) -> None:
        """Integers of 8 bits minus ``middle`` of some rows, written to ``out``: f32, of any shape."""
        stored = self._bytes(first, last)
        if middle:
            values = np.subtract(stored, middle, dtype=np.uint8).view(np.int8)
        else:
            values = stored.view(self.packed.element.carrier)
        np.copyto(out, values.reshape(out.shape))

    def _unpack(self, first: int, last: int, out: np.ndarray) -> None:
        """The integers of some rows in order, as f32 (rows, row)."""
        element = self.packed.element
        if element in _NIBBLES:
            _unpack_nibbles(self._bytes(first, last), out[:, ::2], out[:, 1::2], element is I4, 0)
        elif element in (U8, I8):
            self._copy_bytes(first, last, out)
        else:
            np.copyto(out, unpack(element, self._bytes(first, last).reshape(-1), out.size).reshape(out.shape))

    def _bytes(self, first: int, last: int) -> np.ndarray:
        width = self.row * self.packed.element.bits // 8
        return self.packed.raw[first * width : last * width].reshape(last - first, width)

    def _scale(self, groups: np.ndarray, rows: slice, *, is_centred: bool = False) -> None:
        """Turn integers (rows, groups, group) into results, in place.

        Args:
            is_centred: whether the zero points are subtracted already.
        """
        zero_point = None if is_centred or self.zero_point is None else self.zero_point[rows, :, None]
        scale = self.scale[rows, :, None]
        if self.in_f16 and not self._is_normal:
            with np.errstate(over="ignore", invalid="ignore"):
                halves = groups.astype(np.float16)
                halves -= 0 if zero_point is None else zero_point.astype(np.float16)
                halves *= scale.astype(np.float16)
            groups[...] = halves
            return
        if zero_point is not None:
            groups -= zero_point
        groups *= scale
        if self.in_f16:
            _round_to_f16(groups)

    def _decompressed(self) -> np.ndarray:
        """The value, by blocks of rows."""
        out = np.empty((self.count, self.row), np.float32)
        if self.row * self.packed.element.bits % 8:
            element, size = self.packed.element, out.size
            out[...] = unpack(element, self.packed.raw[: packed_size(element, size)], size).reshape(out.shape)
            self._scale(out.reshape(self.count, self.groups, self.group), slice(None))
            return out.reshape(self.shape)
        step = max(1, _BLOCK // max(self.row, 1))
        for first in range(0, self.count, step):
            last = min(first + step, self.count)
            self.rows(first, last, out[first:last])
        return out.reshape(self.shape)


def _grouped_axes(shape: tuple[int, ...], *parameters: np.ndarray | None) -> int:
    """Number of leading axes along which a parameter varies; at least the first axis."""
    last = 0
    for parameter in parameters:
        if parameter is not None:
            sizes = (1,) * (len(shape) - parameter.ndim) + parameter.shape
            last = max([last, *(axis for axis, size in enumerate(sizes) if size != 1)])
    return min(last + 1, len(shape))


def _unpack_nibbles(packed: np.ndarray, even: np.ndarray, odd: np.ndarray, signed: bool, middle: int) -> None:
    """The two integers of each byte minus ``middle``, as f32; the low four bits are the even one."""
    values = packed.view(np.int8) if signed else packed
    half = np.empty(packed.shape, values.dtype)
    if signed:
        np.left_shift(values, 4, out=half)
        np.right_shift(half, 4, out=half)
    else:
        np.bitwise_and(values, 15, out=half)
    np.copyto(even, _minus(half, middle))
    np.right_shift(values, 4, out=half)
    np.copyto(odd, _minus(half, middle))


def _minus(half: np.ndarray, middle: int) -> np.ndarray:
    """Integers of four bits minus ``middle``, in place."""
    return np.subtract(half.view(np.int8), middle, out=half.view(np.int8)) if middle else half


def _round_to_f16(x: np.ndarray) -> None:
    """Round f32 within the range of normal f16 to the nearest f16, halves to even, in place.

    Source: Veltkamp's splitting, 24 - 13 = 11 bits; exact for every product of an integer of ten bits and a number of
    f16. NumPy's own conversion takes ten times as long.
    """
    scaled = x * np.float32(2**13 + 1)
    np.subtract(scaled, x, out=x)
    np.subtract(scaled, x, out=x)
