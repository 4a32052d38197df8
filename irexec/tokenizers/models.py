"""Words to token ids: WordPiece, byte pair encoding, Unigram and the longest match in a trie."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np

from irexec.dtypes.elements import F32, I32, U8
from irexec.errors import check
from irexec.ir.dims import meet_shapes
from irexec.ir.facts import Fact
from irexec.plugins import operation
from irexec.reference.limits import Growth, check_time
from irexec.schema.inputs import ONE_ELEMENT, VECTOR, IndexTensor, Tensor, element_set
from irexec.tokenizers.bpe import Merger, MergerOptions
from irexec.tokenizers.packed import Bytes, Offsets, Packed, StringFacts, ragged_facts, row_offsets, rows, unpack
from irexec.tokenizers.unigram import Lattice
from irexec.tokenizers.vocabulary import Vocabulary

Scores = Annotated[np.ndarray, element_set("f32", F32), VECTOR]


def _tokenized(
    ragged: tuple[np.ndarray, np.ndarray], strings: Packed, tokenize: Callable[[bytes], Sequence[int]]
) -> Packed:
    """The token ids of each row."""
    words = unpack(*strings)
    ids: list[int] = []
    counts = []
    growth = Growth("the token ids")
    for row in rows(*ragged, len(words)):
        before = len(ids)
        for i in row:
            check_time()
            ids.extend(tokenize(words[i]))
        counts.append(len(ids) - before)
        growth.add(8 * counts[-1])
    return *row_offsets(counts, ragged[0].shape), np.array(ids, np.int32)


def _facts(*inputs: Fact) -> StringFacts:
    """The shape rule of all tokenizers: token ids in the rows of the strings."""
    meet_shapes(inputs[2].shape, inputs[3].shape)
    meet_shapes(inputs[5].shape, inputs[6].shape)
    return ragged_facts(meet_shapes(inputs[0].shape, inputs[1].shape))


@operation("WordpieceTokenizer", domain="extension")
def wordpiece_tokenizer(
    ragged_begins: Offsets,
    ragged_ends: Offsets,
    begins: Offsets,
    ends: Offsets,
    chars: Bytes,
    vocab_begins: Offsets,
    vocab_ends: Offsets,
    vocab_chars: Bytes,
    unknown: Annotated[IndexTensor, ONE_ELEMENT],
    *,
    suffix_indicator: str = "##",
    max_bytes_per_word: int = 100,
) -> Packed:
    """Token ids of words by the longest matches from the left; a word without them, or a long one, is ``unknown``.

    In the vocabulary every token but the first of a word begins with ``suffix_indicator``.
    """
    vocabulary = _joined(vocab_begins, vocab_ends, vocab_chars)
    first, following = _wordpieces(*vocabulary, suffix_indicator.encode())
    other = int(np.asarray(unknown).ravel()[0])

    @functools.cache
    def tokenize(word: bytes) -> Sequence[int]:
        found: list[int] = []
        at, pieces = 0, first
        while at < len(word) and len(word) <= max_bytes_per_word:
            check_time()
            token, at = pieces.longest(word, at)
            if token < 0:
                return [other]
            found.append(token)
            pieces = following
        return found or [other]

    return _tokenized((ragged_begins, ragged_ends), (begins, ends, chars), tokenize)


def _joined(begins: np.ndarray, ends: np.ndarray, chars: np.ndarray) -> tuple[bytes, bytes, bytes]:
    """Offsets and bytes of a vocabulary, by which the tables that are made of it are kept."""
    return begins.tobytes(), ends.tobytes(), chars.tobytes()


def _tokens(begins: bytes, ends: bytes, chars: bytes) -> list[bytes]:
    return unpack(np.frombuffer(begins, np.int32), np.frombuffer(ends, np.int32), np.frombuffer(chars, np.uint8))


@functools.lru_cache(maxsize=8)
def _wordpieces(begins: bytes, ends: bytes, chars: bytes, prefix: bytes) -> tuple[Vocabulary, Vocabulary]:
    """The first tokens of words, and the tokens after them without the prefix."""
    tokens = {token: i for i, token in enumerate(_tokens(begins, ends, chars))}
    first = {token: i for token, i in tokens.items() if not token.startswith(prefix)}
    following = {token[len(prefix) :]: i for token, i in tokens.items() if token.startswith(prefix)}
    return Vocabulary(first), Vocabulary(following)


wordpiece_tokenizer.shape_rule(_facts)


@operation("BPETokenizer", domain="extension")
def bpe_tokenizer(
    ragged_begins: Offsets,
    ragged_ends: Offsets,
    begins: Offsets,
    ends: Offsets,
    chars: Bytes,
    vocab_begins: Offsets,
    vocab_ends: Offsets,
    vocab_chars: Bytes,
    *merges_and_added: Tensor,
    unk_token: str = "",
    fuse_unk: bool = False,
    suffix_indicator: str = "",
    end_suffix: str = "",
    byte_fallback: bool = False,
    cache_capacity: int = 20000,
) -> Packed:
    """Token ids of words by byte pair encoding: pairs of tokens are merged in the order of the merges.

    After the vocabulary come begins, ends and chars of the merges, as texts with a space or as left and right parts;
    then begins, ends, chars and ids of added tokens, which are never split, if there are any. ``end_suffix`` is put
    after each word. Bytes without a token become tokens such as "<0x0A>" with ``byte_fallback``, else ``unk_token``,
    else nothing. OpenVINO does not read ``suffix_indicator``, and joins no unknown tokens for ``fuse_unk``.
    """
    options = MergerOptions(unk_token.encode(), end_suffix.encode(), byte_fallback)
    arrays = (vocab_begins, vocab_ends, vocab_chars, *merges_and_added)
    merger = _merger(tuple(array.tobytes() for array in arrays), options)
    return _tokenized((ragged_begins, ragged_ends), (begins, ends, chars), merger.tokenize)


@functools.lru_cache(maxsize=8)
def _merger(arrays: tuple[bytes, ...], options: MergerOptions) -> Merger:
    tokens = _tokens(*arrays[:3])
    number = len(arrays) - len(arrays) % 3
    merges = [_tokens(*arrays[at : at + 3]) for at in range(3, number - (3 if len(arrays) % 3 else 0), 3)]
    added: dict[bytes, int] = {}
    if len(arrays) % 3:
        names, ids = _tokens(*arrays[-4:-1]), np.frombuffer(arrays[-1], np.int32).tolist()
        check(len(names) == len(ids), f"there are {len(names)} added tokens and {len(ids)} ids of them")
        added = dict(zip(reversed(names), reversed(ids), strict=True))
    if len(merges) == 1:
        merges = list(map(list, zip(*(merge.partition(b" ")[::2] for merge in merges[0]), strict=True))) or [[], []]
    check(
        len(merges[0]) == len(merges[1]), f"there are {len(merges[0])} left and {len(merges[1])} right parts of merges"
    )
    return Merger(tokens, list(zip(*merges, strict=True)), added, options)


@bpe_tokenizer.shape_rule
def _bpe_tokenizer_facts(*inputs: Fact) -> StringFacts:
    number = len(inputs) - 8
    check(number in (3, 6, 7, 10), f"has {8 + number} inputs, expected 11, 14, 15 or 18")
    expected = [I32, I32, U8] * (number // 3) + [I32] * (number % 3)
    for fact, element in zip(inputs[8:], expected, strict=True):
        check(fact.element in (None, element), f"merges have element type {fact.element}, expected {element}")
    if number % 3:
        meet_shapes(inputs[-4].shape, inputs[-1].shape)
    return _facts(*inputs)


@operation("UnigramTokenizer", domain="extension")
def unigram_tokenizer(
    ragged_begins: Offsets,
    ragged_ends: Offsets,
    begins: Offsets,
    ends: Offsets,
    chars: Bytes,
    vocab_begins: Offsets,
    vocab_ends: Offsets,
    vocab_chars: Bytes,
    scores: Scores,
    *,
    byte_fallback: bool = False,
    unk_token_id: int = 0,
    fuse_unk: bool = False,
    min_score: float = float("inf"),
) -> Packed:
    """Token ids of words: the sequence of tokens with the largest sum of scores, computed in f32.

    A character without a token is ``unk_token_id``, with a score 10 below the smallest; adjacent ones are joined.
    OpenVINO does not read ``byte_fallback``, ``fuse_unk`` and ``min_score``.
    """
    lattice = _lattice(*_joined(vocab_begins, vocab_ends, vocab_chars), scores.tobytes(), unk_token_id)
    return _tokenized((ragged_begins, ragged_ends), (begins, ends, chars), lattice.tokenize)


@functools.lru_cache(maxsize=8)
def _lattice(begins: bytes, ends: bytes, chars: bytes, scores: bytes, unknown: int) -> Lattice:
    return Lattice(_tokens(begins, ends, chars), np.frombuffer(scores, np.float32).tolist(), unknown)


@unigram_tokenizer.shape_rule
def _with_a_number_for_each_token(*inputs: Fact) -> StringFacts:
    meet_shapes(inputs[5].shape, inputs[8].shape)
    return _facts(*inputs)


@operation("TrieTokenizer", domain="extension")
def trie_tokenizer(
    ragged_begins: Offsets,
    ragged_ends: Offsets,
    begins: Offsets,
    ends: Offsets,
    chars: Bytes,
    vocab_begins: Offsets,
    vocab_ends: Offsets,
    vocab_chars: Bytes,
    indices: Annotated[Offsets, VECTOR],
) -> Packed:
    """Token ids of strings: the longest token at each position, as in RWKV."""
    vocabulary = _trie(*_joined(vocab_begins, vocab_ends, vocab_chars), indices.tobytes())

    def tokenize(string: bytes) -> Sequence[int]:
        found, at = [], 0
        while at < len(string):
            check_time()
            token, end = vocabulary.longest(string, at)
            check(end > at, f"no token of the vocabulary begins with byte 0x{string[at]:02X}")
            found.append(token)
            at = end
        return found

    return _tokenized((ragged_begins, ragged_ends), (begins, ends, chars), tokenize)


@functools.lru_cache(maxsize=8)
def _trie(begins: bytes, ends: bytes, chars: bytes, indices: bytes) -> Vocabulary:
    tokens, ids = _tokens(begins, ends, chars), np.frombuffer(indices, np.int32).tolist()
    check(len(tokens) == len(ids), f"there are {len(tokens)} tokens and {len(ids)} indices")
    return Vocabulary(dict(zip(tokens, ids, strict=True)))


trie_tokenizer.shape_rule(_with_a_number_for_each_token)
