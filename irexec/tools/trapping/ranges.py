"""Ranges of tensors as a file: what runs have recorded of each, so that another run can be held to it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from irexec.errors import InputError, ModelError
from irexec.io.files import new_file
from irexec.io.reading import read_json
from irexec.io.writer import check_file

_FORMAT = "irexec ranges"


@dataclass
class Ranges:
    """The minimum and maximum of the finite elements of tensors, over all runs.

    Attributes:
        model: the name of the model.
        runs: number of recorded runs.
        tensors: the ranges by the names of tensors, those of bodies with their path.
    """

    model: str = ""
    runs: int = 0
    tensors: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, name: str, low: float, high: float) -> None:
        """Widen the range of a tensor."""
        before = self.tensors.get(name, (math.inf, -math.inf))
        self.tensors[name] = min(before[0], low), max(before[1], high)


def read_ranges(path: str) -> Ranges:
    """Read what ``write_ranges`` wrote.

    Raises:
        ModelError: the file cannot be read, or is something else.
    """
    try:
        document = read_json(path)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise ModelError(f"{path}: not a file of ranges, as --record-range writes them: not JSON") from None
    try:
        if document["format"] != _FORMAT:
            raise KeyError("format")
        tensors = {str(name): _range(pair) for name, pair in _mapping(document["tensors"]).items()}
        return Ranges(str(document["model"]), _runs(document["runs"]), tensors)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ModelError(f"{path}: not a file of ranges, as --record-range writes them") from None


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError("not a mapping")
    return value


def _runs(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("not a number of runs")
    return value


def _range(pair: object) -> tuple[float, float]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise TypeError("not a pair")
    low, high = float(pair[0]), float(pair[1])
    if not low <= high or math.isinf(low) or math.isinf(high):
        raise ValueError("not a range")
    return low, high


def check_ranges_file(path: str, read: Mapping[str, str]) -> Ranges:
    """Recorded ranges of the file that a run adds to; none if the file does not exist.

    Args:
        path: the file that is to be written.
        read: the files that the run reads, with what they are.

    Raises:
        InputError: it is not a .json, a file that the run reads, or one that something else has written.
    """
    if not path.lower().endswith(".json"):
        raise InputError(f"--record-range {path}: ranges are written to a .json")
    check_file("--record-range", Path(path), read)
    if not os.path.lexists(path):
        return Ranges()
    try:
        return read_ranges(path)
    except ModelError as error:
        raise InputError(f"--record-range would overwrite {error}") from None


def write_ranges(path: str, ranges: Ranges) -> None:
    """Write ranges to a .json, whole or not at all.

    Raises:
        ModelError: it cannot be written.
    """
    tensors = {name: list(pair) for name, pair in ranges.tensors.items()}
    document = {"schema": 1, "format": _FORMAT, "model": ranges.model, "runs": ranges.runs, "tensors": tensors}
    with new_file(path) as file:
        file.write((json.dumps(document, indent=1, allow_nan=False) + "\n").encode())
