"""Copies of an ONNX model with other tensors of its graph as outputs, for any runtime.

A copy has the nodes of the file, and further outputs. Only tensors of the bodies of functions need the functions to be
inlined, as the conversion does it: such a copy is compared with the file before it is believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import TensorProto
from onnx.external_data_helper import load_external_data_for_model

from converters.onnx.load import load, parse
from irexec.errors import ConversionError

# A protobuf message has at most 2 GiB.
_LARGEST = 1_900_000_000


@dataclass(frozen=True)
class FileTensors:
    """The names of the tensors of an ONNX model, each of which can become an output.

    Attributes:
        outputs: outputs of the file, in order.
        own: tensors of its graph.
        inlined: tensors that the graph has only with its functions inlined.
    """

    outputs: tuple[str, ...]
    own: frozenset[str]
    inlined: frozenset[str]


def tensors_of(path: str | Path) -> FileTensors:
    """The tensors of an .onnx file.

    Raises:
        ConversionError: the file cannot be read, or is not an ONNX model.
    """
    file, loaded = parse(path)[0].graph, load(path, lambda text: None)[0].graph
    own = _names(file)
    return FileTensors(tuple(one.name for one in file.output), own, _names(loaded) - own)


def _names(graph: onnx.GraphProto) -> frozenset[str]:
    computed = [name for node in graph.node for name in node.output if name]
    return frozenset([*computed, *(info.name for info in graph.input), *(tensor.name for tensor in graph.initializer)])


def write_observed(
    path: str | Path, names: Sequence[str], carried: Sequence[str | None], target: Path, *, inlined: bool
) -> None:
    """Write a copy of a model with these tensors as outputs, in this order.

    Args:
        path: the model.
        names: distinct names of ``tensors_of``.
        carried: the element type that each tensor is cast to, as ONNX spells it ("FLOAT"); None for no cast.
        target: the file to write.
        inlined: inline the functions of the model, for tensors of their bodies.

    Raises:
        ConversionError: the model or its external data cannot be read.
    """
    if inlined:
        model, folder = load(path, lambda text: None)
    else:
        model, _, folder = parse(path)
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
