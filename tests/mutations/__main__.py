"""The command line: apply each mutation to a copy of the source, and see that tests or random graphs catch it."""

from __future__ import annotations

import argparse
import queue
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from irexec.backend.native.integer_products import unit
from tests.mutations.catching import Catcher, Outcome, catchers_of, run
from tests.mutations.mutation import Mutation
from tests.mutations.table import MUTATIONS
from tests.mutations.workspace import Workspace


@dataclass(frozen=True)
class Result:
    """What became of a mutation; without outcomes it could not be applied, and ``error`` says why."""

    mutation: Mutation
    outcomes: tuple[Outcome, ...] = ()
    error: str = ""

    @property
    def is_caught(self) -> bool:
        """Whether anything noticed it."""
        return any(outcome.verdict == "caught" for outcome in self.outcomes)

    @property
    def is_sound(self) -> bool:
        """Whether it was applied, and all that should catch it could be run."""
        return not self.error and all(outcome.verdict != "broken" for outcome in self.outcomes)


class Workspaces:
    """Copies of the source, each used by one thread at a time."""

    def __init__(self, copies: Sequence[Workspace]) -> None:
        self._free: queue.SimpleQueue[Workspace] = queue.SimpleQueue()
        for one in copies:
            self._free.put(one)

    @contextmanager
    def one(self) -> Iterator[Workspace]:
        """A copy for the caller alone."""
        taken = self._free.get()
        try:
            yield taken
        finally:
            self._free.put(taken)


def main(words: Sequence[str] | None = None) -> int:
    """Run one command line; returns 1 if a mutation survives or cannot be applied, or if a catcher fails without one."""
    parser = argparse.ArgumentParser("python -m tests.mutations", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        metavar="TEXT",
        help="mutations with this text in their name or file; may be repeated",
    )
    parser.add_argument("--workers", type=int, default=1, help="mutations that are looked at at once; default: 1")
    parser.add_argument(
        "--graphs", type=int, metavar="N", help="in place of what should catch them, try N random graphs on each"
    )
    parser.add_argument("--slow", action="store_true", help="try slow tests as well where the others miss a mutation")
    parser.add_argument("--list", action="store_true", help="print the mutations, and what should catch them")
    options = parser.parse_args(words)
    chosen = [
        one
        for one in MUTATIONS
        if not options.only or any(text in one.name or text in one.file for text in options.only)
    ]
    if options.graphs:
        chosen = [replace(one, tests=(), graphs=options.graphs) for one in chosen]
    if options.list:
        for one in chosen:
            print(f"{one.name}  [{one.file}]", *(f"    {catcher}" for catcher in catchers_of(one)), sep="\n")
        return 0
    _pass_no_ignored_signals_on()
    for one in (idle := [one for one in chosen if one.unit not in (0, unit())]):
        print(f"not tried, since this processor does not run its code: {one.name}  [{one.file}]")
    chosen = [one for one in chosen if one not in idle]
    with ExitStack() as stack, ThreadPoolExecutor(max(1, options.workers)) as threads:
        workspaces = Workspaces([stack.enter_context(Workspace()) for _ in range(max(1, options.workers))])
        alone = list(threads.map(lambda catcher: _alone(catcher, workspaces), _all_catchers(chosen)))
        failing = {one.catcher.tests: one for one in alone if one.verdict != "missed"}
        results = list(threads.map(lambda one: _tried(one, workspaces, failing, options.slow), chosen))
    if failing:
        print(
            "These do not pass without a mutation:",
            *(f"{one.catcher}: {one.text}" for one in failing.values()),
            sep="\n",
        )
    return _summary(results)


def _pass_no_ignored_signals_on() -> None:
    """Ignore what is ignored by a function: nohup and shells that put a process into the background ignore signals for all that it starts.

    A handler is not inherited, so that tests that send these signals find the default.
    """
    for name in ("SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)


def _all_catchers(mutations: Sequence[Mutation]) -> list[Catcher]:
    """What catches any of them, each once, and of the random graphs as many as any asks for."""
    found = dict.fromkeys(catcher for one in mutations for catcher in catchers_of(one) if catcher.tests)
    graphs = max((one.graphs for one in mutations), default=0)
    return [*([Catcher("", graphs)] if graphs else []), *found]


def _alone(catcher: Catcher, workspaces: Workspaces) -> Outcome:
    """How a catcher ends with the source as it is: it should miss."""
    with workspaces.one() as workspace:
        outcome = run(catcher, workspace.root)
    print(
        f"without a mutation: {catcher}: {'passes' if outcome.verdict == 'missed' else 'FAILS'}",
        file=sys.stderr,
        flush=True,
    )
    return outcome


def _tried(mutation: Mutation, workspaces: Workspaces, failing: Mapping[str, Outcome], slow: bool) -> Result:
    """What becomes of a mutation; a catcher that fails without one says nothing."""
    catchers = catchers_of(mutation)
    with workspaces.one() as workspace:
        try:
            with workspace.mutated(mutation):
                sound = [catcher for catcher in catchers if catcher.tests not in failing]
                outcomes = [run(catcher, workspace.root) for catcher in sound]
                if slow and all(outcome.verdict == "missed" for outcome in outcomes):
                    all_tiers = (Catcher(f"{one.tests} -m 'slow or not slow'") for one in sound if one.tests)
                    outcomes += [run(catcher, workspace.root) for catcher in all_tiers]
            broken = [
                Outcome(catcher, "broken", "it fails without a mutation")
                for catcher in catchers
                if catcher not in sound
            ]
            result = Result(mutation, (*outcomes, *broken))
        except (ValueError, OSError) as error:
            result = Result(mutation, error=str(error))
    print("\n".join(_lines(result)), file=sys.stderr, flush=True)
    return result


def _lines(result: Result) -> Iterator[str]:
    state = "not applied" if result.error else "caught" if result.is_caught else "SURVIVED"
    yield f"{state}: {result.mutation.name}  [{result.mutation.file}]"
    if result.error:
        yield f"    {result.error}"
    for outcome in result.outcomes:
        yield f"    {outcome.verdict} by {outcome.catcher}{f': {outcome.text}' if outcome.text else ''}"


def _summary(results: Sequence[Result]) -> int:
    width = max((len(result.mutation.name) for result in results), default=0)
    for result in results:
        by = [str(one.catcher) for one in result.outcomes if one.verdict == "caught"]
        print(f"{result.mutation.name:{width}}  {'; '.join(by) if by else result.error or 'SURVIVED'}")
    tests = sum(any(one.verdict == "caught" and one.catcher.tests for one in result.outcomes) for result in results)
    graphs = sum(
        any(one.verdict == "caught" and not one.catcher.tests for one in result.outcomes) for result in results
    )
    caught = sum(result.is_caught for result in results)
    print(f"{caught} of {len(results)} caught: {tests} by tests, {graphs} by random graphs")
    broken = [result.mutation.name for result in results if not result.is_sound]
    if broken:
        print("not applied, or with a catcher that could not be run:", ", ".join(broken))
    return 0 if caught == len(results) and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
