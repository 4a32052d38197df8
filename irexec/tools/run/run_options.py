"""The options of whatever runs a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from irexec.analysis.precision import DEFAULT_PRECISION, Precision
from irexec.tools.run.shapes import Shapes

if TYPE_CHECKING:
    from irexec.ir.graph import ModelGraph
    from irexec.runtime.compiled_model import CompiledModel


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a model is read and run.

    Attributes:
        weights: the .bin; None is the file of the model's name.
        shapes: new shapes of inputs by name; None is the only input.
        seed: for random inputs.
        precision: how irexec computes f16 and bf16; see compile_model.
        threads: number of threads of a step; None is the default of the runtime.
        max_memory: bytes that the process which runs it may hold; None for all that is left.
    """

    weights: str | None = None
    shapes: Shapes | None = None
    seed: int = 0
    precision: Precision = DEFAULT_PRECISION
    threads: int | None = None
    max_memory: int | None = None


@dataclass(frozen=True, kw_only=True)
class SessionOptions(RunOptions):
    """How a model is run in this process.

    Attributes:
        optimize, native: as for CompiledModel.
        mmap: as for read_model.
        timeout: seconds that all runs together may take; None for any.
    """

    optimize: bool = True
    native: bool = True
    mmap: bool = True
    timeout: float | None = None

    def compiled(self, model: ModelGraph, **options: Any) -> CompiledModel:
        """The compiled model; ``options`` are further ones of CompiledModel."""
        # Commands that run nothing have options of this class, too.
        from irexec.runtime.compiled_model import CompiledModel

        return CompiledModel(
            model,
            threads=self.threads,
            optimize=self.optimize,
            native=self.native,
            precision=self.precision,
            max_memory=self.max_memory,
            **options,
        )
