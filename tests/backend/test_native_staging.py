"""Arrays that a C kernel cannot read or write as they lie: small ones are copied by calls, so that a step is bound once."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.backend.calls import COPIED, Job
from irexec.backend.kernel import KernelContext
from irexec.backend.pool import Pool
from irexec.native.library import library
from irexec.testing.kernels import in_order, task_of
from tests.backend.test_rows import natives

pytestmark = pytest.mark.skipif(library() is None, reason="the C library is not built")


def softmax(x: np.ndarray) -> np.ndarray:
    exponentials = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("rows", "is_bound_once"), [(7, True), (COPIED // 16, False)])
def test_one_binding_serves_the_next_values(rows: int, is_bound_once: bool, threads: int) -> None:
    """The columns of the data and of the result do not follow each other."""
    rng = np.random.default_rng(rows)
    data, out = (in_order(np.zeros((2, 3, rows, 5), np.float32), (0, 2, 3, 1)) for _ in range(2))
    task = task_of("Softmax", "opset8", [np.zeros(data.shape, np.float32)], {"axis": -1}, native=True)
    (kernel,) = natives(task)
    context = KernelContext.of(kernel, threads)
    binding = kernel.bound([data], [out], context)
    assert binding.repeatable == is_bound_once
    if is_bound_once:
        job = Job([binding])
        for _ in range(3):
            data[...] = rng.standard_normal(data.shape)
            job.run(Pool(threads))
            np.testing.assert_allclose(out, softmax(data), rtol=1e-5)
    else:
        data[...] = rng.standard_normal(data.shape)
        kernel.run([data], [out], context)
        np.testing.assert_allclose(out, softmax(data), rtol=1e-5)
