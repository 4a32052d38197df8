"""Copies of an ONNX model with other tensors of its graph as outputs, for any runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import TensorProto
from onnx.external_data_helper import load_external_data_for_model

from converters.onnx.load import load
from irexec.errors import ConversionError

# A protobuf message has at most 2 GiB.
_LARGEST = 1_900_000_000


def tensor_names(path: str | Path) -> frozenset[str]:
    """The names of all tensors of the graph with its local functions inlined: each can become an output.

    Raises:
        ConversionError: the file cannot be read, or is not an ONNX model.
    """
    graph = load(path, lambda text: None)[0].graph
    given = [name for node in graph.node for name in node.output if name]
    return frozenset([*given, *(info.name for info in graph.input), *(tensor.name for tensor in graph.initializer)])


def write_observed(path: str | Path, names: Sequence[str], carried: Sequence[str | None], target: Path) -> None:
    """Write a copy of a model with these tensors as outputs, in this order.

    Args:
        path: the model.
        names: distinct names among ``tensor_names``.
        carried: the element type that each tensor is cast to, as ONNX spells it ("FLOAT"); None for no cast.
        target: the file to write.

    Raises:
        ConversionError: the model or its external data cannot be read.
    """
    model, folder = load(path, lambda text: None)
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    try:
        load_external_data_for_model(copied, str(folder or Path()))
    except Exception as error:
        # onnx raises OSError, ValueError and classes of its own.
        raise ConversionError(f"{path}: its external data cannot be read: {error}") from None
    del copied.graph.output[:]
    for i, (name, kind) in enumerate(zip(names, carried, strict=True)):
        given = name
        if kind is not None:
            given = f"irexec.carried.{i}"
            copied.graph.node.append(onnx.helper.make_node("Cast", [name], [given], to=getattr(TensorProto, kind)))
        copied.graph.output.append(onnx.ValueInfoProto(name=given))
    external = copied.ByteSize() > _LARGEST
    onnx.save(copied, str(target), save_as_external_data=external)
