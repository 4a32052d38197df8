"""How long the twelve published networks take in irexec and in the C++ engines.

    python -m tests.benchmarks.networks [NAMES...] [--threads 1 2] [--load busy] [--quota] [--json FILE] [--markdown] [--quantised]

Every engine has a process of its own, new in each round, and within a round the engines run in turns (irexec, OpenVINO, ONNX Runtime,
irexec, ...), so that what else the machine does falls on all of them. Medians over all runs, unless --statistic says otherwise.
Before timing, the outputs are compared.
``--quantised`` measures INT8 by NNCF, which it needs; ONNX Runtime quantises its models itself. ``--threads default`` leaves the number of threads to the engine. Needs the extra ``oracle``; models are built once into ``--folder``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from irexec.tools.engines.engine import LOADERS
from tests.benchmarks.conditions import QuotaUnavailable, busy_cores, cpu_quota
from tests.benchmarks.machine import describe_machine
from tests.benchmarks.models import NETWORKS, PRIMITIVES, QUANTISED, default_folder, ensure, ensure_qdq, variants
from tests.benchmarks.table import STATISTICS, Result, Statistic, markdown, mean_ratio, ratio
from tests.benchmarks.workers import Worker, take_turns
from tests.support.networks import difference

# Of the largest value of an output; more means that the engines do not compute the same. OpenVINO moves the levels of INT8.
TOLERANCE = {"": 1e-4, PRIMITIVES: 1e-4, QUANTISED: 0.2}


def measure_round(
    model: Path, engines: Sequence[str], threads: int | None, runs: int, group: Path | None = None
) -> dict[str, Result]:
    """Each engine's result from a new process, the engines running in turns."""
    with ExitStack() as stack:
        workers = {engine: stack.enter_context(Worker(engine, model, threads, group)) for engine in engines}
        take_turns(workers.values(), runs)
        return {engine: worker.finish() for engine, worker in workers.items()}


def largest_difference(model: Path, engines: Sequence[str]) -> float:
    """The largest difference of any output from OpenVINO's, relative to the largest value of that output."""
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for engine in engines:
            file = Path(folder) / f"{engine}.npz"
            with Worker(engine, model, None, outputs=file) as worker:
                worker.finish()
            with np.load(file) as saved:
                found[engine] = [saved[name] for name in saved.files]
    reference = found.pop("openvino")
    return max(difference(a, b) for outputs in found.values() for a, b in zip(outputs, reference, strict=True))


def measure_rounds(
    model: Path, engines: Sequence[str], threads: int | None, rounds: int, runs: int, group: Path | None
) -> dict[str, Result]:
    """Each engine's times of all rounds; loading, first run and peak memory are the smallest of the rounds."""
    found = measure_round(model, engines, threads, runs, group)
    for _ in range(rounds - 1):
        new = measure_round(model, engines, threads, runs, group)
        found = {engine: merged(found[engine], new[engine]) for engine in engines}
    return found


def merged(first: Result, second: Result) -> Result:
    """Two measurements of the same: the times of both, the smaller of everything that happens once in a process."""
    once = {name: min(first[name], second[name]) for name in ("load_ms", "first_ms", "peak_mb")}
    return {"ms": first["ms"] + second["ms"], **once}


def threads_of(text: str) -> int | None:
    return None if text == "default" else int(text)


def arguments_of(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"of {', '.join(NETWORKS)}; with {PRIMITIVES} one of its transformers, with {QUANTISED} in INT8",
    )
    parser.add_argument(
        "--folder", type=Path, default=default_folder(), help="where the models are kept (default: %(default)s)"
    )
    parser.add_argument("--engines", nargs="+", choices=LOADERS, default=["irexec", "openvino"])
    parser.add_argument("--threads", nargs="+", type=threads_of, default=[1], metavar="N", help="numbers, or 'default'")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each engine (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=10, help="timed runs in each process (default: %(default)s)")
    parser.add_argument(
        "--load", choices=["none", "busy"], default="none", help="busy: one busy process on every core meanwhile"
    )
    parser.add_argument(
        "--quota",
        nargs="?",
        type=float,
        const=1.0,
        metavar="CPUS",
        help="under a control group's quota (1 unless given)",
    )
    parser.add_argument(
        "--statistic",
        choices=STATISTICS,
        default="median",
        help="minimum: for a machine that does other things meanwhile",
    )
    parser.add_argument("--quantised", action="store_true", help="all that NNCF quantises here, in INT8")
    parser.add_argument("--unchecked", action="store_true", help="do not compare the outputs first")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown at the end")
    arguments = parser.parse_args(argv)
    # Modules are compiled once, as where irexec is installed.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    known = [variant for name in NETWORKS for variant in variants(name)]
    if arguments.quantised and not arguments.names:
        arguments.names = [name for name in known if name.endswith(QUANTISED)]
    if unknown := set(arguments.names) - set(known):
        parser.error(f"unknown networks: {', '.join(sorted(unknown))}")
    return arguments


def measure_network(name: str, arguments: argparse.Namespace, group: Path | None) -> list[Result]:
    """All engines and numbers of threads on one network, printed as they come."""
    base = name.removesuffix(PRIMITIVES).removesuffix(QUANTISED)
    variant = name.removeprefix(base)
    model = ensure(base, arguments.folder, variant)
    if variant == QUANTISED and "onnxruntime" in arguments.engines:
        ensure_qdq(base, arguments.folder)
    title = NETWORKS[base].title + {"": "", PRIMITIVES: " (primitives)", QUANTISED: " INT8"}[variant]
    agreement = None
    if not arguments.unchecked and {"irexec", "openvino"} <= set(arguments.engines):
        agreement = largest_difference(model, arguments.engines)
        print(f"{name}: outputs differ by {agreement:.1e} of the largest value", file=sys.stderr)
        if not agreement < TOLERANCE[variant]:
            raise SystemExit(f"{name}: the engines do not agree")
    results = []
    for threads in arguments.threads:
        with ExitStack() as stack:
            if arguments.load == "busy":
                stack.enter_context(busy_cores())
            found = measure_rounds(model, arguments.engines, threads, arguments.rounds, arguments.runs, group)
        settings = {"threads": threads, "load": arguments.load, "quota": arguments.quota, "difference": agreement}
        results += [
            {"network": name, "title": title, "engine": engine, **settings, **result}
            for engine, result in found.items()
        ]
        print(line(name, threads, found, STATISTICS[arguments.statistic]), flush=True)
    return results


def line(name: str, threads: int | None, found: dict[str, Result], statistic: Statistic) -> str:
    """One network as a line of text."""
    times = "".join(
        f"{engine:>12} {statistic(r['ms']):8.1f} ms {r['peak_mb']:6.0f} MB {r['load_ms'] / 1000:6.2f} s"
        for engine, r in found.items()
    )
    compared = f"   OpenVINO / irexec {ratio(found, statistic):.2f}" if {"irexec", "openvino"} <= set(found) else ""
    return f"{name:22} {threads or 'default'}{times}{compared}"


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """The report: machine and results."""
    results: list[Result] = []
    with ExitStack() as stack:
        group = stack.enter_context(cpu_quota(arguments.quota)) if arguments.quota else None
        for name in arguments.names or NETWORKS:
            results += measure_network(name, arguments, group)
            if arguments.json:  # after every network: a long measurement that is interrupted has something to show
                arguments.json.write_text(json.dumps({"machine": describe_machine(), "results": results}, indent=1))
    return {"machine": describe_machine(), "results": results}


def main(argv: Sequence[str] | None = None) -> None:
    arguments = arguments_of(argv)
    try:
        report = measured(arguments)
    except QuotaUnavailable as error:
        raise SystemExit(f"--quota is not possible: {error}") from None
    for threads in arguments.threads:
        chosen = [r for r in report["results"] if r["threads"] == threads]
        if {"irexec", "openvino"} <= set(arguments.engines):
            print(
                f"geometric mean of OpenVINO / irexec, threads {threads or 'default'}: {mean_ratio(chosen, STATISTICS[arguments.statistic]):.2f}"
            )
    if arguments.markdown:
        print(markdown(report, arguments.statistic), end="")


if __name__ == "__main__":
    main()
