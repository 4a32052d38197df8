"""Powers with constant exponents, by the C library: whole chains of one operation."""

from __future__ import annotations

import numpy as np
import pytest

from irexec.backend.chain import Chain, Formula, Instruction
from irexec.backend.elementwise_chain import chain_candidates
from irexec.backend.kernel import KernelContext, KernelOptions
from irexec.backend.native.calls import NativeKernel
from irexec.backend.registry import find_block_operation
from irexec.ir.facts import Fact
from irexec.native.library import library
from irexec.testing.tasks import task_of

pytestmark = pytest.mark.skipif(library() is None, reason="the C library is not built")

SPECIAL = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 4, 1e-45, 3e38, -3e-38, 2, 9])
"""More than one vector, with an incomplete one."""


@pytest.mark.parametrize("exponent", [2.0, 3.0, 1.0, -1.0, 0.5, -0.5])
def test_powers_are_those_of_numpy(exponent: float) -> None:
    x = np.concatenate([SPECIAL, np.random.default_rng(0).standard_normal(600, np.float32) ** 2])
    inputs = [x, np.full((), exponent, np.float32)]
    task = task_of("Power", "opset1", inputs, constants=(1,), native=True)
    made = find_block_operation(task)
    assert made is not None and isinstance(made.formula, Formula)
    chain = Chain(1, x.dtype, (Instruction("Power", made.function, (0,), x.dtype, formula=made.formula),))
    offered = chain_candidates(chain, [Fact.of(x)], task.outputs[0], (None,), None, KernelOptions(native=True))
    (kernel,) = (kernel for kernel in (one.construct() for one in offered) if isinstance(kernel, NativeKernel))
    out = np.full_like(x, 77)
    kernel.run([x], [out], KernelContext.of(kernel, 1))
    with np.errstate(all="ignore"):
        # With one exponent for all elements NumPy computes a square root, which differs at -0 and minus infinity.
        expected = np.power(x, np.full_like(x, exponent))
    np.testing.assert_allclose(out, expected, rtol=4e-7)
    zeros = expected == 0
    assert np.array_equal(np.signbit(out[zeros]), np.signbit(expected[zeros]))
