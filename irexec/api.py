"""Reading and saving models: the public functions over io and analysis."""

from __future__ import annotations

from pathlib import Path

from irexec import io
from irexec.analysis.model import Model, check_model
from irexec.ir import graph as ir


def read_model(path: str | Path, weights: str | Path | None = None) -> Model:
    """Read an IR; its weights stay in the .bin until they are used.

    Args:
        path: the .xml.
        weights: the .bin; the file of the same name beside the .xml unless told.

    Raises:
        ModelError: the file cannot be read, or is no IR at all. Damage that leaves a graph to look at
            is kept in ``model.problems`` for ``irexec.validate``; compile_model refuses it.
    """
    return Model.of(io.read(path, weights))


def save_model(model: ir.Model, path: str | Path) -> None:
    """Write an IR (version 11): ``path`` and the .bin beside it, both or neither.

    Raises:
        ModelError: the model cannot be written, or the place cannot be written to.
        InputError: it is no model.
    """
    check_model(model)
    io.write(model, Path(path))
