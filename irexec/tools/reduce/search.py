"""The search for the smallest failing part."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from irexec.errors import ModelError
from irexec.io.writer import Writer
from irexec.messages import silent
from irexec.tools.reduce.candidate import Candidate, Part, Whole, made
from irexec.tools.reduce.checks.check import Check, Failure
from irexec.tools.reduce.minimize import ddmin, shortest_prefix, shortest_suffix
from irexec.tools.reduce.output import Answers
from irexec.tools.reduce.recording import BOUNDARY


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
        self._best: tuple[Candidate, Failure] | None = None

    @property
    def smallest(self) -> Candidate:
        """The smallest candidate that fails as the model does."""
        return self._known()[0]

    @property
    def failure(self) -> Failure:
        """The failure of the smallest candidate."""
        return self._known()[1]

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
            if known:
                self._recall(made(whole, part))
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

    def _known(self) -> tuple[Candidate, Failure]:
        if self._best is None:
            raise AssertionError("the model itself is checked first")
        return self._best

    def _checked(self, candidate: Candidate) -> Failure | None:
        self.checks += 1
        return self._check(candidate)

    def _recall(self, candidate: Candidate | None) -> None:
        if candidate is not None and self._is_smaller(candidate):
            self._best = candidate, self.failure

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
    return sum(node.type not in BOUNDARY for node in candidate.model.walk()), len(candidate.model.nodes)


def smallest(whole: Whole, part: Part, fails: Trials) -> Part:
    """The smallest failing part of a failing part, which is not checked again."""
    bare = replace(part, units=())
    if part == whole.everything and fails(whole, bare):
        return _without_parameters(whole, bare, fails)
    part = _without_parameters(whole, part, fails)
    part = _bisected(whole, part, fails)
    while True:
        part = _fewer_units(whole, part, fails)
        shorter = _bypassed(whole, part, fails)
        if shorter == part:
            break
        part = shorter
    part = _fewer_results(whole, part, fails)
    return _without_parameters(whole, part, fails)


def _bisected(whole: Whole, part: Part, fails: Trials) -> Part:
    """Cut in topological order: first the layers after the last layer that the failure needs, then the layers before
    the first one."""
    units = shortest_prefix(part.units, lambda units: fails(whole, replace(part, units=units)))
    units = shortest_suffix(units, lambda units: fails(whole, replace(part, units=units)))
    return replace(part, units=units)


def _fewer_units(whole: Whole, part: Part, fails: Trials) -> Part:
    return replace(part, units=ddmin(part.units, lambda units: fails(whole, replace(part, units=units))))


def _bypassed(whole: Whole, part: Part, fails: Trials) -> Part:
    """Replace layers by one of their inputs, the last layer first."""
    for unit in reversed(part.units):
        attempts = (whole.without(part, unit, index) for index in whole.bypasses(part, unit))
        part = next((attempt for attempt in attempts if attempt.units and fails(whole, attempt)), part)
    return part


def _fewer_results(whole: Whole, part: Part, fails: Trials) -> Part:
    count = len(whole.frontier(part))
    if count < 2:
        return part
    return replace(part, results=ddmin(range(count), lambda results: fails(whole, replace(part, results=results))))


def _without_parameters(whole: Whole, part: Part, fails: Trials) -> Part:
    """Leave out loose Parameters and Constants, if the part fails without them."""
    return replace(part, loose=_least(part.loose, lambda loose: fails(whole, replace(part, loose=loose))))


def _least(items: Iterable[int], fails: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    """See ddmin; here the empty part may fail as well."""
    everything = tuple(items)
    if not everything or fails(()):
        return ()
    return ddmin(everything, fails)
