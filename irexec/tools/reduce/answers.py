"""Answers of a check, kept in a file: an interrupted reduction resumes without checking candidates again.

The first line of the file is JSON about the model and the check; each other line is the answer for one candidate. A
reduction is deterministic: with the answers from the file it repeats its steps up to the interruption.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from irexec.errors import InputError, ModelError

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
                self._begin(self.path)
            with open(self.path, "ab") as file:
                file.write(f"{key} {'fails' if fails else 'passes'}\n".encode())
        except OSError as error:
            raise ModelError(f"{self.path}: cannot be written: {error.strerror or error}") from None

    def _begin(self, path: Path) -> None:
        """Cut an unfinished line off a file that is taken over; otherwise write the first line."""
        if self._is_taken_over:
            os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
        else:
            path.write_bytes(f"{self._head}\n".encode())
        self._is_begun = True

    def delete(self) -> None:
        """Delete the file: the reduction is complete."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
