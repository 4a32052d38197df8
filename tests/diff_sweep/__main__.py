"""``python -m tests.diff_sweep``: see the package."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path

import irexec
from irexec.analysis.model import declare
from irexec.analysis.shape_inference import infer_shapes
from tests.diff_sweep.judging import run
from tests.support.networks import unpacked
from tests.support.paths import NETWORKS


def network(name: str, folder: Path) -> irexec.Model:
    """A kept network whose ports declare what shape inference gives."""
    model = irexec.read_model(unpacked(name, folder))
    declare(model, infer_shapes(model, tolerant=True))
    return model


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="networks; all unless given")
    parser.add_argument("--count", type=int, default=100, help="runs of each network")
    parser.add_argument("--edits", type=int, default=1, help="edits of each run")
    parser.add_argument("--renamed", type=float, default=0.1, help="the part of all layers that also gets another name")
    parser.add_argument("--kind", help="only this kind of edit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-v", "--verbose", action="store_true", help="show what is wrong")
    given = parser.parse_args()
    runs: Counter[str] = Counter()
    right: Counter[str] = Counter()
    edits = 0
    start = time.process_time()
    for name in given.names or sorted(path.stem for path in NETWORKS.glob("*.zip")):
        with tempfile.TemporaryDirectory() as folder:
            model = network(name, Path(folder))
            wrong = 0
            for seed in range(given.seed, given.seed + given.count):
                # Other edits for each network.
                outcome, _ = run(
                    model, seed + zlib.crc32(name.encode()), edits=given.edits, renamed=given.renamed, kind=given.kind
                )
                edits += len(outcome.edits)
                wrong += not outcome.is_right
                for edit in outcome.edits:
                    runs[edit] += 1
                    right[edit] += outcome.is_right
                if given.verbose and not outcome.is_right:
                    print(f"{name} {seed}: {outcome.edits}\n  missed {outcome.missed}\n  extra {outcome.extra}")
            print(f"{name}: {given.count - wrong} of {given.count} right", flush=True)
    for edit, count in sorted(runs.items()):
        print(f"  {edit}: {right[edit]} of {count}")
    total = sum(right.values())
    print(
        f"{edits} edits, {total} in runs of which all edits and nothing else were listed; {time.process_time() - start:.0f} s"
    )
    return total != edits


if __name__ == "__main__":
    sys.exit(main())
