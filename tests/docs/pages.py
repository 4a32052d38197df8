"""The pages of the documentation and the code blocks in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.paths import ROOT

# Built output and generated pages are not written by hand.
_NOT_PAGES = {"_build", "generated"}

_OPENING = re.compile(r"^(?P<fence>`{3,}|:{3,})(?:\{(?P<directive>[\w-]+)\}\s*)?(?P<argument>\S*)\s*$")
_NEEDS = re.compile(r"^<!-- needs (?P<what>[\w ]+) -->$")
_OPTION = re.compile(r"^:(?P<name>[\w-]+):\s*(?P<value>.*)$")


@dataclass(frozen=True)
class Block:
    """A fenced code block.

    Attributes:
        language: "console", "python", "text", ...; empty where the fence names none.
        caption: the file that a ``{code-block}`` with a caption stands for; empty without one.
        lines: the text between the fences, without the options of a directive.
        start: the index of the first of these lines in the page.
        needs: the optional software without which it is not run, from a comment on the line above it: ``<!-- needs ray -->``.
    """

    language: str
    caption: str
    lines: tuple[str, ...]
    start: int
    needs: tuple[str, ...] = ()

    @property
    def stop(self) -> int:
        """The index of the closing fence in the page."""
        return self.start + len(self.lines)

    @property
    def text(self) -> str:
        return "".join(line + "\n" for line in self.lines)


@dataclass(frozen=True)
class Command:
    """A command of a console block, and the output that the page shows for it.

    Attributes:
        words: the command without its prompt; continued lines are joined.
        output: the lines below it.
        start: the index of the first output line in the page.
    """

    words: str
    output: tuple[str, ...]
    start: int


@dataclass
class _Open:
    fence: str
    language: str
    is_code: bool
    start: int
    needs: tuple[str, ...] = ()
    lines: list[str] = field(default_factory=list)


def pages() -> list[Path]:
    """README.md and every page in docs and .github that is written by hand."""
    written = [path for folder in ("docs", ".github") for path in (ROOT / folder).rglob("*.md")]
    return [ROOT / "README.md", *sorted(path for path in written if not _NOT_PAGES.intersection(path.parts))]


def blocks(text: str) -> list[Block]:
    """The code blocks of a page, in order."""
    return list(_blocks(text.split("\n")))


def _blocks(lines: list[str]) -> Iterator[Block]:
    current: _Open | None = None
    for i, line in enumerate(lines):
        if current is None:
            if (found := _OPENING.match(line)) and found["fence"].startswith("`"):
                is_code = found["directive"] in (None, "code-block")
                needs = _NEEDS.match(lines[i - 1]) if i else None
                current = _Open(
                    found["fence"], found["argument"], is_code, i + 1, tuple(needs["what"].split()) if needs else ()
                )
        elif line.strip() == current.fence:
            if current.is_code:
                yield _closed(current)
            current = None
        else:
            current.lines.append(line)


def _closed(opened: _Open) -> Block:
    caption = ""
    lines, start = opened.lines, opened.start
    while lines and (option := _OPTION.match(lines[0])):
        caption = option["value"] if option["name"] == "caption" else caption
        lines, start = lines[1:], start + 1
    if caption and lines and not lines[0]:
        lines, start = lines[1:], start + 1
    return Block(opened.language, caption, tuple(lines), start, opened.needs)


def commands(block: Block) -> list[Command]:
    """The commands of a console block: lines that begin with ``$ ``, continued where they end in a backslash."""
    found: list[Command] = []
    i = 0
    while i < len(block.lines):
        if not block.lines[i].startswith("$ "):
            raise ValueError(f"line {block.start + i + 1}: a console block begins with a command ('$ ...')")
        words = block.lines[i][2:]
        while words.endswith("\\"):
            i += 1
            words = words[:-1] + block.lines[i].strip()
        i += 1
        start = i
        while i < len(block.lines) and not block.lines[i].startswith("$ "):
            i += 1
        found.append(Command(words, block.lines[start:i], block.start + start))
    return found


def output_of(block: Block, following: Block | None, lines: list[str]) -> Block | None:
    """The ``text`` block that shows what a Python block prints: it follows with nothing but blank lines between."""
    if following is None or following.language != "text" or following.caption:
        return None
    between = lines[block.stop + 1 : following.start - 1]
    return following if not any(line.strip() for line in between) else None
