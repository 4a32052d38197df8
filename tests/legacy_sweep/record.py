"""Record the answers of Inference Engine to a sample of the sweep: python -m tests.legacy_sweep.record"""

from __future__ import annotations

import functools
import hashlib
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from irexec.tools.engines.inference_engine import InferenceEngine, environments
from tests.legacy_sweep.case import answers, made, types, versions
from tests.legacy_sweep.network import Network
from tests.support.goldens import unsafe, write
from tests.support.paths import DATA

RECORDED = DATA / "legacy_answers.npz"


def sample() -> list[tuple[str, int, int]]:
    """Layer type, version and seed of each case: two versions of each type, the oldest and the newest that have it."""
    ends = {name: sorted({min(versions(name)), max(versions(name))}) for name in types()}
    return [(name, version, seed) for name, found in ends.items() for seed, version in enumerate(found)]


def digest(net: Network) -> str:
    """What a case asks: an answer is never compared with that to another network."""
    found = hashlib.sha256(net.xml().encode())
    found.update(bytes(net.blob))
    for feed in net.feeds:
        for name, array in feed.items():
            found.update(f"{name}{array.dtype}{array.shape}".encode() + array.tobytes())
    return found.hexdigest()[:12]


def key(name: str, version: int, seed: int, net: Network) -> str:
    """The beginning of the names of a case's arrays."""
    return f"{name}|{version}|{seed}|{digest(net)}"


@functools.cache
def recorded() -> dict[str, list[dict[str, np.ndarray]]]:
    """The outputs of each run, by the key of the case."""
    found: dict[str, dict[int, dict[str, np.ndarray]]] = defaultdict(lambda: defaultdict(dict))
    with np.load(RECORDED) as file:
        for name in file.files:
            *case, call, port = unsafe(name).split("|")
            found["|".join(case)][int(call)][port] = file[name]
    return {case: [calls[i] for i in sorted(calls)] for case, calls in found.items()}


def answer(name: str, version: int, seed: int) -> dict[str, np.ndarray]:
    """The recorded outputs of the first run of a case."""
    return recorded()[key(name, version, seed, made(name, version, seed))][0]


def main() -> None:
    """Record the answers."""
    arrays: dict[str, np.ndarray] = {}
    cases = 0
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        engines = {name: stack.enter_context(InferenceEngine(name, path)) for name, path in environments().items()}
        for name, version, seed in sample():
            net = made(name, version, seed)
            found, _ = answers(net, engines, Path(folder))
            if found:
                cases += 1
                for run, outputs in enumerate(found.get("2020.4") or next(iter(found.values()))):
                    arrays |= {f"{key(name, version, seed, net)}|{run}|{port}": x for port, x in outputs.items()}
    write(RECORDED, arrays)
    print(f"{cases} of {len(sample())} cases, {len(arrays)} arrays, {RECORDED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
