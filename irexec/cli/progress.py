"""Progress bars: on stderr, and only where that is a terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

DELAY = 1.0
"""Seconds before a bar is shown: what is done sooner needs none."""


class Advance(Protocol):
    """Takes each amount that is done, and what the bar says from now on."""

    def __call__(self, amount: float, text: str | None = None, /) -> None: ...


@contextmanager
def progress_bar(text: str, total: float) -> Iterator[Advance]:
    """Show a bar while the block lasts; call what it gives with each amount that is done. Nothing is left on the screen."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda amount, text=None: None
        return
    with ExitStack() as stack:
        yield _Bar(text, total, stack).advance


class _Bar:
    """A bar that appears when something is done after ``DELAY``, and goes when ``stack`` is left."""

    def __init__(self, text: str, total: float, stack: ExitStack) -> None:
        self._text, self._total, self._stack = text, total, stack
        self._start = time.monotonic()
        self._done = 0.0
        self._shown: Any = None

    def advance(self, amount: float, text: str | None = None, /) -> None:
        """So much more is done; ``text`` replaces what the bar says."""
        self._done += amount
        self._text = self._text if text is None else text
        if self._shown is None and time.monotonic() - self._start >= DELAY:
            self._show()
        if self._shown is not None:
            self._shown.update(self._task, completed=self._done, description=self._text)

    def _show(self) -> None:
        # Imported here because no command without a bar should wait for it.
        from rich.console import Console
        from rich.progress import Progress

        console = Console(file=sys.stderr, highlight=False)
        self._shown = self._stack.enter_context(Progress(console=console, transient=True, redirect_stdout=False, redirect_stderr=False))
        self._task = self._shown.add_task(self._text, total=self._total)
