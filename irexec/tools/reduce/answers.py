"""What has been tried, kept in a file, so that an interrupted reduction goes on without trying it again.

The first line of the file is JSON that says what is reduced and how; each other line is the answer for one candidate. A reduction is deterministic:
when it is begun again and every candidate that was tried has its answer from the file, it comes to where it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from irexec.errors import InputError, ModelError

FORMAT = "irexec reduce 1"
"""What the first line of the file says that it is."""


class Answers:
    """Whether candidates failed as the model does, by the keys of their parts.

    Args:
        path: the file; None keeps nothing.
        about: what is reduced and how.
        resume: whether to take over what the file has; otherwise it is begun anew.

    Attributes:
        known: the answers.
        resumed: how many of them come from the file.

    Raises:
        InputError: the file is of another reduction.
        ModelError: it cannot be read or written.
    """

    def __init__(self, path: Path | None, about: Mapping[str, Any], *, resume: bool) -> None:
        self.path, self.known = path, dict[str, bool]()
        self._head = json.dumps({"format": FORMAT, **about}, sort_keys=True)
        self._file: IO[str] | None = None
        if resume and path is not None and path.exists():
            self._read(path)
        self.resumed = len(self.known)

    def _read(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"{path}: cannot be read: {error}") from None
        if lines[0] != self._head:
            raise InputError(f"{path} is of another model, check or set of options: without --resume the reduction begins anew")
        # What follows the last line break was not written to its end.
        for line in lines[1:-1]:
            key, _, answer = line.partition(" ")
            self.known[key] = answer == "fails"

    def add(self, key: str, fails: bool) -> None:
        """Keep an answer, which is in the file when this returns."""
        self.known[key] = fails
        if self.path is None:
            return
        try:
            if self._file is None:
                self._file = self._opened(self.path)
            self._file.write(f"{key} {'fails' if fails else 'passes'}\n")
            self._file.flush()
        except OSError as error:
            raise ModelError(f"{self.path}: cannot be written: {error.strerror or error}") from None

    def _opened(self, path: Path) -> IO[str]:
        """The file, with what has been taken over from it and no unfinished line."""
        if self.resumed and path.exists():
            content = path.read_bytes()
            os.truncate(path, content.rfind(b"\n") + 1)
            return open(path, "a", encoding="utf-8")
        file = open(path, "w", encoding="utf-8")
        file.write(f"{self._head}\n")
        return file

    def close(self, *, delete: bool) -> None:
        """Close the file; delete it where the reduction is complete."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if delete and self.path is not None:
            self.path.unlink(missing_ok=True)
