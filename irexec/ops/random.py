"""Random numbers: RandomUniform, Multinomial. The same seeds give the same numbers, each time a model runs."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from irexec.dtypes.elements import Element, element
from irexec.dtypes.rounding import round_to
from irexec.errors import check
from irexec.ir.dims import high, low
from irexec.ir.facts import Fact
from irexec.reference.random import fraction, mersenne, philox
from irexec.reference.searching import bisect
from irexec.schema.registry import op
from irexec.schema.rules import check_float, check_integers, check_scalar, check_vector, length, not_negative, open_shape, size_from

Number = Literal["i32", "i64", "f16", "bf16", "f32", "f64"]
Alignment = Literal["TENSORFLOW", "PYTORCH"]

# How many random bits make the fraction of a number.
_BITS = {
    "TENSORFLOW": {"f16": 10, "bf16": 7, "f32": 23, "f64": 52},
    "PYTORCH": {"f16": 11, "bf16": 8, "f32": 24, "f64": 53},
}


@op("RandomUniform", since=8, deterministic=False, tolerance=1e-5)
def random_uniform_8(
    shape: np.ndarray,
    min_val: np.ndarray,
    max_val: np.ndarray,
    *,
    output_type: Number,
    global_seed: int = 0,
    op_seed: int = 0,
    alignment: Alignment = "TENSORFLOW",
) -> np.ndarray:
    """Numbers from ``min_val`` to below ``max_val``: TensorFlow's of the seeds (Philox), or PyTorch's (Mersenne Twister).

    Without seeds they differ each time. Seeds give the same numbers each time a model runs, where OpenVINO's
    plugin goes on in the sequence from one inference to the next. Source: RandomUniform-8 and openvino
    ``reference/src/utils/philox_converter.cpp``.
    """
    sizes = tuple(map(int, shape.ravel().tolist()))
    low, high = min_val.reshape(()), max_val.reshape(())
    seeds = _seeds(global_seed, op_seed)
    numbers = _numbers(math.prod(sizes), low, high, output_type, alignment, seeds)
    return numbers.reshape(sizes)


def _seeds(global_seed: int, op_seed: int) -> tuple[int, int]:
    if global_seed or op_seed:
        return global_seed, op_seed
    return int(np.random.default_rng().integers(1, 1 << 31)), 0


def _numbers(count: int, low: np.ndarray, high: np.ndarray, kind: str, alignment: str, seeds: tuple[int, int]) -> np.ndarray:
    torch = alignment == "PYTORCH"
    double = kind == "f64" or (kind == "i64" and not _narrow(int(low), int(high), torch))
    words = _words(count * 2 if double else count, seeds, torch)
    if double:
        # The 64-bit integers of TensorFlow have their low word first.
        first, second = words[0::2].astype(np.uint64), words[1::2].astype(np.uint64)
        if kind == "i64" and not torch:
            first, second = second, first
        words = (first << np.uint64(32)) | second
    words = words[:count]
    if kind in ("i32", "i64"):
        return _integers(words, low, high)
    return _floats(fraction(words, _BITS[alignment][kind]), low, high, kind, torch)


def _narrow(low: int, high: int, torch: bool) -> bool:
    """Whether a single word makes a 64-bit integer, as the specification has it and the plugin does.

    Limits beyond 32 bits need two, as the reference takes for TensorFlow's always.
    """
    return max(low, high) <= 0xFFFFFFFF if torch else min(low, high) >= -(1 << 31) and max(low, high) < 1 << 31


def _words(count: int, seeds: tuple[int, int], torch: bool) -> np.ndarray:
    return mersenne(seeds[0], count) if torch else philox(*seeds, -(-count // 4)).ravel()[:count]


def _integers(words: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The remainder of unsigned words by the width of the range, in the type of the limits."""
    unsigned = np.dtype(f"u{low.dtype.itemsize}")
    with np.errstate(over="ignore"):
        width = (high - low).astype(unsigned)
        check(bool(width), f"min_val {low} is not less than max_val {high}")
        return (words.astype(unsigned) % width + low.astype(unsigned)).astype(low.dtype)


def _floats(unit: np.ndarray, low: np.ndarray, high: np.ndarray, kind: str, torch: bool) -> np.ndarray:
    """unit * (high - low) + low; 16-bit types are rounded after each step, of PyTorch's only the width and the result."""
    if kind in ("f32", "f64"):
        return (unit.astype(low.dtype) * (high - low) + low).astype(low.dtype)
    width = _rounded(kind, (high - low).astype(np.float32))
    scaled = unit.astype(np.float32) * width
    if not torch:
        scaled = _rounded(kind, scaled)
    return (scaled + low.astype(np.float32)).astype(low.dtype)


def _rounded(kind: str, x: np.ndarray) -> np.ndarray:
    return x.astype(np.float16).astype(np.float32) if kind == "f16" else round_to(element(kind), x)


@random_uniform_8.shape_rule
def _random_uniform_8_facts(
    shape: Fact,
    min_val: Fact,
    max_val: Fact,
    *,
    output_type: Number,
    global_seed: int = 0,
    op_seed: int = 0,
    alignment: Alignment = "TENSORFLOW",
) -> Fact:
    kind = element(output_type)
    check_integers(shape, "shape")
    check_vector(shape, "shape")
    for limit, what in ((min_val, "min_val"), (max_val, "max_val")):
        check_scalar(limit, what)
        check(limit.element in (None, kind), f"{what} has element type {limit.element}, expected output_type {kind}")
    if min_val.known is not None and max_val.known is not None and min_val.known.size == max_val.known.size == 1:
        limits = min_val.known.reshape(()), max_val.known.reshape(())
        check(bool(limits[0] < limits[1]), f"min_val {limits[0]} is not less than max_val {limits[1]}")
    sizes = shape.sizes()
    if sizes is None:
        return Fact(kind, open_shape(length(shape)))
    return Fact(kind, tuple(not_negative(size, "a size of shape") for size in sizes))


@op("Multinomial", since=13, deterministic=False)
def multinomial_13(
    probs: np.ndarray,
    num_samples: np.ndarray,
    *,
    convert_type: Literal["i32", "i64"],
    with_replacement: bool,
    log_probs: bool,
    global_seed: int = 0,
    op_seed: int = 0,
) -> np.ndarray:
    """Classes drawn by their probabilities, (batch, classes) to (batch, num_samples): the first whose cumulative
    probability reaches a random number.

    The random numbers are those of RandomUniform in f64, as openvino ``reference/multinomial.hpp`` has it and
    the specification leaves open; the CPU plugin draws others. Without replacement a class drawn has no
    probability left for the draws that follow. Source: Multinomial-13.
    """
    rows = np.exp(probs) if log_probs else probs
    many, batch = int(num_samples.reshape(())), rows.shape[:-1]
    unit = _numbers(math.prod(batch) * many, np.array(0.0), np.array(1.0), "f64", "TENSORFLOW", _seeds(global_seed, op_seed))
    unit, rows = unit.reshape(math.prod(batch), many), rows.reshape(math.prod(batch), rows.shape[-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = _first_reached(_cumulative(rows), unit) if with_replacement else _drawn_once(rows, unit)
    return drawn.reshape(*batch, many).astype(element(convert_type).carrier)


def _cumulative(rows: np.ndarray) -> np.ndarray:
    sums = np.cumsum(rows, -1, dtype=rows.dtype)
    return (sums / sums[:, -1:]).astype(rows.dtype)


def _first_reached(sums: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """(batch, classes) and (batch, draws) to (batch, draws); the last class where rounding left the sum below."""
    return np.minimum(bisect(sums, unit, np.less), sums.shape[-1] - 1)


def _drawn_once(rows: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Draw after draw, all batches at once."""
    left, result = rows.copy(), np.zeros(unit.shape, np.int64)
    for i in range(unit.shape[1]):
        # Nothing is ever drawn that has no probability: not even by a random number of 0.
        at_least_a_bit = np.maximum(unit[:, i : i + 1], np.finfo(np.float64).tiny)
        result[:, i] = _first_reached(_cumulative(left), at_least_a_bit)[:, 0]
        np.put_along_axis(left, result[:, i : i + 1], 0, 1)
    return result


@multinomial_13.shape_rule
def _multinomial_13_facts(
    probs: Fact,
    num_samples: Fact,
    *,
    convert_type: Literal["i32", "i64"],
    with_replacement: bool,
    log_probs: bool,
    global_seed: int = 0,
    op_seed: int = 0,
) -> Fact:
    check_float(probs, "probs")
    kind: Element = element(convert_type)
    many = size_from(num_samples, "num_samples")
    if probs.shape is None:
        return Fact(kind, None)
    check(len(probs.shape) in (1, 2), f"probs has rank {len(probs.shape)}, expected 1 or 2")
    classes = high(probs.shape[-1])
    if not with_replacement and classes is not None:
        check(low(many) <= classes, f"num_samples {many} is more than the {classes} classes, which are drawn once each")
    return Fact(kind, (*probs.shape[:-1], many))
