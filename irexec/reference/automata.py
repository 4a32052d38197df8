"""Nondeterministic automata over the characters of a text: all states are followed at once, in linear time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from irexec.errors import check
from irexec.reference.limits import check_time

# RE2's programs have a limit, too.
_MAX_STEPS = 100_000

Test = Callable[[str], bool]
"""A test of a character."""
Ranges = Sequence[tuple[str, str]]

WORD: Ranges = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))


@dataclass(frozen=True)
class _Step:
    """One step of a program: a test of a character, an assertion, or a choice of next steps."""

    next: tuple[int, ...]
    test: Test | None = None
    assertion: str | None = None


class Program:
    """The steps of an automaton; step 0 is the end.

    Attributes:
        steps: the steps.
        start: the index of the first.
    """

    def __init__(self) -> None:
        self.steps, self.start = [_Step(())], 0

    def add(self, next: tuple[int, ...], test: Test | None = None, assertion: str | None = None) -> int:
        """Add a step; its index."""
        check(len(self.steps) < _MAX_STEPS, "a regular expression is too large")
        self.steps.append(_Step(next, test, assertion))
        return len(self.steps) - 1

    def longest(self, text: str, start: int) -> int | None:
        """The end of the longest match from ``start`` on; None without a match."""
        found: int | None = None
        active = self._closure([self.start], text, start)
        for position in range(start, len(text) + 1):
            check_time()
            if 0 in active:
                found = position
            if not active or position == len(text):
                break
            character = text[position]
            reached = [
                target
                for index in active
                if (test := self.steps[index].test) is not None and test(character)
                for target in self.steps[index].next
            ]
            active = self._closure(reached, text, position + 1)
        return found

    def _closure(self, waiting: list[int], text: str, position: int) -> dict[int, None]:
        """The steps that are reached without reading a character."""
        found: dict[int, None] = {}
        while waiting:
            index = waiting.pop()
            if index in found:
                continue
            found[index] = None
            step = self.steps[index]
            if step.test is None and (step.assertion is None or _holds(step.assertion, text, position)):
                waiting.extend(step.next)
        return found


Part = Callable[[Program, int], int]
"""A part of an expression: adds its steps to a program before the step of that index, and returns the first of them."""


def tests(test: Test) -> Part:
    return lambda program, then: program.add((then,), test=test)


def asserts(assertion: str) -> Part:
    return lambda program, then: program.add((then,), assertion=assertion)


def all_of(parts: Sequence[Part]) -> Part:
    def add(program: Program, then: int) -> int:
        for part in reversed(parts):
            then = part(program, then)
        return then

    return add


def any_of(parts: Sequence[Part]) -> Part:
    return lambda program, then: program.add(tuple(part(program, then) for part in parts))


def repeats(part: Part, minimum: int, maximum: int | None) -> Part:
    def add(program: Program, then: int) -> int:
        if maximum is None:
            again = program.add(())
            program.steps[again] = _Step((part(program, again), then))
            then = again
        for _ in range(0 if maximum is None else maximum - minimum):
            then = program.add((part(program, then), then))
        for _ in range(minimum):
            then = part(program, then)
        return then

    return add


def _holds(assertion: str, text: str, position: int) -> bool:
    before = text[position - 1] if position else ""
    after = text[position] if position < len(text) else ""
    if assertion == "begin":
        return not before
    if assertion == "end":
        return not after
    if assertion == "line begin":
        return before in ("", "\n")
    if assertion == "line end":
        return after in ("", "\n")
    boundary = within(WORD, before) != within(WORD, after)
    return boundary == (assertion == "boundary")


def within(ranges: Ranges, character: str) -> bool:
    """Whether a character is in one of the ranges; the empty text is in none."""
    return any(first <= character <= last for first, last in ranges) if character else False
