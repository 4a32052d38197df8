"""A step runs on one thread where several do not pay, and the blocks are the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from irexec.backend.kernel import TRIALS, Context, Kernel
from irexec.backend.pool import pool_of
from irexec.backend.scratch import Scratch


class Sleeping(Kernel):
    """Blocks that sleep as long as a function says; ``done`` has every block with its thread."""

    def __init__(self, seconds: Callable[[bool], float]) -> None:
        super().__init__("sleeps", splits=True)
        self._seconds = seconds
        self.done: list[tuple[int, bool]] = []

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: Context) -> None:
        def block(index: int, scratch: Scratch) -> None:
            helps = threading.current_thread() is not threading.main_thread()
            time.sleep(self._seconds(helps))
            self.done.append((index, helps))

        context.parallel(4, block)


@pytest.mark.parametrize(
    ("seconds", "alone"),
    [(lambda helps: 0.03 if helps else 0.002, True), (lambda helps: 0.01, False)],
    ids=["helpers hinder", "helpers help"],
)
def test_the_faster_way_stays(seconds: Callable[[bool], float], alone: bool) -> None:
    context = Context(pool_of(2), [Scratch.of_size(64) for _ in range(2)])
    kernel = Sleeping(seconds)
    for _ in range(TRIALS):
        context.run(kernel, [], [])
    kernel.done.clear()
    context.run(kernel, [], [])
    assert sorted(index for index, _ in kernel.done) == [0, 1, 2, 3]
    assert any(helps for _, helps in kernel.done) is not alone
