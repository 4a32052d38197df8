"""Random cases of hashes, paths and embeddings of words."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.contrib_sweep.case import Arrays, ContribCase, Draw, Input, chance, floats, node, one_of


def _any(rng: np.random.Generator, kind: Any, *shape: int) -> np.ndarray:
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, shape, kind, endpoint=True)


def murmur_hash(rng: np.random.Generator) -> ContribCase:
    """All types of integers, signed and unsigned hashes."""
    kind = one_of(rng, np.int32, np.uint32, np.int64, np.uint64)
    seed = int(rng.integers(0, 1 << 32)) if chance(rng) else None
    return ContribCase(
        node("MurmurHash3", [_any(rng, kind, 2, int(rng.integers(1, 9)))], seed=seed, positive=one_of(rng, None, 1, 0))
    )


def _n_grams(rng: np.random.Generator, batch: int) -> tuple[Any, int, dict[str, Any], dict[str, Any]]:
    """The type of the tokens, the history, attributes, and inputs that both operators have."""
    kind, past, heads = one_of(rng, np.int32, np.int64), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    given = {
        "multipliers": _any(rng, kind, past + 1 + int(chance(rng, 0.2))),
        "vocab_sizes": rng.integers(1, one_of(rng, 50, 1 << 20), past * heads).astype(kind),
        "past_ids": rng.integers(0, 5, (batch, past)).astype(kind) if chance(rng) else None,
        "head_offsets": rng.integers(0, 1000, past * heads).astype(kind) if chance(rng) else None,
        "eos_token_id": np.array(rng.integers(0, 4), kind) if chance(rng, 0.7) else None,
    }
    attributes = {
        "max_ngram_size": past + 1, "n_head_per_ngram": heads, "pad_id": int(rng.integers(-1, 5)),
        "reset_on_eos": one_of(rng, None, 0, 1, 1),
    }  # fmt: skip
    return kind, past, attributes, given


def n_gram_hash(rng: np.random.Generator) -> ContribCase:
    """Histories, resets at the end of a text and at segments."""
    batch, time = int(rng.integers(1, 4)), int(rng.integers(1, 8))
    kind, _, attributes, given = _n_grams(rng, batch)
    segments = np.sort(rng.integers(0, 3, (batch, time)), 1).astype(np.int32) if chance(rng) else None
    ids = rng.integers(0, 5, (batch, time)).astype(kind)
    return ContribCase(node("NGramHashMapping", [ids, *given.values(), segments], 2, **attributes))


def packed_n_gram_hash(rng: np.random.Generator) -> ContribCase:
    """Sequences of all lengths, with segments of earlier tokens and captured states."""
    batch = int(rng.integers(1, 4))
    kind, past, attributes, given = _n_grams(rng, batch)
    lengths = rng.integers(1, 6, batch)
    bounds, tokens = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32), int(lengths.sum())
    segments = np.sort(rng.integers(0, 3, tokens)).astype(np.int32) if chance(rng) else None
    earlier = rng.integers(0, 2, (batch, past)).astype(np.int32) if segments is not None and chance(rng) else None
    capacity = int(rng.integers(1, 4)) if chance(rng, 0.4) else 0
    counts = rng.integers(0, 5, batch).astype(np.int32) if capacity else None
    rest = list(given.values())
    inputs: list[Input] = [
        rng.integers(0, 5, tokens).astype(kind), *rest[:2], bounds, *rest[2:], segments, earlier, counts
    ]  # fmt: skip
    outputs = (True, True, segments is not None, bool(capacity))
    row = node("VarlenNGramHashMapping", inputs, outputs, **attributes, state_update_capacity=capacity or None)
    return ContribCase(row)


def warped_path(rng: np.random.Generator) -> ContribCase:
    """Costs without ties: of equal ways ONNX Runtime does not take the cheapest."""
    rows, columns = (int(size) for size in rng.integers(1, 9, 2))
    lead = (1,) if chance(rng) else ()
    return ContribCase(node("DynamicTimeWarping", [floats(rng, *lead, rows, columns, scale=one_of(rng, 1, 100))]))


def words(rng: np.random.Generator) -> ContribCase:
    """Words of all lengths; the embedding of an empty one is not defined."""
    count, length, width = int(rng.integers(1, 6)), int(rng.integers(2, 9)), int(rng.integers(1, 4))
    length, size, filters = max(length, width), int(rng.integers(1, 5)), int(rng.integers(1, 5))
    ids = rng.integers(1, 9, (count, length)).astype(np.int32)
    ids *= np.arange(length) < rng.integers(0, length + 1, (count, 1))
    given = {"embedding_size": filters, "conv_window_size": width, "char_embedding_size": size}
    inputs: list[Input] = [
        ids, floats(rng, filters, 1, width, size), floats(rng, filters), floats(rng, 9, size)
    ]  # fmt: skip

    def defined(results: Arrays) -> Arrays:
        return [results[0][ids[:, 0] > 0]]

    return ContribCase(node("WordConvEmbedding", inputs, **(given if chance(rng) else {})), defined=defined)


def echo(rng: np.random.Generator) -> ContribCase:
    """Floats, the only type of the kernel."""
    return ContribCase(node("SampleOp", [floats(rng, *rng.integers(1, 4, int(rng.integers(1, 4))))]))


DRAWS: dict[str, Draw] = {
    "MurmurHash3": murmur_hash, "NGramHashMapping": n_gram_hash, "VarlenNGramHashMapping": packed_n_gram_hash,
    "DynamicTimeWarping": warped_path, "WordConvEmbedding": words, "SampleOp": echo,
}  # fmt: skip
