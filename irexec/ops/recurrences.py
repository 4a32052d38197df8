"""Recurrences of linear attention and state spaces, with a state of their own or in blocks of a table.

Names of sizes: N sequences, L tokens of each, T tokens of all, H heads, G groups of heads that share a query and a key,
K and V sizes of a head of keys and values, P rows of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import numpy as np

from irexec.errors import check
from irexec.ir.dims import may_equal
from irexec.ir.facts import Fact
from irexec.ops.paged import Indices, Span, spans
from irexec.schema.attributes import NOT_KEPT, Caches
from irexec.schema.opdef import FloatTensor, FloatVector, Rank
from irexec.schema.registry import op
from irexec.schema.shape_rules import labelled_sizes, sizes_of, unify_elements

Matrix = Annotated[FloatTensor, Rank(2)]
Heads = Annotated[FloatTensor, Rank(3)]
Batch = Annotated[FloatTensor, Rank(4)]
Step = Callable[[int, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Token and state to output and next state."""


def l2_normalized(x: np.ndarray, epsilon: float) -> np.ndarray:
    """x / sqrt(sum of squares of the last axis + epsilon)."""
    return np.asarray(x / np.sqrt((x * x).sum(-1, keepdims=True) + x.dtype.type(epsilon)))


def delta_rule(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, gate: np.ndarray, beta: np.ndarray, *,
    epsilons: tuple[float, ...],
) -> Step:  # fmt: skip
    """The step of a gated delta rule on a state (..., H, K, V), of arrays with the tokens first; without epsilons
    queries and keys are not normalized."""
    if epsilons:
        query, key = l2_normalized(query, epsilons[0]), l2_normalized(key, epsilons[1])
    repeats = value.shape[-2] // max(key.shape[-2], 1)
    scaled = query * query.dtype.type(1 / np.sqrt(max(query.shape[-1], 1)))
    queries, keys = (np.repeat(x, repeats, -2)[..., None] for x in (scaled, key))
    decay = np.exp(gate)[..., None, None]

    def step(t: int, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        state = state * decay[t]
        change = (value[t] - (state * keys[t]).sum(-2)) * beta[t][..., None]
        state = state + keys[t] * change[..., None, :]
        return (state * queries[t]).sum(-2), state

    return step


def _selective_scan(a: np.ndarray, dt: np.ndarray, b: np.ndarray, x: np.ndarray, c: np.ndarray) -> Step:
    """The step of a selective scan on a state (..., H, head size, state size), of arrays with the tokens first."""
    repeats = x.shape[-2] // max(b.shape[-2], 1)
    decay = np.exp(a * dt)[..., None, None]
    into = (dt[..., None] * np.repeat(b, repeats, -2))[..., None, :] * x[..., None]
    out = np.repeat(c, repeats, -2)[..., None, :]

    def step(t: int, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        state = state * decay[t] + into[t]
        return (state * out[t]).sum(-1), state

    return step


def _over_time(step: Step, state: np.ndarray, count: int, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The outputs of ``count`` tokens, (N, L, H, size) like ``out``, and the last state."""
    found = np.zeros(out.shape, out.dtype)
    state = state.copy()
    for t in range(count):
        found[:, t], state = step(t, state)
    return found, state


@op("GatedDeltaNet", since="extension", unread=True, widen=True, tolerance=1e-5)
def gated_delta_net(
    query: Batch, key: Batch, value: Batch, recurrent_state: Batch, gate: Heads, beta: Heads, *,
    fuse_qk_l2norm: bool = False, q_l2_norm_eps: float = 1e-6, k_l2_norm_eps: float = 1e-6,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The gated delta rule over queries and keys (N, L, G, K) and values (N, L, H, V): (N, L, H, V) and the last state.

    For each token the state (H, K, V) decays by exp(gate), key * (value - key @ state) * beta is added, and the output
    is query / sqrt(K) @ state. Heads of the values share a query and a key with their neighbours.
    Source: GatedDeltaNet, arXiv:2412.06464; the order of the inputs is that of openvino 2026.4 ``gated_delta_net.cpp``.
    """
    epsilons = (q_l2_norm_eps, k_l2_norm_eps) if fuse_qk_l2norm else ()
    q, k, v, g, b = (np.moveaxis(x, 1, 0) for x in (query, key, value, gate, beta))
    return _over_time(delta_rule(q, k, v, g, b, epsilons=epsilons), recurrent_state, query.shape[1], value)


@gated_delta_net.shape_rule
def _gated_delta_net_shapes(
    query: Fact, key: Fact, value: Fact, recurrent_state: Fact, gate: Fact, beta: Fact
) -> tuple[Fact, ...]:
    return _shapes(
        "NLGK NLGK NLHV NLH NLH NHKV", "NLHV NHKV", query=query, key=key, value=value, gate=gate, beta=beta,
        recurrent_state=recurrent_state,
    )  # fmt: skip


@op("SelectiveSSM", since="extension", unread=True, widen=True, tolerance=1e-5)
def selective_ssm(
    a: FloatVector, dt: Heads, b: Batch, x: Batch, c: Batch, recurrent_state: Batch
) -> tuple[np.ndarray, np.ndarray]:
    """The recurrence of Mamba2 over x (N, L, H, size): (N, L, H, size) and the last state.

    For each token the state (H, size, state size) decays by exp(a * dt), x times dt * b is added, and the output is its
    product with c. Neighbouring heads share the b and c of a group.
    Source: SelectiveSSM, arXiv:2405.21060.
    """
    by_token = [np.moveaxis(one, 1, 0) for one in (dt, b, x, c)]
    return _over_time(_selective_scan(a, *by_token), recurrent_state, x.shape[1], x)


@selective_ssm.shape_rule
def _selective_ssm_shapes(a: Fact, dt: Fact, b: Fact, x: Fact, c: Fact, recurrent_state: Fact) -> tuple[Fact, ...]:
    labels = "H NLH NLGK NLHV NLGK NHVK"
    return _shapes(labels, "NLHV NHVK", a=a, dt=dt, b=b, x=x, c=c, recurrent_state=recurrent_state)


def rows_of(
    runs: Sequence[Span], interval: np.ndarray, size: int, writes_without: bool
) -> Iterator[tuple[Span, int, dict[int, int]]]:
    """The sequences with tokens, the row that each begins with, of its first block, and its written rows by token.

    A sequence writes the next row after each token whose number, those of earlier runs counted, is a multiple of the
    interval, and after the last. Without an interval it writes the second one at the end, or none.
    """
    check(len(interval) == len(runs), f"cache_interval has {len(interval)} elements, expected {len(runs)}")
    for span, every in zip(runs, interval.tolist(), strict=True):
        if span.new:
            last = span.new - 1
            ends = [last] if every > 0 or writes_without else []
            if every > 0:
                ends = [t for t in range(span.new) if t == last or (span.past + t + 1) % every == 0]
            first, *others = span.rows(1 + len(ends), size).tolist()
            yield span, first, {span.tokens.start + t: row for t, row in zip(ends, others, strict=True)}


def _paged(
    caches: Caches, name: str, given: np.ndarray, like: np.ndarray, step: Step, places: Sequence[np.ndarray], *,
    writes_without: bool, swaps: bool = False,
) -> np.ndarray:  # fmt: skip
    """The outputs of the tokens, see ``rows_of``, with states in the rows of a table, perhaps with swapped axes."""
    begins, blocks, block_begins, past, interval = places
    table, out = caches.read(name, given), np.zeros_like(like)
    states = table.swapaxes(2, 3) if swaps else table
    runs = [*spans(len(out), past, begins, blocks, block_begins)]
    for span, first, written in rows_of(runs, interval, len(table), writes_without):
        state = states[first].copy()
        for t in range(span.tokens.start, span.tokens.stop):
            out[t], state = step(t, state)
            if t in written:
                states[written[t]] = state
    caches.keep(name, table.astype(given.dtype))
    return out


@op(
    "PagedGatedDeltaNet", since="extension", unread=True, widen=True, stateful=True, tolerance=1e-5,
    caches=("recurrent_state_table",),
)  # fmt: skip
def paged_gated_delta_net(
    query: Heads, key: Heads, value: Heads, recurrent_state_table: Batch, gate: Matrix, beta: Matrix,
    subsequence_begins: Indices, la_block_indices: Indices, la_block_indices_begins: Indices, processed_tokens: Indices,
    cache_interval: Indices, *, use_qk_l2norm: bool = False, q_l2_norm_eps: float = 1e-6, k_l2_norm_eps: float = 1e-6,
    caches: Caches = NOT_KEPT,
) -> np.ndarray:  # fmt: skip
    """GatedDeltaNet over the tokens of several sequences, queries and keys (T, G, K) and values (T, H, V), with states
    (H, V, K) in the rows of a table: (T, H, V).

    The table given is that of the first run; a session keeps what was written, as OpenVINO does in the memory of the
    input. The state at the end is in the second block without an interval.
    Source: PagedGatedDeltaNet, and the CPU plugin of openvino 2026.4 for the case without an interval.
    """
    epsilons = (q_l2_norm_eps, k_l2_norm_eps) if use_qk_l2norm else ()
    step = delta_rule(query, key, value, gate, beta, epsilons=epsilons)
    places = (subsequence_begins, la_block_indices, la_block_indices_begins, processed_tokens, cache_interval)
    table = ("recurrent_state_table", recurrent_state_table)
    return _paged(caches, *table, value, step, places, writes_without=True, swaps=True)


@paged_gated_delta_net.shape_rule
def _paged_gated_delta_net_shape(
    query: Fact, key: Fact, value: Fact, recurrent_state_table: Fact, gate: Fact, beta: Fact, *others: Fact
) -> Fact:
    return _shapes(
        "TGK TGK THV TH TH PHVK", "THV", query=query, key=key, value=value, gate=gate, beta=beta,
        recurrent_state_table=recurrent_state_table,
    )[0]  # fmt: skip


@op(
    "PagedSelectiveSSM", since="extension", unread=True, widen=True, stateful=True, tolerance=1e-5,
    caches=("recurrent_state_table",),
)  # fmt: skip
def paged_selective_ssm(
    a: FloatVector, dt: Matrix, b: Heads, x: Heads, c: Heads, recurrent_state_table: Batch, subsequence_begins: Indices,
    la_block_indices: Indices, la_block_indices_begins: Indices, num_processed_tokens: Indices, cache_interval: Indices,
    *, caches: Caches = NOT_KEPT,
) -> np.ndarray:  # fmt: skip
    """SelectiveSSM over the tokens of several sequences, x (T, H, size), with states in the rows of a table: (T, H,
    size).

    The table given is that of the first run; a session keeps what was written, as OpenVINO does in the memory of the
    input. Without an interval nothing is written. Source: PagedSelectiveSSM.
    """
    step = _selective_scan(a, dt, b, x, c)
    places = (subsequence_begins, la_block_indices, la_block_indices_begins, num_processed_tokens, cache_interval)
    return _paged(caches, "recurrent_state_table", recurrent_state_table, x, step, places, writes_without=False)


@paged_selective_ssm.shape_rule
def _paged_selective_ssm_shape(
    a: Fact, dt: Fact, b: Fact, x: Fact, c: Fact, recurrent_state_table: Fact, *others: Fact
) -> Fact:
    labels = "H TH TGK THV TGK PHVK"
    return _shapes(labels, "THV", a=a, dt=dt, b=b, x=x, c=c, recurrent_state_table=recurrent_state_table)[0]


@op(
    "PagedCausalConv1D", since="extension", unread=True, widen=True, stateful=True, tolerance=1e-5,
    caches=("conv_state_table",),
)  # fmt: skip
def paged_causal_conv1d(
    input_embeds: Matrix, conv_state_table: Heads, conv_weight: Heads, conv_bias: FloatVector,
    subsequence_begins: Indices, la_block_indices: Indices, la_block_indices_begins: Indices, processed_tokens: Indices,
    cache_interval: Indices, *, caches: Caches = NOT_KEPT,
) -> np.ndarray:  # fmt: skip
    """A convolution of each token (T, channels) with the tokens before it in its sequence, of which the rows of a table
    hold the last ones (channels, kernel size): (T, channels).

    The weights are (channels, channels of a group, kernel size); an empty bias is none. The table given is that of the
    first run; a session keeps what was written, as OpenVINO does in the memory of the input. The state at the end is in
    the second block without an interval.
    Source: PagedCausalConv1D; blocks are read and written as the CPU plugin of openvino 2026.4 does.
    """
    of_group, kernel = conv_weight.shape[1:]
    places = (subsequence_begins, la_block_indices, la_block_indices_begins, processed_tokens, cache_interval)

    def step(t: int, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        state = np.concatenate([state[:, 1:], input_embeds[t][:, None]], 1)
        shared = np.repeat(state.reshape(-1, of_group, kernel), of_group, 0)
        found = (shared * conv_weight).sum((1, 2))
        return found + conv_bias if conv_bias.size else found, state

    return _paged(caches, "conv_state_table", conv_state_table, input_embeds, step, places, writes_without=True)


@paged_causal_conv1d.shape_rule
def _paged_causal_conv1d_shape(
    input_embeds: Fact, conv_state_table: Fact, conv_weight: Fact, conv_bias: Fact, *others: Fact
) -> Fact:
    (y,) = _shapes(
        "TH PHK HGK", "TH", input_embeds=input_embeds, conv_state_table=conv_state_table, conv_weight=conv_weight
    )
    (biases,), channels = sizes_of(conv_bias, 1, "conv_bias"), sizes_of(y, 2, "input_embeds")[1]
    check(may_equal(biases, 0) or may_equal(biases, channels), f"conv_bias has {biases} elements, expected {channels}")
    return Fact(unify_elements(y, conv_bias), y.shape)


def _shapes(labels: str, outputs: str, **facts: Fact) -> tuple[Fact, ...]:
    """Facts of outputs by the labels of the axes of the inputs; heads H are in whole groups G."""
    element, sizes = unify_elements(*facts.values()), labelled_sizes(labels, **facts)
    heads, groups = sizes["H"], sizes["G"]
    if isinstance(heads, int) and isinstance(groups, int):
        check(groups > 0 and heads % groups == 0, f"{heads} heads are not a multiple of {groups} groups")
    return tuple(Fact(element, tuple(sizes[label] for label in axes)) for axes in outputs.split())
