"""Every tensor of a run, in memory or as files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from irexec.errors import ModelError
from irexec.ir.graph import Value
from irexec.runtime.session import CompiledModel


def tensors(compiled: CompiledModel) -> dict[str, Value]:
    """What a run computes, by ``layer`` or ``layer:port``: all but Parameters' and Constants' outputs."""
    found: dict[str, Value] = {}
    for node in compiled.model.nodes:
        if node.type in ("Parameter", "Constant", "Result"):
            continue
        for value in node.outputs:
            found[node.name if len(node.outputs) == 1 else f"{node.name}:{value.index}"] = value
    return found


def every_tensor(compiled: CompiledModel, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Every tensor that a run computes."""
    found = tensors(compiled)
    return dict(zip(found, compiled.values(inputs, list(found.values())), strict=True))


def dump(compiled: CompiledModel, inputs: Mapping[str, np.ndarray], directory: Path) -> int:
    """Write every tensor to a .npy and an index.json that says which is which; returns how many.

    Raises:
        ModelError: the folder cannot be written to.
    """
    values = tensors(compiled)
    arrays = every_tensor(compiled, inputs)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        index = []
        for (name, value), array in zip(values.items(), arrays.values(), strict=True):
            file = f"{value.node.id:05d}_{_safe(value.node.name)}.{value.index}.npy"
            np.save(directory / file, array.astype(str) if array.dtype == object else array, allow_pickle=False)
            layer = {"id": value.node.id, "layer": value.node.name, "type": value.node.type, "port": value.index}
            index.append(
                {"file": file, "name": name, "tensor_names": value.names, **layer, "shape": list(array.shape), "dtype": str(array.dtype)}
            )
        (directory / "index.json").write_text(json.dumps({"schema": 1, "tensors": index}, indent=2), encoding="utf-8")
    except OSError as error:
        raise ModelError(f"{directory}: cannot be written: {error.strerror or error}") from None
    return len(values)


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:80]
