"""Memory and start-up: what irexec promises of them, measured.

    python -m tests.benchmarks.memory [compressed] [shapes] [repeated] [startup] [--folder DIR] [--json FILE]

compressed: a decoder of 220 million parameters with 4-bit and with 8-bit weights, 32 tokens: load, first run, next runs, a run of one
            token, peak memory, for irexec with each kind of weights and for OpenVINO, with and without its quantisation of
            activations to 8 bits.
shapes:     eight input shapes of a dynamic model with 34 MB of f16 weights against one.
repeated:   the resident memory after twenty and after a thousand runs, and the same with a new shape for each run.
startup:    ``import irexec`` beside ``import numpy``, and ``irexec --help``.

All four unless some are named. Every measurement is a process of its own; needs the extra ``oracle``.
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irexec.tools.engines.engine import Run, timed
from tests.benchmarks import engines
from tests.benchmarks.conditions import available_cores, pin
from tests.benchmarks.engines import peak_megabytes, prepare, resident_megabytes
from tests.benchmarks.models import default_folder

TOKENS = 32
LENGTHS = (32, 40, 48, 56, 64, 80, 96, 128)
SETTLED, REPEATS = 20, 1000
Figures = dict[str, Any]


def feeds(tokens: int) -> dict[str, np.ndarray]:
    """Inputs of a decoder of tests/benchmarks/decoder.py."""
    ids = np.random.default_rng(tokens).integers(0, 256, (1, tokens))
    return {"input_ids": ids, "position_ids": np.arange(tokens)[None]}


def load(path: Path, engine: str, threads: int, options: dict[str, Any]) -> Run:
    prepare(engine)
    return engines.load(engine, path, threads, **options)


def measure_compressed(path: Path, engine: str, threads: int, options: dict[str, Any]) -> Figures:
    """Load with compile, first run, the fastest of ten next runs and of fifty of one token, in milliseconds; peak memory in MB."""
    prepare(engine)
    load_ms, run = timed(lambda: load(path, engine, threads, options))
    given = feeds(TOKENS)
    first_ms, _ = timed(lambda: run(given))
    next_ms = min(timed(lambda: run(given))[0] for _ in range(10))
    peak = peak_megabytes()
    one = feeds(1)
    token_ms = min(timed(lambda: run(one))[0] for _ in range(50))
    return {"load_ms": load_ms, "first_ms": first_ms, "next_ms": next_ms, "token_ms": token_ms, "peak_mb": peak}


def measure_shapes(path: Path, engine: str, threads: int, options: dict[str, Any]) -> Figures:
    """Peak memory after two runs with the longest of the shapes, and after two with each of the shapes."""
    run = load(path, engine, threads, options)
    for _ in range(2):
        run(feeds(max(LENGTHS)))
    one = peak_megabytes()
    for length in LENGTHS * 2:
        run(feeds(length))
    return {"one_mb": one, "eight_mb": peak_megabytes()}


def measure_repeated(path: Path, engine: str, threads: int, options: dict[str, Any]) -> Figures:
    """Resident memory after 20 and after 1,000 runs with one shape, then after 20 and 1,000 shapes, the longest of them first."""
    run = load(path, engine, threads, options)
    same = resident_after(run, [TOKENS] * REPEATS)
    return {"runs_mb": same, "shapes_mb": resident_after(run, range(REPEATS, 0, -1))}


def resident_after(run: Run, lengths: Sequence[int]) -> tuple[float, float]:
    for length in lengths[:SETTLED]:
        run(feeds(length))
    settled = resident_megabytes()
    for length in lengths[SETTLED:]:
        run(feeds(length))
    return settled, resident_megabytes()


def measure_startup(runs: int = 7) -> Figures:
    """Milliseconds of whole processes: the fastest of several."""
    commands = {
        "import numpy": ["-c", "import numpy"],
        "import irexec": ["-c", "import numpy, irexec"],
        "irexec --help": ["-m", "irexec", "--help"],
    }

    def milliseconds(command: list[str]) -> float:
        return timed(lambda: subprocess.run([sys.executable, *command], check=True, capture_output=True))[0]

    rounds = [{name: milliseconds(command) for name, command in commands.items()} for _ in range(runs)]
    return {name: min(times[name] for times in rounds) for name in commands}


MEASUREMENTS: dict[str, Callable[[Path, str, int, dict[str, Any]], Figures]] = {
    "compressed": measure_compressed,
    "shapes": measure_shapes,
    "repeated": measure_repeated,
}


def in_process(kind: str, path: Path, engine: str, threads: int, **options: Any) -> Figures:
    """A measurement in a process of its own, on as many cores as it has threads."""
    command = [
        sys.executable, "-m", "tests.benchmarks.memory", "--one", kind, str(path), engine, str(threads),
        json.dumps(options),
    ]  # fmt: skip
    cores = available_cores()[:threads]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=lambda: pin(0, cores))
    if done.returncode:
        raise SystemExit(f"{engine} {options}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def kinds_of_weights() -> list[dict[str, str]]:
    """The options of compile_model for weights; none in a version that has no such option."""
    import irexec

    known = "weights" in inspect.signature(irexec.compile_model).parameters
    return [{"weights": kind} for kind in ("packed", "unpacked", "auto")] if known else [{}]


def report_compressed(folder: Path, threads: int) -> list[Figures]:
    from tests.benchmarks.decoder import LARGE, ensure_decoder

    return [one for mode in ("i4", "i8") for one in _compressed(ensure_decoder(LARGE, mode, folder), threads)]


def _compressed(path: Path, threads: int) -> list[Figures]:
    cases: list[tuple[str, dict[str, Any]]] = [("irexec", options) for options in kinds_of_weights()]
    cases += [("openvino", {}), ("openvino", {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 0})]
    found = []
    print(f"{path.stem}, {TOKENS} tokens, {path.with_suffix('.bin').stat().st_size / 1e6:.0f} MB of weights")
    for engine, options in cases:
        figures = in_process("compressed", path, engine, threads, **options)
        found.append({"model": path.stem, "engine": engine, "options": options, **figures})
        label = f"{engine} {', '.join(f'{k}={v}' for k, v in options.items())}"
        seconds = " ".join(f"{name} {figures[f'{name}_ms'] / 1000:.2f} s" for name in ("load", "first", "next"))
        print(
            f"  {label:46} peak {figures['peak_mb']:6.0f} MB  {seconds} token {figures['token_ms']:.1f} ms", flush=True
        )
    return found


def report_shapes(folder: Path, threads: int) -> list[Figures]:
    from tests.benchmarks.decoder import MIDDLE, ensure_decoder

    path = ensure_decoder(MIDDLE, "f16", folder)
    print(f"{path.stem}: peak memory of the longest of {len(LENGTHS)} shapes alone, and of all")
    found = []
    for engine in ("irexec", "openvino"):
        figures = in_process("shapes", path, engine, threads)
        found.append({"engine": engine, **figures})
        print(
            f"  {engine:10} {figures['one_mb']:6.0f} MB {figures['eight_mb']:6.0f} MB  {figures['eight_mb'] / figures['one_mb'] - 1:+.1%}",
            flush=True,
        )
    return found


def report_repeated(folder: Path, threads: int) -> list[Figures]:
    from tests.benchmarks.decoder import SMALL, ensure_decoder

    path = ensure_decoder(SMALL, "f16", folder)
    print(f"{path.stem}: resident memory after {SETTLED} and after {REPEATS}")
    figures = in_process("repeated", path, "irexec", threads)
    for name in ("runs", "shapes"):
        first, last = figures[f"{name}_mb"]
        print(f"  {name:10} {first:6.1f} MB {last:6.1f} MB  {last - first:+.1f} MB", flush=True)
    return [{"engine": "irexec", **figures}]


def report_startup(folder: Path, threads: int) -> list[Figures]:
    figures = measure_startup()
    for name, milliseconds in figures.items():
        print(f"{name:16} {milliseconds:6.0f} ms")
    print(f"irexec adds {figures['import irexec'] - figures['import numpy']:.0f} ms to NumPy's import")
    return [figures]


REPORTS = {
    "compressed": report_compressed,
    "shapes": report_shapes,
    "repeated": report_repeated,
    "startup": report_startup,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(REPORTS)}")
    parser.add_argument("--folder", type=Path, default=default_folder())
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        kind, path, engine, threads, options = arguments.one
        print(json.dumps(MEASUREMENTS[kind](Path(path), engine, int(threads), json.loads(options))))
        return
    if unknown := set(arguments.names) - set(REPORTS):
        parser.error(f"unknown measurements: {', '.join(sorted(unknown))}")
    found = {name: REPORTS[name](arguments.folder, arguments.threads) for name in arguments.names or REPORTS}
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
