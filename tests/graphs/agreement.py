"""What two ways of running one graph may differ by.

Each operation declares a tolerance. How far results may be apart follows from running the reference kernels again with noise of that
size on every tensor: a graph that amplifies rounding, or that rounds, sorts or compares what lies near an edge, shows it there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeGuard
from unittest import mock

import numpy as np

from irexec.compile.steps import ReferenceCall, Step
from irexec.errors import IrexecError
from irexec.runtime import execute
from irexec.runtime.compiled_model import CompiledModel
from irexec.schema.registry import resolve


@dataclass(frozen=True)
class Refused:
    """A run that ended in an error that is documented."""

    message: str


Run = list[np.ndarray] | Refused
"""The results of a run."""

TRIALS = 6
_MARGIN = 4.0
"""How much further apart than the noisy runs results may be: these are few."""
_COARSE = {
    "f16": 2e-3, "bf16": 1.6e-2, "f8e4m3": 0.13, "f8e5m2": 0.26, "f64": 1e-9, "f4e2m1": 0.3, "nf4": 0.2,
    "f8e8m0": 0.5,
}  # fmt: skip
_CLOSE = 2e-6
_OVERFLOWING = 1e30
_ROUNDING = 5e-5
"""What a few sums in another order make of values that nearly cancel out; six noisy runs may all miss it."""
# Their values are their inputs' own.
_MOVING = {
    "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Concat", "Split", "VariadicSplit", "Slice", "StridedSlice", "Gather", "Tile", "Pad",
    "Broadcast", "Select", "Relu", "Abs", "Negative", "Maximum", "Minimum", "Clamp", "Identity", "MaxPool", "ReduceMax", "ReduceMin",
    "GatherElements", "GatherND", "Roll", "Reverse", "ShuffleChannels", "DepthToSpace", "SpaceToDepth", "ReadValue", "Assign", "If", "Loop",
    "TensorIterator", "TopK", "ScatterUpdate", "Floor", "Ceiling", "Round", "Sign",
}  # fmt: skip

_SUMMING = {
    "ReduceSum", "ReduceMean", "CumSum", "AvgPool", "MatMul", "Einsum", "Convolution", "GroupConvolution", "ConvolutionBackpropData",
    "GroupConvolutionBackpropData", "DeformableConvolution",
}  # fmt: skip
"""Their rounding is as large as that of their terms, however small the sum."""
_CENTERING = {"MVN", "GroupNormalization"}
"""What the rounding of the mean leaves of equal values is divided by a small epsilon."""
_CANCELLING = {"Gelu"}
"""x (1 + erf(x / sqrt(2))) / 2 is a sum of two terms of the size of x; far below zero its result is as small as their rounding."""
_ULP = 1.2e-7


def differences(
    model: CompiledModel, feeds: Sequence[list[np.ndarray]], expected: Sequence[Run], actual: Sequence[Run]
) -> str:
    """How the results of two ways of running differ by more than rounding explains; "" if they do not.

    Args:
        model: compiled for the reference kernels.
        feeds: the inputs of each run.
        expected: what the reference kernels gave.
        actual: what is judged.
    """
    pairs = list(enumerate(zip(expected, actual, strict=True)))
    apart = [run for run, (theirs, ours) in pairs if not _are_close(theirs, ours)]
    if not apart:
        return ""
    noisy = [_noisy(model, feeds, seed) for seed in range(TRIALS)]
    found = (_difference(expected[run], actual[run], [runs[run] for runs in noisy]) for run in apart)
    return next((f"run {run}, {text}" for run, text in zip(apart, found, strict=True) if text), "")


def _are_close(expected: Run, actual: Run) -> bool:
    if isinstance(expected, Refused) or isinstance(actual, Refused):
        return isinstance(expected, Refused) and isinstance(actual, Refused)
    return all(map(_is_close, expected, actual))


def _difference(expected: Run, actual: Run, noisy: Sequence[Run]) -> str:
    """How the results of one run differ by more than those of noisy runs."""
    if len({isinstance(run, Refused) for run in (expected, *noisy)}) > 1:
        # Rounding decides whether the run is refused.
        return ""
    if isinstance(expected, Refused) or isinstance(actual, Refused):
        return f"reference: {_said(expected)}; here: {_said(actual)}"
    for output, (e, a) in enumerate(zip(expected, actual, strict=True)):
        others = [run[output] for run in noisy if not isinstance(run, Refused)]
        if _is_close(e, a) or any(other.shape != e.shape for other in others):
            continue
        if e.shape != a.shape or e.dtype != a.dtype:
            return f"output {output}: {a.dtype}{list(a.shape)}, expected {e.dtype}{list(e.shape)}"
        distance, spread = _distance(e, a), max(_distance(e, other) for other in others)
        if distance > max(_MARGIN * spread, _ROUNDING):
            return f"output {output}: off by {distance:.3g}, noise explains {spread:.3g}"
    return ""


def _said(run: Run) -> str:
    return run.message if isinstance(run, Refused) else "results"


def _is_close(expected: np.ndarray, actual: np.ndarray) -> bool:
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return False
    if expected.dtype.kind != "f":
        return bool((expected == actual).all())
    return _distance(expected, actual) <= (_CLOSE if expected.dtype != np.float16 else 1e-3)


def _distance(expected: np.ndarray, actual: np.ndarray) -> float:
    """The largest difference relative to the largest value, or to 1; infinite where one has a NaN or infinity that the other lacks."""
    if expected.dtype.kind not in "fiub":
        return 0.0 if (expected == actual).all() else np.inf
    e, a = expected.astype(np.float64), actual.astype(np.float64)
    odd = ~np.isfinite(e)
    if np.abs(e[~odd]).max(initial=0) > _OVERFLOWING and expected.dtype.kind == "f":
        # Sums of the largest floats overflow in one order and not in another.
        return 0.0
    if not np.array_equal(e[odd], a[odd], equal_nan=True) or not np.isfinite(a[~odd]).all():
        return np.inf
    e, a = e[~odd], a[~odd]
    return float(
        np.abs(e - a).max(initial=0) / max(np.abs(e).max(initial=0), 1e-3 if expected.dtype.kind == "f" else 1)
    )


def _noisy(model: CompiledModel, feeds: Sequence[list[np.ndarray]], seed: int) -> list[Run]:
    """The results where every tensor is off by about what its operation may be off by."""
    with _noise(np.random.default_rng(seed)):
        return outcome(model, feeds)


def outcome(compiled: CompiledModel, feeds: Sequence[list[np.ndarray]]) -> list[Run]:
    """The results of runs of one session, one after the other. A run that is refused leaves no trace."""
    session = compiled.session()
    return [refusing(lambda feed=feed: list(session(feed).values())) for feed in feeds]


def refusing(run: Callable[[], list[np.ndarray]]) -> Run:
    """The results of a run, or that it was refused."""
    try:
        return run()
    except IrexecError as error:
        return Refused(str(error))


@contextmanager
def _noise(rng: np.random.Generator) -> Iterator[None]:
    original = execute._Runner._call

    def call(self: Any, step: Step, reference: ReferenceCall, arrays: list[Any]) -> None:
        if step.report.type in _SUMMING:
            arrays = [_disturbed(one, _ULP, rng) if _is_float(one) else one for one in arrays]
        original(self, step, reference, arrays)
        if step.report.type in _CENTERING and arrays[0].dtype.kind == "f":
            self.slots[step.outputs[0]] = _recentered(self, step, reference, arrays, original, rng)
        if step.report.type in _MOVING or step.report.type.startswith("Scatter"):
            return
        if step.report.type in _CANCELLING and _is_float(self.slots[step.outputs[0]]):
            result = self.slots[step.outputs[0]].astype(np.float64)
            rounding = rng.uniform(-_ULP, _ULP, result.shape) * np.abs(np.nan_to_num(arrays[0].astype(np.float64)))
            self.slots[step.outputs[0]] = (result + rounding).astype(arrays[0].dtype)
        own = resolve(step.node.type, step.node.version).tolerance
        for slot, fact in zip(step.outputs, step.report.facts, strict=True):
            array = self.slots[slot] if slot >= 0 else None
            if _is_float(array):
                self.slots[slot] = _disturbed(array, max(own, _COARSE.get(str(fact.element), 1e-6)), rng)

    with mock.patch.object(execute._Runner, "_call", call):
        yield


def _is_float(array: object) -> TypeGuard[np.ndarray]:
    return isinstance(array, np.ndarray) and array.dtype.kind == "f"


def _recentered(
    runner: Any,
    step: Step,
    reference: ReferenceCall,
    arrays: list[Any],
    original: Callable[..., None],
    rng: np.random.Generator,
) -> np.ndarray:
    """The result of data with noise, shifted as a whole: a mean is off for all values alike, by more the more values there are."""
    clean = runner.slots[step.outputs[0]]
    original(runner, step, reference, [_disturbed(arrays[0], _ULP, rng), *arrays[1:]])
    noisy = runner.slots[step.outputs[0]].astype(np.float64)
    moved = np.abs(noisy - clean.astype(np.float64))
    shift = np.nanmax(moved, initial=0) * np.sqrt(arrays[0].size) * rng.uniform(-1, 1)
    return (noisy + shift).astype(clean.dtype)


def _disturbed(array: np.ndarray, tolerance: float, rng: np.random.Generator) -> np.ndarray:
    """The values with noise; sums of products err by the size of their terms, not of their result."""
    values = array.astype(np.float64)
    finite = np.abs(values[np.isfinite(values)])
    largest = finite.max(initial=0)
    floor = largest if tolerance >= 1e-5 else min(largest, 1.0)
    with np.errstate(all="ignore"):
        noisy = values + rng.uniform(-tolerance, tolerance, array.shape) * (np.abs(values) + floor)
        return noisy.astype(array.dtype)
