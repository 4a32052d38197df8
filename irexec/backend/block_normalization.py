"""FakeQuantize and BatchNormInference, by blocks."""

from __future__ import annotations

import numpy as np

from irexec.backend.block_types import block_function
from irexec.backend.chain import BlockFunction
from irexec.backend.kernel import Task
from irexec.backend.numpy_ufuncs import clip
from irexec.backend.registry import BlockOperation
from irexec.backend.scratch import Scratch


@block_function("FakeQuantize", since=1)
def _fake_quantize_1(task: Task) -> BlockOperation | None:
    """For constant, finite bounds with input_low < input_high: the data clipped to them, then quantized without any condition."""
    dtype = task.dtype(0)
    sources = [source for source in task.constants[1:5] if source is not None]
    if dtype is None or len(sources) < 4 or task.attributes.get("auto_broadcast", "numpy") == "pdpd":
        return None
    low, high, out_low, out_high = (source.array() for source in sources)
    with np.errstate(all="ignore"):
        finite = all(np.isfinite(values).all() for values in (low, high, out_low, out_high, high - low, out_high - out_low))
    if not finite or not (low < high).all():
        return None
    return BlockOperation(_quantize(dtype.type(task.attributes["levels"] - 1)), (0, 1, 2, 3, 4), (None,) * 5, temporaries=1, passes=14)


def _quantize(intervals: np.floating) -> BlockFunction:
    def quantize(scratch: Scratch, out: np.ndarray, x: np.ndarray, *bounds: np.ndarray) -> None:
        low, high, out_low, out_high = bounds
        level = scratch.take(out.shape, out.dtype)
        clip(x, low, high, out=level)
        np.subtract(level, low, out=level)
        np.divide(level, high - low, out=level)
        np.multiply(level, intervals, out=level)
        np.rint(level, out=level)
        np.divide(level, intervals, out=level)
        np.multiply(level, out_high - out_low, out=level)
        np.add(level, out_low, out=out)

    return quantize


@block_function("BatchNormInference", since=5)
def _batch_norm_inference_5(task: Task) -> BlockOperation | None:
    return _batch_norm(task, (0, 1, 2, 3, 4))


@block_function("BatchNormInference", since=1)
def _batch_norm_inference_1(task: Task) -> BlockOperation | None:
    return _batch_norm(task, (2, 0, 1, 3, 4))


def _batch_norm(task: Task, reads: tuple[int, ...]) -> BlockOperation:
    """``reads`` are data, gamma, beta, mean and variance."""
    along = (1, -1) + (1,) * (len(task.shape(reads[0])) - 2)
    shapes = tuple(tuple(task.shape(i)[0] if size < 0 else size for size in along) for i in reads[1:])
    epsilon = task.attributes["epsilon"]

    def normalize(
        scratch: Scratch, out: np.ndarray, x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray, variance: np.ndarray
    ) -> None:
        scale = gamma / np.sqrt(variance + x.dtype.type(epsilon))
        centred = scratch.take(out.shape, out.dtype)
        np.subtract(x, mean, out=centred)
        np.multiply(centred, scale, out=centred)
        np.add(centred, beta, out=out)

    return BlockOperation(normalize, reads, (None, *shapes), temporaries=1, passes=5)
