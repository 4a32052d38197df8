"""Progress bars: on stderr, and only where that is a terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

from irexec.cli.render import progress
from irexec.cli.streams import showing

DELAY = 1.0
"""Seconds before a bar is shown: what is done sooner needs none."""


class Advance(Protocol):
    """Reports an amount of finished work; optionally a new text of the bar, and the total if it was not known."""

    def __call__(self, amount: float, text: str | None = None, /, *, total: float | None = None) -> None: ...


@contextmanager
def progress_bar(text: str, total: float, unit: str = "") -> Iterator[Advance]:
    """Show a bar with the time left while the block lasts; call what it gives with each amount that is done. Nothing is
    left on the screen.

    Args:
        text: the description of the work.
        total: the amount of all work.
        unit: of the work, such as "items": the bar then also shows how many are done, and how many in a second.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda amount, text=None, /, *, total=None: None
        return
    with ExitStack() as stack:
        yield _Bar(text, total, unit, stack).advance


@contextmanager
def spinner_then_bar(text: str, total: float) -> Iterator[Callable[[float], None]]:
    """Show that work goes on, and from the first amount on that is done, after ``DELAY``, a bar as ``progress_bar``
    does."""
    with progress_bar(text, total) as advance, ExitStack() as spinner:
        spinner.enter_context(progress(text))
        start = time.monotonic()

        def done(amount: float) -> None:
            if time.monotonic() - start >= DELAY:
                spinner.close()
            advance(amount)

        yield done


class _Bar:
    """A bar that appears when something is done after ``DELAY``, and goes when ``stack`` is left."""

    def __init__(self, text: str, total: float, unit: str, stack: ExitStack) -> None:
        self._text, self._total, self._unit, self._stack = text, total, unit, stack
        self._start = time.monotonic()
        self._done = 0.0
        self._shown: Any = None

    def advance(self, amount: float, text: str | None = None, /, *, total: float | None = None) -> None:
        """So much more is done; ``text`` replaces what the bar says, and ``total`` what all of the work is."""
        self._done += amount
        self._text = self._text if text is None else text
        self._total = self._total if total is None else total
        if self._shown is None and time.monotonic() - self._start >= DELAY:
            self._show()
        if self._shown is not None:
            rate = self._done / max(time.monotonic() - self._start, 1e-9)
            self._shown.update(
                self._task, completed=self._done, total=self._total, description=self._text, rate=f"{rate:.3g}"
            )

    def _show(self) -> None:
        # Imported here because no command without a bar should wait for it.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        amounts = (MofNCompleteColumn(), TextColumn(f"{self._unit}, {{task.fields[rate]}}/s"))
        share = (TextColumn("{task.percentage:>3.0f}%"),)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(None),
            *(amounts if self._unit else share),
            TimeRemainingColumn(),
        )
        console = Console(file=sys.stderr, highlight=False)
        self._shown = Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
        self._stack.enter_context(showing(self._shown))
        self._stack.enter_context(self._shown)
        self._task = self._shown.add_task(self._text, total=self._total, rate="0")
