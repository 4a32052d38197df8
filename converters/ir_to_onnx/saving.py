"""ONNX models as files, with weights inside or in a file of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

from onnx import GraphProto, ModelProto, TensorProto

from irexec.errors import ModelError
from irexec.io.files import replacing
from irexec.io.reading import writing

_LARGEST = 1_900_000_000
"""Bytes of weights up to which a model is one file: a protobuf message has at most 2 GiB."""
_SMALL = 1024
"""Bytes up to which a tensor stays in the .onnx: shapes and axes, which readers need at once."""
_ALIGNMENT = 4096
"""Alignment of tensors in the file of weights, so that readers can map them."""


def data_path(target: Path) -> Path:
    """The file of weights of a model."""
    return target.with_name(f"{target.name}.data")


def save_onnx(model: ModelProto, target: Path, external: bool = False) -> list[Path]:
    """Write a model; weights go to a file of their own if asked for, or if the model would be larger than 2 GB.

    Args:
        model: its weights are moved out of it into the file.
        target: the .onnx; the file of weights is beside it, with ``.data`` after its name.
        external: whether the weights go to the other file.

    Returns:
        The files that were written.

    Raises:
        ModelError: a file cannot be written; both are as they were.
    """
    if not external and sum(len(tensor.raw_data) for tensor in _tensors(model.graph)) <= _LARGEST:
        with writing(target), replacing(target) as (file,):
            file.write(model.SerializeToString())
        return [target]
    weights = data_path(target)
    with writing(target), replacing(weights, target) as (data, file):
        for tensor in _tensors(model.graph):
            if len(tensor.raw_data) > _SMALL:
                _move(tensor, data, weights.name)
        try:
            file.write(model.SerializeToString())
        except ValueError as error:
            raise ModelError(f"{target} cannot be written: {error}") from None
    return [target, weights]


def _move(tensor: TensorProto, data: IO[bytes], location: str) -> None:
    """Move the bytes of a tensor into the file of weights."""
    data.write(bytes(-data.tell() % _ALIGNMENT))
    entries = {"location": location, "offset": str(data.tell()), "length": str(len(tensor.raw_data))}
    data.write(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """The initializers of a graph and of the graphs in its nodes."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
                yield from _tensors(inner)
