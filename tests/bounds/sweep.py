"""Random single operations against their bounds: irexec's own results in f32, and its fast kernels, must be inside.

    python -m tests.bounds.sweep [--seed N] [--count 20] [--only Type]

Prints for each type with a finding the worst case, and at the end how many outputs had a bound. Exit 1 for a finding.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

import numpy as np

from irexec.bounds import ARITHMETICS, Unbounded
from irexec.errors import OpError
from irexec.testing.laws import infer, kernel, read_only
from irexec.testing.partial_facts import exact_facts
from irexec.testing.random_cases import random_cases, seeded
from tests.bounds.rows import row_bounds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    unbounded: Counter[str] = Counter()
    for (type, since), make in sorted(random_cases().items()):
        if args.only in ("", type):
            for seed in range(args.seed, args.seed + args.count):
                _case(type, since, make, seed, counts, unbounded)
    print(dict(counts))
    print("no bound:", ", ".join(f"{name} {count}" for name, count in unbounded.most_common()))
    return int(counts["outside"] > 0)


def _case(type: str, since: int, make, seed: int, counts: Counter[str], unbounded: Counter[str]) -> None:  # type: ignore[no-untyped-def]
    row = make(seeded(type, since, seed))
    try:
        infer(row, exact_facts(row))
        results = kernel(row, read_only(row))
    except OpError:
        return
    for i, (result, bound) in enumerate(zip(results, row_bounds(row, ARITHMETICS["f32"]), strict=True)):
        if isinstance(bound, Unbounded):
            counts["unbounded"] += 1
            unbounded[type] += 1
            continue
        outside = bound.outside(result)
        counts["outside" if outside.any() else "inside"] += 1
        if outside.any():
            where = tuple(np.argwhere(outside)[0])
            print(f"{type}-{since} seed {seed} output {i} {where}: {result[where]!r}, exact {bound.exact[where]!r}, "
                  f"[{bound.low[where]!r}, {bound.high[where]!r}]; {[str(x.element) for x in row.inputs]} {row.attributes}")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
