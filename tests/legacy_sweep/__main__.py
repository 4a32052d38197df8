"""The sweep: python -m tests.legacy_sweep --cases 300 --seed 7 [--only Gather]"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import traceback
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from irexec.tools.engines.inference_engine import VARIABLE, InferenceEngine, environments
from tests.legacy_sweep.case import Outcome, run, types, versions


def main() -> int:
    """Run the cases; 1 if one of them differs or nothing ran."""
    parser = argparse.ArgumentParser(description="random networks of IR 2 to 7 against Inference Engine")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="layer types, with commas between them")
    parser.add_argument("--versions", help="versions of IR, with commas between them")
    parser.add_argument("--engines", help=f"the folder of the releases; default: ${VARIABLE}")
    parser.add_argument("--refused", action="store_true", help="print what the engines refuse too")
    arguments = parser.parse_args()
    found = environments(arguments.engines)
    if not found:
        parser.error("Inference Engine is not installed: python -m tests.legacy_sweep.install FOLDER")
    chosen = arguments.only.split(",") if arguments.only else types()
    wanted = set(map(int, arguments.versions.split(","))) if arguments.versions else set(range(2, 8))
    rows = [(kind, version) for kind in chosen for version in versions(kind) if version in wanted]
    outcomes = []
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        engines = {release: stack.enter_context(InferenceEngine(release, path)) for release, path in found.items()}
        for i, (kind, version) in enumerate(itertools.islice(itertools.cycle(rows), arguments.cases)):
            outcome = _outcome(kind, version, arguments.seed + i // len(rows), engines, Path(folder))
            outcomes.append(outcome)
            for text in outcome.faults:
                print(f"{kind} v{version} seed {outcome.seed}: {text}", flush=True)
            if arguments.refused:
                for text in outcome.refused.values():
                    print(f"{kind} v{version} seed {outcome.seed}: refused: {text}", flush=True)
    return _report(outcomes)


def _outcome(kind: str, version: int, seed: int, engines: dict[str, InferenceEngine], folder: Path) -> Outcome:
    try:
        return run(kind, version, seed, engines, folder)
    except Exception:
        # An internal error of irexec is a fault like others; the sweep goes on.
        lines = traceback.format_exc().strip().splitlines()
        return Outcome(kind, version, seed, ["?"], {}, [f"internal error: {lines[-1]} ({lines[-3].strip()})"])


def _report(outcomes: list[Outcome]) -> int:
    """Print the counts; the exit code."""
    by = Counter((one.version, release) for one in outcomes for release in one.ran)
    for (version, release), count in sorted(by.items()):
        print(f"IR v{version}, Inference Engine {release}: {count} cases")
    refused = Counter(one.type for one in outcomes if not one.ran)
    if refused:
        print("no release ran: " + ", ".join(f"{kind} {count}" for kind, count in refused.most_common()))
    ran, faults = sum(bool(one.ran) for one in outcomes), [one for one in outcomes if one.faults]
    print(f"{ran} of {len(outcomes)} cases ran, {len(faults)} differ")
    return 1 if faults or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
