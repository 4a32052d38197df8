"""The plan of a model for certain input shapes."""

from __future__ import annotations

from collections.abc import Mapping

from irexec.analysis.precision import DEFAULT_PRECISION, Precision
from irexec.compile.plan_report import PlanReport
from irexec.ir.dims import PartialShape
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.run.shapes import read_with_shapes, reshape


def plan(
    path: str,
    weights: str | None = None,
    shapes: Mapping[str | None, PartialShape] | None = None,
    threads: int | None = None,
    *,
    precision: Precision = DEFAULT_PRECISION,
    mmap: bool = True,
    max_memory: int | None = None,
) -> PlanReport:
    """Compile a model and describe what would run.

    Args:
        path: the .xml or .onnx.
        weights: the .bin; None is the file of the model's name.
        shapes: new shapes of inputs by name; None is the only input. Where they leave a size open, it is the plan for
            inputs of any shape.
        threads, precision, max_memory: as for CompiledModel.
        mmap: as for read_model.

    Raises:
        InputError: the model does not take the shapes.
        ModelError, NodeError, UnsupportedError: the model cannot be read or compiled.
    """
    model = read_with_shapes(path, weights, shapes or {}, mmap=mmap)
    reshape(model, shapes or {})
    return CompiledModel(model, threads=threads, precision=precision, max_memory=max_memory).plan
