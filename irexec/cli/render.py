"""The only file that formats: tables for people, versioned JSON for programs; progress and next steps on stderr.

Tables and JSON go to stdout; notes, warnings, errors and progress go to stderr.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from irexec import display
from irexec.cli.streams import encodable, file_of, put, showing
from irexec.display import Content, TextFormat
from irexec.display.text import BLOCKS, LINES, Line
from irexec.io.onnx_bytes import is_onnx_file
from irexec.ir.dims import PartialShape, shape_text
from irexec.messages import INVISIBLE, cut, sentence, visible
from irexec.records import Record

if TYPE_CHECKING:
    from rich.text import Text as RichText


_LONG = 1000
"""A list of more members has one in each line: json is ten times as fast where it does not indent."""


def to_plain(value: Any) -> Any:
    """A value in the types of JSON: NaN becomes null, infinities become text, and so does every other type but a
    Record, whose fields are written."""
    if isinstance(value, Record):
        value = value.as_dict()
    if isinstance(value, dict):
        return {str(key): to_plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return str(value)


def json_text(document: dict[str, Any], indent: int | None, *, ascii_only: bool) -> str:
    """The text of a document of plain values.

    Args:
        document: its values as ``to_plain`` gives them.
        indent: the spaces of a level; None writes one line. A list of the document that has more than 1,000 members is
            written with each of them in one line.
        ascii_only: escape all other characters.
    """
    if indent is None or not document:
        return json.dumps(document, ensure_ascii=ascii_only, allow_nan=False)
    encode = json.JSONEncoder(ensure_ascii=ascii_only, allow_nan=False).encode
    indented = json.JSONEncoder(ensure_ascii=ascii_only, allow_nan=False, indent=indent).encode
    outer, inner = " " * indent, " " * 2 * indent

    def text(value: Any) -> str:
        if isinstance(value, list) and len(value) > _LONG:
            members = f",\n{inner}".join(map(encode, value))
            return f"[\n{inner}{members}\n{outer}]"
        # Line breaks of strings are escaped, so that these are all of the layout.
        return indented(value).replace("\n", f"\n{outer}")

    members = f",\n{outer}".join(f"{encode(key)}: {text(value)}" for key, value in document.items())
    return f"{{\n{outer}{members}\n}}"


SCHEMA = 1
# The maximum that a person reads; a terminal takes minutes to show 100,000 rows.
_ROWS_OF_TERMINAL, _ROWS_OF_FILE = 500, 10_000
_LINE = 10_000
"""Characters of a line; names in a file may have any length."""
# json escapes C0.
_OBEYED = re.compile(f"[{INVISIBLE}]")
_COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan", "info": "cyan"}
_STYLES = {
    **_COLOURS,
    "header": "bold",
    "title": "bold",
    "rule": "dim",
    "note": "",
    "code": "",
    "change": "bold cyan",
    "old": "red",
    "new": "green",
    "renamed": "yellow",
}
"""The styles of pieces of contents in a terminal."""


def _print(text: RichText, stderr: bool = False) -> None:
    # rich takes as long to import as a small model to check, and plain lines do without it.
    from rich.console import Console

    buffer = io.StringIO()
    Console(file=buffer, highlight=False, force_terminal=file_of(stderr).isatty()).print(text, soft_wrap=True)
    put(buffer.getvalue(), stderr)


def lines(texts: Iterable[str], stderr: bool = False) -> None:
    """Lines of plain text."""
    put("".join(f"{visible(cut(text, _LINE))}\n" for text in texts), stderr)


def remark(text: str) -> None:
    """A line for people on stderr."""
    put(f"{sentence(text)}\n", stderr=True)


def _marked(kind: str, text: str) -> None:
    from rich.text import Text as RichText

    _print(RichText.assemble((f"{kind}: ", _COLOURS[kind]), sentence(text)), stderr=True)


note_line, warning_line, error_line = (partial(_marked, kind) for kind in ("note", "warning", "error"))
"""A note, a warning and an error: lines on stderr."""


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Show that work is in progress: on stderr while the block lasts, and only where that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text as RichText

    console = Console(file=sys.stderr, highlight=False)
    if console.is_dumb_terminal:
        yield
        return
    status = console.status(RichText(sentence(text)))
    with showing(status), status:
        yield


def show(contents: Content, *, unfolds: bool = False) -> None:
    """The contents of a result, fitted to the terminal.

    A terminal gets the first 500 rows of a table and a file the first 10,000; a last line counts the others.

    Args:
        contents: the result of ``sections()``.
        unfolds: also show folded sections.
    """
    has_lines = can_show(LINES)
    frame = TextFormat(
        width=width(),
        ascii=not can_show(BLOCKS),
        rows=_ROWS_OF_TERMINAL if sys.stdout.isatty() else _ROWS_OF_FILE,
        has_lines=has_lines,
        rest="; --json gives all of them",
        unfolds=unfolds,
    )
    _draw([[(_STYLES.get(style, ""), piece) for style, piece in pieces] for pieces in display.lines(contents, frame)])


def _draw(drawn: Sequence[Line]) -> None:
    """Print lines; nothing trails in them."""
    if not drawn or not sys.stdout.isatty():
        # Much faster than rich, which looks at every piece of every line.
        put("".join(f"{''.join(piece for _, piece in pieces).rstrip()}\n" for pieces in drawn))
        return
    from rich.text import Text as RichText

    texts = [RichText.assemble(*((piece, style) for style, piece in pieces)) for pieces in drawn]
    for text in texts:
        text.rstrip()
    _print(RichText("\n").join(texts))


def can_show(characters: str) -> bool:
    """Whether stdout can hold these characters."""
    return encodable(characters, sys.stdout) == characters


def width() -> int | None:
    """The columns of the terminal, or of COLUMNS if that is set; None in a file or pipe, where nothing is cut."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given):
        return int(given)
    if not sys.stdout.isatty():
        return None
    from rich.console import Console

    return Console(file=sys.stdout).width


def as_json(document: dict[str, Any]) -> None:
    """A JSON document with its schema's version; NaN becomes null, infinities become text.

    Floats are exact, and control characters are escaped: no terminal obeys them.
    """
    json_document({"schema": SCHEMA, **document})


def result(
    shows_json: bool, document: Callable[[], dict[str, Any]], contents: Content, notes: Sequence[str] = ()
) -> None:
    """The result of a command: its JSON document, or its notes and contents."""
    if shows_json:
        as_json(document())
        return
    for note in notes:
        note_line(note)
    show(contents)


def json_line(document: dict[str, Any]) -> None:
    """The same in one line, for a command that reports while it works."""
    json_document({"schema": SCHEMA, **document}, None)


def json_document(document: dict[str, Any], indent: int | None = 2) -> None:
    """A JSON document of a format that is not irexec's own, written as ``as_json`` writes its own."""
    plain = to_plain(document)
    text = _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text(plain, indent, ascii_only=False))
    if encodable(text, sys.stdout) != text:
        text = json_text(plain, indent, ascii_only=True)
    put(f"{text}\n")


def verbatim(text: str) -> None:
    """A document of text as it is: its author has escaped what a terminal would obey."""
    put(text)


def error_json(kind: str, message: str, code: int) -> None:
    """An error as the only document on stdout, unless stdout is what failed."""
    try:
        as_json({"error": {"type": kind, "message": message, "exit_code": code}})
    except OSError:
        # The same error has just been reported on stderr.
        return


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
    """Show that work is in progress, and from the first amount on that is done, after ``DELAY``, a bar as
    ``progress_bar`` does."""
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


Shapes = Mapping[str, PartialShape] | Mapping[str | None, PartialShape]


def show_next_command(*arguments: str) -> None:
    """Show a command of irexec that says more about what has just been reported."""
    # Not before: most commands show none.
    from irexec.tools.commands import irexec_command

    remark(f"next: {shlex.join(irexec_command(*arguments))}")


def reducing(model: str) -> tuple[str, ...]:
    """The beginning of the command that reduces a model, which is itself not overwritten."""
    return "reduce", model, "-o", "min.xml" if Path(model).name != "min.xml" else "smaller.xml"


def as_given(
    inputs: Iterable[str], shapes: Shapes | None, seed: int = 0, steps: int | None = None, load_state: str | None = None
) -> Iterator[str]:
    """The options that give another command the same inputs and state; random inputs where there are none."""
    for text in inputs:
        yield from ("-i", text)
    for name, shape in (shapes or {}).items():
        yield from ("--shape", f"{name or ''}{shape_text(shape)}")
    if seed:
        yield f"--seed={seed}"
    if steps is not None:
        yield f"--steps={steps}"
    if load_state is not None:
        yield from ("--load-state", load_state)


def reads_stdin(inputs: Iterable[str]) -> bool:
    """Whether inputs come from standard input, which another command cannot read once more."""
    from irexec.tools.arrays.files import STDIN
    from irexec.tools.run.input_sources import parse_input_source

    return any(parse_input_source(text).source == STDIN for text in inputs)


def after_compare(a: str, b: str | None, a_runtime: str, b_runtime: str, inputs: Sequence[str]) -> None:
    """Show the command after models that differ: reduce to the part that differs, or compare without other runtimes."""
    from irexec.tools.engines.runtimes import OWN

    foreign = {name for name in (a_runtime, b_runtime) if name != "irexec"}
    if b is None and len(foreign) == 1:
        show_next_command(*reducing(a), "--against", *foreign, *inputs)
    elif b is not None and foreign <= set(OWN):
        show_next_command(*reducing(b), "--against", a, *inputs)
    elif b is not None:
        show_next_command("compare", a, b, *inputs)


def note_mapping(model: str, bin: str | None = None) -> None:
    """A note on stderr if the weights of a model will be mapped, and shortening their file would end the process."""
    from irexec.io import sources

    path = Path(bin or model)
    if bin is None and path.name:
        path = path.with_suffix(".bin")
    is_mapped = not is_onnx_file(model) and path.is_file() and os.path.getsize(path) > sources.READ_AT_ONCE
    if is_mapped and hasattr(signal, "SIGBUS"):
        note_line(
            f"{path} is mapped: if another program shortens it, the system ends this one; --no-mmap reads it at once"
        )
