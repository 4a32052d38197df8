"""The files of a reduction: the smallest model, its inputs, and the answers for a resumption."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np

from irexec import io
from irexec.errors import InputError, ModelError
from irexec.io.json_files import parse_json
from irexec.io.output_file import check_file, check_model_files
from irexec.io.regular_files import open_regular
from irexec.tools.arrays.files import write_npz
from irexec.tools.reduce.answers import FORMAT
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.checks.check import Files

_PART_OF_TIME = 5
"""Intermediate results take at most this fraction of the time, as a divisor."""


class Output:
    """The files of a reduction.

    Args:
        path: the .xml; the .bin and the .npz have the same name.

    Attributes:
        state: the file of answers.
    """

    def __init__(self, path: str) -> None:
        self.model = Path(path)
        self.inputs = self.model.with_suffix(".npz")
        self.expected = self.model.with_suffix(".expected.npz")
        self.state = self.model.with_suffix(".reduce")
        self._written: Candidate | None = None
        self._ended, self._took = time.monotonic(), 0.0

    def check(self, read: Mapping[str, str]) -> None:
        """Raise InputError before the work if files cannot be written, or would overwrite files of the user."""
        check_model_files(str(self.model), read)
        for path in (self.inputs, self.expected, self.state):
            check_file("-o", path, read)
        taken = next((path for path in (self.inputs, self.expected) if path.exists()), None)
        if taken is not None and not self.model.exists():
            raise InputError(
                f"-o {self.model}: arrays would be written to {taken}, which exists without {self.model.name} beside it"
            )
        if self.state.exists() and not _is_state(self.state):
            raise InputError(
                f"-o {self.model}: answers would be written to {self.state}, which exists and is something else"
            )

    def files(self, candidate: Candidate) -> Files:
        """Names of the files of a candidate, for commands."""
        expected = str(self.expected) if candidate.expected else None
        return Files(str(self.model), str(self.inputs) if candidate.inputs else None, expected)

    def offer(self, candidate: Candidate) -> None:
        """Write an intermediate candidate, unless writing takes too much of the time."""
        if time.monotonic() - self._ended >= _PART_OF_TIME * self._took:
            self.write(candidate)

    def complete(self, candidate: Candidate) -> None:
        """Write a candidate, unless it was written last."""
        if candidate is not self._written:
            self.write(candidate)

    def write(self, candidate: Candidate) -> None:
        """Write a candidate: all of its files or none.

        Raises:
            ModelError: they cannot be written; earlier files are unchanged.
        """
        start = time.monotonic()
        beside = {self.inputs: candidate.inputs} | ({self.expected: candidate.expected} if candidate.expected else {})
        io.write(candidate.model, self.model, {path: partial(_write_arrays, arrays) for path, arrays in beside.items()})
        self._written, self._ended = candidate, time.monotonic()
        self._took = self._ended - start


def _write_arrays(arrays: Mapping[str, np.ndarray], file: IO[bytes]) -> None:
    write_npz(file, arrays)


def _is_state(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return bool(parse_json(file.readline()).get("format") == FORMAT)
    except (OSError, ValueError, AttributeError) as error:
        if isinstance(error, OSError):
            raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from None
        return False
