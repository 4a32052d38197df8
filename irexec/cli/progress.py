"""Progress bars: on stderr, and only where that is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(text: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar while the block lasts; call what it gives with each amount that is done. Nothing is left on the screen."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda amount: None
        return
    # Imported here because no command without a bar should wait for it.
    from rich.console import Console
    from rich.progress import Progress

    console = Console(file=sys.stderr, highlight=False)
    with Progress(console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as progress:
        task = progress.add_task(text, total=total)
        yield lambda amount: progress.update(task, advance=amount)
