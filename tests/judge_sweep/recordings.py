"""Judge recordings of whole networks.

Sound: all tensors of each network, recorded in irexec; stored as float16; with the channels last; without axes of size 1;
with functions as far off as OpenCL C allows; and in another runtime. An accusation fails. Powerful: one tensor of the
recording is changed by a thousandth of its largest value or more, and the readers of the tensor are not: the verdict
must name the layer of this tensor, and may say that nothing explains it; every other verdict fails. Changed recordings
are those of irexec in f32, or of the reference kernels in f16 or bf16 (``--arithmetic``), rounded to it. An outcome
counts under its size, such as "named, 0.1 %". A fault that moves no value by more than a unit of the arithmetic is
"below a unit", and may agree; one below the size that the verdict calls hidden is "hidden" if it agrees. Clean
recordings in f16 and bf16 have inner tensors rounded, as they were computed, and f32 inside, rounded or cut when stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.constant_layers import constant_layers
from irexec.bounds import ARITHMETICS, FUNCTIONS
from irexec.ir.graph import Value
from irexec.tools.arrays.files import write_npz
from irexec.tools.engines.runtimes import open_runtime
from irexec.tools.judge import Judgement, judge
from irexec.tools.judge.step import with_errors
from irexec.tools.observing.observe import observe
from irexec.tools.observing.sides import computed, ordered
from tests.bounds.judged_graphs import Numpy
from tests.judge_sweep.networks import Judged
from tests.support.networks import NAMES
from tests.sweep.kind import Case, Kind, Outcome, temporary

Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def _largest(x: np.ndarray) -> np.float32:
    return np.float32(np.abs(x).max(initial=0))


def _one_value(size: float) -> Change:
    def changed(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        made = x.copy()
        made.reshape(-1)[rng.integers(x.size)] += np.float32(size) * _largest(x)
        return made

    return changed


def _scaled(size: float) -> Change:
    return lambda x, rng: x * x.dtype.type(1 + size)


def _shifted(size: float) -> Change:
    return lambda x, rng: x + x.dtype.type(size) * _largest(x)


def _last_eighth(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    made = x.copy()
    made.reshape(-1)[-max(1, x.size // 8) :] = 0
    return made


CHANGES: Mapping[str, Change] = {
    "zero": lambda x, rng: np.zeros_like(x),
    "last eighth zero": _last_eighth,
    "rolled": lambda x, rng: np.roll(x, 1, -1),
    "negated": lambda x, rng: -x,
}
"""Changes of a tensor of f32 that have no size."""
SIZES = (1e-3, 2e-3, 1e-2, 5e-2)
"""Sizes of the others, as a part of the tensor's largest value."""
SIZED: Mapping[str, Callable[[float], Change]] = {"scaled": _scaled, "shifted": _shifted, "one value": _one_value}


def _without_ones(array: np.ndarray) -> np.ndarray:
    return array.reshape([size for size in array.shape if size != 1] or [1])


def _as_f32(round_: Callable[[np.ndarray], np.ndarray], array: np.ndarray) -> np.ndarray:
    """A tensor of f32 after a function; any other one as it is."""
    with np.errstate(over="ignore"):
        return round_(array).astype(np.float32) if array.dtype == np.float32 else array


def _cut(array: np.ndarray) -> np.ndarray:
    """The 16 bits of bf16 alone."""
    return (np.ascontiguousarray(array).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32).reshape(array.shape)


LAYOUTS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "float16": lambda x: x.astype(np.float16) if x.dtype == np.float32 and _largest(x) < 6e4 else x,
    "channels last": lambda x: np.ascontiguousarray(np.moveaxis(x, 1, -1)) if x.ndim == 4 else x,
    "without axes of size 1": _without_ones,
}
"""Other ways to store a tensor."""


@dataclass(frozen=True)
class Row:
    """One judgement; ``outcome``: "clean", "accused"; "named", "unexplained", "hidden", "missed", "another", or
    "below a unit"."""

    network: str
    recording: str
    outcome: str
    layer: str
    verdict: str
    sentence: str
    size: str = ""


class Recordings:
    """The recordings of one network."""

    def __init__(self, name: str, seed: int, folder: Path, is_open: bool = False) -> None:
        self.sweep = Judged(name, seed, folder, is_open)
        self.path = folder / "recorded.npz"
        constant = constant_layers(self.sweep.model)
        self.values = [value for value in computed(ordered(self.sweep.model)) if value.node not in constant]

    def of(self, runtime: str) -> dict[Value, np.ndarray]:
        """All tensors of a runtime."""
        with open_runtime(runtime, self.sweep.model) as opened:
            found = observe(opened, [self.sweep.inputs], self.values).arrays
        return {value: arrays[0] for value, arrays in found.items() if isinstance(value, Value)}

    def of_opencl(self) -> dict[Value, np.ndarray]:
        """All tensors where functions are as far off as OpenCL C allows, and so is what later layers read."""
        ulps = FUNCTIONS["opencl"]
        model, own = with_errors(
            self.sweep.model, self.sweep.facts, lambda value: ulps.get(value.node.type, 0) * 2.0**-24, seed=0
        )
        with open_runtime("irexec", model) as opened:
            arrays = opened.run_all([self.sweep.inputs], [own[value] for value in self.values])[0]
        return dict(zip(self.values, arrays, strict=True))

    def judged(self, tensors: Mapping[Value, np.ndarray], **texts: str) -> Judgement:
        """The judgement of a recording."""
        with self.path.open("wb") as file:
            held = {value.name: array for value, array in tensors.items()}
            write_npz(file, held | {name: np.array(text) for name, text in texts.items()})
        return judge(self.sweep.model, self.sweep.inputs, runtime=str(self.path))

    def of_arithmetic(self, arithmetic: str) -> dict[Value, np.ndarray]:
        """All tensors of irexec in f32, or of the reference kernels in another arithmetic."""
        if arithmetic == "f32":
            return self.of("irexec")
        runtime = Numpy(self.sweep.model, f"numpy-{arithmetic}", 0)
        return dict(zip(self.values, runtime.run(self.sweep.inputs, self.values), strict=True))

    def clean_in(self, arithmetic: str) -> Iterator[Row]:
        """Recordings in f16 or bf16 without a fault."""
        rounded, finer = ARITHMETICS[arithmetic].nearest, self.of("irexec")
        clean = {"rounded inside": self.of_arithmetic(arithmetic)}
        clean["rounded when stored"] = {value: _as_f32(rounded, array) for value, array in finer.items()}
        if arithmetic == "bf16":
            clean["cut when stored"] = {value: _as_f32(_cut, array) for value, array in finer.items()}
        for kind, tensors in clean.items():
            found = self.judged(tensors, **{"irexec.arithmetic": arithmetic})
            outcome = "accused" if found.is_bug else "unexplained" if found.verdict == "unexplained" else "clean"
            yield self._row(kind, outcome, "", found)

    def clean(self, runtimes: Sequence[str]) -> Iterator[Row]:
        """Recordings without a fault."""
        own = self.of("irexec")
        clean = {"irexec": own, "functions of OpenCL C": self.of_opencl()}
        clean |= {kind: {value: change(array) for value, array in own.items()} for kind, change in LAYOUTS.items()}
        clean |= {f"{one} in f32": self.of(one) for one in runtimes}
        for kind, tensors in clean.items():
            texts = {"irexec.arithmetic": "f32 of OpenVINO"} if kind.startswith("openvino") else {}
            found = self.judged(tensors, **texts)
            yield self._row(kind, "accused" if found.is_bug else "clean", "", found)

    def changed(self, plants: int, arithmetic: str) -> Iterator[Row]:
        """Recordings in one of whose tensors there is a fault."""
        own, texts = self.of_arithmetic(arithmetic), {"irexec.arithmetic": arithmetic}
        fitting = [v for v, a in own.items() if a.dtype == np.float32 and a.size > 1 and _largest(a) > 0]
        fitting = [value for value in fitting if np.isfinite(own[value]).all()]
        results = [v for node in self.sweep.model.results for v in node.inputs if v in fitting]
        for i in range(plants):
            size = ""
            kind = [*CHANGES, *SIZED, *SIZED][int(self.sweep.rng.integers(len(CHANGES) + 2 * len(SIZED)))]
            change = CHANGES.get(kind)
            if change is None:
                own_size = SIZES[int(self.sweep.rng.integers(len(SIZES)))]
                change, size = SIZED[kind](own_size), f"{own_size:.1%}"
            pool = results if i == 0 and results else fitting
            value = pool[int(self.sweep.rng.integers(len(pool)))]
            with np.errstate(all="ignore"):
                changed = np.asarray(change(own[value], self.sweep.rng), np.float32)
            if np.abs(changed - own[value]).max() < 9e-4 * _largest(own[value]):
                continue
            changed = _as_f32(ARITHMETICS[arithmetic].nearest, changed)
            distance = np.abs(changed.astype(np.float64) - own[value])
            found = self.judged({**own, value: changed}, **texts)
            if found.is_bug:
                outcome = "named" if any(one.layer.tensor == value.name for one in found.at) else "another"
            elif found.verdict in ("unexplained", "no-bound"):
                outcome = "unexplained"
            elif (distance <= ARITHMETICS[arithmetic].unit * np.abs(own[value])).all():
                outcome = "below a unit"
            else:
                outcome = "hidden" if distance.max() < found.hidden * _largest(own[value]) else "missed"
            yield self._row(kind, outcome, f"{value.name} ({value.node.type})", found, size)

    def _row(self, kind: str, outcome: str, layer: str, found: Judgement, size: str = "") -> Row:
        return Row(self.sweep.name, kind, outcome, layer, found.verdict, found.sentence, size)


class Sweep(Kind):
    """Clean and changed recordings of each network."""

    cases = 1

    @classmethod
    def add_options(cls, add: Callable[..., Any]) -> None:
        add("--plants", type=int, default=3, help="changed tensors for each case")
        add("--arithmetic", default="f32", choices=("f32", "f16", "bf16"), help="of the changed recordings")
        add("--open", action="store_true", help="sizes that the network leaves open stay so, in the changed recordings")
        add("--runtime", action="append", default=[], help="another runtime to record, such as openvino")

    def names(self) -> list[str]:
        return NAMES

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """The rows of a network with changes of a number."""
        with temporary() as folder:
            yield lambda number: map(_outcome, self._rows(Recordings(name, number, folder, self.options.open)))

    def _rows(self, recordings: Recordings) -> Iterator[Row]:
        if self.options.arithmetic == "f32" and not self.options.open:
            yield from recordings.clean(self.options.runtime)
        elif self.options.arithmetic != "f32":
            yield from recordings.clean_in(self.options.arithmetic)
        yield from recordings.changed(self.options.plants, self.options.arithmetic)


def _outcome(row: Row) -> Outcome:
    fails = row.outcome in ("accused", "missed", "another") or (row.outcome == "unexplained" and not row.layer)
    kind = f"{row.outcome}, {row.size}" if row.size else row.outcome
    return Outcome(kind, f"{row.recording} {row.layer}: {row.sentence}", fails, asdict(row))
