"""Words to token ids: WordPiece, byte pair encoding, Unigram and the longest match in a trie."""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated

import numpy as np

from irexec.dtypes.elements import F32, I32, U8
from irexec.errors import OpError, check
from irexec.ir.dims import meet_shapes
from irexec.ir.facts import Fact
from irexec.plugins import operation
from irexec.reference.limits import Growth, check_time
from irexec.schema.opdef import ONE_ELEMENT, VECTOR, IndexTensor, Tensor, element_set
from irexec.tokenizers.packed import Bytes, Offsets, Packed, StringFacts, ragged_facts, row_offsets, rows, unpack


class Vocabulary:
    """Token ids by the bytes of the tokens; an empty token is left out.

    Attributes:
        ids: token -> id.
        reach: the length of the longest token that begins with a byte.
    """

    def __init__(self, ids: Mapping[bytes, int]) -> None:
        self.ids = {token: number for token, number in ids.items() if token}
        self.reach = [0] * 256
        for token in self.ids:
            self.reach[token[0]] = max(self.reach[token[0]], len(token))

    def longest(self, text: bytes, start: int) -> tuple[int, int]:
        """The id and the end of the longest token at a position; -1 and ``start`` if there is none."""
        for end in range(min(start + self.reach[text[start]], len(text)), start, -1):
            found = self.ids.get(text[start:end])
            if found is not None:
                return found, end
        return -1, start

    def divided(self, text: bytes, otherwise: Callable[[int], Sequence[int]]) -> list[int]:
        """The longest token at each position; ``otherwise`` gives the ids in place of a byte that begins none."""
        found: list[int] = []
        at = 0
        while at < len(text):
            check_time()
            token, end = self.longest(text, at)
            found += [token] if end > at else otherwise(text[at])
            at = max(end, at + 1)
        return found


KEPT = 100_000
"""Number of words whose tokens are kept."""
PENALTY = 10.0
"""Distance of the score of an unknown character from the smallest score."""


class Lattice:
    """A vocabulary with a score for each token.

    Attributes:
        tokenize: the token ids of a word, kept for the last words.
    """

    def __init__(self, tokens: Sequence[bytes], scores: Sequence[float], unknown: int) -> None:
        check(len(tokens) == len(scores), f"there are {len(tokens)} tokens and {len(scores)} scores")
        # The trie of OpenVINO ends a token at its first zero byte, and refuses an empty one.
        ended = [token.partition(b"\0")[0] for token in tokens]
        check(b"" not in ended, "the vocabulary has an empty token")
        self.vocabulary = Vocabulary({token: i for i, token in enumerate(ended)})
        self.scores = [np.float32(score) for score in scores]
        self.unknown = unknown
        self.unknown_score = np.float32(min(scores, default=0.0) - PENALTY)
        self.tokenize = functools.lru_cache(maxsize=KEPT)(self._best)

    def _best(self, word: bytes) -> list[int]:
        """The tokens on the path with the largest score; adjacent unknown tokens are joined."""
        path = self._path(word)
        found: list[int] = []
        end = len(word)
        while end > 0:
            _, start, token = path[end]
            if not (token == self.unknown and found and found[-1] == token):
                found.append(token)
            end = start
        return found[::-1]

    def _path(self, word: bytes) -> list[tuple[np.float32, int, int]]:
        """The best score for each end of a part of the word, and the start and id of its last token.

        The start is -1 where no part ends.
        """
        size, reach, get = len(word), self.vocabulary.reach, self.vocabulary.ids.get
        path = [(np.float32(0), -1, self.unknown)] * (size + 1)
        at = 0
        while at < size:
            check_time()
            score = path[at][0]
            # Number of bytes of a character by its first byte; 1 for a byte that begins none.
            first = word[at]
            step = min(1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4, size - at)
            is_known = False
            for end in range(at + 1, min(at + reach[word[at]], size) + 1):
                token = get(word[at:end])
                if token is not None:
                    is_known = is_known or end == at + step
                    self._update(path, end, (score + self.scores[token], at, token))
            if not is_known:
                self._update(path, at + step, (score + self.unknown_score, at, self.unknown))
            at += step
        return path

    @staticmethod
    def _update(path: list[tuple[np.float32, int, int]], end: int, candidate: tuple[np.float32, int, int]) -> None:
        if path[end][1] < 0 or candidate[0] > path[end][0]:
            path[end] = candidate


class Merger:
    """A vocabulary with its merges.

    Attributes:
        base: the tokens that a word is first divided into: all that no merge makes.
        merges: (left, right) -> rank and id of the merged token.
        unknown: the id of the unknown token; -1 if there is none.
        tokenize: the token ids of a word, kept for the last words.
    """

    def __init__(
        self,
        tokens: Sequence[bytes],
        merges: Sequence[tuple[bytes, bytes]],
        added: Mapping[bytes, int],
        unknown: bytes,
        end_suffix: bytes,
        byte_fallback: bool,
    ) -> None:
        ids = {**added, **{token: i for i, token in enumerate(tokens)}}
        self.unknown, self._end_suffix, self._byte_fallback = ids.get(unknown, -1), end_suffix, byte_fallback
        try:
            self.merges = {
                (ids[left], ids[right]): (rank, ids[left + right]) for rank, (left, right) in enumerate(merges)
            }
        except KeyError as error:
            raise OpError(f"the token {error.args[0]!r} of a merge is not in the vocabulary") from None
        made = {left + right for left, right in merges}
        self.base = Vocabulary({token: number for token, number in ids.items() if token not in made})
        self.tokenize = functools.lru_cache(maxsize=KEPT)(self._ids)

    def _ids(self, word: bytes) -> list[int]:
        return self._merged(self.base.divided(word + self._end_suffix, self._of_byte))

    def _of_byte(self, byte: int) -> list[int]:
        """The id in place of a byte that begins no token, if there is one."""
        own = self.base.ids.get(b"<0x%02X>" % byte, -1) if self._byte_fallback else -1
        token = own if own >= 0 else self.unknown
        return [token] if token >= 0 else []

    def _merged(self, ids: list[int]) -> list[int]:
        """The ids after all merges: the one of the lowest rank first, of equal ranks the one that was found first."""
        word = _Word(ids)
        found = [(i, self.merges.get(pair)) for i, pair in enumerate(pairwise(ids))]
        queue = [(merge[0], i, i, i + 1, merge[1]) for i, merge in found if merge is not None]
        heapq.heapify(queue)
        order = len(ids)
        while queue:
            check_time()
            _, _, left, right, new = heapq.heappop(queue)
            if not word.are_adjacent(left, right):
                continue
            at = word.join(left, right, new)
            order += 1
            for pair in ((word.before[at], at), (at, word.after[at])):
                merge = self.merges.get((word.ids[pair[0]], word.ids[pair[1]])) if min(pair) >= 0 else None
                if merge is not None:
                    heapq.heappush(queue, (merge[0], order, *pair, merge[1]))
        return word.left()


class _Word:
    """The tokens of a word as a linked list; joined tokens are put at its end.

    Attributes:
        ids: the token ids.
        before, after: the index of the token before and after each token; -1 if there is none.
        alive: whether each token is not part of a joined one.
    """

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = list(ids)
        self.before = list(range(-1, len(ids) - 1))
        self.after = [*range(1, len(ids)), -1][: len(ids)]
        self.alive = [True] * len(ids)
        self.first = 0

    def are_adjacent(self, left: int, right: int) -> bool:
        return self.alive[left] and self.alive[right] and self.after[left] == right

    def join(self, left: int, right: int, new: int) -> int:
        """Put one token in the place of two; returns its index."""
        at = len(self.ids)
        self.ids.append(new)
        self.alive[left] = self.alive[right] = False
        self.alive.append(True)
        before, after = self.before[left], self.after[right]
        self.before.append(before)
        self.after.append(after)
        if before >= 0:
            self.after[before] = at
        else:
            self.first = at
        if after >= 0:
            self.before[after] = at
        return at

    def left(self) -> list[int]:
        """The ids of the tokens that are left, in their order."""
        at, found = self.first if self.ids else -1, []
        while at >= 0:
            found.append(self.ids[at])
            at = self.after[at]
        return found


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

    Inputs after the vocabulary: begins, ends and chars of the merges, as texts with a space or as left and right parts;
    then begins, ends, chars and ids of the added tokens, if any, which are never split. ``end_suffix`` is put
    after each word. Bytes without a token become tokens such as "<0x0A>" with ``byte_fallback``, else ``unk_token``,
    else nothing. Like OpenVINO, it ignores ``suffix_indicator`` and ``fuse_unk``.
    """
    arrays = (vocab_begins, vocab_ends, vocab_chars, *merges_and_added)
    texts = tuple(array.tobytes() for array in arrays)
    merger = _merger(texts, unk_token.encode(), end_suffix.encode(), byte_fallback)
    return _tokenized((ragged_begins, ragged_ends), (begins, ends, chars), merger.tokenize)


@functools.lru_cache(maxsize=8)
def _merger(arrays: tuple[bytes, ...], unknown: bytes, end_suffix: bytes, byte_fallback: bool) -> Merger:
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
    return Merger(tokens, list(zip(*merges, strict=True)), added, unknown, end_suffix, byte_fallback)


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

    def refused(byte: int) -> Sequence[int]:
        raise OpError(f"no token of the vocabulary begins with byte 0x{byte:02X}")

    def tokenize(string: bytes) -> Sequence[int]:
        return vocabulary.divided(string, refused)

    return _tokenized((ragged_begins, ragged_ends), (begins, ends, chars), tokenize)


@functools.lru_cache(maxsize=8)
def _trie(begins: bytes, ends: bytes, chars: bytes, indices: bytes) -> Vocabulary:
    tokens, ids = _tokens(begins, ends, chars), np.frombuffer(indices, np.int32).tolist()
    check(len(tokens) == len(ids), f"there are {len(tokens)} tokens and {len(ids)} indices")
    return Vocabulary(dict(zip(tokens, ids, strict=True)))


trie_tokenizer.shape_rule(_with_a_number_for_each_token)
