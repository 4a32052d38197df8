"""The command line of the fuzzer."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.fuzz import targets
from tests.fuzz.case import write_case
from tests.fuzz.pool import Pool
from tests.fuzz.report import Report, replay, settle
from tests.fuzz.worker import Job, Settings
from tests.support.paths import ROOT

_ALL = "all"

# Seconds between two lines of progress.
_EVERY = 60.0


def main(words: Sequence[str] | None = None) -> int:
    """Run one command line; returns 1 if there is a finding, else 0."""
    options = _parser().parse_args(words)
    settings = Settings(options.timeout, options.memory << 20, plant=options.plant)
    with Pool(1 if options.replay or options.case is not None else options.workers, settings) as pool:
        if options.replay:
            return _replay(options, pool)
        if options.case is not None:
            return _one(options, pool)
        return _run(options, pool)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    add = parser.add_argument
    add("--target", default=_ALL, help=f"{', '.join(targets.TARGETS)}; several with commas between, or all (default)")
    add("--seed", type=int, default=1, help="the cases are random, but always the same for a seed; default: 1")
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--seconds", type=float, help="stop after so much time")
    amount.add_argument("--cases", type=int, default=1000, help="number of cases of each target; default: 1000")
    amount.add_argument(
        "--quick",
        action="store_true",
        help="run the number of cases that is fixed for each target, about a minute in all on two cores",
    )
    amount.add_argument("--case", type=int, metavar="N", help="run only case N, and print it")
    amount.add_argument("--replay", nargs="+", type=Path, metavar="FILE", help="run the cases in these files")
    add(
        "--workers",
        type=int,
        default=1,
        help="processes that run cases; which cases there are does not depend on it; default: 1",
    )
    add(
        "--minimise",
        type=int,
        default=400,
        metavar="RUNS",
        help="runs that may be used to make each finding smaller; default: 400",
    )
    add("--output", type=Path, default=ROOT / "build" / "fuzz", help="the folder for findings; default: build/fuzz")
    add("--timeout", type=float, default=10, help="seconds of processor time for each case; default: 10")
    add("--memory", type=int, default=1024, help="MiB that a case may take; default: 1024")
    add("--plant", metavar="MODULE:FUNCTION", help="call this in each process first, to test the fuzzer")
    return parser


def _names(text: str) -> list[str]:
    names = list(targets.TARGETS) if text == _ALL else text.split(",")
    for name in names:
        targets.load(name)
    return names


def _run(options: argparse.Namespace, pool: Pool) -> int:
    report = Report(options.seed)
    due = time.monotonic() + _EVERY
    # Ctrl-C ends the search; what was found is written.
    with contextlib.suppress(KeyboardInterrupt):
        for job, result in pool.results(_jobs(options)):
            known = set(report.groups)
            report.add(job, result)
            for key in set(report.groups) - known:
                print(f"case {job.number}: {report.groups[key].finding}", file=sys.stderr, flush=True)
            if time.monotonic() >= due:
                # A run that is cut off has its count in the log.
                print(f"so far {report.summary()}", file=sys.stderr, flush=True)
                due = time.monotonic() + _EVERY
    print(report.summary())
    for group in report.ordered():
        path, confirmed = settle(group, options.seed, pool, options.output, options.minimise)
        print(f"{group.count:6}  {group.finding}{'' if confirmed else ' (not found again)'}\n        {path}")
    return 1 if report.groups else 0


def _jobs(options: argparse.Namespace) -> Iterator[Job]:
    """The jobs of all targets in turns, as long as there are any."""
    names = _names(options.target)
    end = None if options.seconds is None else time.monotonic() + options.seconds
    counts = {name: targets.load(name).QUICK if options.quick else options.cases for name in names}
    for number in itertools.count():
        left = [name for name in names if end is not None or number < (counts[name] or 0)]
        if not left:
            return
        for name in left:
            if end is not None and time.monotonic() > end:
                return
            yield Job(name, options.seed, number)


def _one(options: argparse.Namespace, pool: Pool) -> int:
    (name,) = _names(options.target)
    case = pool.one(Job(name, options.seed, options.case, run=False)).case
    if case is None:
        print(f"case {options.case} cannot be made: its target hangs or crashes before it is run")
        return 1
    findings = pool.one(Job(name, case=case)).findings
    print(write_case(case, "\n".join(map(str, findings)) or "no finding"), end="")
    return 1 if findings else 0


def _replay(options: argparse.Namespace, pool: Pool) -> int:
    code = 0
    for path, findings in replay(options.replay, pool):
        print(f"{path}: {len(findings) or 'no'} finding{'s' * (len(findings) > 1)}")
        for finding in findings:
            print(f"    {finding}")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
