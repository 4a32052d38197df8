"""The state that a runtime reads in a step, beside what it wrote in the step before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irexec.bounds import Interval, arithmetic
from irexec.bounds.interval import Algebra
from irexec.ir.graph import Value
from irexec.tools.compare.layers import layer as compared_layer
from irexec.tools.judge.evidence import ROUGH, with_worst
from irexec.tools.judge.judgement import JudgedLayer

_COARSE = 1 / 64
"""Relative difference of a state that a runtime may keep in 8 bits, which no verdict is about."""


def kept(value: Value, written: np.ndarray, read: np.ndarray, arithmetic_name: str) -> JudgedLayer:
    """A variable that is read: a few roundings are inside, since an observed tensor may differ from the written one."""
    made = JudgedLayer(compared_layer(value), "inside", elements=read.size)
    if written.shape != read.shape:
        text = f"shape {list(read.shape)}, expected {list(written.shape)}"
        return replace(made, state="outside", outside=read.size, reason=text)
    bound = Interval.certain(written)
    if written.dtype.kind == "f":
        bound = Algebra(arithmetic(arithmetic_name)).rounded(bound, ROUGH)
    count = int(np.count_nonzero(bound.outside(read)))
    if not count:
        return made
    if written.dtype.kind == "f" and _is_close(written, read):
        return replace(made, state="unconfirmed", reason="the state may be kept in 8 bits")
    return with_worst(
        replace(made, state="outside", outside=count, reason="not what the step before wrote"), bound, read
    )


def _is_close(written: np.ndarray, read: np.ndarray) -> bool:
    difference = np.abs(read.astype(np.float64) - written)
    return bool(np.max(difference, initial=0) <= _COARSE * np.max(np.abs(written), initial=0))
