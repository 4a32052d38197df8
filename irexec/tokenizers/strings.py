"""Strings compared, hashed, and translated to and from the ids of a vocabulary."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from irexec.dtypes.elements import I32, I64
from irexec.errors import check
from irexec.ir.dims import ANY, Size, count, is_static, meet_shapes
from irexec.ir.facts import Fact
from irexec.plugins import operation
from irexec.schema.attributes import Positive
from irexec.schema.opdef import ONE_ELEMENT, VECTOR, IndexTensor, Rank
from irexec.schema.shape_rules import unify_elements
from irexec.tokenizers.models import fingerprint
from irexec.tokenizers.packed import Bytes, Offsets, RaggedStringFacts, pack, row_offsets, unpack


@operation("EqualStr", domain="extension")
def equal_str(
    begins: Offsets, ends: Offsets, chars: Bytes, other_begins: Offsets, other_ends: Offsets, other_chars: Bytes
) -> np.ndarray:
    """1 where two strings are equal, else 0. Where a tensor has fewer strings, its first one is compared."""
    first, second = unpack(begins, ends, chars), unpack(other_begins, other_ends, other_chars)
    number = max(len(first), len(second)) if first and second else 0
    first += first[:1] * (number - len(first))
    second += second[:1] * (number - len(second))
    return np.array([a == b for a, b in zip(first[:number], second[:number], strict=True)], np.int32)


@equal_str.shape_rule
def _equal_str_facts(
    begins: Fact, ends: Fact, chars: Fact, other_begins: Fact, other_ends: Fact, other_chars: Fact
) -> Fact:
    shapes = meet_shapes(begins.shape, ends.shape), meet_shapes(other_begins.shape, other_ends.shape)
    sizes = [ANY if shape is None else count(shape) for shape in shapes]
    if any(size == 0 for size in sizes):
        return Fact(I32, (0,))
    known = all(isinstance(size, int) for size in sizes)
    return Fact(I32, (max(size for size in sizes if isinstance(size, int)) if known else ANY,))


@operation("StringToHashBucket", domain="extension")
def string_to_hash_bucket(begins: Offsets, ends: Offsets, chars: Bytes, *, num_buckets: Positive) -> np.ndarray:
    """The FarmHash of each string modulo ``num_buckets``."""
    numbers = [fingerprint(string) % num_buckets for string in unpack(begins, ends, chars)]
    return np.array(numbers, np.int64).reshape(begins.shape)


@string_to_hash_bucket.shape_rule
def _string_to_hash_bucket_facts(begins: Fact, ends: Fact, chars: Fact) -> Fact:
    return Fact(I64, meet_shapes(begins.shape, ends.shape))


@operation("VocabEncoder", domain="extension")
def vocab_encoder(
    begins: Annotated[Offsets, VECTOR],
    ends: Annotated[Offsets, VECTOR],
    chars: Bytes,
    vocab_begins: Offsets,
    vocab_ends: Offsets,
    vocab_chars: Bytes,
    values: Annotated[IndexTensor, VECTOR],
    default: Annotated[IndexTensor, ONE_ELEMENT],
) -> np.ndarray:
    """The value of each string in a vocabulary, or ``default``; of equal keys the first counts."""
    keys = unpack(vocab_begins, vocab_ends, vocab_chars)
    check(len(keys) == len(values), f"the vocabulary has {len(keys)} keys and {len(values)} values")
    ids = dict(zip(reversed(keys), reversed(values.tolist()), strict=True))
    other = int(np.asarray(default).ravel()[0])
    return np.array([ids.get(string, other) for string in unpack(begins, ends, chars)], values.dtype)


@vocab_encoder.shape_rule
def _vocab_encoder_facts(
    begins: Fact,
    ends: Fact,
    chars: Fact,
    vocab_begins: Fact,
    vocab_ends: Fact,
    vocab_chars: Fact,
    values: Fact,
    default: Fact,
) -> Fact:
    shape = meet_shapes(begins.shape, ends.shape)
    meet_shapes(meet_shapes(vocab_begins.shape, vocab_ends.shape), values.shape)
    return Fact(unify_elements(values, default), (ANY,) if shape is None else shape)


@operation("VocabDecoder", domain="extension")
def vocab_decoder(
    ids: Annotated[Offsets, Rank(2)],
    vocab_begins: Offsets,
    vocab_ends: Offsets,
    vocab_chars: Bytes,
    skipped: Annotated[Offsets, VECTOR] | None = None,
    *,
    skip_tokens: tuple[int, ...] = (),
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The string of each token id; ids that are not in the vocabulary, or are skipped, have empty strings.

    ``skipped`` takes precedence over ``skip_tokens``. A row without ids has one empty string.
    """
    tokens = unpack(vocab_begins, vocab_ends, vocab_chars)
    for token in skip_tokens if skipped is None else skipped.tolist():
        if 0 <= token < len(tokens):
            tokens[token] = b""
    batch, length = ids.shape
    if not length:
        ids, length = np.full((batch, 1), -1, np.int32), 1
    strings = [tokens[token] if 0 <= token < len(tokens) else b"" for token in ids.ravel().tolist()]
    begins, ends = row_offsets([length] * batch, (batch,))
    return begins, ends, *pack(strings, (batch * length,))


@vocab_decoder.shape_rule
def _vocab_decoder_facts(
    ids: Fact, vocab_begins: Fact, vocab_ends: Fact, vocab_chars: Fact, skipped: Fact | None = None
) -> RaggedStringFacts:
    meet_shapes(vocab_begins.shape, vocab_ends.shape)
    batch: Size = ANY if ids.shape is None else ids.shape[0]
    number: Size = ANY
    if is_static(ids.shape):
        number = ids.shape[0] * max(1, ids.shape[1])
    rows, strings = Fact(I32, (batch,)), Fact(I32, (number,))
    return rows, rows, strings, strings, Fact(vocab_chars.element, (ANY,))
