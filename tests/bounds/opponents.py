"""Random single operations of other implementations against their bounds, and faults planted in results.

    python -m tests.bounds.opponents --ops MVN,Swish [--count 50] [--seed N] [--with openvino,...] [--json FILE]

Opponents: reference (f32), irexec (its fast kernels), emulated (inputs and results rounded to f16 and bf16),
half (the reference kernel on f16 arrays, sums as well), openvino, onnxruntime. A result of OpenVINO that is outside is
left open where the portability table has the difference, and known where tests.oracle.explained has it. Prints each
other one, for each type the verdicts, and at the end for each opponent the outputs by verdict, for each kind of fault
the share that is outside, and for each family of rules the median ratio of the interval's radius to the actual error
of the reference. Exit 1 for an output outside.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from irexec.api import to_onnx
from irexec.bounds import ARITHMETICS, Bound, Interval
from irexec.bounds.registry import rule_of
from irexec.conformance import OPEN, OUTSIDE, Verdict, cases, chosen, left_open
from irexec.dtypes.elements import F32
from irexec.errors import IrexecError
from irexec.testing import Case, Typed, model_of
from irexec.testing.laws import attributes_of, infer, kernel, read_only
from irexec.testing.rows import exact_facts
from irexec.tools.engines.engine import EngineJob
from irexec.tools.engines.runtimes import Worker, open_runtime
from tests.bounds.mutants import Results, mutants, results_of
from tests.bounds.rows import row_bounds
from tests.oracle.explained import reason

_VISIBLE = {"f16 for f32": 5e-5}
_VISIBLE_OTHERWISE = 1e-3


@dataclass
class Tally:
    """Counts: rows, outputs by opponent and verdict, ratios of radius to error, planted faults by kind and verdict."""

    rows: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    ratios: list[float] = field(default_factory=list)
    planted: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Add the counts of another one."""
        self.rows += other.rows
        self.verdicts.update(other.verdicts)
        self.ratios += other.ratios
        self.planted.update(other.planted)
        self.found.update(other.found)

    def __str__(self) -> str:
        ratio = f"{np.median(self.ratios):.0f}" if self.ratios else "-"
        missed = {kind: count - self.found[kind] for kind, count in self.planted.items() if count > self.found[kind]}
        share = f"{self.found.total()} of {self.planted.total()}"
        return f"{self.rows} rows {dict(self.verdicts)} ratio {ratio} planted {share}, missed {missed}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--with", dest="opponents", default="reference,irexec,emulated,half")
    parser.add_argument("--spread", type=float, default=0, help="powers of 10 over which elements of f32 are spread")
    parser.add_argument("--json", dest="file")
    args = parser.parse_args()
    tallies: defaultdict[str, Tally] = defaultdict(Tally)
    opponents = Opponents(args.opponents.split(","))
    for pair in chosen([one for one in args.ops.split(",") if one]):
        for row in cases([pair], args.seed, args.count):
            judge(spread(row, args.spread) if args.spread else row, opponents, tallies[row.type])
        print(f"{pair[0]}-{pair[1]}: {tallies[pair[0]]}", flush=True)
    total = _summed(tallies.values())
    print(_summary(total, tallies))
    if args.file:
        Path(args.file).write_text(json.dumps({type: vars(one) for type, one in tallies.items()}), "utf-8")
    return int(any(key.endswith(" outside") for key in total.verdicts))


def _summed(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for one in tallies:
        total.add(one)
    return total


def _summary(total: Tally, tallies: Mapping[str, Tally]) -> str:
    lines = [f"{total.rows:,} rows"]
    lines += [f"  {name}: {count:,}" for name, count in sorted(total.verdicts.items())]
    for kind, count in sorted(total.planted.items()):
        lines.append(f"  {kind}: {total.found[kind]:,} of {count:,}, {total.found[kind] / count:.1%}")
    if total.planted:
        lines.append(f"  all kinds: {total.found.total() / total.planted.total():.1%}")
    for family in sorted({_family(type) for type, one in tallies.items() if one.planted}):
        ratios = _summed(one for type, one in tallies.items() if _family(type) == family).ratios
        lines.append(
            f"  radius to error, {family}: {np.median(ratios):.0f}" if ratios else f"  radius to error, {family}: exact"
        )
    return "\n".join(lines)


def _family(type: str) -> str:
    """The module of the type's rule."""
    found = rule_of(type)
    return "no rule" if found is None else found.__module__.rpartition(".")[2]


class Opponents:
    """Runs rows in the chosen implementations."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self._workers = {name: Worker(name, 60) for name in names if name in ("openvino", "onnxruntime")}

    def results(self, row: Case, right: Results) -> Iterator[tuple[str, str, Results]]:
        """Name, arithmetic and outputs of each implementation that runs the row; ``right`` are those of the reference."""
        for name in self.names:
            for arithmetic, run in _RUNS[name]:
                try:
                    outputs = run(self, row) if name in self._workers else run(row)
                except (IrexecError, NotImplementedError, TypeError, ValueError):
                    outputs = []
                is_run = outputs and (name in self._workers or _has_shapes(right, outputs))
                yield name, arithmetic if is_run else "refused", outputs

    def openvino(self, row: Case) -> Results:
        model, fed = model_of(row)
        named = {port.name: array for port, array in zip(model.inputs, fed, strict=True)}
        values = [value for node in model.results for value in node.inputs if value is not None]
        with open_runtime("openvino", model, timeout=60, worker=self._workers["openvino"]) as runtime:
            return list(runtime.run(named, values))

    def onnxruntime(self, row: Case) -> Results:
        model, fed = model_of(row)
        proto = to_onnx(model)
        feeds = dict(zip([each.name for each in proto.graph.input], fed, strict=True))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(proto.SerializeToString())
            job = EngineJob("onnxruntime", str(path), "")
            return self._workers["onnxruntime"].run(job, [feeds], "the case")[0]


def _has_shapes(right: Results, outputs: Results) -> bool:
    """Whether the outputs have the shapes of the row: a size may depend on an input that was rounded."""
    return [x.shape for x in outputs] == [x.shape for x in right]


def _fast(row: Case) -> Results:
    model, fed = model_of(row)
    named = {port.name: array for port, array in zip(model.inputs, fed, strict=True)}
    values = [value for node in model.results for value in node.inputs if value is not None]
    with open_runtime("irexec", model) as runtime:
        return list(runtime.run(named, values))


def _emulated(name: str) -> Callable[[Case], Results]:
    """The reference with inputs and results rounded to a type."""

    def run(row: Case) -> Results:
        of = ARITHMETICS[name]
        arrays = [of.nearest(x).astype(x.dtype) if x.dtype.kind == "f" else x for x in read_only(row)]
        return [of.nearest(x) if x.dtype.kind == "f" else x for x in kernel(row, arrays)]

    return run


def _half(row: Case) -> Results:
    arrays = [x.astype(np.float16) if x is not None and x.dtype.kind == "f" else x for x in read_only(row)]
    with np.errstate(all="ignore"):
        made = row.definition.kernel(*arrays, **attributes_of(row))
    outputs = list(made) if isinstance(made, tuple | list) else [made]
    if not any(np.asarray(x).dtype == np.float16 for x in outputs):
        raise ValueError("it is not computed in f16")
    return [np.asarray(x) for x in outputs]


_RUNS: dict[str, list[tuple[str, Callable[..., Results]]]] = {
    "reference": [("f32", results_of)],
    "irexec": [("f32", _fast)],
    "emulated": [("f16", _emulated("f16")), ("bf16", _emulated("bf16"))],
    "half": [("f16-sums", _half)],
    "openvino": [("f32", Opponents.openvino)],
    "onnxruntime": [("f32", Opponents.onnxruntime)],
}


def spread(row: Case, powers: float) -> Case:
    """The row with each element of f32 multiplied by a power of 10, as tensors of networks have a wide range."""
    rng = np.random.default_rng(len(row.type) + row.since)

    def wide(x: Typed) -> Typed:
        if x.element is not F32:
            return x
        return replace(x, array=np.asarray(x.array * 10 ** rng.uniform(-powers, powers, x.array.shape), np.float32))

    return replace(row, inputs=tuple(map(wide, row.inputs)))


def judge(row: Case, opponents: Opponents, tally: Tally) -> None:
    """Count the verdicts of the opponents on a row, and of planted faults."""
    try:
        infer(row, exact_facts(row))
        right = results_of(row)
    except IrexecError:
        return
    tally.rows += 1
    bounds: dict[str, tuple[Bound, ...]] = {}
    for name, arithmetic, outputs in opponents.results(row, right):
        if arithmetic == "refused":
            tally.verdicts[f"{name} refused"] += 1
            continue
        if arithmetic not in bounds:
            bounds[arithmetic] = row_bounds(row, ARITHMETICS[arithmetic])
        for i, (result, bound) in enumerate(zip(outputs, bounds[arithmetic], strict=True)):
            verdict = _verdict(row, name, right[i], outputs, i, bound, arithmetic)
            tally.verdicts[f"{name} {verdict}"] += 1
            if verdict == "outside" and isinstance(bound, Interval):
                _tell(row, f"{name} {arithmetic}", i, result, bound)
            if name == "reference" and isinstance(bound, Interval):
                _note_ratio(result, bound, tally)
    if "f32" in bounds and "reference" in opponents.names:
        _plant(row, right, bounds["f32"], tally)


def _verdict(
    row: Case, name: str, right: np.ndarray, outputs: Sequence[np.ndarray], i: int, bound: Bound, arithmetic: str
) -> str:
    result = outputs[i]
    if not isinstance(bound, Interval):
        return "no bound"
    if result.shape == bound.exact.shape and not bound.outside(result).any():
        return "inside"
    if name != "openvino":
        return "outside"
    if left_open(row, model_of(row)[0], Verdict(OUTSIDE), outputs, ARITHMETICS[arithmetic]).name == OPEN:
        return "left open"
    return "known" if reason(row, _difference(right, result)) else "outside"


def _difference(right: np.ndarray, result: np.ndarray) -> str:
    """The difference in the words of NumPy, which tests.oracle.explained reads."""
    try:
        np.testing.assert_allclose(result, right)
    except (AssertionError, TypeError) as error:
        return f"values: {' '.join(str(error).split())}"
    return "values"


def _tell(row: Case, who: str, output: int, result: np.ndarray, bound: Interval) -> None:
    start = f"{row.type}-{row.since} seed {row.name} {who} output {output}"
    if result.shape != bound.exact.shape:
        print(f"{start}: shape {result.shape}, expected {bound.exact.shape}")
        return
    outside = bound.outside(result)
    where = tuple(np.argwhere(outside)[0])
    print(f"{start} {where} {outside.sum()} of {outside.size}: {result[where]!r}, exact {bound.exact[where]!r}, "
          f"[{bound.low[where]!r}, {bound.high[where]!r}] {[(str(x.element), x.array.shape) for x in row.inputs]} "
          f"{row.attributes}")  # fmt: skip


def _note_ratio(result: np.ndarray, bound: Interval, tally: Tally) -> None:
    if result.dtype.kind != "f" or not result.size:
        return
    with np.errstate(all="ignore"):
        error = np.abs(result.astype(np.float64) - bound.exact)
    good = np.isfinite(error) & (error > 0) & np.isfinite(bound.radius)
    if good.any():
        tally.ratios.append(float(np.median(bound.radius[good] / error[good])))


def _plant(row: Case, right: Results, bounds: Sequence[Bound], tally: Tally) -> None:
    """Count the planted faults that change a value visibly, and those of them that are outside."""
    for kind, mutant in mutants(row, right):
        try:
            wrong = mutant()
        except (IrexecError, ValueError, TypeError, IndexError):
            continue
        for good, bad, bound in zip(right, wrong, bounds, strict=False):
            if isinstance(bound, Interval) and bad.shape == good.shape and _is_visible(good, bad, kind):
                tally.planted[kind] += 1
                tally.found[kind] += bool(bound.outside(bad).any())


def _is_visible(good: np.ndarray, bad: np.ndarray, kind: str) -> bool:
    """Whether a value changes by a share of the largest; whether it changes, where the values are not in f32."""
    if good.dtype.kind != "f":
        return not np.array_equal(good, bad)
    with np.errstate(all="ignore"):
        change = np.abs(bad.astype(np.float64) - good).max(initial=0)
        largest = np.abs(good.astype(np.float64)).max(initial=0)
    return bool(change > _VISIBLE.get(kind, _VISIBLE_OTHERWISE) * largest)


if __name__ == "__main__":
    sys.exit(main())
