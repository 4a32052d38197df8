"""Tokens by their bytes, and the longest token at a position."""

from __future__ import annotations

from collections.abc import Mapping


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
