"""Attention whose keys and values are appended to variables, as one operation. No IR has it: a pass makes it of its
parts, so that a kernel can append in place, and attend to more rows in each run."""

from __future__ import annotations

import numpy as np

from irexec.ir.facts import Fact
from irexec.schema.injected import Variables
from irexec.schema.opdef import AnyTensor, FloatTensor, IntegerTensor, OpDef
from irexec.schema.registry import resolve


def _cached_attention(
    query: FloatTensor,
    key: FloatTensor,
    value: FloatTensor,
    mask: AnyTensor,
    scale: FloatTensor,
    beams: IntegerTensor,
    first_key: FloatTensor,
    first_value: FloatTensor,
    *,
    causal: bool,
    key_variable: str,
    value_variable: str,
    variables: Variables,
) -> np.ndarray:
    """ScaledDotProductAttention of the query (B, heads, L, E) with the keys (B, key heads, S, E) and values of two
    variables, each after its entries were picked by ``beams`` along axis 0 and ``key`` or ``value`` was appended along
    axis 2. Variables that are not assigned yet are ``first_key`` and ``first_value``.

    Neighbouring heads of the query share a head of the keys.
    """
    gather, axis, whole = resolve("Gather", "opset8"), np.zeros((), np.int64), []
    for name, first, new in ((key_variable, first_key, key), (value_variable, first_value, value)):
        before = gather.kernel(variables.get(name, first), beams, axis)
        variables[name] = np.concatenate([before, new], 2)
        whole.append(np.repeat(variables[name], query.shape[1] // key.shape[1], 1))
    attention = resolve("ScaledDotProductAttention", "opset13")
    result: np.ndarray = attention.kernel(query, *whole, mask, scale, causal=causal)
    return result


CACHED_ATTENTION = OpDef(
    "CachedAttention", "irexec", _cached_attention, deterministic=False, stateful=True, tolerance=1e-5,
    late=(3, 5, 6, 7),
)  # fmt: skip
"""The definition, which is in no registry."""


@CACHED_ATTENTION.shape_rule
def _facts(
    query: Fact,
    key: Fact,
    value: Fact,
    mask: Fact,
    scale: Fact,
    beams: Fact,
    first_key: Fact,
    first_value: Fact,
) -> Fact:
    return Fact(query.element, (*query.static_shape[:3], value.static_shape[3]))
