"""Fit the polynomials of irexec/native/source/elementary.h and print them as C.

Each is a minimax fit of the relative error, by least squares in float64 that are weighted anew until the largest
errors are equal (Lawson's algorithm).

    python -m tests.benchmarks.fit_polynomials
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

POINTS, ROUNDS = 4000, 300


def fit(
    target: Callable[[np.ndarray], np.ndarray],
    scale: Callable[[np.ndarray], np.ndarray],
    low: float,
    high: float,
    degree: int,
) -> tuple[np.ndarray, float]:
    """Coefficients from the constant on, for which ``polynomial * scale`` is ``target``; and the largest error.

    ``target`` and ``scale`` are those of an error that is weighted already: relative to the function computed.
    """
    x = 0.5 * (low + high) - 0.5 * (high - low) * np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
    basis = np.polynomial.chebyshev.chebvander((2 * x - low - high) / (high - low), degree) * scale(x)[:, None]
    wanted, weights = target(x), np.ones(POINTS)
    for _ in range(ROUNDS):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(basis * root[:, None], wanted * root, rcond=None)[0]
        error = np.abs(basis @ found - wanted)
        weights *= error / error.max() + 1e-9
        weights /= weights.sum()
    series = np.polynomial.Chebyshev(found, domain=[low, high]).convert(kind=np.polynomial.Polynomial)
    return series.coef, float(error.max())


def _erfcx(t: np.ndarray) -> np.ndarray:
    """exp(t * t) * erfc(t) for t >= 0, by its integral in float64 (tanh-sinh would do; the integrand is smooth)."""
    nodes, weights = np.polynomial.hermite.hermgauss(120)
    # Below 2 by erfc itself; above by the integral t / pi * exp(-u * u) / (t * t + u * u), which is smooth there.
    small = np.array([math.exp(v * v) * math.erfc(v) if v < 5 else 0.0 for v in t])
    large = (weights / (np.maximum(t, 1)[:, None] ** 2 + nodes**2)).sum(axis=1) * t / math.pi
    return np.where(t < 5, small, large)


def main() -> None:
    """Print every polynomial with its largest relative error."""
    ln2 = math.log(2) / 2
    show(
        "EXP", *fit(lambda r: (np.exp(r) - 1 - r) / np.exp(r), lambda r: r * r / np.exp(r), -ln2 - 1e-4, ln2 + 1e-4, 4)
    )
    show(
        "LOG",
        *fit(
            lambda f: (np.log1p(f) - f + f * f / 2) / np.where(f == 0, 1, np.log1p(f)),
            lambda f: f**3 / np.where(f == 0, 1, np.log1p(f)),
            math.sqrt(0.5) - 1,
            math.sqrt(2) - 1,
            8,
        ),
    )
    show(
        "TANH",
        *fit(
            lambda s: (np.tanh(np.sqrt(s)) - np.sqrt(s)) / np.tanh(np.sqrt(s)),
            lambda s: s * np.sqrt(s) / np.tanh(np.sqrt(s)),
            1e-9,
            0.4,
            4,
        ),
    )
    erf = np.vectorize(math.erf)
    show(
        "ERF",
        *fit(
            lambda s: (erf(np.sqrt(s)) - np.sqrt(s)) / erf(np.sqrt(s)),
            lambda s: np.sqrt(s) / erf(np.sqrt(s)),
            1e-9,
            0.7,
            5,
        ),
    )

    def of_ratio(w: np.ndarray) -> np.ndarray:
        return 4 * (1 + w) / (1 - w)

    def scaled(w: np.ndarray) -> np.ndarray:
        t = of_ratio(w)
        return _erfcx(t) * (1 + 2 * t)

    show("ERFC", *fit(lambda w: np.ones_like(w), lambda w: 1 / scaled(w), -1 + 1e-12, 0.45, 10))


def show(name: str, coefficients: np.ndarray, error: float) -> None:
    """Print one polynomial, the constant first."""
    values = ", ".join(f"{np.float32(value)!s}f" for value in coefficients)
    print(f"/* relative error {error:.1e} */\n#define {name} {values}\n")


if __name__ == "__main__":
    main()
