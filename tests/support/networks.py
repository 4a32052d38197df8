"""Inputs of the networks of tests/networks and the comparison of their outputs; needs nothing but NumPy and irexec."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irexec import Port
from tests.support.paths import NETWORKS

NAMES = sorted(path.stem for path in NETWORKS.glob("*.zip"))
"""The recorded networks."""


def unpacked(name: str, folder: Path) -> Path:
    """The .xml of a recorded network, with all of its files, in a folder."""
    with zipfile.ZipFile(NETWORKS / f"{name}.zip") as archive:
        archive.extractall(folder)
    return folder / f"{name}.xml"


def feeds(path: Path, ports: Sequence[Port]) -> list[list[np.ndarray]]:
    """The inputs of each run, random as the .json beside the .xml says."""
    runs = json.loads(path.with_suffix(".json").read_text())["runs"]
    rng = np.random.default_rng(7)
    return [
        [_random_input(spec, port.element.carrier, rng) for spec, port in zip(run, ports, strict=True)] for run in runs
    ]


def _random_input(spec: dict[str, Any], dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    if spec["values"] is not None:
        return np.array(spec["values"], dtype).reshape(spec["shape"])
    if dtype.kind in "iu":
        return rng.integers(int(spec["low"]), int(spec["high"]), spec["shape"]).astype(dtype)
    return rng.uniform(spec["low"], spec["high"], spec["shape"]).astype(dtype)


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference relative to the largest value; infinite where shapes, types or NaN differ."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return np.inf
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0
    with np.errstate(invalid="ignore"):
        gap = np.abs(a - b)[~same].max()
    scale = np.abs(b[np.isfinite(b)]).max(initial=0)
    return float(gap / max(scale, 1e-9)) if np.isfinite(gap) else np.inf


# The blocks of MobileNetV3.


MOBILENET_V3_LARGE = [
    (3, 16, 16, False, False, 1), (3, 64, 24, False, False, 2), (3, 72, 24, False, False, 1), (5, 72, 40, True, False, 2),
    (5, 120, 40, True, False, 1), (5, 120, 40, True, False, 1), (3, 240, 80, False, True, 2), (3, 200, 80, False, True, 1),
    (3, 184, 80, False, True, 1), (3, 184, 80, False, True, 1), (3, 480, 112, True, True, 1), (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2), (5, 960, 160, True, True, 1), (5, 960, 160, True, True, 1),
]  # fmt: skip
"""Kernel size, channels of the expansion and of the output, whether it has squeeze and excitation, whether its activation is hard
swish, stride. Source: Howard et al. 2019, table 1."""
