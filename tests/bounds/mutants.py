"""Faults planted in the results of rows, by kind: those that kernels have.

A kind is one of the mistakes that public reports show: a wrong pad, an offset of one, a swapped axis, a bias left out,
a wrong epsilon, a wrong mode of rounding, f16 in place of f32, a dropped last block, a transposed result, and some more.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from irexec.bounds import ARITHMETICS
from irexec.dtypes.elements import F32
from irexec.testing import Case, Typed
from irexec.testing.laws import infer, kernel, read_only
from irexec.testing.rows import exact_facts

Results = list[np.ndarray]
Mutant = Callable[[], Results]

_CHOICES = {
    "wrong rounding mode": (("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"), ("half_to_even", "half_away_from_zero"), ("f8e4m3", "f8e5m2")),
    "wrong mode": (
        ("inside_sqrt", "outside_sqrt"), ("add", "max"), ("nearest", "linear", "cubic", "linear_onnx"),
        ("half_pixel", "asymmetric", "align_corners"), ("forward", "reverse"), ("zeros", "border", "reflection"),
        ("bilinear", "bicubic"), ("sum", "mean", "prod", "max", "min"), ("erf", "tanh"), ("sigmoid", "tanh"),
        ("constant", "edge"), ("reflect", "symmetric"),
    ),
}  # fmt: skip
_EPSILONS = ("eps", "epsilon", "alpha", "beta", "bias", "lambda")
_FACTOR = 1.01


def results_of(row: Case) -> Results:
    """The outputs of the reference kernel."""
    return list(kernel(row, read_only(row)))


def mutants(row: Case, right: Results) -> Iterator[tuple[str, Mutant]]:
    """Kind and results of each fault that the row can have."""
    yield "off by one", lambda: [np.roll(x, 1, -1) if x.ndim else x for x in right]
    yield "last block dropped", lambda: [_dropped(x) for x in right]
    yield "transposed result", lambda: [_transposed(x) for x in right]
    if all(x.element.name not in ("f16", "bf16") for x in row.inputs):
        yield "wrong scale", lambda: [_scaled(x) for x in right]
    if any(x.element is F32 for x in row.inputs):
        yield "f16 for f32", functools.partial(_half, row)
    yield from _of_attributes(row)
    yield from _of_inputs(row)


def _of_attributes(row: Case) -> Iterator[tuple[str, Mutant]]:
    for name, value in row.attributes.items():
        for kind, other in _others(row, name, value):
            yield kind, functools.partial(_again, row, name, other)


def _of_inputs(row: Case) -> Iterator[tuple[str, Mutant]]:
    first = row.inputs[0].array if row.inputs else np.zeros(0)
    if first.ndim > 1 and first.shape[-1] == first.shape[-2]:
        yield "swapped axis", functools.partial(_with_input, row, 0, lambda x: np.swapaxes(x, -1, -2))
    for i, x in enumerate(row.inputs[1:], 1):
        if x.array.dtype.kind == "f" and x.array.size:
            yield (
                "missing bias" if x.array.size > 1 else "wrong epsilon",
                functools.partial(_with_input, row, i, np.zeros_like),
            )
            yield "off by one in an input", functools.partial(_with_input, row, i, functools.partial(np.roll, shift=1))
        elif row.type in ("Pad", "SpaceToBatch", "BatchToSpace") and x.array.ndim:
            yield "wrong pad", functools.partial(_with_input, row, i, functools.partial(np.roll, shift=1))


def _others(row: Case, name: str, text: str) -> Iterator[tuple[str, str]]:
    """Kind and wrong value of an attribute."""
    if name in ("pads_begin", "pads_end"):
        yield from (("wrong pad", other) for other in _pads(text))
    elif name == "auto_pad" and text.startswith("same"):
        yield "wrong pad", "same_lower" if text == "same_upper" else "same_upper"
    elif name in ("axis", "seq_axis", "batch_axis") and row.inputs and row.inputs[0].array.ndim > 1:
        yield "swapped axis", str((int(text) + 1) % row.inputs[0].array.ndim)
    elif text in ("true", "false"):
        yield "wrong flag", "false" if text == "true" else "true"
    elif name in _EPSILONS or "." in text or "e-" in text:
        yield from (("wrong epsilon", other) for other in _numbers(text))
    else:
        for kind, choices in _CHOICES.items():
            yield from ((kind, other) for choice in choices if text in choice for other in choice if other != text)


def _pads(text: str) -> Iterator[str]:
    sizes = [int(one) for one in text.split(",") if one.strip()]
    for i in range(len(sizes)):
        yield ",".join(str(size + (j == i)) for j, size in enumerate(sizes))


def _numbers(text: str) -> Iterator[str]:
    try:
        yield str(float(text) * 1.5 + 1e-3)
    except ValueError:
        return


def _scaled(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return x * _FACTOR if x.dtype.kind == "f" else x


def _dropped(x: np.ndarray) -> np.ndarray:
    result = x.copy()
    if x.ndim and x.dtype.kind != "O":
        result[..., -1] = 0
    return result


def _transposed(x: np.ndarray) -> np.ndarray:
    """Elements in the order of the transposed array, in the shape of the array."""
    return np.swapaxes(x, -1, -2).reshape(x.shape) if x.ndim > 1 else x[::-1] if x.ndim else x


def _half(row: Case) -> Results:
    """The reference with f32 inputs and results rounded to f16."""
    nearest = ARITHMETICS["f16"].nearest
    arrays = [nearest(x).astype(x.dtype) if x.dtype == np.float32 else x for x in read_only(row)]
    return [nearest(x).astype(x.dtype) if x.dtype == np.float32 else x for x in kernel(row, arrays)]


def _again(row: Case, name: str, value: str) -> Results:
    return _valid(replace(row, attributes={**row.attributes, name: value}))


def _valid(row: Case) -> Results:
    """The outputs of a changed row; an OpError if the kernel refuses it."""
    infer(row, exact_facts(row))
    return results_of(row)


def _with_input(row: Case, index: int, change: Callable[[np.ndarray], np.ndarray]) -> Results:
    x = row.inputs[index]
    inputs = [*row.inputs[:index], Typed(x.element, change(x.array)), *row.inputs[index + 1 :]]
    return _valid(replace(row, inputs=tuple(inputs)))
