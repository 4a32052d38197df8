"""Answers of the system that are reused for a moment: reading its files takes longer than compiling a small model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

FRESH = 0.1
"""Seconds for which an answer is reused unless the caller says otherwise."""

_Key = TypeVar("_Key", bound=Hashable)
_Answer = TypeVar("_Answer")


class Recent(Generic[_Key, _Answer]):
    """The answers of a function, each with the time at which it was asked.

    Args:
        ask: the function.
    """

    def __init__(self, ask: Callable[[_Key], _Answer]) -> None:
        self._ask = ask
        self._answers: dict[_Key, tuple[float, _Answer]] = {}

    def __call__(self, key: _Key, seconds: float = FRESH) -> _Answer:
        """The answer for a key, at most so many seconds old."""
        now = time.monotonic()
        asked, answer = self._answers.get(key, (-math.inf, None))
        if answer is None or now - asked >= seconds:
            answer = self._ask(key)
            self._answers[key] = now, answer
        return answer
