"""Progress bars: on stderr, and only where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(text: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar while the block lasts; call what it gives with each amount that is done. Nothing is left on the screen."""
    if not sys.stderr.isatty():
        yield lambda amount: None
        return
    # Imported here because it takes longer than most commands do without it.
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    console = Console(file=sys.stderr, highlight=False)
    with Progress(console=console, transient=True, disable=console.is_dumb_terminal) as progress:
        task = progress.add_task(Text(text).plain.replace("[", "\\["), total=total)
        yield lambda amount: progress.update(task, advance=amount)
