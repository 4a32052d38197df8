"""Rules of sentences, as docs/development/style.md states them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.statements import statements

_BEGINNING = re.compile(
    r"(What|Of|As|Those|Which|Whose|Whoever|Whatever|How many|How often|How much|Is|For each|For every|"
    r"(?:On|In|By|To|From|At) (?:which|what|whose))\b"
)
_SECTION = re.compile(r"\s*(Args|Attributes|Returns|Raises|Yields):$")
_ENTRY = re.compile(r"\s+([\w*`, ]{1,60}): (what|that|those|which|whose|is|how (?:many|much|often))\b")
"""An entry of a section that begins with a pronoun, or with the question that the entry answers."""
_COMMENT_BEGINNING = re.compile(r"(What|Of|Those|Whose|Whoever|Whatever|How many|How often|How much)\b")
_PRONOUN = re.compile(r"\b(that|which|what|whose|those|whatever|whoever)\b", re.IGNORECASE)
_MAX_PRONOUNS = 2
"""A relative clause and a conjunction: more are a chain."""
_GAP = r"""(?:[ \t]|\n[ \t]*(?:\#:?|\*)?|"\n\s*f?")+"""
"""Between two words: also the end of a line of a comment or of a string."""
_REFUSED = re.compile(
    r"\b(?:so_many|any_more|(?:go|goes|going|gone|went)_on|(?<!import\s)parts_from|no_more(?!_(?:\w+_)?than\b)|"
    r"(?<!there\s)(?:is|are)_no(?!_(?:longer|more|less|fewer|larger|smaller|better|worse)\b)(?=_\w))\b".replace(
        "_", _GAP
    ),
    re.IGNORECASE,
)
"""Words for which the field has plainer ones: this number of, no longer, continues, differs, is not an X."""
_CODE = re.compile(r"```.*?```|``.*?``|`[^`]*`", re.DOTALL)
_STRING_OR_COMMENT = re.compile(r"""("{3}|'{3}|["'])(?:\\.|.)*?\1|#[^\n]*""", re.DOTALL)
"""In a source; the tokenizer takes eight times as long to tell them apart."""
_END = re.compile(r"(?<=[.:;!?])\s+|\n\s*\n|\n\s*[-*|]\s")


@dataclass(frozen=True)
class Text:
    """A docstring or a comment.

    Attributes:
        line: line of its beginning.
        text: without quotes and comment signs.
        is_docstring: a comment may begin with "As in ...", or ask "Which ...".
    """

    line: int
    text: str
    is_docstring: bool = True

    def objections(self) -> Iterator[str]:
        """Violations of the rules, each with the words that violate it."""
        if found := (_BEGINNING if self.is_docstring else _COMMENT_BEGINNING).match(self.text):
            yield f"begins with {found[0]!r}: {self.text[:80]!r}"
        if self.is_docstring:
            yield from _entries(self.text)
        yield from chains(self.text)


def texts(source: str) -> Iterator[Text]:
    """Docstrings of modules, classes, functions and constants, and comments; comments of consecutive lines are one text."""
    for statement, _ in statements(source):
        value = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield Text(value.lineno, value.value.strip())
    yield from _comments(source)


def _comments(source: str) -> Iterator[Text]:
    first, last, lines = 0, -1, list[str]()
    line, end = 1, 0
    for found in _STRING_OR_COMMENT.finditer(source):
        line += source.count("\n", end, found.start())
        end = found.start()
        if not found[0].startswith("#"):
            continue
        if line != last + 1:
            if lines:
                yield Text(first, " ".join(lines), is_docstring=False)
            first, lines = line, []
        lines.append(found[0].lstrip("#: "))
        last = line
    if lines:
        yield Text(first, " ".join(lines), is_docstring=False)


def _entries(text: str) -> Iterator[str]:
    """Entries of arguments, attributes and errors that do not name the thing first."""
    is_section = False
    for line in text.split("\n"):
        is_section = is_section or bool(_SECTION.fullmatch(line))
        if is_section and (found := _ENTRY.match(line)):
            yield f"entry {found[1]!r} begins with {found[2]!r}: {line.strip()[:80]!r}"


def refused(text: str) -> Iterator[str]:
    """Refused words in a whole file, code and messages included, each with its line; "there is no X" is not refused."""
    for found in _REFUSED.finditer(text):
        yield f"{text.count(chr(10), 0, found.start()) + 1}: {' '.join(found[0].split())!r}"


def chains(text: str) -> Iterator[str]:
    """Sentences with more pronouns than a reader follows at once."""
    for sentence in _END.split(_CODE.sub("x", text)):
        pronouns = _PRONOUN.findall(sentence)
        if len(pronouns) > _MAX_PRONOUNS:
            yield f"a chain of {', '.join(pronouns)}: {' '.join(sentence.split())[:160]!r}"
