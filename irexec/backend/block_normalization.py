"""BatchNormInference, by blocks."""

from __future__ import annotations

import numpy as np

from irexec.backend.block_types import block_function
from irexec.backend.kernel import Task
from irexec.backend.registry import BlockOperation
from irexec.backend.scratch import Scratch


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
        scratch: Scratch,
        out: np.ndarray,
        x: np.ndarray,
        gamma: np.ndarray,
        beta: np.ndarray,
        mean: np.ndarray,
        variance: np.ndarray,
    ) -> None:
        scale = gamma / np.sqrt(variance + x.dtype.type(epsilon))
        centred = scratch.take(out.shape, out.dtype)
        np.subtract(x, mean, out=centred)
        np.multiply(centred, scale, out=centred)
        np.add(centred, beta, out=out)

    return BlockOperation(normalize, reads, (None, *shapes), temporaries=1, passes=5)
