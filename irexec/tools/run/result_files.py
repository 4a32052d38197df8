"""Files of results and of states.

Every tensor of a run is a folder of .npy files: the whole folder, or what was there before.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.builder import Adding
from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.compile.memory_limit import MemoryLimit
from irexec.errors import InputError, IrexecError
from irexec.io.files import new_file, replacing_folder
from irexec.io.reading import read_json, writing
from irexec.io.writer import check_file
from irexec.ir.graph import Graph, Input, Value
from irexec.runtime.variables import VariableStates, variables_of
from irexec.tools.arrays.files import open_arrays, storable, write_npz
from irexec.tools.images import ImageOptions, Notify, load_pillow, result_pixels, write_png

_SUFFIXES = (".npz", ".png")


def check_outputs(output: str | None, dump_folder: str | None, read: Mapping[str, str]) -> None:
    """Raise before the run what would keep its results from being written.

    Args:
        output: the .npz or .png.
        dump_folder: the folder for all tensors.
        read: the files that the run reads, with what they are.

    Raises:
        InputError: the path is of another kind, or something of the user's would be overwritten.
        UnsupportedError: Pillow is needed and not installed.
    """
    if output is not None:
        path = Path(output)
        if path.suffix.lower() not in _SUFFIXES:
            raise InputError(f"-o {path}: results are written to a .npz, or an image to a .png")
        check_file("-o", path, read)
        if path.suffix.lower() == ".png":
            load_pillow()
    if dump_folder is not None:
        folder = Path(dump_folder)
        check_dump_folder(folder)
        inside = {**read, **({output: "the output"} if output is not None else {})}
        for file, what in inside.items():
            # Path.resolve raises RuntimeError for links in a cycle, here and below.
            if Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder)):
                raise InputError(f"--dump-layers replaces the folder {dump_folder}, in which {file} is {what}")


def check_saved_inputs(path: str, output: str | None, read: Mapping[str, str]) -> None:
    """Raise InputError unless inputs can be written to a .npz that is neither read nor the output."""
    if not path.lower().endswith(".npz"):
        raise InputError(f"--save-inputs {path}: inputs are written to a .npz")
    check_file("--save-inputs", Path(path), {**read, **({output: "the output"} if output is not None else {})})


def write_results(path: str, results: Mapping[str, np.ndarray], image: ImageOptions, notify: Notify) -> None:
    """Write results to a .npz, or the only one of them to a .png.

    Raises:
        InputError: an array to be written as an image is not one image.
        ModelError: the file cannot be written; what was there before is as it was.
    """
    pixels = _pixels(path, results, image, notify) if path.lower().endswith(".png") else None
    with new_file(path) as file:
        if pixels is None:
            write_npz(file, results)
        else:
            write_png(file, pixels)


def _pixels(path: str, results: Mapping[str, np.ndarray], image: ImageOptions, notify: Notify) -> np.ndarray:
    if len(results) != 1:
        raise InputError(
            f"-o {path} takes one result, there are {len(results)} ({', '.join(results)}): choose one with --tensor"
        )
    ((name, result),) = results.items()
    return result_pixels(name, result, image, notify)


_INDEX = "index.json"
_FILE_NAME = re.compile(r"\d+_[A-Za-z0-9._-]*\.\d+\.npy")


def check_dump_folder(folder: Path) -> None:
    """Raise InputError unless ``folder`` can be written without losing anything but an earlier dump.

    It may be absent, empty, or hold an earlier dump and nothing else. A link is refused, since the folder is replaced.
    """
    if folder.is_symlink():
        raise InputError(f"{folder} is a link: --dump-layers replaces the folder, name the folder itself")
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise InputError(f"{folder} exists and is not a folder")
    if not _is_empty_or_dump(folder):
        raise InputError(f"{folder} has files that --dump-layers has not written: name a new or an empty folder")


def _is_empty_or_dump(folder: Path) -> bool:
    """Whether the folder has nothing but files that its index lists and that are named as a dump names them."""
    try:
        with os.scandir(folder) as entries:
            found = {entry.name + "/" * entry.is_dir(follow_symlinks=False) for entry in entries}
        if not found:
            return True
        listed = {entry["file"] for entry in read_json(folder / _INDEX)["tensors"]}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return all(name == _INDEX or (name in listed and _FILE_NAME.fullmatch(name)) for name in found)


def write_dump(folder: Path, tensors: Mapping[str, tuple[Value, np.ndarray]]) -> None:
    """Write each tensor to a .npy, and an index.json that lists them, in place of an earlier dump.

    Everything is written to a new folder beside it, which then takes its name; no link in an earlier dump is followed.

    Raises:
        InputError: see ``check_dump_folder``.
        ModelError: the folder cannot be written.
    """
    check_dump_folder(folder)
    with writing(folder), replacing_folder(folder) as new:
        index = [_write_tensor(new, name, value, array) for name, (value, array) in tensors.items()]
        (new / _INDEX).write_text(json.dumps({"schema": 1, "tensors": index}, indent=2), encoding="utf-8")
        # Writing may take minutes, in which files may have come into the folder.
        check_dump_folder(folder)


def _write_tensor(folder: Path, name: str, value: Value, array: np.ndarray) -> dict[str, Any]:
    """Write one tensor, and return its entry in the index."""
    layer_name = re.sub(r"[^A-Za-z0-9._-]+", "_", value.node.name)[:80]
    file = f"{value.node.id:05d}_{layer_name}.{value.index}.npy"
    with open(folder / file, "xb") as opened:
        np.save(opened, storable(array), allow_pickle=False)
    layer = {"id": value.node.id, "layer": value.node.name, "type": value.node.type, "port": value.index}
    contents = {"shape": list(array.shape), "dtype": str(array.dtype)}
    return {"file": file, "name": name, "tensor_names": list(value.names), **layer, **contents}


def read_state(path: str, memory: MemoryLimit | None = None) -> dict[str, np.ndarray]:
    """The arrays of variables by variable_id.

    Raises:
        InputError: the file is one array without a name.
        ModelError: it cannot be read, or takes too much memory.
    """
    with open_arrays(path, ".npz", memory or MemoryLimit()) as file:
        if not file.named:
            raise InputError(f"{path} is one array without a name, expected a .npz with an array for each variable")
        return {name: file.read(name) for name in file.names}


def check_state_file(path: str, read: Mapping[str, str]) -> None:
    """Raise InputError unless a state can be written to a .npz that is not one of the files in ``read``."""
    if not path.lower().endswith(".npz"):
        raise InputError(f"--save-state {path}: a state is written to a .npz")
    check_file("--save-state", Path(path), read)


def write_state(path: str, state: Mapping[str, np.ndarray]) -> None:
    """Write the arrays of variables to a .npz; raises ModelError if that fails."""
    with new_file(path) as file:
        write_npz(file, state)


def with_state(model: Model, state: Mapping[str, np.ndarray]) -> Model:
    """A copy of a model whose variables begin with the arrays of a state, by variable_id.

    Raises:
        InputError: the model has no such variable, or an array is not of its type and shape.
    """
    checked = VariableStates(variables_of(model, infer_shapes(model, tolerant=True)))
    checked.update(state)
    changed = copy.copy(model)
    _begin_with(changed, checked)
    return changed


def _begin_with(graph: Graph, state: Mapping[str, np.ndarray]) -> None:
    """Give each ReadValue of the graph and of its bodies a Constant, of its declared type, as its initial value."""
    adding = Adding(graph.nodes)
    for node in list(graph.nodes):
        for body in node.bodies.values():
            _begin_with(body.graph, state)
        array = state.get(node.attributes.get("variable_id", "")) if node.type == "ReadValue" else None
        if array is not None:
            fact = node.outputs[0].fact
            if fact is None or fact.element is None:
                raise IrexecError(f"the element type of {node.name!r} is not declared")
            values = fact.element.codec.round(array.astype(fact.element.carrier))
            start = adding.constant(values, fact.element)
            node.ports[:1] = [Input(start, start.fact)]
