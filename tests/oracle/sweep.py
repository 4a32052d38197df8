"""Random one-operation models through OpenVINO and through irexec.

    python -m tests.oracle.sweep [--written] [--seed N] [--count 50] [--only Type[-since]] [--time SECONDS]

With --written OpenVINO's own API makes and writes the models (tests/oracle/written.py).

Every random case has a seed of its own, counted from ``--seed`` on, so that ``--only Type-since --seed N --count 1`` shows a difference
again. tests/oracle/judge.py says what is compared. Generators run in processes of their own, since OpenVINO may take one down or hang.
Exit 1 if anything differs that tests/oracle/explained.py does not explain.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

PATIENCE = 60.0
SHOWN = 4
Pair = tuple[str, int]


def serve(pipe: Connection, written: bool) -> None:
    """In a process of its own: judge what is asked for, until there is no more."""

    from irexec.testing.case_generator import CaseGenerator
    from irexec.testing.random_cases import random_cases, seeded
    from tests.oracle import judge
    from tests.oracle import written as by_api
    from tests.oracle.judge import DIFFERS, Verdict

    judging = by_api.judge if written else judge.judge
    table = random_cases()
    while (asked := pipe.recv()) is not None:
        type, since, seed = asked
        rng = seeded(type, since, seed)
        try:
            verdict = judging(table[type, since](rng), CaseGenerator(rng), lambda: pipe.send("asking"))
        except Exception:
            verdict = Verdict(DIFFERS, f"raised:\n{traceback.format_exc(limit=-4)}")
        pipe.send((verdict.kind, verdict.why))


class Worker:
    """A process that judges, and is replaced when it is lost."""

    def __init__(self, written: bool) -> None:
        self._written = written
        self._process: Any = None
        self._pipe: Any = None

    def judge(self, pair: Pair, seed: int) -> tuple[str, str]:
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=serve, args=(theirs, self._written), daemon=True)
            self._process.start()
            theirs.close()
        self._pipe.send((*pair, seed))
        asked = False
        while True:
            try:
                if not self._pipe.poll(PATIENCE):
                    return self._lost(asked, f"no answer within {PATIENCE:g} s")
                answer = self._pipe.recv()
            except (EOFError, ConnectionResetError):
                return self._lost(asked, "the process died")
            if answer != "asking":
                return answer
            asked = True

    def _lost(self, asked: bool, why: str) -> tuple[str, str]:
        """After OpenVINO was asked it is OpenVINO's fault, before it is ours."""
        self.stop()
        return ("OpenVINO cannot" if asked else "differ"), why

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None


@dataclass
class Report:
    """The outcomes of the random cases of one pair."""

    pair: Pair
    count: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    differences: list[tuple[int, str]] = field(default_factory=list)

    def lines(self, verbose: bool) -> Iterator[str]:
        name = f"{self.pair[0]}-{self.pair[1]}"
        yield f"{name}: " + ", ".join(f"{number} {kind}" for kind, number in sorted(self.count.items()))
        for (kind, why), number in self.reasons.most_common():
            if verbose or kind == "explained":
                yield f"  {number} {kind}: {why[:300]}"
        for seed, why in self.differences[:SHOWN]:
            yield f"  --only {name} --seed {seed}: {why}"
        if rest := self.differences[SHOWN:]:
            yield f"  and with --seed {', '.join(str(seed) for seed, _ in rest)}"


def sweep_pair(worker: Worker, pair: Pair, seeds: range, until: float) -> Report:
    report = Report(pair)
    for seed in seeds:
        if time.monotonic() > until:
            break
        kind, why = worker.judge(pair, seed)
        report.count[kind] += 1
        if kind == "differ":
            report.differences.append((seed, why))
        elif why:
            report.reasons[kind, why] += 1
    return report


def sweep(pairs: list[Pair], seeds: range, seconds: float, workers: int, written: bool) -> Iterator[Report]:
    """Reports as they come; each pair may take its share of the time that is left."""
    end = time.monotonic() + seconds
    free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    everyone = [Worker(written) for _ in range(workers)]
    for worker in everyone:
        free.put(worker)

    def one(index: int) -> Report:
        worker = free.get()
        now = time.monotonic()
        share = (end - now) * workers / (len(pairs) - index + workers - 1)
        try:
            return sweep_pair(worker, pairs[index], seeds, now + share)
        finally:
            free.put(worker)

    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(one, range(len(pairs)))
    for worker in everyone:
        worker.stop()


def chosen(only: str) -> list[Pair]:
    from irexec.testing.random_cases import random_cases

    return [pair for pair in sorted(random_cases()) if not only or only in (pair[0], f"{pair[0]}-{pair[1]}")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--only", default="", help="a type, or type-since")
    parser.add_argument("--time", type=float, default=float("inf"), help="seconds for all pairs together")
    parser.add_argument("--written", action="store_true", help="models that OpenVINO's own API makes and writes")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--verbose", action="store_true", help="also say why something was refused or could not be compared"
    )
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    pairs = chosen(arguments.only)
    if not pairs:
        sys.exit(f"there are no random cases of {arguments.only}")
    total: Counter[str] = Counter()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    for report in sweep(pairs, seeds, arguments.time, arguments.workers, arguments.written):
        print("\n".join(report.lines(arguments.verbose)), flush=True)
        total += report.count
    print(f"{len(pairs)} pairs: " + ", ".join(f"{number} {kind}" for kind, number in sorted(total.items())))
    sys.exit(1 if total["differ"] else 0)


if __name__ == "__main__":
    main()
