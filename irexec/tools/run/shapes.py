"""Options of a run, and the shapes that it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from irexec.analysis.evaluate import DEFAULT_PRECISION, Precision
from irexec.analysis.model import Model, Port, expected
from irexec.analysis.shape_inference import infer_shapes
from irexec.errors import ConversionError, InputError, NodeError
from irexec.ir.dims import PartialShape, shape_text
from irexec.reading import read_model

if TYPE_CHECKING:
    from irexec.ir.graph import ModelGraph
    from irexec.runtime.compiled_model import CompiledModel
    from irexec.tools.run.input_sources import GivenInputs


Shapes = Mapping[str | None, PartialShape]
"""Shapes by the names of inputs; None is the only input."""


def read_with_shapes(
    path: str, weights: str | None, shapes: Shapes, *, of: Sequence[Port] | None = None,
    given: GivenInputs | None = None, mmap: bool = True, progress: Callable[[float], None] | None = None,
) -> Model:  # fmt: skip
    """Read a model with new shapes: an ONNX model that cannot be converted without shapes is converted with them.

    Every command with shapes reads its models by this function; ``irexec.reading.read_tolerant`` is for commands that
    report all faults.

    Args:
        path, weights, mmap, progress: as for read_model.
        shapes: as for ``reshape``, which is still to be called.
        of: the inputs of another model, if it is theirs that ``shapes`` and ``given`` name; see ``shapes_of_other``.
        given: the arrays of the run, for the sizes of inputs that ``shapes`` does not name.

    Raises:
        ModelError, ConversionError, InputError: as for read_model.
    """
    try:
        return read_model(path, weights, mmap=mmap, progress=progress)
    except ConversionError:
        # Few models need it, and its import takes longer than checking a model.
        from irexec.tools.run.input_sources import declared_inputs

        ports = declared_inputs(path) if of is None else of
        known = {} if given is None or None in shapes else given.shapes(ports)
        named = {port.name for port in ports if shapes.keys() & set(port.names)}
        shapes = {**{name: shape for name, shape in known.items() if name not in named}, **shapes}
        if not shapes:
            raise
    wanted = shapes if of is None else shapes_of_other(shapes, of, [port.names for port in declared_inputs(path)])
    return read_model(path, progress=progress, inputs=wanted)


def shapes_of_other(shapes: Shapes, inputs: Sequence[Port], others: Sequence[Sequence[str]]) -> Shapes:
    """Shapes that are given by the names of a model's inputs, by those of another model.

    Args:
        shapes: by names.
        inputs: of the model whose names they are.
        others: the names of each input of the other model. Inputs are the same if they have a name in common; what is
            left is paired in order if both models have as many.

    Returns:
        The shapes of the inputs that the other model has, by the first of their names. None stays None.
    """
    paired = {port.name: names for port in inputs for names in others if set(names) & set(port.names)}
    left = [port.name for port in inputs if port.name not in paired]
    free = [names for names in others if names not in paired.values()]
    if len(left) == len(free):
        paired |= dict(zip(left, free, strict=True))
    found: dict[str | None, PartialShape] = {}
    for name, shape in shapes.items():
        port = next((port for port in inputs if name in port.names), None)
        names = paired.get(port.name) if port else next((names for names in others if name in names), None)
        if name is None or names:
            found[names[0] if names else None] = shape
    return found


def reshape(model: Model, shapes: Shapes, *, tolerant: bool = False) -> None:
    """Give inputs new shapes.

    Args:
        tolerant: leave layers that cannot take the shapes as they are declared.

    Raises:
        InputError: the input does not exist, a shape without a name is ambiguous, or the model refuses the shapes.
    """
    if not shapes:
        return
    if None in shapes and len(model.inputs) != 1:
        raise InputError(f"--shape {shape_text(shapes[None])} names no input: the model has {expected(model.inputs)}")
    try:
        model.reshape({0 if name is None else name: shape for name, shape in shapes.items()}, tolerant=tolerant)
    except NodeError as error:
        raise refused(shapes, error) from None


def reshape_both(a: Model, b: Model, shapes: Shapes) -> None:
    """Give inputs of two models new shapes, by the names of the first; see ``shapes_of_other``.

    Raises:
        InputError: the first has no such input, or a shape has no name where there are several.
    """
    of_b = shapes_of_other(shapes, a.inputs, [port.names for port in b.inputs])
    reshape(a, shapes, tolerant=True)
    reshape(b, of_b, tolerant=True)


def reshape_for_display(model: Model, shapes: Shapes) -> None:
    """Give inputs new shapes; what could not be inferred before need not be.

    Raises:
        InputError: the input does not exist, a shape without a name is ambiguous, or a layer refuses the shapes.
    """
    if not shapes:
        return
    before = infer_shapes(model, tolerant=True).failures
    reshape(model, shapes, tolerant=True)
    failures = infer_shapes(model, tolerant=True).failures.items()
    error = next((error for node, error in failures if node not in before and isinstance(error, NodeError)), None)
    if error is not None:
        raise refused(shapes, error)


def refused(shapes: Shapes, error: NodeError) -> InputError:
    """The error of a model that does not take the shapes."""
    given = " ".join(f"--shape {name or ''}{shape_text(shape)}" for name, shape in shapes.items())
    return InputError(f"the model does not take {given}: {error}")


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
        dynamic_quantization: as for compile_model.
    """

    weights: str | None = None
    shapes: Shapes | None = None
    seed: int = 0
    precision: Precision = DEFAULT_PRECISION
    threads: int | None = None
    max_memory: int | None = None
    dynamic_quantization: int | None = None


def compiled_with(options: RunOptions, model: ModelGraph, **more: Any) -> CompiledModel:
    """The model compiled as the options say; ``more`` are further ones of CompiledModel."""
    # Commands that run nothing have such options, too.
    from irexec.runtime.compiled_model import CompiledModel

    return CompiledModel(
        model,
        threads=options.threads,
        precision=options.precision,
        max_memory=options.max_memory,
        dynamic_quantization=options.dynamic_quantization,
        **more,
    )


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
        return compiled_with(self, model, optimize=self.optimize, native=self.native, **options)
