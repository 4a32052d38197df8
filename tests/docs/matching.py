"""Whether an output is what a page shows: ``...`` stands for anything, floats may differ in their last digits and tables in width."""

from __future__ import annotations

import re

_FLOAT = r"[-+]?(?:\d+\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+)"
_TOKEN = re.compile(
    rf"(?P<any>\.\.\.)|(?P<float>(?<![\w.]){_FLOAT}(?![\w.]))|(?P<space>[ ]+)|(?P<rule>─+)|(?P<text>.)", re.DOTALL
)


def normal(text: str) -> str:
    """Without trailing blanks and blank lines at either end, and with / in paths."""
    lines = [line.rstrip() for line in text.replace("\\", "/").splitlines()]
    return "\n".join(lines).strip("\n")


def matches(expected: str, actual: str) -> bool:
    """Whether ``actual`` is what ``expected`` shows."""
    pattern, floats = _pattern(normal(expected))
    found = re.fullmatch(pattern, normal(actual), re.DOTALL)
    return found is not None and all(
        _close(float(shown), float(given)) for shown, given in zip(floats, found.groups(), strict=True)
    )


def _pattern(expected: str) -> tuple[str, list[str]]:
    """A regular expression with one group for each float, and the floats."""
    parts: list[str] = []
    floats: list[str] = []
    for token in _TOKEN.finditer(expected):
        if token["any"]:
            parts.append(".*?")
        elif token["float"]:
            floats.append(token["float"])
            parts.append(f"({_FLOAT})")
        else:
            parts.append(" +" if token["space"] else "─+" if token["rule"] else re.escape(token[0]))
    return "".join(parts), floats


def _close(shown: float, given: float) -> bool:
    return abs(shown - given) <= 1e-3 * abs(shown) + 1e-6


# Applying a diff of a guide: unchanged lines say where, no line numbers are needed.


class DoesNotApply(Exception):
    """The lines that a diff refers to are not in the file exactly once."""


def apply(text: str, diff: str) -> str:
    """``text`` with the hunks of a diff applied; a line ``@@`` separates hunks."""
    for hunk in _hunks(diff):
        before = "".join(line[1:] for line in hunk if line[0] in " -")
        after = "".join(line[1:] for line in hunk if line[0] in " +")
        if text.count(before) != 1:
            raise DoesNotApply(f"found {text.count(before)} times, expected once:\n{before}")
        text = text.replace(before, after)
    return text


def _hunks(diff: str) -> list[list[str]]:
    hunks: list[list[str]] = [[]]
    for line in diff.splitlines(keepends=True):
        if line.startswith("@@"):
            hunks.append([])
        else:
            # An empty line is an unchanged one whose leading blank an editor has removed.
            hunks[-1].append(line if line.strip() else " \n")
    return [hunk for hunk in hunks if hunk]
