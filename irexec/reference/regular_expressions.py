"""Regular expressions in the syntax of RE2, matched in time linear in the text, whatever the expression.

An expression is compiled into a program of a nondeterministic automaton; all states are followed at once. Back
references and look-around do not exist in RE2. Source: RE2 ``doc/syntax.txt`` and ``parse.cc``.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NoReturn

from irexec.errors import OpError, check
from irexec.reference.limits import Growth, check_time

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


# RE2's own limit of the count in {n,m}.
_MAX_COUNT = 1000
_MAX_DEPTH = 100
_OF_MATCH = 128
"""Bytes that callers keep of a match."""

_PERL: dict[str, Ranges] = {
    "d": [("0", "9")],
    "s": [("\t", "\n"), ("\f", "\r"), (" ", " ")],
    "w": WORD,
}
_POSIX: dict[str, Ranges] = {
    "alnum": [("0", "9"), ("A", "Z"), ("a", "z")], "alpha": [("A", "Z"), ("a", "z")], "ascii": [("\x00", "\x7f")],
    "blank": [("\t", "\t"), (" ", " ")], "cntrl": [("\x00", "\x1f"), ("\x7f", "\x7f")], "digit": [("0", "9")],
    "graph": [("!", "~")], "lower": [("a", "z")], "print": [(" ", "~")],
    "punct": [("!", "/"), (":", "@"), ("[", "`"), ("{", "~")], "space": [("\t", "\r"), (" ", " ")],
    "upper": [("A", "Z")], "word": WORD, "xdigit": [("0", "9"), ("A", "F"), ("a", "f")],
}  # fmt: skip
_ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_EMPTY = {"A": "begin", "z": "end", "b": "boundary", "B": "no boundary"}


class RegularExpression:
    """A compiled expression.

    Raises:
        OpError: the expression is not one of RE2's, or its program is too large.
    """

    def __init__(self, pattern: str) -> None:
        self._program = Program()
        self._program.start = _Parser(pattern).whole()(self._program, 0)

    def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
        return self._program.longest(text, 0) == len(text)

    def find_all(self, text: str) -> Iterator[tuple[int, int]]:
        """The longest match at the first position that has one, then in the rest; empty matches are left out."""
        start, growth = 0, Growth("the matches of a regular expression")
        while start < len(text):
            end = self._program.longest(text, start)
            if end is not None and end > start:
                growth.add(_OF_MATCH)
                yield start, end
            start = end if end is not None and end > start else start + 1


@lru_cache(maxsize=64)
def regular_expression(pattern: str) -> RegularExpression:
    """The compiled expression; raises OpError as RegularExpression does."""
    return RegularExpression(pattern)


@dataclass(frozen=True)
class _Flags:
    """The flags at a position of an expression: i, m and s."""

    fold: bool = False
    lines: bool = False
    dot_all: bool = False


def _variants(character: str) -> set[str]:
    """The characters that differ from one in case alone."""
    found = {character, character.lower(), character.upper(), character.casefold()}
    found |= {one for variant in found for one in (variant.lower(), variant.upper(), variant.casefold())}
    return {one for one in found if len(one) == 1}


class _Parser:
    """Parser of one expression."""

    def __init__(self, pattern: str) -> None:
        self._pattern, self._at, self._depth, self._flags = pattern, 0, 0, _Flags()

    def whole(self) -> Part:
        found = self._alternatives()
        if self._rest():
            self._refuse("unexpected )")
        return found

    def _rest(self) -> bool:
        return self._at < len(self._pattern)

    def _looking_at(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _take(self, text: str) -> bool:
        """Skip this text if it comes next."""
        found = self._looking_at(text)
        self._at += len(text) * found
        return found

    def _next(self, what: str) -> str:
        if not self._rest():
            self._refuse(f"missing {what}")
        self._at += 1
        return self._pattern[self._at - 1]

    def _refuse(self, problem: str) -> NoReturn:
        raise OpError(f"{self._pattern[:80]!r} is not a regular expression of RE2: {problem}")

    def _alternatives(self) -> Part:
        self._depth += 1
        check(self._depth < _MAX_DEPTH, f"groups of a regular expression are nested more than {_MAX_DEPTH} deep")
        outer, found = self._flags, [self._sequence()]
        while self._take("|"):
            found.append(self._sequence())
        self._flags, self._depth = outer, self._depth - 1
        return found[0] if len(found) == 1 else any_of(found)

    def _sequence(self) -> Part:
        found: list[Part] = []
        while self._rest() and not self._looking_at("|") and not self._looking_at(")"):
            if self._take("\\Q"):
                literal, _, _ = self._pattern[self._at :].partition("\\E")
                self._at += len(literal)
                self._take("\\E")
                found += [self._literal(one) for one in literal]
            else:
                atom = self._atom()
                found.append(atom)
            if found:
                found[-1] = self._repeated(found[-1])
        return all_of(found)

    def _repeated(self, part: Part) -> Part:
        bounds = self._bounds()
        if bounds is None:
            return part
        self._take("?")
        minimum, maximum = bounds
        if minimum > _MAX_COUNT or (maximum or 0) > _MAX_COUNT or (maximum is not None and maximum < minimum):
            self._refuse(f"the count {minimum},{maximum} is out of range")
        if self._bounds() is not None:
            self._refuse("a repetition is repeated without a group")
        return repeats(part, minimum, maximum)

    def _bounds(self) -> tuple[int, int | None] | None:
        """Skip a repetition operator, if one comes next; its minimum and maximum."""
        for text, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(text):
                return bounds
        if not self._looking_at("{"):
            return None
        inside, closing, _ = self._pattern[self._at + 1 :].partition("}")
        first, comma, last = inside.partition(",")
        if not closing or not _is_count(first) or (last and not _is_count(last)):
            return None
        self._at += len(inside) + 2
        return int(first), int(last) if last else None if comma else int(first)

    def _atom(self) -> Part:
        character = self._next("a character")
        if character == "(":
            return self._group()
        if character == "[":
            return tests(self._class())
        if character == ".":
            return tests((lambda one: True) if self._flags.dot_all else (lambda one: one != "\n"))
        if character == "^":
            return asserts("line begin" if self._flags.lines else "begin")
        if character == "$":
            return asserts("line end" if self._flags.lines else "end")
        if character in "*+?":
            self._refuse(f"nothing that {character} repeats")
        if character == "\\":
            if self._rest() and self._pattern[self._at] in _EMPTY:
                return asserts(_EMPTY[self._next("a character")])
            test = self._class_escape()
            return self._literal(self._escape()) if test is None else tests(test)
        return self._literal(character)

    def _literal(self, character: str) -> Part:
        return tests(self._member(character.__eq__))

    def _member(self, test: Test, inverted: bool = False) -> Test:
        """A test of a character; with the flag i, of all characters that differ from it in case alone."""
        if not self._flags.fold:
            return lambda one: test(one) != inverted
        return lambda one: any(test(variant) for variant in _variants(one)) != inverted

    def _group(self) -> Part:
        if not self._take("?"):
            return self._closed(self._alternatives())
        if self._take("P<") or (self._looking_at("<") and not self._looking_at("<=") and not self._looking_at("<!")):
            self._take("<")
            name, closing, _ = self._pattern[self._at :].partition(">")
            if not closing or not name or not all(one.isalnum() or one == "_" for one in name):
                self._refuse("a name of a group is not valid")
            self._at += len(name) + 1
            return self._closed(self._alternatives())
        outer = self._flags
        self._read_flags()
        if self._take(")"):
            # The flags hold to the end of the surrounding group.
            return all_of(())
        part = self._closed(self._alternatives())
        self._flags = outer
        return part

    def _closed(self, part: Part) -> Part:
        if not self._take(")"):
            self._refuse("missing )")
        return part

    def _read_flags(self) -> None:
        on = True
        names = {"i": "fold", "m": "lines", "s": "dot_all"}
        while not self._looking_at(")"):
            letter = self._next(")")
            if letter == ":":
                return
            if letter == "-" and on:
                on = False
            elif letter in names:
                self._flags = replace(self._flags, **{names[letter]: on})
            elif letter != "U":
                # U swaps lazy and greedy operators, which match the same texts.
                self._refuse(f"(?{letter} is not a group")

    def _class(self) -> Test:
        negated = self._take("^")
        ranges: list[tuple[str, str]] = []
        tests: list[Test] = []
        first = True
        while first or not self._looking_at("]"):
            first = False
            if self._take("[:"):
                name, closing, _ = self._pattern[self._at :].partition(":]")
                inverted = name.startswith("^")
                if not closing or name.removeprefix("^") not in _POSIX:
                    self._refuse(f"the class [:{name[:20]}:] is not known")
                self._at += len(name) + 2
                tests.append(self._ranges(_POSIX[name.removeprefix("^")], inverted))
                continue
            character = self._next("]")
            if character == "\\":
                found = self._class_escape()
                if found is not None:
                    tests.append(found)
                    continue
                character = self._escape()
            last = character
            if self._looking_at("-") and not self._looking_at("-]"):
                self._at += 1
                last = self._next("]")
                last = self._escape() if last == "\\" else last
                if last < character:
                    self._refuse(f"the range {character}-{last} is empty")
            ranges.append((character, last))
        self._at += 1
        tests.append(self._member(lambda one: within(ranges, one)))
        return lambda one: any(test(one) for test in tests) != negated

    def _class_escape(self) -> Test | None:
        """The class of \\d, \\s, \\w, \\p{..} or its complement, if one comes next."""
        letter = self._pattern[self._at] if self._rest() else ""
        if letter.lower() in _PERL and letter:
            self._at += 1
            return self._ranges(_PERL[letter.lower()], letter.isupper())
        if letter not in ("p", "P") or not letter:
            return None
        self._at += 1
        name = self._next("the name of a class")
        if name == "{":
            name, closing, _ = self._pattern[self._at :].partition("}")
            if not closing:
                self._refuse("missing }")
            self._at += len(name) + 1
        inverted = (letter == "P") != name.startswith("^")
        name = name.removeprefix("^")
        if name == "Any":
            return lambda one: not inverted
        if name not in _categories():
            raise OpError(
                f"the class \\p{{{name[:20]}}} of a regular expression is not supported: it is not a category"
            )
        return self._member(lambda one: unicodedata.category(one).startswith(name), inverted)

    def _ranges(self, ranges: Ranges, inverted: bool) -> Test:
        return self._member(lambda one: within(ranges, one), inverted)

    def _escape(self) -> str:
        """The character after a backslash."""
        letter = self._next("a character after \\")
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        if letter == "x":
            return self._hexadecimal()
        if letter in "01234567" and (letter == "0" or self._looking_at_octal()):
            digits = letter
            while len(digits) < 3 and self._looking_at_octal():
                digits += self._next("a digit")
            return chr(int(digits, 8))
        if ord(letter) > 127 or letter.isalnum():
            self._refuse(f"\\{letter} has no meaning")
        return letter

    def _looking_at_octal(self) -> bool:
        return self._rest() and self._pattern[self._at] in "01234567"

    def _hexadecimal(self) -> str:
        if self._take("{"):
            digits, _, _ = self._pattern[self._at :].partition("}")
            self._at += len(digits) + 1
        else:
            digits = self._pattern[self._at : self._at + 2]
            self._at += 2
        is_hexadecimal = digits.isascii() and bool(digits) and all(one in "0123456789abcdefABCDEF" for one in digits)
        if not is_hexadecimal or len(digits) > 8 or int(digits, 16) > sys.maxunicode:
            self._refuse(f"\\x{digits[:10]} is not a character")
        return chr(int(digits, 16))


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


@lru_cache(maxsize=1)
def _categories() -> frozenset[str]:
    """The general categories of Unicode, and their first letters."""
    found = {unicodedata.category(chr(code)) for code in range(0x3000)} | {"Cs", "Co", "Cn"}
    return frozenset(found | {name[0] for name in found})
