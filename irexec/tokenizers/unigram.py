"""The most probable sequence of tokens of a word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irexec.errors import check
from irexec.reference.limits import check_time
from irexec.tokenizers.vocabulary import Vocabulary

KEPT = 100_000
"""Number of words whose tokens are kept."""
PENALTY = 10.0
"""Distance of the score of an unknown character from the smallest score."""


class Lattice:
    """A vocabulary with a score for each token."""

    def __init__(self, tokens: Sequence[bytes], scores: Sequence[float], unknown: int) -> None:
        check(len(tokens) == len(scores), f"there are {len(tokens)} tokens and {len(scores)} scores")
        # The trie of OpenVINO ends a token at its first zero byte, and refuses an empty one.
        ended = [token.partition(b"\0")[0] for token in tokens]
        check(b"" not in ended, "the vocabulary has an empty token")
        self.vocabulary = Vocabulary({token: i for i, token in enumerate(ended)})
        self.scores = [np.float32(score) for score in scores]
        self.unknown = unknown
        self.unknown_score = np.float32(min(scores, default=0.0) - PENALTY)
        self._kept: dict[bytes, tuple[int, ...]] = {}

    def tokenize(self, word: bytes) -> Sequence[int]:
        """The token ids of a word."""
        found = self._kept.get(word)
        if found is None:
            found = tuple(self._best(word))
            if len(self._kept) < KEPT:
                self._kept[word] = found
        return found

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
            step = min(_length(word[at]), size - at)
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


def _length(first: int) -> int:
    """Number of bytes of a character by its first byte; 1 for a byte that begins none."""
    return 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
