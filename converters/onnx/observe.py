"""Copies of an ONNX model whose outputs are other tensors of its graph, so that any runtime gives them."""

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
    """The names of the tensors of the graph, its local functions inlined: those that can be given as outputs.

    Raises:
        ConversionError: the file cannot be read, or is not an ONNX model.
    """
    graph = load(path, lambda text: None)[0].graph
    given = [name for node in graph.node for name in node.output if name]
    return frozenset([*given, *(info.name for info in graph.input), *(tensor.name for tensor in graph.initializer)])


def write_observed(path: str | Path, names: Sequence[str], carried: Sequence[str | None], target: Path) -> None:
    """Write a copy whose outputs are the tensors of these names, in this order.

    Args:
        path: the model.
        names: of ``tensor_names``; each of them once.
        carried: the element type that each is cast to, as ONNX spells it ("FLOAT"); None for those that are given as
            they are.
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
        # onnx raises its own classes, OSError and ValueError.
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
