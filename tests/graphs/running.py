"""The ways in which a graph is run: each must give what the reference kernels give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

import irexec
from irexec.analysis.evaluate import Precision
from irexec.analysis.model import Model
from irexec.compile.passes import PASSES
from irexec.compile.steps import SlotArray
from irexec.native.library import library
from irexec.runtime import arenas
from irexec.runtime.compiled_model import CompiledModel
from tests.graphs.agreement import Refused, Run, outcome, refusing
from tests.graphs.choices import any_kernels, short_blocks

Feeds = Sequence[list[np.ndarray]]


Outcome = list[Run]
Way = Callable[[Model, Feeds, Precision], Outcome]


def reference(model: Model, precision: Precision = "as-written") -> CompiledModel:
    """The model for reference kernels alone."""
    return CompiledModel(model, optimize=False, threads=1, precision=precision)


@contextmanager
def poisoned() -> Iterator[None]:
    """Memory that is allocated for tensors is full of NaN, so that reading what was never written is seen."""
    aligned, allocated = arenas._aligned, SlotArray.allocated

    def filled(array: np.ndarray) -> np.ndarray:
        if array.dtype != object:
            array.view(np.uint8).reshape(-1)[...] = 0xFF if array.flags.c_contiguous else 0
        return array

    def own(self: SlotArray) -> np.ndarray:
        array = allocated(self)
        if array.dtype.kind == "f":
            array.fill(np.nan)
        return array

    with (
        mock.patch.object(arenas, "_aligned", lambda size: filled(aligned(size))),
        mock.patch.object(SlotArray, "allocated", own),
    ):
        yield


def threads(count: int, *, native: bool = True) -> Way:
    """All passes and fast kernels, on ``count`` threads; each run twice, the second time on memory of the first.

    Args:
        native: whether kernels of the C library may run, if there is one.
    """

    def run(model: Model, feeds: Feeds, precision: Precision) -> Outcome:
        with poisoned():
            compiled = CompiledModel(model, threads=count, precision=precision, native=native)
            first = outcome(compiled, feeds)
            second = outcome(compiled, feeds)
        return [
            two if _same(one, two) else Refused("the second time the results are others")
            for one, two in zip(first, second, strict=True)
        ]

    return run


def _same(first: Run, second: Run) -> bool:
    if isinstance(first, Refused) or isinstance(second, Refused):
        return first == second
    return all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes() if a.dtype != object else (a == b).all()
        for a, b in zip(first, second, strict=True)
    )


def some_passes(seed: int) -> Way:
    """Some of the passes."""
    rng = np.random.default_rng(seed)
    names = [one.name for one in PASSES if rng.random() < 0.5]
    return lambda model, feeds, precision: outcome(
        CompiledModel(model, threads=1, optimize=names, precision=precision), feeds
    )


def any_plan(seed: int) -> Way:
    """Kernels chosen at random and short blocks, on one to three threads."""
    run = threads(1 + seed % 3)

    def chosen(model: Model, feeds: Feeds, precision: Precision) -> Outcome:
        with any_kernels(seed), short_blocks(seed):
            return run(model, feeds, precision)

    return chosen


def observed(model: Model, feeds: Feeds, precision: Precision) -> Outcome:
    """With a function called after every step, and further tensors asked for."""
    compiled = CompiledModel(model, threads=1, precision=precision)
    results = [node.inputs[0] for node in compiled.model.results]
    values = [*dict.fromkeys(value for value in results if value is not None)]
    others = [
        value
        for node in compiled.model.nodes
        for value in node.outputs
        if node.type != "Constant" and node.constant is None
    ]
    session, wanted = compiled.session(), [*values, *others]

    def run(feed: list[np.ndarray]) -> list[np.ndarray]:
        arrays = dict(zip(wanted, session.values(feed, wanted), strict=True))
        return [arrays[value] for value in results if value is not None]

    return [refusing(lambda feed=feed: run(feed)) for feed in feeds]


def on_layer(model: Model, feeds: Feeds, precision: Precision) -> Outcome:
    """With a function that reads the outputs of every step."""
    compiled = CompiledModel(model, threads=2, precision=precision)
    session = compiled.session()

    def look(step: Any) -> None:
        for array in step.outputs:
            if array is not None and array.dtype.kind == "f":
                np.isnan(array).any()

    return [refusing(lambda feed=feed: list(session.run(feed, on_layer=look).values())) for feed in feeds]


def saved(model: Model, feeds: Feeds, precision: Precision) -> Outcome:
    """Written, read again with the weights mapped, and run."""
    irexec.save_model(model, "saved.xml")
    return outcome(irexec.compile_model("saved.xml", threads=1, mmap=True, precision=precision), feeds)


def packed(model: Model, feeds: Feeds, precision: Precision) -> Outcome:
    """With compressed weights left packed."""
    return outcome(CompiledModel(model, threads=1, weights="packed", precision=precision), feeds)


def ways(seed: int) -> dict[str, Way]:
    """Some of the ways, by name, for a case of this seed: always one thread with and without the C library, and two
    others."""
    rng = np.random.default_rng(seed)
    all_ways: dict[str, Way] = {
        "any plan": any_plan(seed), "2 threads": threads(2), "4 threads": threads(4), "some passes": some_passes(seed), "observed": observed,
        "on_layer": on_layer, "saved": saved, "packed": packed,
    }  # fmt: skip
    chosen = rng.choice(list(all_ways), 2, replace=False, p=[0.4, 0.16, 0.04, 0.12, 0.07, 0.07, 0.07, 0.07])
    always = {"1 thread": threads(1)} | ({"NumPy alone": threads(1, native=False)} if library() is not None else {})
    return {**always, **{name: all_ways[name] for name in map(str, chosen)}}
