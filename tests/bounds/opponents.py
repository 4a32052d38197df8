"""Random single operations of other implementations against their bounds, and faults planted in results.

    python -m tests.bounds.opponents --ops MVN,Swish [--count 50] [--seed N] [--with openvino,onnxruntime,...]

Opponents: reference (f32), irexec (its fast kernels), emulated (inputs and results rounded to f16 and bf16),
half (the reference kernel on f16 arrays, sums as well), openvino, onnxruntime. Prints for each opponent how many
outputs are inside, the worst of those outside, and for the reference the median ratio of the interval's radius to the
actual error and the share of planted faults that are outside. Exit 1 for an output outside.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from irexec.api import to_onnx
from irexec.bounds import ARITHMETICS, Bound, Interval
from irexec.conformance.corpus import cases, chosen
from irexec.dtypes.elements import F32
from irexec.errors import IrexecError
from irexec.testing import Case, Typed, model_of
from irexec.testing.laws import attributes_of, infer, kernel, read_only
from irexec.testing.partial_facts import exact_facts
from irexec.tools.engines.engine import EngineJob
from irexec.tools.engines.runtimes import Worker, open_runtime
from tests.bounds.rows import row_bounds

Results = list[np.ndarray]


@dataclass
class Tally:
    """Counts of one type: outputs by opponent and verdict, ratios of radius to error, planted faults by verdict."""

    verdicts: Counter[str] = field(default_factory=Counter)
    ratios: list[float] = field(default_factory=list)
    planted: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--with", dest="opponents", default="reference,irexec,emulated,half")
    parser.add_argument("--spread", type=float, default=0, help="powers of 10 over which elements of f32 are spread")
    args = parser.parse_args()
    tallies: defaultdict[str, Tally] = defaultdict(Tally)
    opponents = Opponents(args.opponents.split(","))
    pairs = chosen([one for one in args.ops.split(",") if one])
    for row in cases(pairs, args.seed, args.count):
        judge(spread(row, args.spread) if args.spread else row, opponents, tallies[row.type])
    for type, tally in tallies.items():
        _print(type, tally)
    return int(any("outside" in key for tally in tallies.values() for key in tally.verdicts))


def _print(type: str, tally: Tally) -> None:
    ratio = f"{np.median(tally.ratios):.0f}" if tally.ratios else "-"
    found, all_ = tally.planted["outside"], sum(tally.planted.values())
    print(f"{type}: {dict(tally.verdicts)} ratio {ratio} planted {found} of {all_} {dict(Counter(tally.missed))}")


class Opponents:
    """Runs rows in the chosen implementations."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self._workers = {name: Worker(name, 60) for name in names if name in ("openvino", "onnxruntime")}

    def results(self, row: Case) -> Iterator[tuple[str, str, Results]]:
        """Name, arithmetic and outputs of each implementation that runs the row."""
        for name in self.names:
            for arithmetic, run in _RUNS[name]:
                try:
                    outputs = run(self, row) if name in self._workers else run(row)
                except (IrexecError, NotImplementedError, TypeError, ValueError):
                    outputs = []
                is_run = outputs and (name in self._workers or _has_shapes(row, outputs))
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


def _has_shapes(row: Case, outputs: Results) -> bool:
    """Whether the outputs have the shapes of the row: a size may depend on an input that was rounded."""
    return [x.shape for x in outputs] == [x.shape for x in _reference(row)]


def _reference(row: Case) -> Results:
    return list(kernel(row, read_only(row)))


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
    "reference": [("f32", _reference)],
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
        kernel(row, read_only(row))
    except IrexecError:
        return
    bounds: dict[str, tuple[Bound, ...]] = {}
    for name, arithmetic, outputs in opponents.results(row):
        if arithmetic == "refused":
            tally.verdicts[f"{name} refused"] += 1
            continue
        if arithmetic not in bounds:
            bounds[arithmetic] = row_bounds(row, ARITHMETICS[arithmetic])
        for i, (result, bound) in enumerate(zip(outputs, bounds[arithmetic], strict=True)):
            verdict = _verdict(result, bound)
            tally.verdicts[f"{name} {verdict}"] += 1
            if verdict == "outside" and isinstance(bound, Interval):
                _tell(row, f"{name} {arithmetic}", i, result, bound)
            if name == "reference" and isinstance(bound, Interval):
                _note_ratio(result, bound, tally)
    if "f32" in bounds and "reference" in opponents.names:
        _plant(row, bounds["f32"], tally)


def _verdict(result: np.ndarray, bound: Bound) -> str:
    if not isinstance(bound, Interval):
        return "no bound"
    if result.shape != bound.exact.shape:
        return "outside"
    return "outside" if bound.outside(result).any() else "inside"


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


def _plant(row: Case, bounds: tuple[Bound, ...], tally: Tally) -> None:
    """Count the planted faults that are outside, of those that change a value by a thousandth of the largest."""
    right = kernel(row, read_only(row))
    for what, mutant in _mutants(row, list(right)):
        try:
            wrong = mutant()
        except (IrexecError, ValueError, TypeError, IndexError):
            continue
        for good, bad, bound in zip(right, wrong, bounds, strict=True):
            if not isinstance(bound, Interval) or good.dtype.kind != "f" or bad.shape != good.shape or not good.size:
                continue
            with np.errstate(all="ignore"):
                change = np.abs(bad.astype(np.float64) - good).max()
            if not change > 1e-3 * np.abs(good.astype(np.float64)).max():
                continue
            is_found = bool(bound.outside(bad).any())
            tally.planted["outside" if is_found else "inside"] += 1
            if not is_found:
                tally.missed.append(what)


def _mutants(row: Case, right: Results) -> Iterator[tuple[str, Callable[[], Results]]]:
    yield "rolled", lambda: [np.roll(x, 1, -1) if x.ndim else x for x in right]
    yield "last block dropped", lambda: [_dropped(x) for x in right]
    yield "reversed", lambda: [x[..., ::-1] if x.ndim else x for x in right]
    if all(x.element.name not in ("f16", "bf16") for x in row.inputs):
        yield "scaled", lambda: [_scaled(x) for x in right]
    for name, value in row.attributes.items():
        for other in _others(name, value):
            yield f"wrong {name}", functools.partial(_again, row, name, other)
    for i, x in enumerate(row.inputs[1:], 1):
        if x.array.dtype.kind == "f" and x.array.size:
            yield f"input {i} left out", functools.partial(_with_input, row, i, np.zeros_like)
            yield f"input {i} rolled", functools.partial(_with_input, row, i, functools.partial(np.roll, shift=1))


def _scaled(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return x * 1.01 if x.dtype.kind == "f" else x


def _dropped(x: np.ndarray) -> np.ndarray:
    result = x.copy()
    if x.ndim:
        result[..., -1] = 0
    return result


def _others(name: str, text: str) -> Iterator[str]:
    """Wrong values of an attribute."""
    if text in ("true", "false"):
        yield "false" if text == "true" else "true"
    elif "." in text or "e-" in text:
        try:
            yield str(float(text) * 1.5 + 1e-3)
        except ValueError:
            return
    else:
        yield from (other for choice in _CHOICES if text in choice for other in choice if other != text)


_CHOICES = (
    ("inside_sqrt", "outside_sqrt"), ("add", "max"), ("nearest", "linear", "cubic", "linear_onnx"),
    ("half_pixel", "asymmetric", "align_corners"), ("floor", "ceil", "round_prefer_floor"), ("forward", "reverse"),
    ("zeros", "border", "reflection"), ("bilinear", "bicubic"), ("sum", "mean", "prod", "max", "min"),
    ("f8e4m3", "f8e5m2"), ("erf", "tanh"), ("half_to_even", "half_away_from_zero"), ("sigmoid", "tanh"),
)  # fmt: skip


def _again(row: Case, name: str, value: str) -> Results:
    return list(_reference(replace(row, attributes={**row.attributes, name: value})))


def _with_input(row: Case, index: int, change: Callable[[np.ndarray], np.ndarray]) -> Results:
    x = row.inputs[index]
    inputs = [*row.inputs[:index], Typed(x.element, change(x.array)), *row.inputs[index + 1 :]]
    return list(_reference(replace(row, inputs=tuple(inputs))))


if __name__ == "__main__":
    sys.exit(main())
