"""Random cases of attention of packed sequences, in pages and over blocks."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from tests.contrib_sweep.case import Arrays, ContribCase, Draw, Input, chance, floats, node, one_of, runtime_answer


def _attended(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, seen: np.ndarray, scale: float | None, bias: np.ndarray | float = 0.0,
    softcap: float = 0.0, sink: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Attention of (heads, length, size) where ``seen``, as (length, heads * size); 0 for a query without keys."""
    scores = q @ k.transpose(0, 2, 1) * (scale or q.shape[-1] ** -0.5)
    scores = np.tanh(scores / softcap) * softcap if softcap else scores
    scores = np.where(seen, scores + bias, -np.inf)
    top = np.maximum(scores.max(-1, keepdims=True), -1e30)
    top = top if sink is None else np.maximum(top, sink[:, None, None])
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True) + (0 if sink is None else np.exp(sink[:, None, None] - top))
    y = weights / np.where(total > 0, total, 1) @ v
    return np.moveaxis(y, 0, 1).reshape(q.shape[1], -1)


def _offsets(lengths: np.ndarray, padded: int) -> np.ndarray:
    used = np.arange(padded)[None] < lengths[:, None]
    return np.concatenate([np.flatnonzero(used), np.flatnonzero(~used)]).reshape(used.shape).astype(np.int32)


def _packed(rng: np.random.Generator, name: str) -> ContribCase:
    heads, size, wide, batch = int(rng.integers(1, 3)), 4, int(one_of(rng, 4, 6)), int(rng.integers(1, 4))
    lengths = rng.integers(1, 5, batch)
    padded = int(lengths.max()) + int(rng.integers(0, 2))
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    widths = [heads * size, heads * size, heads * wide]
    bias = floats(rng, one_of(rng, 1, batch), one_of(rng, 1, heads), padded, padded) if chance(rng) else None
    scale = 0.4 if chance(rng) else None
    added = floats(rng, sum(widths))
    offsets = _offsets(lengths, padded)
    if name == "PackedAttention":
        x, weights = floats(rng, int(bounds[-1]), 6), floats(rng, 6, sum(widths))
        parts = np.split(x @ weights + added, np.cumsum(widths)[:-1], -1)
        row = node(
            name, [x, weights, added, offsets, bounds, bias], num_heads=heads, scale=scale, qkv_hidden_sizes=widths
        )
    else:
        given = [floats(rng, int(bounds[-1]), width) for width in widths]
        parts = [part + piece for part, piece in zip(given, np.split(added, np.cumsum(widths)[:-1]), strict=True)]
        inputs: list[Input] = list(given)
        if wide == size and chance(rng):
            inputs = [np.stack([x.reshape(-1, heads, size) for x in given], 2), None, None]
        row = node(name, [*inputs, added, offsets, bounds, bias], num_heads=heads, scale=scale)

    def reference() -> Arrays:
        rows = []
        for b, (start, stop) in enumerate(itertools.pairwise(bounds)):
            q, k, v = (part[start:stop].reshape(stop - start, heads, -1).transpose(1, 0, 2) for part in parts)
            count = stop - start
            own = 0.0 if bias is None else bias[b % len(bias)][:, :count, :count]
            rows.append(_attended(q, k, v, np.ones((count, count), bool), scale, own))
        return [np.concatenate(rows).astype(np.float32)]

    return ContribCase(row, reference)


def padding(rng: np.random.Generator) -> ContribCase:
    """The tokens without padding."""
    batch, time, width = (int(n) for n in rng.integers(1, 5, 3))
    counts = rng.integers(0, time + 1, batch)
    counts[0] = max(counts[0], 1)
    x = floats(rng, batch, time, width)

    def reference() -> Arrays:
        used = np.arange(time)[None] < counts[:, None]
        bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return [x[used], _offsets(counts, time), bounds, np.array([counts.max()], np.int32)]

    return ContribCase(node("RemovePadding", [x, counts.astype(np.int32)], 4), reference)


def restored(rng: np.random.Generator) -> ContribCase:
    """Tokens at their offsets."""
    batch, time, width = (int(n) for n in rng.integers(1, 5, 3))
    counts = rng.integers(1, time + 1, batch)
    x = floats(rng, int(counts.sum()), width)

    def reference() -> Arrays:
        y = np.zeros((batch, time, width), np.float32)
        y[np.arange(time)[None] < counts[:, None]] = x
        return [y]

    return ContribCase(node("RestorePadding", [x, _offsets(counts, time)]), reference)


def paged(rng: np.random.Generator) -> ContribCase:
    """Prompts and steps over pages, some without one; windows, sinks, softcap and explicit slots."""
    groups, shared, size, block, batch = int(rng.integers(1, 3)), int(rng.integers(1, 3)), 8, 4, int(rng.integers(1, 4))
    heads, causal = groups * shared, int(chance(rng, 0.8))
    lengths, past = rng.integers(1, 6, batch), rng.integers(0, 7, batch)
    pages = -(-int((lengths + past).max()) // block)
    blocks = batch * pages + 2
    table = rng.permutation(blocks)[: batch * pages].reshape(batch, pages).astype(np.int32)
    if chance(rng, 0.3):
        table[0, 0] = -1
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    q, k, v = (floats(rng, int(bounds[-1]), n * size) for n in (heads, groups, groups))
    caches = [floats(rng, blocks, block, groups, size) for _ in range(2)]
    rotary, window, softcap = (
        chance(rng),
        int(rng.integers(1, 6)) if chance(rng, 0.3) else -1,
        1.5 if chance(rng, 0.3) else 0.0,
    )
    angles = rng.random((16, size // 2))
    cos, sin = (each(angles).astype(np.float32) if rotary else None for each in (np.cos, np.sin))
    sink = floats(rng, heads) if chance(rng, 0.3) else None
    slots = None
    where = [
        (int(table[b, (past[b] + s) // block]) * block + (past[b] + s) % block if table[b, (past[b] + s) // block] >= 0 else -1)
        for b in range(batch) for s in range(lengths[b])
    ]  # fmt: skip
    if chance(rng, 0.3):
        where[0] = -1
        slots = np.array(where, np.int32)
    packed: list[Input] = [np.concatenate([q, k, v], -1), None, None] if chance(rng, 0.3) else [q, k, v]
    row = node(
        "PagedAttention", [*packed, *caches, bounds, past.astype(np.int32), table, cos, sin, slots, sink], 3,
        num_heads=heads, kv_num_heads=groups, do_rotary=int(rotary), local_window_size=window, softcap=softcap, is_causal=causal,
        scale=0.3 if chance(rng, 0.3) else None,
    )  # fmt: skip

    def turned(x: np.ndarray, places: np.ndarray) -> np.ndarray:
        if not rotary:
            return x
        c, s = np.cos(angles)[places][:, None], np.sin(angles)[places][:, None]
        first, second = np.split(x, 2, -1)
        return np.concatenate([first * c - second * s, first * s + second * c], -1).astype(np.float32)

    def reference() -> Arrays:
        places = np.concatenate([past[b] + np.arange(lengths[b]) for b in range(batch)])
        queries, keys = (turned(x.reshape(len(x), -1, size), places) for x in (q, k))
        stored = [cache.reshape(-1, groups, size).copy() for cache in caches]
        for target, new in zip(stored, (keys, v.reshape(len(v), -1, size)), strict=True):
            for slot, entry in zip(where, new, strict=True):
                if slot >= 0:
                    target[slot] = entry
        rows = []
        for b in range(batch):
            total = past[b] + lengths[b]
            page = table[b, np.arange(total) // block]
            index = np.maximum(page, 0) * block + np.arange(total) % block
            own = past[b] + np.arange(lengths[b])[:, None]
            seen = (page >= 0)[None] & (np.arange(total)[None] <= own if causal else np.ones((lengths[b], total), bool))
            seen = seen & (np.arange(total)[None] > own - window) if window > 0 else seen
            each, values = (np.repeat(cache[index], shared, 1).transpose(1, 0, 2) for cache in stored)
            mine = queries[bounds[b] : bounds[b + 1]].transpose(1, 0, 2)
            rows.append(_attended(mine, each, values, seen, row.attributes.get("scale"), 0.0, softcap, sink))
        return [np.concatenate(rows).astype(np.float32), *(x.reshape(caches[0].shape) for x in stored)]

    return ContribCase(row, reference)


def sparse(rng: np.random.Generator) -> ContribCase:
    """Prompts and steps; layouts with a diagonal."""
    groups, shared, size, block = int(rng.integers(1, 3)), int(rng.integers(1, 3)), 16, 16
    heads, prompt, batch, blocks = groups * shared, chance(rng), int(rng.integers(1, 3)), int(rng.integers(2, 4))
    layouts = int(one_of(rng, *[n for n in (1, 2) if heads % n == 0]))
    grid = np.tril(rng.random((layouts, blocks, blocks)) < 0.5) | np.eye(blocks, dtype=bool)
    rotary = chance(rng, 0.4)
    length = int(rng.integers(1, blocks * block)) if prompt else 1
    totals = np.full(batch, length if prompt else int(rng.integers(2, blocks * block)))
    if not prompt and batch > 1:
        totals[1] = int(rng.integers(2, totals[0] + 1))
    entries = int(grid.sum((1, 2)).max())
    rows = np.stack([np.concatenate([[0], np.cumsum(one.sum(1))]) for one in grid]).astype(np.int32)
    columns = np.stack(
        [np.pad(np.nonzero(one)[1], (0, entries - int(one.sum())), constant_values=-1) for one in grid]
    ).astype(np.int32)
    q, k, v = (floats(rng, batch, length, n * size) for n in (heads, groups, groups))
    packed: list[Input] = [np.concatenate([q, k, v], -1), None, None] if chance(rng, 0.3) else [q, k, v]
    angles = rng.random((blocks * block, size // 2))
    cos, sin = (each(angles).astype(np.float32) if rotary else None for each in (np.cos, np.sin))
    row = node(
        "SparseAttention",
        [*packed, *(floats(rng, batch, groups, blocks * block, size) for _ in range(2)), rows, columns, np.array([totals.max()], np.int32),
         totals.astype(np.int32), cos, sin],
        3, num_heads=heads, kv_num_heads=groups, sparse_block_size=block, do_rotary=int(rotary), scale=0.3 if chance(rng, 0.3) else None,
        rotary_interleaved=int(rotary and chance(rng, 0.3)),
    )  # fmt: skip

    def defined(results: Arrays) -> Arrays:
        caches = [
            np.concatenate([x[:, :n].ravel() for x, n in zip(cache, totals, strict=True)]) for cache in results[1:]
        ]
        return [results[0], *caches]

    def by_sample() -> Arrays:
        """The runtime's results for each sample alone: it gives others if the totals in a batch differ."""
        parts = []
        for b in range(batch):
            own = [x[b : b + 1] if i in (0, 1, 2, 3, 4, 8) and x is not None else x for i, x in enumerate(row.inputs)]
            own[7] = own[8]
            parts.append(runtime_answer(replace(row, inputs=tuple(own))))
        return [np.concatenate(each) for each in zip(*parts, strict=True)]

    return ContribCase(row, by_sample if len(set(totals)) > 1 else None, defined)


DRAWS: dict[str, Draw] = {
    "PackedAttention": lambda rng: _packed(rng, "PackedAttention"),
    "PackedMultiHeadAttention": lambda rng: _packed(rng, "PackedMultiHeadAttention"),
    "RemovePadding": padding, "RestorePadding": restored, "PagedAttention": paged, "SparseAttention": sparse,
}  # fmt: skip
