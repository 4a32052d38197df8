"""Large files: time and memory of reading, checking and compiling them, which must be linear.

    python -m tests.benchmarks.scale [layers] [files] [--only NAME ...] [--small] [--folder DIR]

layers: models of 10,000, 30,000 and 100,000 layers: processor time and memory of read_model and validate for each layer, and of
        compile_model up to 30,000. The minimum of several processes, sizes in turns: the machine's other work only adds.
files:  files that are large in another way, each in three sizes: the time of the larger one over that of the smaller one,
        which is half as large. A ratio of 2.5 or more fails.

Both unless one is named; --small takes a tenth of every size. Every measurement is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks import large_files
from tests.benchmarks.large_files import KINDS

SIZES = (10_000, 30_000, 100_000)
LARGEST_COMPILED = 30_000
LARGEST_RATIO = 2.5
ROUNDS = 5
"""Processes for each number of layers, of which the one that is first also compiles."""
FEW = 22
"""Layers of the model with which everything that is needed is imported first."""

FILES: dict[str, tuple[Callable[[int], bytes], int]] = {
    "consumers of one value": (large_files.wide, 100_000),
    "inputs of a Concat": (large_files.concat, 100_000),
    "equal ids": (large_files.equal_ids, 100_000),
    "bad edges": (large_files.bad_edges, 100_000),
    "depth of bodies": (large_files.nested, 50),
    "bodies": (large_files.tree, 16_384),
    "names of 10,000 characters": (large_files.long_names, 10_000),
    "characters of an attribute": (large_files.long_attribute, 10_000_000),
    "layers of a file of 100 MB": (large_files.mixed, 200_000),
    "megabytes of a sparse .bin": (large_files.sparse_weights, 8_192),
}
"""By what there are many of: the file, and how many."""
NOT_COMPILED = ("names of 10,000 characters", "layers of a file of 100 MB")
"""What takes long without being large for the compiler."""


def measure(path: Path, first: Path, compiled: bool) -> dict[str, Any]:
    """Seconds of processor time of each stage, and bytes at the peak of reading and checking above those before it."""
    import irexec
    from irexec.tools.inspect.summary import summarize

    def run(model_path: Path) -> tuple[dict[str, float], irexec.Model, int]:
        times: dict[str, float] = {}

        def timed(name: str, stage: Callable[[], Any]) -> Any:
            start = time.process_time()
            result = stage()
            times[name] = time.process_time() - start
            return result

        model = timed("read", lambda: irexec.read_model(model_path))
        findings = timed("validate", lambda: irexec.validate(model))
        peak = _status("VmHWM")
        timed("inspect", lambda: summarize(model))
        if compiled and not any(finding.severity == "error" for finding in findings):
            timed("compile", lambda: irexec.compile_model(model, threads=1))
        return times, model, peak

    run(first)
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    times, model, peak = run(path)
    return {"times": times, "bytes": peak - before, "layers": sum(1 for _ in model.walk())}


def _status(key: str) -> int:
    """A number of bytes of /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(key))


def in_process(folder: Path, name: str, made: bytes, compiled: bool = True) -> dict[str, Any]:
    """Measure a file in a process of its own."""
    path, first = folder / f"{name}.xml", folder / "first.xml"
    path.write_bytes(made)
    first.write_bytes(large_files.mixed(FEW))
    first.with_suffix(".bin").write_bytes(large_files.weights("mixed"))
    command = [sys.executable, "-m", "tests.benchmarks.scale", "--one", str(path), str(first), str(int(compiled))]
    done = subprocess.run(command, capture_output=True, text=True)
    path.unlink()
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def report_layers(folder: Path, only: list[str], divisor: int) -> bool:
    """A line for each kind and number of layers; whether the costs of a layer are within 20 % of each other."""
    print(
        f"{'layers':16} {'number':>8} {'read':>8} {'validate':>8} {'both':>8} {'memory':>8} {'inspect':>8} {'compile':>8}"
    )
    is_linear = True
    for kind, make in KINDS.items():
        if only and kind not in only:
            continue
        (folder / f"{kind}.bin").write_bytes(large_files.weights(kind))
        sizes = [size // divisor for size in SIZES]
        rounds = [
            [in_process(folder, kind, make(size), i == 0 and size <= LARGEST_COMPILED) for size in sizes]
            for i in range(ROUNDS)
        ]
        costs = []
        for found in zip(*rounds, strict=True):
            layers = found[0]["layers"]
            each = {
                stage: min(1e6 * one["times"][stage] / layers for one in found if stage in one["times"])
                for stage in found[0]["times"]
            }
            costs.append(min(1e6 * (one["times"]["read"] + one["times"]["validate"]) / layers for one in found))
            memory = max(one["bytes"] for one in found) / layers / 1000
            compiled = f"{each['compile']:5.0f} us" if "compile" in each else ""
            print(
                f"{kind:16} {layers:8,} {each['read']:5.1f} us {each['validate']:5.1f} us {costs[-1]:5.1f} us {memory:5.2f} kB "
                f"{each['inspect']:5.1f} us {compiled:>8}",
                flush=True,
            )
        is_linear &= max(costs) <= 1.2 * min(costs)
    return is_linear


def report_files(folder: Path, only: list[str], divisor: int) -> bool:
    """A line for each kind of file; whether the time of twice as much is less than 2.5 times as long."""
    stages = ("read", "validate", "inspect", "compile")
    print(f"{'many':28} {'how many':>10} {'MB':>6} " + " ".join(f"{stage:>16}" for stage in stages))
    is_linear = True
    for name, (make, size) in FILES.items():
        if only and name not in only:
            continue
        measured = []
        for count in (size // 2 // divisor, size // divisor):
            if make is large_files.sparse_weights:
                with open(folder / "file.bin", "wb") as file:
                    file.truncate(count << 20)
            text = make(max(count, 2))
            measured.append(in_process(folder, "file", text, name not in NOT_COMPILED)["times"])
            (folder / "file.bin").unlink(missing_ok=True)
        half, whole = measured
        # Of times of milliseconds the ratio says nothing.
        ratios = {
            stage: whole[stage] / half[stage]
            for stage in stages
            if stage in whole and stage in half and half[stage] > 0.05
        }
        is_linear &= all(ratio < LARGEST_RATIO for ratio in ratios.values())
        texts = [
            f"{whole[stage]:7.2f} s {f'{ratios[stage]:.2f}x' if stage in ratios else '':>6}" if stage in whole else ""
            for stage in stages
        ]
        print(
            f"{name:28} {size // divisor:10,} {len(text) / 1e6:6.1f} " + " ".join(f"{text:>16}" for text in texts),
            flush=True,
        )
    return is_linear


REPORTS = {"layers": report_layers, "files": report_files}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(REPORTS)}")
    parser.add_argument(
        "--only", action="append", default=[], help="only this kind of layers or files; may be repeated"
    )
    parser.add_argument("--small", action="store_true", help="a tenth of every size")
    parser.add_argument(
        "--folder", type=Path, help="where the files are written and removed; default: a temporary folder"
    )
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        path, first, compiled = arguments.one
        print(json.dumps(measure(Path(path), Path(first), compiled == "1")))
        return
    if unknown := set(arguments.names) - set(REPORTS):
        parser.error(f"unknown measurements: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        found = [
            REPORTS[name](Path(folder), arguments.only, 10 if arguments.small else 1)
            for name in arguments.names or REPORTS
        ]
    if not all(found):
        sys.exit("not linear")


if __name__ == "__main__":
    main()
