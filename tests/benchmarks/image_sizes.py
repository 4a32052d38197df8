"""ResNet-50 for many sizes of batches and images: the time of an image and of a multiply-accumulate.

    python -m tests.benchmarks.image_sizes [--network resnet50] [--threads 1] [--rounds 5] [--folder DIR]

The minimum of a few runs, beside OpenVINO's in turns. A larger batch must not take longer for each image, and no size
may take over 1.3 times longer for each multiply-accumulate than its neighbours: such a plan was chosen badly.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import irexec
from irexec.tools.engines.engine import LOADERS, EngineJob, timed
from tests.benchmarks.models import default_folder, ensure

BATCHES = (1, 8, 32)
SIZES = (32, 48, 64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512)


def measure(path: Path, shape: Sequence[int], threads: int, rounds: int) -> tuple[float, float, int]:
    """Milliseconds of a run of irexec and of OpenVINO, in turns, for an input of a shape; multiply-accumulates."""
    model = irexec.read_model(path)
    model.reshape(list(shape))
    feeds = {model.inputs[0].name: np.random.default_rng(7).uniform(-1, 1, shape).astype(np.float32)}
    runs = [
        LOADERS[engine](EngineJob(engine, str(path), "", threads=threads, reshape=True), feeds)
        for engine in ("irexec", "openvino")
    ]
    times = np.array([[timed(functools.partial(run, feeds))[0] for run in runs] for _ in range(rounds + 1)])
    ours, theirs = times[1:].min(0)
    return float(ours), float(theirs), irexec.cost(model).cost.macs or 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="resnet50")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=default_folder())
    arguments = parser.parse_args()
    path = ensure(arguments.network, arguments.folder)
    print(f"{'input':>20} {'ms an image':>12} {'OpenVINO':>9} {'ps for a MAC':>13}")
    for batch, size in [(batch, 224) for batch in BATCHES] + [(1, size) for size in SIZES]:
        ours, other, macs = measure(path, (batch, 3, size, size), arguments.threads, arguments.rounds)
        print(
            f"{f'{batch} x {size} x {size}':>20} {ours / batch:12.2f} {other / batch:9.2f} {ours * 1e9 / macs:13.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
