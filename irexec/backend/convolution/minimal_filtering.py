"""Matrices of Winograd's minimal filtering algorithms F(m, r): m results of r taps from m + r - 1 products.

Made by the Toom-Cook construction from m + r - 2 points and infinity. Source: Blahut, "Fast Algorithms for Signal
Processing", chapter 5; for the choice of points Barabasz et al., "Error Analysis and Improving the Accuracy of Winograd
Convolution for Deep Neural Networks".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

Rows = list[list[Fraction]]


class Matrices(NamedTuple):
    """Results are ``output @ ((filter @ taps) * (input @ data))``.

    Attributes:
        input: (m + r - 1, m + r - 1).
        filter: (m + r - 1, r).
        output: (m, m + r - 1).
    """

    input: Rows
    filter: Rows
    output: Rows


def minimal_filtering(results: int, taps: int, points: Sequence[Fraction | float]) -> Matrices:
    """The exact matrices of F(results, taps) for ``results + taps - 2`` different points, taken exactly."""
    at = [Fraction(point) for point in points]
    size = results + taps - 1
    if len(at) != size - 1:
        raise ValueError(f"F({results}, {taps}) takes {size - 1} points, not {len(at)}")
    others = [[q for q in at if q != p] for p in at]
    scales = [math.prod(p - q for q in rest) for p, rest in zip(at, others, strict=True)]
    data = [[*_polynomial(rest), Fraction(0)] for rest in others] + [_polynomial(at)]
    filters = [[p**i / scale for i in range(taps)] for p, scale in zip(at, scales, strict=True)]
    filters.append([Fraction(i == taps - 1) for i in range(taps)])
    output = [[*(p**i for p in at), Fraction(i == results - 1)] for i in range(results)]
    return Matrices(data, filters, output)


def _polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients of the polynomial with these roots, the constant one first."""
    found = [Fraction(1)]
    for root in roots:
        found = [below - root * here for below, here in zip([Fraction(0), *found], [*found, Fraction(0)], strict=True)]
    return found
