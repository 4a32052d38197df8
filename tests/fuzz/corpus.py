"""Models to start from: what OpenVINO wrote, and rows of the tables as models of one operation."""

from __future__ import annotations

import functools
import random
from pathlib import Path

from irexec import io
from irexec.testing import Case, model_of
from tests.support.cases import families
from tests.support.paths import ROOT

_RECORDED = ROOT / "tests" / "data" / "openvino"
_LARGEST = 2000


@functools.cache
def recorded() -> list[Path]:
    """The .xml files that OpenVINO wrote, loops, branches and state among them."""
    return sorted(_RECORDED.rglob("*.xml"))


@functools.cache
def rows() -> list[Case]:
    """The small rows of the tables."""
    found = [row for table in families().values() for row in table if isinstance(row, Case)]
    return [row for row in found if sum(x.array.size for x in row.inputs) <= _LARGEST]


def model(rng: random.Random) -> tuple[bytes, bytes]:
    """The .xml and the .bin of some model."""
    if rng.random() < 0.3:
        path = rng.choice(recorded())
        return path.read_bytes(), path.with_suffix(".bin").read_bytes()
    return of_row(rng.choice(rows()), rng.choice([None, 0, 1, 1]))


def of_row(row: Case, first_constant: int | None) -> tuple[bytes, bytes]:
    """The model of a row, whose inputs from ``first_constant`` on are constants."""
    text, weights = io.write_text(model_of(row, first_constant)[0])
    return text.encode() if isinstance(text, str) else text, bytes(weights)
