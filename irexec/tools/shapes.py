"""The shapes that a command line gives to inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from irexec.analysis.model import Model, expected
from irexec.analysis.shape_inference import infer_shapes
from irexec.api import read_model
from irexec.errors import ConversionError, InputError, NodeError
from irexec.io.model_names import model_names
from irexec.ir.dims import PartialShape, shape_text

Shapes = Mapping[str | None, PartialShape]
"""Shapes by the names of inputs; None is the only input."""


def read_with_shapes(
    path: str, weights: str | None, shapes: Shapes, *, mmap: bool = True, progress: Callable[[float], None] | None = None
) -> Model:
    """Read a model that is to be given shapes: an ONNX model that cannot be converted without them is converted with them.

    Args:
        path, weights, mmap, progress: as for read_model.
        shapes: as for ``reshape``, which is still to be called.

    Raises:
        ModelError, ConversionError, InputError: as for read_model.
    """
    try:
        return read_model(path, weights, mmap=mmap, progress=progress)
    except ConversionError:
        if not shapes:
            raise
    only = next(iter(model_names(path).inputs), "")
    return read_model(path, progress=progress, inputs={only if name is None else name: shape for name, shape in shapes.items()})


def reshape(model: Model, shapes: Shapes, *, tolerant: bool = False) -> None:
    """Give inputs new shapes.

    Args:
        tolerant: leave layers that cannot take the shapes as they are declared.

    Raises:
        InputError: there is no such input, a shape has no name where there are several, or the model does not take the shapes.
    """
    if not shapes:
        return
    if None in shapes and len(model.inputs) != 1:
        raise InputError(f"--shape {shape_text(shapes[None])} names no input: the model has {expected(model.inputs)}")
    try:
        model.reshape({0 if name is None else name: shape for name, shape in shapes.items()}, tolerant=tolerant)
    except NodeError as error:
        raise refused(shapes, error) from None


def reshape_for_display(model: Model, shapes: Shapes) -> None:
    """Give inputs new shapes; what could not be inferred before need not be.

    Raises:
        InputError: there is no such input, a shape has no name where there are several, or a layer does not take the shapes.
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
