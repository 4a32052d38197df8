"""Random graphs of many operations: however they are run, they give what the reference kernels give."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator, Sequence

import numpy as np

import irexec
from irexec.analysis.evaluate import Precision
from irexec.io import write_text
from tests.fuzz.case import Case
from tests.fuzz.findings import NOWHERE, Observer
from tests.graphs.agreement import differences, outcome
from tests.graphs.making import make
from tests.graphs.running import reference, ways

QUICK = 300
_INPUTS = "inputs.npz"


def generate(rng: random.Random, number: int) -> Case:
    """A graph with the inputs of some runs."""
    seed = rng.randrange(1 << 48)
    made = make(seed)
    text, weights = write_text(made.model)
    return case_of(text, weights, made.runs, seed)


def case_of(text: bytes, weights: bytes, runs: Sequence[Sequence[np.ndarray]], seed: int) -> Case:
    """The case of a model and the inputs of its runs."""
    file = io.BytesIO()
    named = {f"{run}.{i}": array for run, arrays in enumerate(runs) for i, array in enumerate(arrays)}
    # Text is kept as NumPy's own, which is read without pickle.
    np.savez(file, **{name: array.astype(str) if array.dtype == object else array for name, array in named.items()})
    files = {"m.xml": text, "m.bin": bytes(weights), _INPUTS: file.getvalue()}
    return Case("graphs", files, {"seed": seed, "runs": len(runs)})


def feeds_of(case: Case) -> list[list[np.ndarray]]:
    """The inputs of each run, in order."""
    made: list[list[np.ndarray]] = [[] for _ in range(case.arguments["runs"])]
    with np.load(io.BytesIO(case.files[_INPUTS])) as arrays:
        for name in sorted(arrays.files, key=lambda name: tuple(map(int, name.split(".")))):
            array = arrays[name]
            made[int(name.split(".")[0])].append(array.astype(object) if array.dtype.kind == "U" else array)
    return made


def run(case: Case, observer: Observer) -> None:
    """The graph by the reference kernels and in other ways, for all runs or none."""
    feeds = feeds_of(case)
    model = observer.step("read", lambda: irexec.read_model("m.xml"), allowed=())
    found = observer.step(
        "validate", lambda: [one for one in irexec.validate(model) if one.severity == "error"], allowed=()
    )
    if found:
        observer.found("contradiction", "validate", NOWHERE, str(found[0]))
    precision: Precision = "as-written" if case.arguments["seed"] % 2 else "f32"
    plain = observer.step("reference", lambda: reference(model, precision), allowed=())
    if plain is None:
        return
    expected = observer.step("reference", lambda: outcome(plain, feeds), allowed=())
    for name, way in ways(case.arguments["seed"]).items():
        actual = observer.step(name, lambda way=way: way(model, feeds, precision), allowed=())
        if expected is not None and actual is not None:
            text = differences(plain, feeds, expected, actual)
            if text:
                observer.found("difference", name, NOWHERE, text)


def smaller(case: Case) -> Iterator[Case]:
    """Parts of the graph: see tests.graphs.smaller."""
    from tests.graphs.smaller import smaller_graphs

    return smaller_graphs(case)
