"""VariadicSplit into no parts, of an axis of size 0."""

import numpy as np

from irexec.dtypes.elements import element_of
from irexec.ir.facts import Fact
from irexec.schema.registry import resolve


def test_no_lengths_are_no_parts() -> None:
    definition = resolve("VariadicSplit", "opset1")
    inputs = [np.zeros((0, 2), np.float32), np.array(0), np.zeros(0, np.int64)]
    assert definition.infer([Fact(element_of(x.dtype), x.shape, x) for x in inputs], {}) == ()
    assert definition(*inputs) == ()
