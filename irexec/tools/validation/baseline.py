"""A baseline: known findings, which no longer count."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from irexec.errors import InputError, ModelError
from irexec.messages import counted
from irexec.tools.validation.files import FileReport

Key = tuple[str, str, str, int | None]
"""File, code, layer and port of a finding. Lines, ids of layers with a name and texts change with edits elsewhere."""


@dataclass(frozen=True)
class Baseline:
    """Known findings.

    Attributes:
        path: the file.
        known: the number of known findings by key.
    """

    path: str
    known: Mapping[Key, int]

    def apply(self, reports: Iterable[FileReport], ignore: Collection[str] = ()) -> tuple[list[FileReport], int]:
        """The reports without known findings, and the number of known findings of these files that no longer occur.

        Args:
            reports: the reports of a run.
            ignore: the codes that the run leaves out.
        """
        left = Counter(self.known)
        found = []
        files = set()
        for report in reports:
            new = []
            files.add(_file(report.path))
            for finding in report.findings:
                key = _key(report.path, finding.code, finding.layer_name, finding.layer_id, finding.port)
                if left[key] > 0:
                    left[key] -= 1
                else:
                    new.append(finding)
            known = len(report.findings) - len(new)
            found.append(replace(report, findings=tuple(new), known=report.known + known))
        gone = {key: count for key, count in left.items() if key[0] in files and key[1] not in ignore}
        return found, sum(gone.values())


def read_baseline(path: str) -> Baseline:
    """Read the document that ``irexec validate --json`` prints.

    Raises:
        ModelError: the file cannot be read.
        InputError: it is not such a document.
    """
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        reason = error.strerror or error
        raise ModelError(f"{path}: {reason}; irexec validate --json > {path} writes a baseline") from None
    except ValueError as error:
        raise InputError(f"{path}: not a document of irexec validate --json: {error}") from None
    rows = document.get("findings") if isinstance(document, dict) else None
    if not isinstance(rows, list) or document.get("schema") != 1:
        raise InputError(f"{path}: not a document of irexec validate --json, which has 'schema': 1 and 'findings'")
    return Baseline(path, Counter(_row_key(path, row) for row in rows))


def _row_key(path: str, row: Any) -> Key:
    names: tuple[tuple[str, type | tuple[type, ...]], ...] = (
        ("model", str), ("code", str), ("layer_name", (str, type(None))), ("layer_id", (int, type(None))),
        ("port", (int, type(None))),
    )  # fmt: skip
    for name, kind in names:
        if not isinstance(row, dict) or name not in row or not isinstance(row[name], kind):
            raise InputError(f"{path}: a finding has no valid {name!r}")
    return _key(row["model"], row["code"], row["layer_name"], row["layer_id"], row["port"])


def _key(model: str, code: str, layer_name: str | None, layer_id: int | None, port: int | None) -> Key:
    layer = layer_name if layer_name is not None else "" if layer_id is None else str(layer_id)
    return _file(model), code, layer, port


def _file(path: str) -> str:
    return PurePath(os.path.normpath(path)).as_posix()


def gone_text(baseline: Baseline, gone: int) -> str:
    """The note about known findings that no longer occur."""
    return f"{counted(gone, 'finding')} of {baseline.path} no longer {'occurs' if gone == 1 else 'occur'}"
