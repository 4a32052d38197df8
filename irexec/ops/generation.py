"""Tensors made from scalars and random numbers: Range, OneHot, Eye, RandomUniform, Multinomial.

Sources: RandomUniform-8; Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (Philox 4x32-10);
Matsumoto and Nishimura, Mersenne Twister (MT19937), which NumPy has.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np

from irexec.dtypes.elements import BF16, F16, F32, F64, I32, I64, Element, element, round_to
from irexec.errors import OpError, check
from irexec.ir.dims import ANY, Dim, Size, at_least, ceil_div, high, low, span
from irexec.ir.facts import Fact, integer, integers
from irexec.reference.indexing import bisect
from irexec.reference.limits import check_time
from irexec.schema.opdef import (
    ONE_ELEMENT,
    SCALAR,
    AnyTensor,
    FloatTensor,
    IndexElement,
    IndexVector,
    IntegerScalar,
    IntegerTensor,
    NumericTensor,
    Rank,
    element_set,
)
from irexec.schema.registry import op
from irexec.schema.shape_rules import held_shape, normalize_axis, scalar_size, unify_elements

NumericScalar = Annotated[NumericTensor, SCALAR]
AnyScalar = Annotated[AnyTensor, SCALAR]


def _length(start: Any, stop: Any, step: Any) -> Size:
    """The number of elements of a range; a Dim where start, stop or step is one.

    A step that is 0 once it is truncated gives no element, as in OpenVINO's reference.
    """
    if any(isinstance(value, Dim) for value in (start, stop, step)):
        return _bounded_length(start, stop, step)
    if not all(math.isfinite(value) for value in (start, stop, step)):
        return ANY
    if step == 0:
        return 0
    return max(math.ceil((stop - start) / step) if isinstance(step, float) else -((start - stop) // step), 0)


def _bounded_length(start: Size, stop: Size, step: Size) -> Size:
    if not isinstance(step, int) or step == 0:
        return ANY
    if start == 0 and step == 1:
        return at_least(stop, 0)
    first, last = (start, stop) if step > 0 else (stop, start)
    max_first, max_last = high(first), high(last)
    minimum = 0 if max_first is None else max(low(last) - max_first, 0)
    return ceil_div(span(minimum, None if max_last is None else max(max_last - low(first), 0)), abs(step))


def _range_facts(start: Fact, stop: Fact, step: Fact, kind: Element | None) -> Fact:
    facts = [fact.value for fact in (start, stop, step) if fact.value is not None and fact.value.size == 1]
    if len(facts) < 3:
        return Fact(kind, (ANY,))
    values: list[Any] = [value.reshape(-1).tolist()[0] for value in facts]
    _check_range(values)
    if kind is not None and kind.is_integer:
        values = [math.trunc(value) if isinstance(value, float) else value for value in values]
    return Fact(kind, (_length(*values),))


def _check_range(values: list[Any]) -> None:
    """Refuse values of which OpenVINO refuses a range."""
    finite = all(isinstance(value, Dim) or math.isfinite(value) for value in values)
    check(finite, "start, stop and step must be finite")
    check(isinstance(values[2], Dim) or values[2] != 0, "step is 0")


def _range(start: np.ndarray, stop: np.ndarray, step: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """start + i * step, in the type of the result: modulo its range for integers, rounded once for floats."""
    values = [array.reshape(-1).tolist()[0] for array in (start, stop, step)]
    _check_range(values)
    if dtype.kind in "iu":
        values = [math.trunc(value) for value in values]
    count = int(_length(*values))
    if dtype.kind not in "iu":
        return (values[0] + np.arange(count, dtype=np.float64) * values[2]).astype(dtype)
    first, step_value = (np.uint64(value % (1 << 64)) for value in (values[0], values[2]))
    return (first + np.arange(count, dtype=np.uint64) * step_value).astype(dtype)


@op("Range", since=1)
def range_1(start: NumericScalar, stop: NumericScalar, step: NumericScalar) -> np.ndarray:
    """start, start + step, ... before stop. Source: Range-1."""
    return _range(start, stop, step, start.dtype)


@range_1.shape_rule
def _range_1_facts(start: Fact, stop: Fact, step: Fact) -> Fact:
    return _range_facts(start, stop, step, unify_elements(start, stop, step))


@op("Range", since=4)
def range_4(start: NumericScalar, stop: NumericScalar, step: NumericScalar, *, output_type: Element) -> np.ndarray:
    """start, start + step, ... before stop, as ``output_type``; for an integer type the inputs are truncated first.

    Source: Range-4.
    """
    return _range(start, stop, step, output_type.carrier)


@range_4.shape_rule
def _range_4_facts(start: Fact, stop: Fact, step: Fact, *, output_type: Element) -> Fact:
    return _range_facts(start, stop, step, output_type)


@op("OneHot", since=1)
def one_hot_1(
    indices: IntegerTensor, depth: IntegerScalar, on_value: AnyScalar, off_value: AnyScalar, *, axis: int
) -> np.ndarray:
    """on_value at the position of the index along the new axis, off_value elsewhere; negative indices are ignored.

    Source: OneHot-1.
    """
    return one_hot_16.kernel(indices, depth, on_value, off_value, axis=axis)


@op("OneHot", since=16)
def one_hot_16(
    indices: IntegerTensor,
    depth: IntegerScalar,
    on_value: AnyScalar,
    off_value: AnyScalar,
    *,
    axis: int,
    negative_indices_mode: Literal["ignore_negative", "normalize"] = "ignore_negative",
) -> np.ndarray:
    """Same as OneHot-1; with normalize, negative indices are counted from the end. Source: OneHot-16."""
    size = integer(depth, "depth")
    new_axis = normalize_axis(axis, indices.ndim + 1)
    if indices.size == 0:
        # Nothing of the depth is computed, which may be more than np.arange has.
        return np.zeros((*indices.shape[:new_axis], size, *indices.shape[new_axis:]), on_value.dtype)
    wide = indices.astype(np.int64)
    if negative_indices_mode == "normalize":
        wide = np.where(wide < 0, wide + size, wide)
    hot = np.expand_dims(wide, new_axis) == np.arange(size).reshape((size,) + (1,) * (indices.ndim - new_axis))
    return np.where(hot, on_value.reshape(()), off_value.reshape(())).astype(on_value.dtype)


@one_hot_1.shape_rule
@one_hot_16.shape_rule
def _one_hot_facts(indices: Fact, depth: Fact, on_value: Fact, off_value: Fact, *, axis: int) -> Fact:
    kind = unify_elements(on_value, off_value)
    if indices.shape is None:
        return Fact(kind, None)
    new_axis = normalize_axis(axis, len(indices.shape) + 1)
    return Fact(kind, (*indices.shape[:new_axis], scalar_size(depth, "depth"), *indices.shape[new_axis:]))


@op("Eye", since=9)
def eye_9(
    num_rows: IndexElement,
    num_columns: IndexElement,
    diagonal_index: IndexElement,
    batch_shape: IndexVector | None = None,
    *,
    output_type: Element,
) -> np.ndarray:
    """Ones on a diagonal, zeros elsewhere, for every batch. Source: Eye-9."""
    rows, columns = integer(num_rows, "num_rows"), integer(num_columns, "num_columns")
    matrix = np.eye(rows, columns, integer(diagonal_index, "diagonal_index"), dtype=output_type.carrier)
    batch = () if batch_shape is None else integers(batch_shape, "batch_shape")
    return np.broadcast_to(matrix, (*batch, rows, columns)).copy()


@eye_9.shape_rule
def _eye_9_facts(
    num_rows: Fact, num_columns: Fact, diagonal_index: Fact, batch_shape: Fact | None = None, *, output_type: Element
) -> Fact:
    sizes = [scalar_size(num_rows, "num_rows"), scalar_size(num_columns, "num_columns")]
    if batch_shape is None:
        return Fact(output_type, tuple(sizes))
    batch = held_shape(batch_shape, "batch_shape")
    return Fact(output_type, None if batch is None else (*batch, *sizes))


Number = Literal["i32", "i64", "f16", "bf16", "f32", "f64"]
Alignment = Literal["TENSORFLOW", "PYTORCH"]

Limit = Annotated[
    np.ndarray, element_set("i32, i64, f16, bf16, f32 or f64", I32, I64, F16, BF16, F32, F64), ONE_ELEMENT
]

# The number of random bits of the fraction of a value.
_BITS = {
    "TENSORFLOW": {"f16": 10, "bf16": 7, "f32": 23, "f64": 52},
    "PYTORCH": {"f16": 11, "bf16": 8, "f32": 24, "f64": 53},
}


@op("RandomUniform", since=8, deterministic=False, tolerance=1e-5)
def random_uniform_8(
    shape: Annotated[IntegerTensor, Rank(1)],
    min_val: Limit,
    max_val: Limit,
    *,
    output_type: Number,
    global_seed: int = 0,
    op_seed: int = 0,
    alignment: Alignment = "TENSORFLOW",
) -> np.ndarray:
    """Random numbers in [min_val, max_val): those of TensorFlow for the seeds (Philox), or those of PyTorch (Mersenne
    Twister).

    Without seeds they differ each time. With seeds they are the same in every run of a model, where OpenVINO's
    plugin continues the sequence from one inference to the next. Source: RandomUniform-8 and openvino
    ``reference/src/utils/philox_converter.cpp``.
    """
    sizes = integers(shape, "shape")
    low, high = min_val.reshape(()), max_val.reshape(())
    seeds = _seeds(global_seed, op_seed)
    numbers = _numbers(math.prod(sizes), low, high, output_type, alignment, seeds)
    return numbers.reshape(sizes)


def _seeds(global_seed: int, op_seed: int) -> tuple[int, int]:
    if global_seed or op_seed:
        return global_seed, op_seed
    return int(np.random.default_rng().integers(1, 1 << 31)), 0


def _numbers(
    count: int, low: np.ndarray, high: np.ndarray, kind: str, alignment: str, seeds: tuple[int, int]
) -> np.ndarray:
    pytorch = alignment == "PYTORCH"
    two_words = kind == "f64" or (kind == "i64" and not _fits_one_word(int(low), int(high), pytorch))
    needed = count * 2 if two_words else count
    words = mersenne(seeds[0], needed) if pytorch else philox(*seeds, -(-needed // 4)).ravel()[:needed]
    if two_words:
        # The 64-bit integers of TensorFlow have their low word first.
        first, second = words[0::2].astype(np.uint64), words[1::2].astype(np.uint64)
        if kind == "i64" and not pytorch:
            first, second = second, first
        words = (first << np.uint64(32)) | second
    words = words[:count]
    if kind in ("i32", "i64"):
        return _integers(words, low, high)
    return _floats(fraction(words, _BITS[alignment][kind]), low, high, kind, pytorch)


def _fits_one_word(low: int, high: int, pytorch: bool) -> bool:
    """Whether a single word is enough for a 64-bit integer, as the specification and the plugin have it.

    Limits beyond 32 bits need two words, which the reference always takes for TensorFlow.
    """
    return max(low, high) <= 0xFFFFFFFF if pytorch else min(low, high) >= -(1 << 31) and max(low, high) < 1 << 31


def _integers(words: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The remainder of unsigned words by the width of the range, in the type of the limits."""
    unsigned = np.dtype(f"u{low.dtype.itemsize}")
    with np.errstate(over="ignore"):
        width = (high - low).astype(unsigned)
        check(bool(width), f"min_val {low} is not less than max_val {high}")
        return (words.astype(unsigned) % width + low.astype(unsigned)).astype(low.dtype)


def _floats(unit: np.ndarray, low: np.ndarray, high: np.ndarray, kind: str, pytorch: bool) -> np.ndarray:
    """unit * (high - low) + low; 16-bit types are rounded after each step, with PyTorch only the width and the
    result."""
    if kind in ("f32", "f64"):
        return (unit.astype(low.dtype) * (high - low) + low).astype(low.dtype)
    width = _rounded(kind, (high - low).astype(np.float32))
    scaled = unit.astype(np.float32) * width
    if not pytorch:
        scaled = _rounded(kind, scaled)
    return (scaled + low.astype(np.float32)).astype(low.dtype)


def _rounded(kind: str, x: np.ndarray) -> np.ndarray:
    return x.astype(np.float16).astype(np.float32) if kind == "f16" else round_to(element(kind), x)


@random_uniform_8.shape_rule
def _random_uniform_8_shape(shape: Fact, min_val: Fact, max_val: Fact, *, output_type: Number) -> Fact:
    kind = element(output_type)
    for limit, what in ((min_val, "min_val"), (max_val, "max_val")):
        check(limit.element in (None, kind), f"{what} has element type {limit.element}, expected output_type {kind}")
    if min_val.known is not None and max_val.known is not None and min_val.known.size == max_val.known.size == 1:
        limits = min_val.known.reshape(()), max_val.known.reshape(())
        check(bool(limits[0] < limits[1]), f"min_val {limits[0]} is not less than max_val {limits[1]}")
    return Fact(kind, held_shape(shape, "shape"))


@op("Multinomial", since=13, deterministic=False)
def multinomial_13(
    probs: Annotated[FloatTensor, Rank(1, 2)],
    num_samples: Annotated[IntegerTensor, ONE_ELEMENT],
    *,
    convert_type: Literal["i32", "i64"],
    with_replacement: bool,
    log_probs: bool,
    global_seed: int = 0,
    op_seed: int = 0,
) -> np.ndarray:
    """Classes chosen by their probabilities, (batch, classes) to (batch, num_samples): the first whose cumulative
    probability reaches a random number.

    The random numbers are those of RandomUniform in f64, as openvino ``reference/multinomial.hpp`` has it and
    the specification leaves open; the CPU plugin uses others. Without replacement the probability of a chosen class
    is 0 for the samples that follow. Source: Multinomial-13.
    """
    rows = np.exp(probs) if log_probs else probs
    count, batch = integer(num_samples, "num_samples"), rows.shape[:-1]
    unit = _numbers(
        math.prod(batch) * count, np.array(0.0), np.array(1.0), "f64", "TENSORFLOW", _seeds(global_seed, op_seed)
    )
    unit, rows = unit.reshape(math.prod(batch), count), rows.reshape(math.prod(batch), rows.shape[-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        classes = _first_reached(_cumulative(rows), unit) if with_replacement else _without_replacement(rows, unit)
    return classes.reshape(*batch, count).astype(element(convert_type).carrier)


def _cumulative(rows: np.ndarray) -> np.ndarray:
    sums = np.cumsum(rows, -1, dtype=rows.dtype)
    return (sums / sums[:, -1:]).astype(rows.dtype)


def _first_reached(sums: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """(batch, classes) and (batch, samples) to (batch, samples); the last class where rounding leaves the sum below."""
    return np.minimum(bisect(sums, unit, np.less), sums.shape[-1] - 1)


def _without_replacement(rows: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Sample after sample, all batches at once; a class is chosen at most once."""
    left, result = rows.copy(), np.zeros(unit.shape, np.int64)
    for i in range(unit.shape[1]):
        check_time()
        # A class without probability must never be chosen, not even by a random number of 0.
        positive = np.maximum(unit[:, i : i + 1], np.finfo(np.float64).tiny)
        result[:, i] = _first_reached(_cumulative(left), positive)[:, 0]
        np.put_along_axis(left, result[:, i : i + 1], 0, 1)
    return result


@multinomial_13.shape_rule
def _multinomial_13_shape(
    probs: Fact, num_samples: Fact, *, convert_type: Literal["i32", "i64"], with_replacement: bool
) -> Fact:
    kind: Element = element(convert_type)
    count = scalar_size(num_samples, "num_samples")
    if probs.shape is None:
        return Fact(kind, None)
    classes = high(probs.shape[-1])
    if not with_replacement and classes is not None and low(count) > classes:
        raise OpError(f"num_samples {count} is more than the {classes} classes, each of which is chosen at most once")
    return Fact(kind, (*probs.shape[:-1], count))


_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_FACTORS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_STEPS = (0x9E3779B9, 0xBB67AE85)

# Blocks that are computed together, in cache; the run's time is looked at between them.
_TOGETHER = 1 << 13


def philox(key: int, counter: int, blocks: int) -> np.ndarray:
    """Words (blocks, 4) uint32; ``key`` and ``counter`` are 64-bit integers, blocks are numbered from 0."""
    words = np.empty((blocks, 4), np.uint32)
    for first in range(0, blocks, _TOGETHER):
        check_time()
        part = words[first : first + _TOGETHER]
        part[...] = _philox(key, counter, np.arange(first, first + len(part), dtype=np.uint64))
    return words


def _philox(key: int, counter: int, n: np.ndarray) -> np.ndarray:
    """The words of the blocks of these numbers."""
    words = [n & _LOW, n >> _HALF, *(np.full(len(n), part, np.uint64) for part in _halves(counter))]
    keys = _halves(key)
    for _ in range(_ROUNDS):
        first, second = _FACTORS[0] * words[0], _FACTORS[1] * words[2]
        words = [
            (second >> _HALF) ^ words[1] ^ np.uint64(keys[0]),
            second & _LOW,
            (first >> _HALF) ^ words[3] ^ np.uint64(keys[1]),
            first & _LOW,
        ]
        keys = ((keys[0] + _STEPS[0]) & 0xFFFFFFFF, (keys[1] + _STEPS[1]) & 0xFFFFFFFF)
    return np.stack(words, 1)


def _halves(number: int) -> tuple[int, int]:
    return number & 0xFFFFFFFF, number >> 32 & 0xFFFFFFFF


def mersenne(seed: int, count: int) -> np.ndarray:
    """Words (count,) uint32 of the Mersenne Twister seeded with the low 32 bits of ``seed``."""
    generator: Any = np.random.RandomState(seed & 0xFFFFFFFF)
    return generator.randint(0, 1 << 32, count, np.uint32)


def fraction(words: np.ndarray, bits: int) -> np.ndarray:
    """The lowest ``bits`` of words as fractions in [0, 1), f64."""
    return (words & np.asarray((1 << bits) - 1, words.dtype)) / float(1 << bits)
