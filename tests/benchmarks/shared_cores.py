"""Networks on two threads beside one busy process on each core, in turns with the same cores alone.

    python -m tests.benchmarks.shared_cores [NAMES...] [--engines irexec openvino] [--seconds 60]

A virtual machine's cores are moved meanwhile: those that share a cache answer each other in some 25 nanoseconds, others in
140, and two threads then gain little. Beside busy processes they are moved more often. The distance is therefore measured
before and after each window, and times are compared among windows of the same distance.
"""

from __future__ import annotations

import argparse
import ctypes
import signal
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from irexec.native.build import find_compiler
from irexec.tools.engines.engine import LOADERS
from tests.benchmarks.conditions import available_cores, busy_cores
from tests.benchmarks.engines import load, random_feeds
from tests.benchmarks.models import NETWORKS, default_folder, ensure

_SOURCE = Path(__file__).parents[1] / "data" / "native" / "distance.c"
_NEAR = 80
"""Nanoseconds up to which two cores share a cache."""
_QUIET, _BUSY = "alone", "beside busy processes"
_WINDOW = 0.5


def distance_of(first: int, second: int) -> Callable[[float], float]:
    """A function of milliseconds that measures nanoseconds from one core to another."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "distance.so"
        subprocess.run(
            [*find_compiler(), "-O2", "-shared", "-fPIC", "-pthread", str(_SOURCE), "-o", str(library)], check=True
        )
        function = ctypes.CDLL(str(library)).distance
    function.argtypes, function.restype = (ctypes.c_int, ctypes.c_int, ctypes.c_double), ctypes.c_double
    return lambda milliseconds: function(first, second, 1e6 * milliseconds)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=["mobilenet_v2", "mobilenet_v3", "efficientnet_b0"])
    parser.add_argument("--engines", nargs="+", choices=LOADERS, default=["irexec", "openvino"])
    parser.add_argument("--seconds", type=float, default=60, help="for each network (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=default_folder(), help="where the models are kept")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - {*NETWORKS}:
        parser.error(f"unknown networks: {', '.join(sorted(unknown))}")
    distance = distance_of(*available_cores()[:2])
    with busy_cores() as processes:
        for name in arguments.names:
            measure(name, arguments, distance, processes)


def measure(
    name: str,
    arguments: argparse.Namespace,
    distance: Callable[[float], float],
    processes: list[subprocess.Popen[bytes]],
) -> None:
    """One network, on all engines."""
    model = ensure(name, arguments.folder)
    feeds = random_feeds(model)
    runs = {engine: load(engine, model, 2) for engine in arguments.engines}
    found: dict[tuple[str, bool, str], list[float]] = defaultdict(list)
    end = time.monotonic() + arguments.seconds
    while time.monotonic() < end:
        for engine, run in runs.items():
            for load_now in (_QUIET, _BUSY):
                for process in processes:
                    process.send_signal(signal.SIGCONT if load_now == _BUSY else signal.SIGSTOP)
                patience = 40 if load_now == _BUSY else 4
                run(feeds)
                before, times = distance(patience), []
                stop = time.perf_counter() + _WINDOW
                while (start := time.perf_counter()) < stop:
                    run(feeds)
                    times.append(1e3 * (time.perf_counter() - start))
                if (before < _NEAR) == (distance(patience) < _NEAR):
                    found[engine, before < _NEAR, load_now].append(statistics.median(times))
    for engine in runs:
        for near in (True, False):
            medians = [statistics.median(found[engine, near, state] or [float("nan")]) for state in (_QUIET, _BUSY)]
            counts = [len(found[engine, near, state]) for state in (_QUIET, _BUSY)]
            print(
                f"{name:16} {engine:9} cores {'of one cache ' if near else 'of two caches'}  alone {medians[0]:6.2f} ms"
                f" ({counts[0]} windows)  beside {medians[1]:6.2f} ms ({counts[1]})  {medians[1] / medians[0]:.2f} times",
                flush=True,
            )


if __name__ == "__main__":
    main()
