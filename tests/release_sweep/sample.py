"""Models for the sweep: rows of tests.cases, each as a model of one operation, and whole networks."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from irexec import Model, read_model
from irexec.errors import IrexecError
from irexec.ir.dims import Dim, is_static
from irexec.testing import Case
from irexec.testing.rows import model_of
from tests.support.cases import families
from tests.support.networks import feeds, unpacked
from tests.support.paths import NETWORKS

_BUILT_BY_HAND = {"Parameter", "Result"}
# Their results are random, or strings that an old release does not have.
_LEFT_OUT = {"RandomUniform", "Multinomial", "StringTensorPack"}


@dataclass(frozen=True)
class Sample:
    """A model with the inputs of each run, and its name."""

    name: str
    model: Model
    runs: list[list[np.ndarray]]


def operations(count: int, seed: int) -> Iterator[Sample]:
    """Models of one operation of OpenVINO: with inputs, with constants in place of those after the first, and so with an
    open size."""
    rows = [
        row
        for rows in families().values()
        for row in rows
        if isinstance(row, Case)
        and isinstance(row.since, int)
        and row.type not in _BUILT_BY_HAND | _LEFT_OUT
        and all(x.element.name != "string" for x in row.inputs)
    ]
    cases = [(row, form) for row in rows for form in ("", *(("constants",) if len(row.inputs) > 1 else ()), "open")]
    rng = random.Random(seed)
    rng.shuffle(cases)
    for row, form in cases[:count]:
        try:
            model, inputs = model_of(row, 1 if form and len(row.inputs) > 1 else None)
            if form == "open" and inputs[0].size:
                shape: list[int | Dim] = [*inputs[0].shape]
                shape[rng.randrange(len(shape))] = Dim()
                model.reshape({0: shape})
        except (IndexError, ValueError, IrexecError):
            # Some rows are of inputs that the shape rule cannot take as constants, or of scalars alone.
            continue
        yield Sample(f"{row.id}{f' ({form})' if form else ''}", model, [inputs])


def network_names(folder: Path | None) -> list[str]:
    """The networks of a folder of tests.networks.build, or those of tests/data/networks."""
    return sorted(path.stem for path in (folder.glob("*.xml") if folder else NETWORKS.glob("*.zip")))


def forms(name: str, folder: Path | None) -> Iterator[Sample]:
    """A network with the inputs of its first run: as it is, and set to the shapes of these inputs if that differs.

    Networks with states have the inputs of a second run too, unless they are set to shapes.
    """
    with tempfile.TemporaryDirectory() as unpacking:
        path = folder / f"{name}.xml" if folder else unpacked(name, Path(unpacking))
        yield from _forms(path)


def _forms(path: Path) -> Iterator[Sample]:
    model = read_model(path, mmap=False)
    runs = feeds(path, model.inputs)
    if not all(is_static(port.shape) for port in model.inputs):
        has_states = any(node.type == "ReadValue" for node in model.walk())
        yield Sample(f"{path.stem} (open)", model.clone(), runs[: 1 + has_states])
    model.reshape({i: array.shape for i, array in enumerate(runs[0])})
    yield Sample(path.stem, model, runs[:1])
