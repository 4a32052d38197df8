"""Validation of many files, in several processes, against a baseline of known findings."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from irexec.analysis.codes import find_code
from irexec.analysis.execution_graph import is_execution_graph
from irexec.analysis.model import blocking_constant
from irexec.analysis.validate import validate
from irexec.display import Content, Text
from irexec.errors import ConversionError, InputError, ModelError, UnsupportedError
from irexec.io.processes import begin_worker
from irexec.ir import codes
from irexec.ir.findings import Finding, count_text, counts_of
from irexec.ir.graph import ModelGraph, Node
from irexec.messages import counted
from irexec.reading import read_tolerant
from irexec.records import Shown
from irexec.schema.registry import resolve

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

    from irexec.tools.run.shapes import Shapes


STDIN = "-"


@dataclass(frozen=True, repr=False)
class FileReport(Shown):
    """The validation of one file.

    Attributes:
        path: as given, or below the folder that was given; "-" for standard input.
        findings: the findings that are neither ignored nor known, by XML line.
        ignored: the number of findings with an ignored code.
        error: the reason why the file could not be read; None if it was read.
        known: the number of findings of the baseline.
        seconds: the time of reading and validating.
    """

    path: str
    findings: tuple[Finding, ...]
    ignored: int = 0
    error: str | None = None
    known: int = 0
    seconds: float = field(default=0.0, compare=False)

    @property
    def counts(self) -> dict[str, int]:
        """The number of findings by severity, the worst first; severities that do not occur are left out."""
        return counts_of(self.findings)

    @property
    def is_clean(self) -> bool:
        """Whether the file was read and nothing but info was found."""
        return self.error is None and not {"error", "warning"} & self.counts.keys()

    def __repr__(self) -> str:
        return f"<Report {self.path}: {self.error or count_text(self.findings)}>"

    def sections(self) -> list[Content]:
        """The findings, and their number."""
        name = "stdin" if self.path == STDIN else self.path
        counts = count_text(self.findings, ignored=self.ignored, known=self.known)
        table: list[Content] = []
        if self.findings:
            from irexec.tools.sections.models import findings_table

            table.append(findings_table(self.findings))
        return [*table, f"{name}: {self.error or counts}"]

    def as_dict(self) -> dict[str, Any]:
        """The report for JSON, without the findings."""
        return {
            "model": self.path,
            "counts": self.counts,
            "ignored": self.ignored,
            "known": self.known,
            "error": self.error,
        }


def reports_sections(reports: Sequence[FileReport]) -> list[Content]:
    """The reports of files, and the number of all findings where there are several files; of a single file that was not
    read nothing, since the error says it.
    """
    is_single = len(reports) == 1
    found: list[Content] = [
        Text(str(one.error), "error") if one.error is not None else one.sections()
        for one in reports
        if one.error is None or not is_single
    ]
    if not is_single:
        ignored, known = sum(one.ignored for one in reports), sum(one.known for one in reports)
        unreadable = {"not readable": sum(one.error is not None for one in reports)}
        counts = count_text(
            (each for one in reports for each in one.findings), ignored=ignored, known=known, **unreadable
        )
        found.append(f"{counted(len(reports), 'file')}: {counts}")
    return found


def find_files(paths: Sequence[str]) -> list[str]:
    """Files of the given paths, in their order. A folder stands for every .xml and .onnx in it and in its subfolders.

    Raises:
        InputError: a folder contains no model.
    """
    files: list[str] = []
    for path in paths:
        if path != STDIN and Path(path).is_dir():
            inside = sorted(
                file for file in Path(path).rglob("*") if file.suffix.lower() in (".xml", ".onnx") and file.is_file()
            )
            if not inside:
                raise InputError(f"{path}: the folder contains no .xml or .onnx")
            files += map(str, inside)
        else:
            files.append(path)
    return files


def parse_codes(codes: Sequence[str]) -> set[str]:
    """The codes as the findings have them; raises InputError for one that does not exist."""
    known = {code: find_code(code) for code in codes}
    unknown = sorted(code for code, row in known.items() if row is None)
    if unknown:
        raise InputError(f"there is no finding code {unknown[0].upper()!r}; irexec explain lists all codes")
    return {row.code for row in known.values() if row is not None}


def report(
    path: str, *, bin_path: str | None = None, mmap: bool = True, weights: bool = False, portability: bool = False,
    release: str | None = None, shapes: Shapes | None = None, ignore: Collection[str] = (),
    progress: Callable[[float], None] | None = None,
) -> FileReport:  # fmt: skip
    """Validate one file.

    Args:
        path: an .xml or .onnx, or "-" for either on stdin. The findings of an ONNX model are the obstacles to its
            conversion or, without obstacles, the findings of the converted IR.
        bin_path: the .bin of an .xml, if not the file of the same name beside it; none for an .xml from stdin.
        mmap: as for read_model.
        weights, portability, release: as for irexec.validate.
        shapes: shapes of inputs by name; None is the only input. Findings that exist only with these shapes are
            reported too, and an ONNX model that cannot be converted without them is converted with them.
        ignore: codes that are left out.
        progress: called with each part of the work that is done: 1 for reading and 1 for validating.

    Raises:
        InputError: the release or input does not exist.
        ModelError, UnsupportedError, ConversionError: the file cannot be read at all.
    """
    start = time.perf_counter()
    source = sys.stdin.buffer if path == STDIN else path
    model, findings = read_tolerant(source, bin_path, mmap=mmap, progress=progress, inputs=shapes)
    if model is not None:
        findings += validate(model, weights=weights, portability=portability, release=release, progress=progress)
    if model is not None and release is not None and not is_execution_graph(model):
        # The editor is imported only where it is used.
        from irexec.authoring.downgrade import downgrade

        findings += [one for one in downgrade(model, release).findings if one.code == codes.NOT_WRITTEN_FOR_RELEASE]
    if model is not None and shapes:
        from irexec.tools.run.shapes import reshape

        reshape(model, shapes, tolerant=True)
        known = {(one.code, one.layer_id, one.layer_name, one.port) for one in findings}
        for one in validate(model, portability=portability):
            if (one.code, one.layer_id, one.layer_name, one.port) not in known:
                findings.append(_with_constant(one, model))
    kept = [finding for finding in findings if finding.code not in ignore]
    once = kept if model is None else _said_once(kept, model)
    return FileReport(path, tuple(once), len(findings) - len(kept), seconds=time.perf_counter() - start)


_NOT_OF_OPENVINO = (codes.NOT_IN_RELEASE, codes.OWN_OPERATION, "IR967", codes.NOT_WRITTEN_FOR_RELEASE)
"""The codes of an operation that OpenVINO does not have, from the first choice to the last."""


def _said_once(findings: Sequence[Finding], model: ModelGraph) -> list[Finding]:
    """The findings, of which one says of a layer that OpenVINO does not have its operation."""
    others = {(node.id, node.name) for node in model.nodes if _is_other(node)}
    about = {
        i: _NOT_OF_OPENVINO.index(one.code) for i, one in enumerate(findings)
        if one.code in _NOT_OF_OPENVINO and (one.layer_id, one.layer_name) in others
    }  # fmt: skip
    chosen = {
        (findings[i].layer_id, findings[i].layer_name): rank for i, rank in sorted(about.items(), key=lambda x: -x[1])
    }
    # The last choice only repeats what the first says of all layers of a type.
    return [
        one for i, one in enumerate(findings)
        if i not in about or about[i] == chosen[one.layer_id, one.layer_name] < len(_NOT_OF_OPENVINO) - 1
    ]  # fmt: skip


def _is_other(node: Node) -> bool:
    try:
        return isinstance(resolve(node.type, node.version).since, str)
    except UnsupportedError:
        return False


def _with_constant(finding: Finding, model: ModelGraph) -> Finding:
    """A finding that exists only with the shapes given, with the constant that blocks them."""
    if finding.code != codes.WRONG_INPUTS:
        return finding
    node = next((one for one in model.nodes if (one.id, one.name) == (finding.layer_id, finding.layer_name)), None)
    return replace(finding, message=f"{finding.message}{blocking_constant(node)}")


def report_always(path: str, **options: Any) -> FileReport:
    """The same as ``report``, but the reason why a file cannot be read is part of the report."""
    start = time.perf_counter()
    try:
        return report(path, **options)
    except (ConversionError, ModelError, UnsupportedError) as error:
        return FileReport(path, (), error=str(error), seconds=time.perf_counter() - start)


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


_DIED = "the process that validated it ended: there may be not enough memory, or it crashed"

_Warned = tuple[FileReport, list[Warning]]


def reports(files: Sequence[str], jobs: int = 1, **options: Any) -> Iterator[FileReport]:
    """Validate files, in their order.

    A process that dies does not hide the other files: its files are validated again, each in a process of its own.

    Args:
        files: paths, or "-" for standard input.
        jobs: the number of processes; 1 is this process, which validates where others cannot be started (Pyodide).
        options: as for ``report``.

    Raises:
        InputError: this process cannot start others.
    """
    inside = [path for path in files if path != STDIN]
    if jobs == 1 or len(inside) < 2 or find_spec("_multiprocessing") is None:
        yield from (report_always(path, **options) for path in files)
        return
    import multiprocessing

    if multiprocessing.current_process().daemon:
        raise InputError("jobs cannot be started from a daemonic process: start this one with daemon=False")
    pool = _pool(min(jobs, len(inside)))
    try:
        futures = {path: pool.submit(_validated, path, options) for path in dict.fromkeys(inside)}
        for path in files:
            yield report_always(path, **options) if path == STDIN else _result(path, futures[path], options)
    except BaseException:
        # The files under way may take minutes.
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _pool(count: int) -> ProcessPoolExecutor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # Processes are spawned, not forked: a fork of a process with threads may hang.
    return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), begin_worker)


def _validated(path: str, options: dict[str, Any]) -> _Warned:
    with warnings.catch_warnings(record=True) as caught:
        found = report_always(path, **options)
    return found, [one.message for one in caught if isinstance(one.message, Warning)]


def _result(path: str, future: Future[_Warned], options: dict[str, Any]) -> FileReport:
    from concurrent.futures import BrokenExecutor

    try:
        found, warned = future.result()
    except BrokenExecutor:
        with _pool(1) as pool:
            try:
                found, warned = pool.submit(_validated, path, options).result()
            except BrokenExecutor:
                return FileReport(path, (), error=f"{path}: {_DIED}")
    for warning in warned:
        warnings.warn(warning, stacklevel=2)
    return found
