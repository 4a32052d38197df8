"""MVN, NormalizeL2 and GroupNormalization by the C library."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Collection, Iterator, Sequence
from ctypes import c_double, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel, is_available, loaded
from irexec.backend.chain import Groups
from irexec.backend.kernel import Candidate, Task
from irexec.backend.native.chains import Axes, NativeChain, Operand
from irexec.backend.native.convolution import STEP, overwritten
from irexec.backend.native.rows import TILE, Target, axes_for, groups_of, source_of, target_of
from irexec.backend.registry import kernels
from irexec.dtypes.elements import F32
from irexec.schema.shape_rules import mvn_2_axes, normalize_axes

_MODES = ("center", "inside_sqrt", "outside_sqrt", "add", "max")
"""The computations of normalization.c, in its order."""

# Elements of a block of rows, and of a slab of columns, which should stay in the second-level cache.
_BLOCK, _SLAB = 1 << 15, 1 << 17
# Bytes of a constant that names axes.
_AXES_LIMIT = 1 << 12
# Nanoseconds of an element, of a set of elements, and of an element of a slab.
_ELEMENT, _SET, _COLUMN = 0.12, 25.0, 0.25


class Normalization(ctypes.Structure):
    """See irexec/native/source/normalization.c."""

    _fields_ = (
        ("data", Operand), ("out", Target), ("after", c_void_p), ("scale", c_void_p), ("shift", c_void_p),
        ("affine_row", c_int64), ("affine_column", c_int64), ("images", c_int64), ("rows", c_int64),
        ("columns", c_int64), ("set_rows", c_int64), ("set_columns", c_int64), ("block", c_int64), ("mode", c_int64),
        ("eps", c_double),
    )  # fmt: skip


@dataclass(frozen=True)
class _Sets:
    """Elements that are normalized as one: so many rows by so many columns of (images, rows, columns).

    Attributes:
        mode, eps: see ``_MODES``.
        channels: the group of axes that scale and shift have: 1 for rows, 2 for columns.
        runs_chain: whether the task's chain runs on tiles of these axes.
    """

    axes: Axes
    sizes: tuple[int, int, int]
    rows: int
    columns: int
    mode: str
    eps: float
    channels: int = 2
    runs_chain: bool = True

    @property
    def by_columns(self) -> bool:
        """Whether a slab of columns is normalized at once: runs of a set are short."""
        return self.channels == 2 and self.rows > 1 and self.columns < 4 * loaded().vector

    @property
    def block(self) -> int:
        """Rows of a block of rectangles, columns of a slab."""
        if not self.by_columns:
            return self.rows * max(1, _BLOCK // (self.rows * self.columns))
        widest = max(loaded().vector, min(TILE // 2, _SLAB // self.rows) // loaded().vector * loaded().vector)
        return max(1, widest // self.columns) * self.columns

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        images, rows, columns = self.sizes
        if self.by_columns:
            return images * -(-columns // self.block)
        return images * -(-rows // self.block) * (columns // self.columns)

    @property
    def cost(self) -> float:
        """Estimated nanoseconds."""
        size = math.prod(self.sizes)
        if self.by_columns:
            return STEP + _COLUMN * size
        return STEP + (_ELEMENT * size + _SET * size / (self.rows * self.columns)) * max(1.0, 8 / loaded().vector)


class NativeNormalization(NativeKernel):
    """Sets of elements that are centered and divided, and the chain on them."""

    def __init__(self, task: Task, sets: _Sets) -> None:
        self.sets, self.own = sets, len(task.inputs)
        self.is_affine = self.own == 3
        chain = task.chain if sets.runs_chain else None
        self.chain = NativeChain(chain, task.operands, task.output_shape(), sets.axes)
        self.algorithm = "C, normalization"
        self.reads = None if self.is_affine else (0,)
        self.overwrites = overwritten(task, self.own) if sets.runs_chain else ()
        if task.output_orders[0] == task.input_orders[0]:
            self.overwrites = (0, *self.overwrites)

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        """See NativeKernel.bind."""
        s = self.sets
        scale, shift = (self._affine(inputs[i], binding) if self.is_affine else None for i in (1, 2))
        parameters = Normalization(
            source_of(inputs[0], s.axes, binding), target_of(outputs[0], s.axes, binding),
            self.chain.bind(inputs[self.own :], binding), scale, shift, int(s.channels == 1), int(s.channels == 2),
            *s.sizes, s.rows, s.columns, s.block, _MODES.index(s.mode), s.eps,
        )  # fmt: skip
        binding.call("irx_normalize_columns" if s.by_columns else "irx_normalize_rectangles", parameters, s.blocks)

    def _affine(self, values: np.ndarray, binding: Binding) -> int:
        return binding.address(binding.in_order(values))


@kernels("MVN", since=2)
def _mvn_2(task: Task) -> Iterator[Candidate]:
    a = task.attributes
    axes = mvn_2_axes(len(task.shape(0)), a["across_channels"], a["reduction_axes"])
    return _normalizations(task, axes, "inside_sqrt" if a["normalize_variance"] else "center")


@kernels("MVN", since=6)
def _mvn_6(task: Task) -> Iterator[Candidate]:
    a = task.attributes
    return _normalizations(task, _constant_axes(task), a["eps_mode"] if a["normalize_variance"] else "center")


@kernels("NormalizeL2", since=1)
def _normalize_l2_1(task: Task) -> Iterator[Candidate]:
    return _normalizations(task, _constant_axes(task), task.attributes["eps_mode"])


def _constant_axes(task: Task) -> Collection[int]:
    """The axes that the second input names; none if it is not a constant."""
    known = None if task.constants[1] is None else task.constants[1].small(_AXES_LIMIT)
    return () if known is None else set(normalize_axes(map(int, known.ravel().tolist()), len(task.shape(0))))


def _normalizations(task: Task, axes: Collection[int], mode: str) -> Iterator[Candidate]:
    if not _is_f32(task) or not axes:
        return
    groups = groups_of(task.shape(0), task.input_orders[0], axes)
    if groups is None:
        return
    found, runs_chain = axes_for(task, groups)
    sizes = _sizes(task, found)
    rows, columns = (1, sizes[2]) if len(groups) == 2 else (sizes[1], 1)
    yield _candidate(task, _Sets(found, sizes, rows, columns, mode, task.attributes["eps"], runs_chain=runs_chain))


@kernels("GroupNormalization", since=12)
def _group_normalization_12(task: Task) -> Iterator[Candidate]:
    if not _is_f32(task):
        return
    shape, order = task.shape(0), task.input_orders[0]
    spatial, width = tuple(range(2, len(shape))), shape[1] // task.attributes["num_groups"]
    groups: Groups = ((0,), (1,), spatial)
    is_last = order == (0, *spatial, 1)
    if is_last:
        groups = ((0,), spatial, (1,))
    elif order is not None and order != tuple(range(len(shape))):
        return
    axes, runs_chain = axes_for(task, groups)
    sizes = _sizes(task, axes)
    rows, columns = (sizes[1], width) if is_last else (width, sizes[2])
    eps, channels = task.attributes["epsilon"], 2 if is_last else 1
    yield _candidate(task, _Sets(axes, sizes, rows, columns, "inside_sqrt", eps, channels, runs_chain))


def _is_f32(task: Task) -> bool:
    return is_available(task) and task.inputs[0].element is F32 and 0 not in task.shape(0)


def _sizes(task: Task, axes: Axes) -> tuple[int, int, int]:
    shape = task.shape(0)
    images, rows, columns = (math.prod(shape[axis] for axis in group) for group in axes)
    return images, rows, columns


def _candidate(task: Task, sets: _Sets) -> Candidate:
    return Candidate(sets.cost, functools.partial(NativeNormalization, task, sets), runs_chain=sets.runs_chain)
