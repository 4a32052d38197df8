"""The next token from logits: the most probable one, or one that is sampled."""

from __future__ import annotations

import numpy as np

from irexec.tools.generating.options import GenerateOptions


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities in f64 of logits [vocabulary]."""
    shifted = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(shifted / shifted.sum())


def ranked(logits: np.ndarray) -> np.ndarray:
    """Token ids by decreasing logit; of equal ones the smaller id comes first, as in argmax."""
    return np.argsort(-logits.astype(np.float64), kind="stable")


def next_token(logits: np.ndarray, options: GenerateOptions, draw: float) -> int:
    """The next token.

    Sampling applies temperature, top_k and top_p in this order, as transformers does.

    Args:
        logits: [vocabulary].
        options: how tokens are chosen.
        draw: a random number in [0, 1), so that two runtimes sample alike.
    """
    order = ranked(logits)
    if not options.is_sampled:
        return int(order[0])
    order = order[: options.top_k]
    weights = softmax(logits[order] / (options.temperature or 1.0))
    # A token is kept if those before it have not reached top_p.
    kept = np.cumsum(weights) - weights < (options.top_p or 1.0)
    sums = np.cumsum(weights[kept])
    return int(order[min(int(np.searchsorted(sums, draw * sums[-1], side="right")), len(sums) - 1)])
