"""What passes make of a model, and whether it still computes the same."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import Kernel, KernelContext, Task
from irexec.compile.graph import CompileGraph
from irexec.compile.lower import lower
from irexec.compile.passes import PASSES, optimize
from irexec.compile.rewriting import Report, Rewriting
from irexec.runtime.compiled_model import CompiledModel
from irexec.testing import Case, model_of
from irexec.testing.kernels import read_by, result_of, run_recorded
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


# What passes made of a model, and whether it still gives what the reference kernels give.


def planned_types(model: irexec.Model, *passes: str) -> list[str]:
    """The types of the operations after these passes alone."""
    return types(optimized(model, passes)[0])


def reasons(model: irexec.Model, *passes: str) -> list[str]:
    """Why the passes left operations alone."""
    return [reason for found in refusals(optimized(model, passes)[1].report) for _, reason in found]


def refusals(report: Report) -> list[list[tuple[str, str]]]:
    """Passes and their reasons by unchanged operation, in the order of the first visit."""
    found = sorted(each for operations in report.refusals.values() for each in operations.values())
    return [reasons for _, reasons in found]


def agrees(model: irexec.Model, tolerance: float, *, sizes: Collection[int] = (1, 7), scale: float = 3) -> None:
    """Optimised and reference results are close, relative to the largest value; unknown sizes become each of ``sizes``."""
    fast, reference = irexec.compile_model(model), irexec.compile_model(model, optimize=False)
    rng = np.random.default_rng(0)
    for size in sizes:
        given = [_array(rng, port.shape, port.element, size, scale) for port in fast.inputs]
        for ours, theirs in zip(fast(given).values(), reference(given).values(), strict=True):
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
            limit = tolerance * np.abs(theirs.astype(np.float64)).max(initial=1e-9)
            np.testing.assert_allclose(ours.astype(np.float64), theirs.astype(np.float64), rtol=0, atol=limit)


def _array(rng: np.random.Generator, shape: Any, element: Any, size: int, scale: float) -> np.ndarray:
    sizes = [one if isinstance(one, int) else size for one in shape]
    return (scale * rng.standard_normal(sizes)).astype(element.carrier)


# A fast kernel alone, on arrays.


def run_kernel(
    kernel: Kernel, task: Task, inputs: Sequence[np.ndarray | None], operands: Sequence[np.ndarray] = ()
) -> list[np.ndarray]:
    """The outputs of a kernel for the task's arrays; of one that records, those of its record."""
    kernel.pack(ConstantStore())
    arrays = [*inputs, *operands]
    outputs = result_of(kernel, task, KernelContext.of(kernel, task.threads), arrays)
    if kernel.records:
        with np.errstate(all="ignore"):
            run_recorded(kernel, task.threads, read_by(kernel, task, arrays), outputs)
    return [output for output in outputs if output is not None]
