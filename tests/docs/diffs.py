"""Applying a diff of a guide: unchanged lines say where, no line numbers are needed."""

from __future__ import annotations


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
