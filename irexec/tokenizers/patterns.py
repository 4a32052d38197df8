r"""Regular expressions of PCRE2, as tokenizers have them, translated to those of Python.

Classes are written out as ranges of code points, since Python's differ: no ``\p{L}``, other spaces. A branch reset
``(?|(a)|(b))`` becomes groups of their own that share a number. What has no translation is an OpError.

A repetition of one character can end at as many positions as the text has; several in sequence can at the product of
these, and a repetition of what itself can match in several ways at a power of them. Source: CPython, ``Modules/_sre``.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from irexec.errors import OpError
from irexec.messages import cut
from irexec.reference.limits import Growth, check_time
from irexec.tokenizers.isolated import Isolated
from irexec.tokenizers.unicode_forms import Ranges, complement, of_escape, of_property, union

STEPS = 2e7
"""Number of steps that a search in this process may have: a second or two. A step on other characters than those of
ASCII may compare hundreds of ranges."""
_WIDE = 30
_MAXIMUM = 24

Cost = tuple[float, float]
"""Number of ways to match at a position, and number of steps to try all of them."""


@functools.lru_cache(maxsize=256)
def longest_texts(outline: str) -> tuple[int, int]:
    """Number of characters up to which any text is searched within the limit: of ASCII alone, and of all.

    Args:
        outline: a pattern that Python accepts, or one of the same structure.
    """
    try:
        # Without a name that typing knows, since Python promises nothing of it.
        tree = importlib.import_module("re._parser").parse(outline)
        return _longest(tree, STEPS), _longest(tree, STEPS / _WIDE)
    except (ImportError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return -1, -1


def _longest(tree: Any, steps: float) -> int:
    """The largest power of two whose cost is within the limit; -1 if there is none."""
    size = 8
    while size <= 1 << _MAXIMUM and (size + 1) * _sequence(tree, size)[1] <= steps:
        size *= 2
    return size // 2 if size > 8 else -1


def _sequence(items: Any, size: int) -> Cost:
    ways, steps = 1.0, 1.0
    for name, argument in items:
        item = _item(str(name), argument, size)
        steps += ways * item[1]
        ways *= item[0]
    return ways, steps


def _item(name: str, argument: Any, size: int) -> Cost:
    """The cost of a node of the tree of ``re``, on a text of ``size`` characters."""
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        ways, steps = _repeated(argument[0], min(argument[1], size), _sequence(argument[2], size))
        return (1.0 if name == "POSSESSIVE_REPEAT" else ways), steps
    if name == "BRANCH":
        return _any(argument[1], size)
    if name == "SUBPATTERN":
        return _sequence(argument[-1], size)
    if name == "ATOMIC_GROUP":
        return 1.0, _sequence(argument, size)[1]
    if name in ("ASSERT", "ASSERT_NOT"):
        return 1.0, _sequence(argument[1], size)[1]
    if name == "GROUPREF_EXISTS":
        return _any([item for item in argument[1:] if item], size)
    if name == "GROUPREF":
        return 1.0, 1.0 + size
    if name in ("LITERAL", "NOT_LITERAL", "ANY", "ANY_ALL", "IN", "AT", "RANGE", "CATEGORY", "FAILURE"):
        return 1.0, 1.0
    raise LookupError(name)


def _any(choices: Sequence[Any], size: int) -> Cost:
    costs = [_sequence(choice, size) for choice in choices]
    return max(1.0, sum(ways for ways, _ in costs)), 1.0 + sum(steps for _, steps in costs)


def _repeated(minimum: int, maximum: int, once: Cost) -> Cost:
    ways, steps = once
    count = max(minimum, maximum)
    if ways <= 1:
        return 1.0 + max(0, maximum - minimum), 1.0 + count * steps
    if count * math.log(ways) > math.log(1e30):
        return math.inf, math.inf
    # Sums of powers: as many ways as there are for each number of repetitions.
    return (ways ** (count + 1) - ways**minimum) / (ways - 1), 1.0 + steps * (ways**count - 1) / (ways - 1)


_CONTROLS = {"n": 0xA, "r": 0xD, "t": 0x9, "f": 0xC, "e": 0x1B, "a": 0x7}
_ANCHORS = {"A": r"\A", "z": r"\Z", "Z": r"(?=\n?\Z)", "R": r"(?>\r\n|[\n\x0b\f\r\x85\u2028\u2029])"}
_POSIX = {"alpha": ("L",), "digit": ("Nd",), "alnum": ("L", "N"), "upper": ("Lu",), "lower": ("Ll",)}
_PUNCTUATION_OF_POSIX = "$+<=>^`|~"


@dataclass(frozen=True)
class Pattern:
    """A pattern that has been translated.

    Attributes:
        source: the original.
        groups: the groups of Python's expression that have each number of the original; several after a branch reset.
        isolated: where long texts are searched; Python's ``re`` can neither be interrupted nor limited.
        longest: number of characters up to which a text is searched here, of ASCII alone and of any.
        expression: Python's; None if texts are never searched here.
    """

    source: str
    groups: tuple[tuple[int, ...], ...]
    isolated: Isolated
    longest: tuple[int, int] = (-1, -1)
    expression: re.Pattern[str] | None = None

    def matches(self, string: str, maximum: int | None = None) -> Iterator[Match]:
        """The matches from the left, all of them or at most ``maximum``.

        Raises:
            OpError: the search takes too long, or Python does not accept the pattern.
            RunTimeoutError: the run takes too long.
        """
        check_time()
        growth = Growth("the matches of the pattern")
        if self.expression is not None and len(string) <= self.longest[not string.isascii()]:
            for match in itertools.islice(self.expression.finditer(string), maximum):
                growth.add(_OF_MATCH)
                yield match
            return
        answer, _ = self.isolated.ask("find", string, maximum, seconds=SECONDS)
        spans = answer.tolist()
        for first in range(0, len(spans), 2 * sum(map(len, self.groups))):
            growth.add(_OF_MATCH)
            yield _Spans(string, spans, first)

    def span(self, match: Match, number: int) -> tuple[int, int] | None:
        """The span of a group of the original; None if it took no part in the match."""
        spans = [match.span(group) for group in self.groups[number] if match.start(group) >= 0]
        return spans[0] if spans else None


class _Spans(NamedTuple):
    """A match that another process has found: its groups begin at ``first`` of the spans of all matches.

    The methods are those of ``re.Match``.
    """

    string: str
    spans: list[int]
    first: int

    def start(self, group: int = 0, /) -> int:
        return self.spans[self.first + 2 * group]

    def end(self, group: int = 0, /) -> int:
        return self.spans[self.first + 2 * group + 1]

    def span(self, group: int = 0, /) -> tuple[int, int]:
        return self.start(group), self.end(group)


Match: TypeAlias = re.Match[str] | _Spans

SECONDS = 60
"""Limit of the time of one search. OpenVINO's matcher ends after ten million steps, and takes that for no match."""
_OF_MATCH = 128
"""Bytes that callers keep of a match."""
_LARGE = 1 << 20
"""Characters of a translated pattern from which on it is compiled in a process of its own, too: half a second."""


@functools.lru_cache(maxsize=256)
def compile_pattern(pattern: bytes) -> Pattern:
    """The pattern in Python's form.

    Raises:
        OpError: the pattern is not valid, or has something that cannot be translated.
    """
    try:
        source = pattern.decode()
    except UnicodeDecodeError as error:
        raise OpError(f"the pattern {pattern!r} is not UTF-8") from error
    translation = _Translation(source)
    text = translation.run()
    groups = tuple(map(tuple, translation.groups))
    isolated = Isolated("pattern", text, f"the pattern {cut(repr(source), 200)}")
    if len(text) >= _LARGE:
        return Pattern(source, groups, isolated)
    try:
        expression = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise OpError(f"the pattern {source!r} is not valid: {error}") from error
    outline = _Translation(source, is_outline=True).run()
    return Pattern(source, groups, isolated, longest_texts(outline), expression)


@dataclass
class _Translation:
    """One pass over a pattern.

    Attributes:
        is_outline: whether every class is written as ".": the cost of a search does not depend on them.
        groups: see Pattern.
        made: number of groups of the translation so far.
        frames: an open bracket each: what closes it, and for a branch reset the first and the largest group number of
            its alternatives.
    """

    source: str
    is_outline: bool = False
    at: int = 0
    groups: list[list[int]] = field(default_factory=lambda: [[0]])
    made: int = 0
    number: int = 0
    frames: list[tuple[str, int | None, int]] = field(default_factory=list)

    def run(self) -> str:
        parts = []
        while self.at < len(self.source):
            check_time()
            parts.append(self._next())
        if self.frames:
            raise self._error("has a bracket that is not closed")
        return "".join(parts)

    def _next(self) -> str:
        char = self.source[self.at]
        self.at += 1
        if char == "\\":
            return self._escape()
        if char == "[":
            return self._class_text(self._set())
        if char == "(":
            return self._open()
        if char == ")":
            return self._close()
        if char == "|":
            self._alternative()
        return char

    def _error(self, problem: str) -> OpError:
        return OpError(f"the pattern {self.source!r} {problem} (at {self.at})")

    def _escape(self) -> str:
        letter = self._take()
        if letter in "bB":
            return _boundary(letter == "b")
        if letter in _ANCHORS:
            return _ANCHORS[letter]
        if letter.isdigit() and letter != "0":
            return self._reference(letter)
        return self._class_text(self._class(letter))

    def _class_text(self, ranges: Ranges) -> str:
        return "." if self.is_outline else _written(ranges)

    def _reference(self, digit: str) -> str:
        groups = self.groups[int(digit)] if int(digit) < len(self.groups) else []
        if len(groups) != 1:
            raise self._error(f"refers to group {digit}, which is not supported")
        return f"(?:\\{groups[0]})"

    def _take(self) -> str:
        if self.at >= len(self.source):
            raise self._error("ends in a backslash")
        self.at += 1
        return self.source[self.at - 1]

    def _class(self, letter: str) -> Ranges:
        """The code points of an escape."""
        if letter in "pP":
            name = self._braced() if self._peek() == "{" else self._take()
            negated = name.startswith("^") != (letter == "P")
            ranges = of_property(name.removeprefix("^").strip())
            return complement(ranges) if negated else ranges
        if letter in "dDsSwWhHvV":
            return of_escape(letter)
        if letter == "N":
            return complement(((0xA, 0xA),))
        code = self._code(letter)
        return ((code, code),)

    def _code(self, letter: str) -> int:
        """The code point of an escape of one character."""
        if letter == "x":
            digits = self._braced() if self._peek() == "{" else self._digits("0123456789abcdefABCDEF", 2)
            return int(digits, 16) if digits else 0
        if letter == "0":
            return int("0" + self._digits("01234567", 2), 8)
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter.isalnum() and letter.isascii():
            raise self._error(f"has the escape \\{letter}, which is not supported")
        return ord(letter)

    def _peek(self) -> str:
        return self.source[self.at : self.at + 1]

    def _braced(self) -> str:
        end = self.source.find("}", self.at)
        if end < 0:
            raise self._error("has a brace that is not closed")
        text, self.at = self.source[self.at + 1 : end], end + 1
        return text

    def _digits(self, alphabet: str, maximum: int) -> str:
        start = self.at
        while self.at < start + maximum and self._peek() and self._peek() in alphabet:
            self.at += 1
        return self.source[start : self.at]

    def _set(self) -> Ranges:
        """The code points of a class in brackets."""
        negated = self._peek() == "^"
        self.at += negated
        items: list[Ranges] = []
        # A bracket that is the first character does not close the class.
        while not items or self._peek() != "]":
            if not self._peek():
                raise self._error("has a class that is not closed")
            items.append(self._item())
        self.at += 1
        ranges = union(items)
        return complement(ranges) if negated else ranges

    def _item(self) -> Ranges:
        start = self._one()
        following = self.source[self.at + 1 : self.at + 2]
        if self._peek() != "-" or following in ("]", "") or len(start) != 1 or start[0][0] != start[0][1]:
            return start
        self.at += 1
        end = self._one()
        if len(end) != 1 or end[0][0] != end[0][1] or end[0][0] < start[0][0]:
            raise self._error("has a range whose end is not valid")
        return ((start[0][0], end[0][0]),)

    def _one(self) -> Ranges:
        char = self.source[self.at]
        self.at += 1
        if char == "\\":
            letter = self._take()
            return ((8, 8),) if letter == "b" else self._class(letter)
        named = re.compile(r":(\^?)([a-z]+):\]").match(self.source, self.at) if char == "[" else None
        if named is None:
            return ((ord(char), ord(char)),)
        self.at = named.end()
        ranges = self._posix(named[2])
        return complement(ranges) if named[1] else ranges

    def _posix(self, name: str) -> Ranges:
        if name in _POSIX:
            return union(map(of_property, _POSIX[name]))
        if name == "punct":
            return union([of_property("P"), *(((ord(c), ord(c)),) for c in _PUNCTUATION_OF_POSIX)])
        if name in ("space", "word"):
            return of_escape(name[0])
        raise self._error(f"has the class [:{name}:], which is not supported")

    def _open(self) -> str:
        """A bracket and what follows it up to its content."""
        opened = re.compile(r"\?(\||:|=|!|<=|<!|>|P?<(\w+)>|([imsx-]*)([:)]))").match(self.source, self.at)
        if self._peek() == "*" or (self._peek() == "?" and opened is None):
            raise self._error("has a kind of group that is not supported")
        if opened is None or opened[2]:
            self.at = self.at if opened is None else opened.end()
            self.frames.append((")", None, 0))
            return self._group()
        self.at = opened.end()
        kind, flags = opened[1], opened[3]
        if flags:
            return self._flags(flags, inline=opened[4] == ")")
        if kind == "|":
            self.frames.append((")", self.number, self.number))
            return "(?:"
        self.frames.append((")", None, 0))
        return f"(?{kind}"

    def _group(self) -> str:
        self.made += 1
        self.number += 1
        if self.number == len(self.groups):
            self.groups.append([])
        self.groups[self.number].append(self.made)
        return "("

    def _flags(self, flags: str, inline: bool) -> str:
        """Flags of a group, or of the rest of the pattern where they are at its beginning."""
        if set(flags) - set("ims"):
            raise self._error(f"has the flags {flags!r}, which are not supported")
        if not inline:
            self.frames.append((")", None, 0))
            return f"(?{flags}:"
        if self.at != len(flags) + 3:
            raise self._error("has flags in the middle, which is not supported")
        return f"(?{flags})"

    def _alternative(self) -> None:
        """Alternatives of a branch reset begin with the same group number."""
        if self.frames and self.frames[-1][1] is not None:
            closing, first, largest = self.frames[-1]
            self.frames[-1] = (closing, first, max(largest, self.number))
            self.number = first or 0

    def _close(self) -> str:
        if not self.frames:
            raise self._error("has a bracket that is not opened")
        closing, first, largest = self.frames.pop()
        if first is not None:
            self.number = max(largest, self.number)
        return closing


@functools.lru_cache(maxsize=256)
def _written(ranges: Ranges) -> str:
    """A set of code points in Python's form."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return re.escape(chr(ranges[0][0]))
    parts = (f"\\U{first:08x}" if first == last else f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)
    return f"[{''.join(parts)}]" if ranges else r"(?!)"


@functools.cache
def _boundary(inside: bool) -> str:
    word = _written(of_escape("w"))
    edge = rf"(?<={word})(?!{word})|(?<!{word})(?={word})"
    return f"(?:{edge})" if inside else rf"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))"


def expand(pattern: Pattern, match: Match, replacement: str) -> str | None:
    """The replacement of a match: ``$1`` and ``${1}`` are groups, ``$$`` is a dollar sign.

    None if it has a group that took no part in the match, for which OpenVINO leaves the whole string as it is.
    """
    parts = []
    for text, digits in _replacement_parts(replacement):
        parts.append(text)
        if digits is None:
            continue
        span = pattern.span(match, int(digits)) if int(digits) < len(pattern.groups) else None
        if span is None:
            return None
        parts.append(match.string[slice(*span)])
    return "".join(parts)


@functools.lru_cache(maxsize=256)
def _replacement_parts(replacement: str) -> tuple[tuple[str, str | None], ...]:
    """Texts, each with the number of the group after it."""
    parts: list[tuple[str, str | None]] = []
    end = 0
    for found in re.finditer(r"\$(?:\$|(\d{1,2})|\{(\d{1,2})\})", replacement):
        text = replacement[end : found.start()]
        digits = found[1] or found[2]
        parts.append((text, digits) if digits else (text + "$", None))
        end = found.end()
    if "$" in replacement[end:]:
        raise OpError(f"the replacement {replacement!r} has a dollar sign without the number of a group")
    return *parts, (replacement[end:], None)
