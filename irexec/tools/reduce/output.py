"""The files of a reduction: the smallest model, its inputs, and answers of the check for a resumption.

The first line of the file of answers is JSON about the model and the check; each other line is the answer for one
candidate. A reduction is deterministic: with the answers from the file it repeats its steps up to the interruption.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from irexec import io
from irexec.analysis.model import Model
from irexec.errors import InputError, ModelError
from irexec.io.reading import open_regular, parse_json
from irexec.io.writer import check_beside, check_file, check_model_files
from irexec.tools.arrays.files import write_npz
from irexec.tools.reduce.candidate import Candidate
from irexec.tools.reduce.checks import Files

FORMAT = "irexec reduce 1"
"""Name of the format in the first line of the file."""


class Answers:
    """Whether candidates failed as the model does, by the keys of their parts.

    Args:
        path: the file; None keeps nothing.
        about: the model, its inputs and the check.
        resume: whether to take over the answers of the file; otherwise the file begins anew.

    Attributes:
        known: the answers.
        resumed: number of answers from the file.

    Raises:
        InputError: the file is of another reduction.
        ModelError: it cannot be read or written.
    """

    def __init__(self, path: Path | None, about: Mapping[str, Any], *, resume: bool) -> None:
        self.path, self.known = path, dict[str, bool]()
        self._head = json.dumps({"format": FORMAT, **about}, sort_keys=True)
        self._is_begun = self._is_taken_over = False
        if resume and path is not None and path.exists():
            self._read(path)
            self._is_taken_over = True
        self.resumed = len(self.known)

    def _read(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"{path}: cannot be read: {error}") from None
        if lines[0] != self._head:
            raise InputError(
                f"{path} is of another model, check or set of options: without --resume the reduction begins anew"
            )
        # A text after the last line break is an unfinished line.
        for line in lines[1:-1]:
            key, _, answer = line.partition(" ")
            self.known[key] = answer == "fails"

    def add(self, key: str, fails: bool) -> None:
        """Keep an answer in memory and in the file; raises ModelError if it cannot be written."""
        self.known[key] = fails
        if self.path is None:
            return
        try:
            if not self._is_begun:
                # Cut an unfinished line off a file that is taken over; otherwise write the first line.
                if self._is_taken_over:
                    os.truncate(self.path, self.path.read_bytes().rfind(b"\n") + 1)
                else:
                    self.path.write_bytes(f"{self._head}\n".encode())
                self._is_begun = True
            with open(self.path, "ab") as file:
                file.write(f"{key} {'fails' if fails else 'passes'}\n".encode())
        except OSError as error:
            raise ModelError(f"{self.path}: cannot be written: {error.strerror or error}") from None

    def delete(self) -> None:
        """Delete the file: the reduction is complete."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


_PART_OF_TIME = 5
"""Intermediate results take at most this fraction of the time, as a divisor."""


class ReductionFiles:
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
        check_beside(self.model, self.inputs, self.expected, option="-o")
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
        io.write(candidate.model, self.model, {path: partial(write_npz, arrays=one) for path, one in beside.items()})
        self._written, self._ended = candidate, time.monotonic()
        self._took = self._ended - start


def _is_state(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return bool(parse_json(file.readline()).get("format") == FORMAT)
    except (OSError, ValueError, AttributeError) as error:
        if isinstance(error, OSError):
            raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from None
        return False


_CHUNK = 1 << 20


def model_digest(model: Model, path: str) -> str:
    """A digest of the files of a model."""
    return _files_digest(dict.fromkeys(str(name) for name in (path, model.path, model.bin_path) if name is not None))


def source_digest(source: str | os.PathLike[str] | Model) -> str:
    """A digest of the other version: a model, a file, or a folder of arrays."""
    if isinstance(source, Model):
        return model_digest(source, "")
    path = Path(source)
    return _files_digest(map(str, sorted(path.iterdir()) if path.is_dir() else (path, path.with_suffix(".bin"))))


def arrays_digest(arrays: Sequence[np.ndarray]) -> str:
    """A digest of types, shapes and values."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype}{array.shape}".encode())
        is_text = array.dtype == object
        found.update("\0".join(map(str, array.ravel())).encode() if is_text else np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _files_digest(paths: Iterable[str]) -> str:
    found = hashlib.sha256()
    for file in paths:
        if Path(file).is_file():
            with open_regular(file) as opened:
                while chunk := opened.read(_CHUNK):
                    found.update(chunk)
    return found.hexdigest()
