"""Every tensor of a run as a folder of .npy files: the whole folder, or what was there before."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from irexec.errors import InputError
from irexec.io.file_errors import writing
from irexec.io.folders import replacing_folder
from irexec.io.json_files import read_json
from irexec.ir.graph import Value
from irexec.tools.arrays.files import storable

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
    file = f"{value.node.id:05d}_{_file_name(value.node.name)}.{value.index}.npy"
    with open(folder / file, "xb") as opened:
        np.save(opened, storable(array), allow_pickle=False)
    layer = {"id": value.node.id, "layer": value.node.name, "type": value.node.type, "port": value.index}
    return {
        "file": file,
        "name": name,
        "tensor_names": list(value.names),
        **layer,
        "shape": list(array.shape),
        "dtype": str(array.dtype),
    }


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:80]
