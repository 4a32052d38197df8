"""Small networks: those of tests/networks that take OpenVINO 0.2 to 2 ms, on one thread or more.

    python -m tests.benchmarks.small_networks [NAME ...] [--threads 1] [--seconds 1] [--least 0.2] [--most 2]

Both engines run in turns in one process, and the best time of each counts. Prints the times and the geometric mean of
OpenVINO / irexec. Needs the extra ``oracle``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import geometric_mean

import irexec
from irexec.tools.engines.engine import timed
from tests.benchmarks import engines
from tests.support import networks
from tests.support.paths import NETWORKS


def measure(path: Path, threads: int, seconds: float, least: float, most: float) -> tuple[float, float] | None:
    """The best milliseconds of irexec and of OpenVINO; None for a network that OpenVINO takes more or less time for."""
    inputs = irexec.read_model(path).inputs
    given = {port.name: array for port, array in zip(inputs, networks.feeds(path, inputs)[0], strict=True)}
    run_ours, run_theirs = (engines.load(engine, path, threads) for engine in ("irexec", "openvino"))
    theirs = min(timed(lambda: run_theirs(given))[0] for _ in range(20))
    if not least <= theirs <= most:
        return None
    ours, end = float("inf"), time.monotonic() + seconds
    while time.monotonic() < end:
        ours = min(ours, *(timed(lambda: run_ours(given))[0] for _ in range(5)))
        theirs = min(theirs, *(timed(lambda: run_theirs(given))[0] for _ in range(5)))
    return ours, theirs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of names: only networks with one of them")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--least", type=float, default=0.2, help="milliseconds in OpenVINO")
    parser.add_argument("--most", type=float, default=2)
    arguments = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for archive in sorted(NETWORKS.glob("*.zip")):
            if arguments.names and not any(name in archive.stem for name in arguments.names):
                continue
            path = networks.unpacked(archive.stem, Path(folder))
            found = measure(path, arguments.threads, arguments.seconds, arguments.least, arguments.most)
            if found is not None:
                ours, theirs = found
                ratios.append(theirs / ours)
                print(f"{archive.stem:40} {theirs:6.2f} {ours:6.2f} ms {theirs / ours:6.2f}", flush=True)
    print(f"{len(ratios)} networks: {geometric_mean(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
