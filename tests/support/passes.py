"""What passes leave of a model as it is written, and whether it still computes the same."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.compile.graph import CompileGraph
from irexec.compile.lower import lower
from irexec.compile.passes import PASSES, optimize
from irexec.compile.rewriting import Rewriting
from irexec.runtime.compiled_model import CompiledModel
from irexec.testing import Case, model_of
from irexec.testing.laws import Arrays, assert_same
from irexec.testing.rows import FORMS

NAMES = tuple(one.name for one in PASSES)
ALONE: tuple[tuple[str, ...], ...] = ((), *((name,) for name in NAMES))
"""No pass, but fast kernels; each pass alone."""


def optimized(model: irexec.Model, names: Collection[str] | None) -> tuple[CompileGraph, Rewriting]:
    """The compile graph after these passes (None: all), and what they reported."""
    with np.errstate(all="ignore"):
        graph, rewriting = lower(model, infer_shapes(model), {}), Rewriting()
        optimize(graph, rewriting, names)
    return graph, rewriting


def types(graph: CompileGraph) -> list[str]:
    """The types of the operations in order."""
    return [operation.type for operation in graph.order()]


def assert_agrees(
    model: irexec.Model,
    feeds: Sequence[np.ndarray],
    names: bool | Collection[str],
    *,
    tolerance: float = 0,
    threads: int = 1,
) -> None:
    """Every Result is what the reference kernels give: exactly, or up to a part of its largest value.

    Args:
        names: the passes that run; True for all.
    """
    expected = irexec.compile_model(model, optimize=False, precision="as-written")(feeds)
    actual = CompiledModel(model, optimize=names, threads=threads, precision="as-written")(feeds)
    for (name, e), a in zip(expected.items(), actual.values(), strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype), name
        if tolerance and e.dtype.kind == "f":
            scale = np.abs(e[np.isfinite(e)]).max(initial=0)
            np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance * max(float(scale), 1e-30), err_msg=name)
        else:
            np.testing.assert_array_equal(a, e, err_msg=name)


def assert_same_signs(model: irexec.Model, feeds: Sequence[np.ndarray], names: Collection[str]) -> None:
    """The passes change no sign, not even that of a zero; fast kernels may."""
    expected = CompiledModel(model, optimize=(), precision="as-written")(feeds)
    actual = CompiledModel(model, optimize=names, precision="as-written")(feeds)
    for e, a in zip(expected.values(), actual.values(), strict=True):
        if e.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a) & ~np.isnan(a), np.signbit(e) & ~np.isnan(e))


def each_pass_alone(row: Case, expected: Arrays) -> None:
    """Law 6 with fast kernels and no pass, and with each pass alone."""
    for first_constant, known in FORMS[:4]:
        model, fed = model_of(row, first_constant, known)
        for names in ALONE:
            assert_same(list(CompiledModel(model, optimize=names, precision="as-written")(fed).values()), expected, row)
