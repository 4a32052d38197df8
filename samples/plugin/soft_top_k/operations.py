"""The operation: reference kernel, shape rule, and candidates of fast kernels."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import numpy as np

import irexec
from irexec.plugins import AtLeast, Fact, FloatTensor, operation

if TYPE_CHECKING:
    from irexec.plugins import Candidate, Task


@operation("SoftTopK", domain="my.ops", widen=True)
def soft_top_k(data: FloatTensor, *, k: Annotated[int, AtLeast(1)] = 1) -> np.ndarray:
    """Softmax over the ``k`` largest values of the last axis; all other values become zero.

    Values equal to the smallest of the ``k`` are kept.
    """
    kth = np.sort(data, axis=-1)[..., -k, None]
    powers = np.where(data >= kth, np.exp(data - data.max(axis=-1, keepdims=True)), 0)
    return (powers / powers.sum(axis=-1, keepdims=True)).astype(data.dtype)


@soft_top_k.shape_rule
def soft_top_k_shape(data: Fact, *, k: int = 1) -> Fact:
    if data.shape is not None:
        if not data.shape:
            raise irexec.OpError("the data is a scalar, expected at least one axis")
        size = data.shape[-1]
        if isinstance(size, int) and size < k:
            raise irexec.OpError(f"k is {k}, and the last axis has {size} elements")
    return Fact(data.element, data.shape)


@soft_top_k.fast_kernel
def by_partition(task: "Task") -> "Iterator[Candidate]":
    """Candidates for rows of f32 of more elements than are sorted at once."""
    if task.inputs[0].element is irexec.f32 and 0 not in task.shape(0):
        # Imported here: a model is validated without fast kernels.
        from soft_top_k.kernels import candidate

        yield candidate(task)
