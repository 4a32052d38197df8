"""What writes files: each operation replaces what it wrote before by the same with another value, which the files show."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import irexec
from irexec.cli.main import main
from irexec.ir.constants import constant_value

TORN = "IR023"


class Damage(Exception):
    """Files are not whole, or do not belong together."""


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        name: for the report.
        is_command: whether it is a command line; otherwise a function of the Python API.
        targets: the names of what it writes.
        prepare: makes its inputs in a folder, for values 1 and 2.
        write: writes the targets for a value; a command leaves by SystemExit.
        read: the value that the targets show.
    """

    name: str
    is_command: bool
    targets: tuple[str, ...]
    prepare: Callable[[Path, int], None]
    write: Callable[[Path, int], None]
    read: Callable[[Path], int]


def _one_value(arrays: Sequence[np.ndarray]) -> int:
    values = {float(value) for array in arrays for value in (array.min(), array.max())}
    if len(values) != 1:
        raise Damage(f"values {sorted(values)} in one set of files")
    return int(values.pop())


def _model(value: int, count: int) -> irexec.Model:
    builder = irexec.Builder(f"model {value}")
    x = builder.parameter(irexec.f32, (count,), "x")
    x = builder.emit("Add", x, builder.constant(np.full(count, value, np.float32)))
    builder.result(x, "y")
    return builder.model()


def _prepare_models(folder: Path, count: int) -> None:
    for value in (1, 2):
        irexec.save_model(_model(value, count), folder / f"in{value}.xml")


def _prepare_onnx(folder: Path, count: int) -> None:
    import onnx
    from onnx import helper, numpy_helper

    for value in (1, 2):
        weights = numpy_helper.from_array(np.full(count, value, np.float32), "w")
        x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [count]) for name in "xy")
        graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], f"model {value}", [x], [y], [weights])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), folder / f"in{value}.onnx")


def _prepare_inputs(folder: Path, count: int) -> None:
    builder = irexec.Builder("copies")
    x = builder.parameter(irexec.f32, (count,), "x")
    for _ in range(3):
        x = builder.emit("Relu", x)
    builder.result(x, "y")
    irexec.save_model(builder.model(), folder / "run.xml")
    for value in (1, 2):
        np.save(folder / f"in{value}.npy", np.full(count, value, np.float32))


def _command(*words: object) -> None:
    sys.argv = ["irexec", *map(str, words)]
    main()


def _convert(folder: Path, value: int) -> None:
    _command("convert", folder / f"in{value}.onnx", "-o", folder / "o.xml")


def _infer(folder: Path, value: int) -> None:
    _command("infer", folder / "run.xml", "-i", folder / f"in{value}.npy", "-o", folder / "o.npz")


def _dump(folder: Path, value: int) -> None:
    _command(
        "infer", folder / "run.xml", "-i", folder / f"in{value}.npy", "--no-optimize", "--dump-layers", folder / "dump"
    )


def _save(folder: Path, value: int) -> None:
    irexec.save_model(irexec.read_model(folder / f"in{value}.xml"), folder / "o.xml")


def _convert_function(folder: Path, value: int) -> None:
    import converters

    irexec.save_model(converters.convert(folder / f"in{value}.onnx"), folder / "o.xml")


def read_pair(folder: Path) -> int:
    """The value of o.xml and o.bin."""
    model = irexec.read_model(folder / "o.xml")
    findings = irexec.validate(model, weights=True)
    if findings:
        raise Damage(f"{findings[0].code} {findings[0].message}")
    value = _one_value([constant_value(node.constant) for node in model.nodes if node.constant is not None])
    if model.name != f"model {value}":
        raise Damage(f"o.xml is that of {model.name!r}, o.bin that of model {value}")
    return value


def _read_npz(folder: Path) -> int:
    with np.load(folder / "o.npz") as arrays:
        return _one_value([arrays[name] for name in arrays.files])


def _read_dump(folder: Path) -> int:
    listed = [entry["file"] for entry in json.loads((folder / "dump" / "index.json").read_text("utf-8"))["tensors"]]
    found = sorted(path.name for path in (folder / "dump").iterdir())
    if found != sorted([*listed, "index.json"]):
        raise Damage(f"the index lists {listed}, the folder has {found}")
    return _one_value([np.load(folder / "dump" / name) for name in listed])


_PAIR = ("o.bin", "o.xml")
OPERATIONS = (
    Operation("irexec convert", True, _PAIR, _prepare_onnx, _convert, read_pair),
    Operation("irexec infer -o", True, ("o.npz",), _prepare_inputs, _infer, _read_npz),
    Operation("irexec infer --dump-layers", True, ("dump",), _prepare_inputs, _dump, _read_dump),
    Operation("save_model", False, _PAIR, _prepare_models, _save, read_pair),
    Operation("converters.convert and save_model", False, _PAIR, _prepare_onnx, _convert_function, read_pair),
)
