"""The search for the smallest failing part: bisection and delta debugging as functions of a predicate.

Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002: ddmin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from irexec.errors import ModelError
from irexec.io.writer import Writer
from irexec.messages import silent
from irexec.tools.reduce.candidate import Candidate, Part, Whole, made
from irexec.tools.reduce.checks import Check, Failure
from irexec.tools.reduce.output import Answers
from irexec.tools.reduce.recording import count_layers

T = TypeVar("T")
Fails = Callable[[tuple[T, ...]], bool]
"""Whether a part fails; its items have the order of the whole."""


def shortest_prefix(items: Sequence[T], fails: Fails[T]) -> tuple[T, ...]:
    """A prefix that fails, found by bisection in at most log2(n) + 1 tests.

    It is the shortest one if all longer prefixes fail too; otherwise the bisection saw a shorter one that passes.

    Args:
        items: all items, which fail; the empty prefix passes. Both are not tested.
        fails: the predicate.
    """
    passing, failing = 0, len(items)
    while failing - passing > 1:
        middle = (passing + failing) // 2
        if fails(tuple(items[:middle])):
            failing = middle
        else:
            passing = middle
    return tuple(items[:failing])


def shortest_suffix(items: Sequence[T], fails: Fails[T]) -> tuple[T, ...]:
    """A failing suffix; see ``shortest_prefix``."""
    found = shortest_prefix(items[::-1], lambda part: fails(part[::-1]))
    return found[::-1]


def ddmin(items: Sequence[T], fails: Fails[T]) -> tuple[T, ...]:
    """A failing part that passes without any single one of its items.

    Chunks of neighbours are left out, first halves and then smaller ones. The number of tests is at most n * n + 3 * n,
    and in the order of log n if one item alone is at fault.

    Args:
        items: all items, which fail; the empty part passes. Both are not tested.
        fails: the predicate; it is not called twice in a row for one part.
    """
    kept = tuple(items)
    count = 2
    while len(kept) > 1:
        count = min(count, len(kept))
        # To leave out one of two chunks is to keep the other one.
        chunks = pairwise(len(kept) * i // count for i in range(count + 1))
        parts = (kept[start:end] if count == 2 else kept[:start] + kept[end:] for start, end in chunks)
        shorter = next(filter(fails, parts), None)
        if shorter is not None:
            kept, count = shorter, max(count - 1, 2)
        elif count == len(kept):
            break
        else:
            count = 2 * count
    return kept


@dataclass(frozen=True)
class Step:
    """Progress of a reduction.

    Attributes:
        layers: number of layers of the smallest failing part, layers of bodies included.
        of: number of layers of the model.
        checks: number of checked candidates.
    """

    layers: int
    of: int
    checks: int


class Trials:
    """Checks candidates, each of them once.

    Args:
        check: decides about the failure of a candidate.
        answers: answers of earlier checks; receives new ones.
        progress: called after each check.
        found: called with each smaller candidate that fails as the model does.

    Attributes:
        checks: number of checked candidates.
        recalled: number of known answers.
    """

    def __init__(
        self,
        check: Check,
        answers: Answers,
        progress: Callable[[Step], None],
        found: Callable[[Candidate], None] = silent,
    ) -> None:
        self._check, self._answers, self._progress, self._found = check, answers, progress, found
        self.checks = self.recalled = 0
        self._layers = 0
        self._best: tuple[Candidate, Failure]

    @property
    def smallest(self) -> Candidate:
        """The smallest candidate that fails as the model does."""
        return self._best[0]

    @property
    def failure(self) -> Failure:
        """The failure of the smallest candidate."""
        return self._best[1]

    def first(self, candidate: Candidate) -> Failure | None:
        """The failure of the model itself, with which failures of candidates are compared."""
        failure = self._checked(candidate)
        if failure is not None:
            self._best = candidate, failure
            self._layers = _size(candidate)[0]
        return failure

    def __call__(self, whole: Whole, part: Part) -> bool:
        """Whether a part fails in the same way."""
        key = part.key(whole.identity)
        known = self._answers.known.get(key)
        if known is not None:
            self.recalled += 1
            candidate = made(whole, part) if known else None
            if candidate is not None and self._is_smaller(candidate):
                self._best = candidate, self.failure
            return known
        candidate = made(whole, part)
        failure = None if candidate is None else self._checked(candidate)
        same = failure is not None and failure.kind == self.failure.kind
        fails = same and candidate is not None and _is_writable(candidate)
        self._answers.add(key, fails)
        if candidate is not None and failure is not None and fails and self._is_smaller(candidate):
            self._best = candidate, failure
            self._found(candidate)
        self._progress(Step(_size(self.smallest)[0], self._layers, self.checks))
        return fails

    def _checked(self, candidate: Candidate) -> Failure | None:
        self.checks += 1
        return self._check(candidate)

    def _is_smaller(self, candidate: Candidate) -> bool:
        return _size(candidate) <= _size(self.smallest)


def _is_writable(candidate: Candidate) -> bool:
    try:
        Writer(lambda data: None).document(candidate.model)
    except ModelError:
        return False
    return True


def _size(candidate: Candidate) -> tuple[int, int]:
    """Number of layers, layers of bodies included, and number of nodes."""
    return count_layers(candidate.model), len(candidate.model.nodes)


def smallest(whole: Whole, part: Part, fails: Trials) -> Part:
    """The smallest failing part of a failing part, which is not checked again."""
    bare = replace(part, units=())
    if part == whole.everything and fails(whole, bare):
        return _without_parameters(whole, bare, fails)
    part = _without_parameters(whole, part, fails)

    def fails_with(units: tuple[int, ...]) -> bool:
        return fails(whole, replace(part, units=units))

    # Cut in topological order: first the layers after the last layer that the failure needs, then the layers before the
    # first one.
    part = replace(part, units=shortest_suffix(shortest_prefix(part.units, fails_with), fails_with))
    while True:
        part = replace(part, units=ddmin(part.units, fails_with))
        shorter = _bypassed(whole, part, fails)
        if shorter == part:
            break
        part = shorter
    if (count := len(whole.frontier(part))) > 1:
        part = replace(part, results=ddmin(range(count), lambda some: fails(whole, replace(part, results=some))))
    return _without_parameters(whole, part, fails)


def _bypassed(whole: Whole, part: Part, fails: Trials) -> Part:
    """Replace layers by one of their inputs, the last layer first."""
    for unit in reversed(part.units):
        attempts = (whole.without(part, unit, index) for index in whole.bypasses(part, unit))
        part = next((attempt for attempt in attempts if attempt.units and fails(whole, attempt)), part)
    return part


def _without_parameters(whole: Whole, part: Part, fails: Trials) -> Part:
    """Leave out loose Parameters and Constants, if the part fails without them."""
    bare = replace(part, loose=())
    if not part.loose or fails(whole, bare):
        return bare
    return replace(part, loose=ddmin(part.loose, lambda loose: fails(whole, replace(part, loose=loose))))
