"""Runs of ONNX models: the reference evaluator of onnx, and copies with other tensors as outputs.

A copy has the nodes of the file, and further outputs. Only tensors of the bodies of functions need the functions to be
inlined, as the conversion does it: such a copy is compared with the file before it is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
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
        outputs: outputs of the file, in order; maps are one for each label, as a converted model has them.
        own: tensors of its graph.
        inlined: tensors that the graph has only with its functions inlined.
        of_maps: the scores of maps among ``outputs``.
    """

    outputs: tuple[str, ...]
    own: frozenset[str]
    inlined: frozenset[str]
    of_maps: frozenset[str]


def tensors_of(path: str | Path) -> FileTensors:
    """The tensors of an .onnx file.

    Raises:
        ConversionError: the file cannot be read, or is not an ONNX model.
    """
    file, loaded = parse(path)[0].graph, load(path, lambda text: None)[0].graph
    maps, own = _maps(file), _names(file)
    outputs = [name for one in file.output for name in maps.get(one.name, {one.name: ()})]
    of_maps = frozenset(name for columns in maps.values() for name in columns)
    return FileTensors(tuple(outputs), own | of_maps, _names(loaded) - own, of_maps)


def _maps(graph: onnx.GraphProto) -> dict[str, dict[str, tuple[str, int, int]]]:
    """By output that is maps: the name of each score, with the tensor of all scores, its index and their number."""
    given, found = {one.name for one in graph.output}, {}
    for node in graph.node:
        if node.op_type == "ZipMap" and node.output[0] in given:
            held = (onnx.helper.get_attribute_value(one) for one in node.attribute if "classlabels" in one.name)
            labels = [one.decode() if isinstance(one, bytes) else one for one in next(filter(None, held), [])]
            columns = ((node.input[0], i, len(labels)) for i in range(len(labels)))
            found[node.output[0]] = dict(zip((f"{node.output[0]}.{label}" for label in labels), columns, strict=True))
    return found


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
    maps = {name: column for columns in _maps(copied.graph).values() for name, column in columns.items()}
    del copied.graph.output[:]
    # A map is not a tensor, and onnx.reference does not make one.
    kept = [node for node in copied.graph.node if node.op_type != "ZipMap"]
    del copied.graph.node[:]
    copied.graph.node.extend(kept)
    for name in {*names} & maps.keys():
        scores, index, count = maps[name]
        whole, chosen = np.array([-1, count]), np.array(index)
        for key, value in ((f"{name}.shape", whole), (f"{name}.index", chosen)):
            copied.graph.initializer.append(onnx.numpy_helper.from_array(value, key))
        rows = f"{name}.rows"
        copied.graph.node.append(onnx.helper.make_node("Reshape", [scores, f"{name}.shape"], [rows]))
        copied.graph.node.append(onnx.helper.make_node("Gather", [rows, f"{name}.index"], [name], axis=1))
    for i, (name, kind) in enumerate(zip(names, carried, strict=True)):
        given = name
        if kind is not None:
            given = f"irexec.carried.{i}"
            copied.graph.node.append(onnx.helper.make_node("Cast", [name], [given], to=getattr(TensorProto, kind)))
        copied.graph.output.append(onnx.ValueInfoProto(name=given))
    external = copied.ByteSize() > _LARGEST
    onnx.save(copied, str(target), save_as_external_data=external)


Evaluator = Callable[[Mapping[str, np.ndarray]], list[np.ndarray]]
"""Returns the outputs in order; raises ConversionError if the model cannot run with these inputs."""


def open_evaluator(path: str | Path, results: Sequence[str] = ()) -> Evaluator:
    """The evaluator of a model, which returns these outputs, or all.

    Raises:
        ConversionError: the evaluator does not accept the model.
    """
    from onnx.reference import ReferenceEvaluator

    try:
        model, _, folder = parse(path)
        load_external_data_for_model(model, str(folder or Path()))
        evaluator = ReferenceEvaluator(model, new_ops=_flattening() if _opset(model) < 13 else None)
    except Exception as error:
        # The classes that the evaluator raises have no common base but Exception.
        raise _failed(error) from None

    def run(inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        try:
            return [np.asarray(array) for array in evaluator.run(list(results) or None, dict(inputs))]
        except Exception as error:
            # The same.
            raise _failed(error) from None

    return run


def _failed(error: Exception) -> ConversionError:
    first = next(iter(str(error).splitlines()), "") or type(error).__name__
    return ConversionError(f"onnx.reference cannot run the model: {first}")


def _opset(model: onnx.ModelProto) -> int:
    return max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)


def _flattening() -> list[Any]:
    """Softmax, LogSoftmax and Hardmax before opset 13: over the flattened axes from ``axis`` (1) on.

    onnx.reference has only the newest version of each. Source: Softmax-11, LogSoftmax-11, Hardmax-11.
    """
    from onnx.reference.op_run import OpRun

    class Flattening(OpRun):
        op_domain = ""

        def _run(self, x: np.ndarray, **_: Any) -> tuple[np.ndarray]:
            axis = next((a.i for a in self.onnx_node.attribute if a.name == "axis"), 1)
            rows = x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1)
            return (self.of_rows(rows).reshape(x.shape).astype(x.dtype),)

        def of_rows(self, rows: np.ndarray) -> np.ndarray:
            powers = np.exp(rows - rows.max(axis=1, keepdims=True))
            return powers / powers.sum(axis=1, keepdims=True)

    class LogSoftmax(Flattening):
        def of_rows(self, rows: np.ndarray) -> np.ndarray:
            return np.log(super().of_rows(rows))

    class Hardmax(Flattening):
        def of_rows(self, rows: np.ndarray) -> np.ndarray:
            return np.arange(rows.shape[1]) == rows.argmax(axis=1)[:, None]

    return [type("Softmax", (Flattening,), {}), LogSoftmax, Hardmax]
