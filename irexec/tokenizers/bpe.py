"""Byte pair encoding of a word."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from irexec.errors import OpError
from irexec.reference.limits import check_time
from irexec.tokenizers.vocabulary import Vocabulary

KEPT = 100_000
"""Number of words whose tokens are kept."""


@dataclass(frozen=True)
class MergerOptions:
    """The attributes of BPETokenizer that have an effect."""

    unknown: bytes = b""
    end_suffix: bytes = b""
    byte_fallback: bool = False


class Merger:
    """A vocabulary with its merges.

    Attributes:
        base: the tokens that a word is first divided into: all that no merge makes.
        merges: (left, right) -> rank and id of the merged token.
        unknown: the id of the unknown token; -1 if there is none.
    """

    def __init__(
        self,
        tokens: Sequence[bytes],
        merges: Sequence[tuple[bytes, bytes]],
        added: Mapping[bytes, int],
        options: MergerOptions,
    ) -> None:
        ids = {**added, **{token: i for i, token in enumerate(tokens)}}
        self.options = options
        self.unknown = ids.get(options.unknown, -1)
        try:
            self.merges = {
                (ids[left], ids[right]): (rank, ids[left + right]) for rank, (left, right) in enumerate(merges)
            }
        except KeyError as error:
            raise OpError(f"the token {error.args[0]!r} of a merge is not in the vocabulary") from None
        made = {left + right for left, right in merges}
        self.base = Vocabulary({token: number for token, number in ids.items() if token not in made})
        self._kept: dict[bytes, tuple[int, ...]] = {}

    def tokenize(self, word: bytes) -> Sequence[int]:
        """The token ids of a word."""
        found = self._kept.get(word)
        if found is None:
            found = tuple(self._merged(self._divided(word + self.options.end_suffix)))
            if len(self._kept) < KEPT:
                self._kept[word] = found
        return found

    def _divided(self, text: bytes) -> list[int]:
        """The longest base token at each position; bytes that have none are replaced or left out."""
        found, at = [], 0
        while at < len(text):
            check_time()
            token, end = self.base.longest(text, at)
            if token < 0:
                token, end = self._without_token(text[at]), at + 1
            if token >= 0:
                found.append(token)
            at = end
        return found

    def _without_token(self, byte: int) -> int:
        """The id of a byte without a token; -1 if it is left out."""
        fallback = self.base.ids.get(b"<0x%02X>" % byte, -1) if self.options.byte_fallback else -1
        return fallback if fallback >= 0 else self.unknown

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
