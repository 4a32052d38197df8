"""Long running: what stays of many runs, compilations, shapes, threads, sessions, forks and exits.

    python -m tests.benchmarks.long_running [NAME ...] [--divide N]

runs:         100,000 runs of one compiled model.
compilations: 1,000 models compiled and run.
files:        1,000 files read, validated and compiled.
shapes:       runs with 1,000 sets of input shapes, again and again.
threads:      100,000 runs of one compiled model by eight threads: each result is that of one thread, bit for bit.
sessions:     100,000 runs of eight sessions with state in eight threads: each has a state of its own.
forks:        100 child processes forked after runs, each of which runs the model with its threads.
exits:        50 interpreters that end while daemon threads run: the exit code is 0, nothing is printed, nothing hangs.

All unless some are named; --divide takes so much less of everything. Each is a process of its own, which prints the resident memory,
the open files and the threads after a tenth of the work and after all of it; memory that grows by more than 4 MB fails, and so
does any growth of the others. Linux only.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

import irexec
from tests.benchmarks.engines import resident_megabytes

THREADS = 8
SIZE = 64
LARGEST_GROWTH = 4
"""Of resident memory, in megabytes."""
EXIT_SECONDS = 60

Work = Callable[[int], None]
"""Does a number of repetitions."""


def network(seed: int = 0, layers: int = 3) -> irexec.Model:
    """Products with additions and activations, over any number of rows."""
    rng, builder = np.random.default_rng(seed), irexec.Builder("network")
    value = builder.parameter(irexec.f32, (irexec.Dim(1, None), SIZE), "x", ["x"])
    for _ in range(layers):
        weights = builder.constant(rng.standard_normal((SIZE, SIZE), np.float32) / SIZE)
        bias = builder.constant(rng.standard_normal((1, SIZE), np.float32))
        value = builder.emit("Relu", builder.emit("Add", builder.emit("MatMul", value, weights), bias))
    builder.result(builder.emit("Softmax", value, axis=1))
    return builder.model()


def counter() -> irexec.Model:
    """A variable that every run adds the input to."""
    builder = irexec.Builder("counter")
    x = builder.parameter(irexec.f32, (1, SIZE), "x", ["x"])
    start = builder.constant(np.zeros((1, SIZE), np.float32))
    state = builder.emit("ReadValue", start, variable_id="sum", variable_shape=(1, SIZE), variable_type=irexec.f32)
    total = builder.emit("Add", state, x)
    builder.emit("Assign", total, variable_id="sum")
    builder.result(total)
    return builder.model()


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, SIZE), np.float32)


def runs() -> Work:
    compiled, given = irexec.compile_model(network()), rows(8)
    expected = compiled(given)[0].copy()

    def work(count: int) -> None:
        for _ in range(count):
            assert np.array_equal(compiled(given)[0], expected)

    return work


def compilations() -> Work:
    def work(count: int) -> None:
        for seed in range(count):
            irexec.compile_model(network(seed))(rows(8))

    return work


def files() -> Work:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    path = folder / "model.xml"
    irexec.save_model(network(), path)

    def work(count: int) -> None:
        for _ in range(count):
            model = irexec.read_model(path)
            assert irexec.validate(model) == []
            irexec.compile_model(model)(rows(8))

    return work


def shapes() -> Work:
    compiled = irexec.compile_model(network())

    def work(count: int) -> None:
        for index in range(count):
            given = rows(1000 - index % 1000)
            assert compiled(given)[0].shape == given.shape

    return work


def in_threads(job: Callable[[int], None]) -> None:
    """Do a job in eight threads at once; raises what one of them raised."""
    errors: list[BaseException] = []

    def guarded(index: int) -> None:
        try:
            job(index)
        except BaseException as error:
            errors.append(error)

    started = [threading.Thread(target=guarded, args=(index,)) for index in range(THREADS)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if errors:
        raise errors[0]


def threads() -> Work:
    compiled = irexec.compile_model(network())
    given = [rows(index + 1, index) for index in range(THREADS)]
    expected = [compiled(array)[0].copy() for array in given]

    def work(count: int) -> None:
        def job(index: int) -> None:
            for _ in range(count // THREADS):
                assert np.array_equal(compiled(given[index])[0], expected[index])

        in_threads(job)

    return work


def sessions() -> Work:
    compiled = irexec.compile_model(counter())

    def work(count: int) -> None:
        def job(index: int) -> None:
            session, given = compiled.session(), np.full((1, SIZE), index + 1, np.float32)
            for done in range(1, count // THREADS + 1):
                # Sums of such integers are exact.
                assert session(given)[0][0, 0] == done * (index + 1)

        in_threads(job)

    return work


def forks() -> Work:
    compiled, given = irexec.compile_model(network(), threads=2), rows(512)
    expected = compiled(given)[0].copy()

    def work(count: int) -> None:
        for _ in range(count):
            child = os.fork()
            if child == 0:
                same = [np.array_equal(compiled(given)[0], expected) for _ in range(3)]
                os._exit(0 if all(same) else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert np.array_equal(compiled(given)[0], expected)

    return work


EXIT = """
import threading
from tests.benchmarks.long_running import network, rows
import irexec
compiled, given = irexec.compile_model(network(), threads=2), rows(512)
running = threading.Barrier(5)
def forever():
    compiled(given)
    running.wait()
    while True:
        compiled(given)
for _ in range(4):
    threading.Thread(target=forever, daemon=True).start()
running.wait()
"""


def exits() -> Work:
    def work(count: int) -> None:
        for _ in range(count):
            done = subprocess.run(
                [sys.executable, "-c", EXIT], capture_output=True, text=True, timeout=EXIT_SECONDS, check=False
            )
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    return work


WORK: dict[str, tuple[Callable[[], Work], int]] = {
    "runs": (runs, 100_000),
    "compilations": (compilations, 1_000),
    "files": (files, 1_000),
    "shapes": (shapes, 20_000),
    "threads": (threads, 100_000),
    "sessions": (sessions, 100_000),
    "forks": (forks, 100),
    "exits": (exits, 50),
}
"""How each kind of work is prepared, and how much of it there is."""


def state() -> tuple[float, int, int]:
    """Megabytes of memory, open files, threads, after collecting unreferenced models, which keep their .bin open."""
    gc.collect()
    return resident_megabytes(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def measure(name: str, divisor: int) -> bool:
    """Do the work of a name; whether nothing grew after the first tenth."""
    prepare, whole = WORK[name]
    count = max(whole // divisor, 10)
    work = prepare()
    work(count // 10)
    first = state()
    work(count - count // 10)
    last = state()
    print(
        f"{name:13} {count:8,} times: {first[0]:6.1f} -> {last[0]:6.1f} MB, {first[1]} -> {last[1]} files, {first[2]} -> {last[2]} threads",
        flush=True,
    )
    return last[0] - first[0] <= LARGEST_GROWTH and last[1] <= first[1] and last[2] <= first[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(WORK)}")
    parser.add_argument("--divide", type=int, default=1, metavar="N", help="do so much less of everything")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(WORK):
        parser.error(f"unknown work: {', '.join(sorted(unknown))}")
    if arguments.one:
        sys.exit(0 if measure(arguments.names[0], arguments.divide) else 1)
    command = [sys.executable, "-m", "tests.benchmarks.long_running", "--one", "--divide", str(arguments.divide)]
    failed = [name for name in arguments.names or WORK if subprocess.run([*command, name], check=False).returncode]
    if failed:
        sys.exit(f"grew or failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
