"""Judge recordings of whole networks: ``python -m tests.judge_sweep.recordings [names] [--plants 3] [--seed 0]``.

Sound: all tensors of each network, recorded in irexec, in OpenVINO's CPU plugin, and in irexec and stored as float16; an
accusation is a failure. Powerful: one tensor of the recording in irexec is changed by a thousandth of its largest value
or more, and the readers of the tensor are not: the verdict must name the layer of this tensor, and may say "not
explained"; every other verdict is a failure.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from irexec.analysis.constant_layers import constant_layers
from irexec.errors import IrexecError
from irexec.ir.graph import Value
from irexec.tools.arrays.files import write_npz
from irexec.tools.compare.observe import observe
from irexec.tools.compare.sides import computed, ordered
from irexec.tools.engines.runtimes import open_runtime
from irexec.tools.judge import Judgement, judge
from tests.judge_sweep.networks import Judged
from tests.support.paths import NETWORKS

Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def _largest(x: np.ndarray) -> np.float32:
    return np.float32(np.abs(x).max(initial=0))


def _one_value(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    made = x.copy()
    made.reshape(-1)[rng.integers(x.size)] += np.float32(2e-3) * _largest(x)
    return made


def _last_eighth(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    made = x.copy()
    made.reshape(-1)[-max(1, x.size // 8) :] = 0
    return made


CHANGES: Mapping[str, Change] = {
    "zero": lambda x, rng: np.zeros_like(x),
    "last eighth zero": _last_eighth,
    "1 %": lambda x, rng: x * x.dtype.type(1.01),
    "0.2 %": lambda x, rng: x * x.dtype.type(1.002),
    "bias": lambda x, rng: x + x.dtype.type(0.05) * _largest(x),
    "one value": _one_value,
    "rolled": lambda x, rng: np.roll(x, 1, -1),
    "negated": lambda x, rng: -x,
}
"""Changes of a tensor of f32, each of at least a thousandth of its largest value."""


@dataclass(frozen=True)
class Row:
    """One judgement; ``outcome``: "clean", "accused"; "named", "unexplained", "missed" or "another"."""

    network: str
    recording: str
    outcome: str
    layer: str
    verdict: str
    seconds: float
    sentence: str


class Recordings:
    """The recordings of one network."""

    def __init__(self, name: str, seed: int, folder: Path) -> None:
        self.sweep = Judged(name, seed, folder)
        self.path = folder / "recorded.npz"
        constant = constant_layers(self.sweep.model)
        self.values = [value for value in computed(ordered(self.sweep.model)) if value.node not in constant]

    def of(self, runtime: str, **options: object) -> dict[Value, np.ndarray]:
        """All tensors of a runtime."""
        with open_runtime(runtime, self.sweep.model, **options) as opened:  # type: ignore[arg-type]
            found = observe(opened, [self.sweep.inputs], self.values).arrays
        return {value: arrays[0] for value, arrays in found.items() if isinstance(value, Value)}

    def judged(self, tensors: Mapping[Value, np.ndarray], **texts: str) -> tuple[Judgement, float]:
        """The judgement of a recording, and its time in seconds."""
        with self.path.open("wb") as file:
            write_npz(
                file,
                {value.name: array for value, array in tensors.items()} | {k: np.array(v) for k, v in texts.items()},
            )
        start = time.perf_counter()
        return judge(self.sweep.model, self.sweep.inputs, runtime=str(self.path)), time.perf_counter() - start

    def rows(self, plants: int, runtimes: tuple[str, ...]) -> Iterator[Row]:
        """Clean recordings, then changed ones."""
        own = self.of("irexec")
        halves = {
            v: a.astype(np.float16) if a.dtype == np.float32 and np.abs(a).max(initial=0) < 6e4 else a
            for v, a in own.items()
        }
        clean = [("irexec", own, {}), ("float16", halves, {})]
        clean += [(one, self.of(one), {"irexec.arithmetic": "f32 of OpenVINO"}) for one in runtimes]
        for kind, tensors, texts in clean:
            found, seconds = self.judged(tensors, **texts)
            yield self._row(kind, "accused" if found.is_bug else "clean", "", found, seconds)
        fitting = [
            v
            for v, a in own.items()
            if a.dtype == np.float32 and a.size > 1 and _largest(a) > 0 and np.isfinite(a).all()
        ]
        results = [v for node in self.sweep.model.results for v in node.inputs if v in fitting]
        for i in range(plants):
            kind = list(CHANGES)[int(self.sweep.rng.integers(len(CHANGES)))]
            pool = results if i == 0 and results else fitting
            value = pool[int(self.sweep.rng.integers(len(pool)))]
            with np.errstate(all="ignore"):
                changed = np.asarray(CHANGES[kind](own[value], self.sweep.rng), np.float32)
            if np.abs(changed - own[value]).max() < 1e-3 * _largest(own[value]):
                continue
            found, seconds = self.judged({**own, value: changed})
            named = found.is_bug and any(one.layer.tensor == value.name for one in found.at)
            other = found.is_bug and not named
            outcome = (
                "named"
                if named
                else "another"
                if other
                else "unexplained"
                if found.verdict == "unexplained"
                else "missed"
            )
            yield self._row(kind, outcome, f"{value.name} ({value.node.type})", found, seconds)

    def _row(self, kind: str, outcome: str, layer: str, found: Judgement, seconds: float) -> Row:
        return Row(self.sweep.name, kind, outcome, layer, found.verdict, round(seconds, 1), found.sentence)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--plants", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runtime", action="append", default=[], help="another runtime to record, such as openvino")
    parser.add_argument("--json", dest="file")
    args = parser.parse_args()
    rows: list[Row] = []
    for name in args.names or sorted(path.stem for path in NETWORKS.glob("*.zip")):
        with tempfile.TemporaryDirectory() as folder:
            try:
                for row in Recordings(name, args.seed, Path(folder)).rows(args.plants, tuple(args.runtime)):
                    rows.append(row)
                    print(
                        f"{row.network}: {row.recording} {row.layer}: {row.outcome} ({row.verdict}), {row.seconds} s",
                        flush=True,
                    )
                    if row.outcome in ("accused", "missed", "another", "unexplained"):
                        print(f"    {row.sentence}", flush=True)
            except IrexecError as error:
                print(f"{name}: {error}", flush=True)
    if args.file:
        Path(args.file).write_text(json.dumps([asdict(row) for row in rows], indent=1), "utf-8")
    counts = Counter(row.outcome for row in rows)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    return int(any(counts[outcome] for outcome in ("accused", "missed", "another")))


if __name__ == "__main__":
    sys.exit(main())
