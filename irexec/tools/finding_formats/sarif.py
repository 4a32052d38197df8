"""SARIF 2.1.0, the format of results of static analysis that code scanning of GitHub, Azure DevOps and editors read.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from irexec.analysis.codes import CODES
from irexec.ir.code_table import Code, Severity
from irexec.ir.findings import Finding
from irexec.tools.finding_formats.locations import UNREADABLE, layer, message, uri
from irexec.tools.validation.files import FileReport

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_FINGERPRINT = "irexecFinding/v1"
_ROOT = "%SRCROOT%"


def sarif_log(reports: Sequence[FileReport], version: str) -> dict[str, Any]:
    """The log as what json.dumps takes: one run, with a rule for each code that was found, and a result for each
    finding.

    Paths are relative to the working folder where the files are below it. A file that cannot be read is a result too,
    of the rule "unreadable", and a notification of the run. ``version`` is that of irexec.
    """
    found = sorted({finding.code for report in reports for finding in report.findings})
    rules = [_rule(CODES[code]) for code in found] + ([_UNREADABLE_RULE] if any(r.error for r in reports) else [])
    index = {rule["id"]: i for i, rule in enumerate(rules)}
    results = [result | {"ruleIndex": index[result["ruleId"]]} for report in reports for result in _results(report)]
    run = {
        "tool": {"driver": {"name": "irexec", "version": version, "semanticVersion": version, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(reports)],
        "artifacts": [{"location": _artifact(report.path)} for report in reports],
        "results": results,
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: Code) -> dict[str, Any]:
    meaning = f"{code.meaning[:1].upper()}{code.meaning[1:]}."
    fence = "text" if code.code.startswith("ON") else "xml"
    return {
        "id": code.code,
        "name": "".join(word[:1].upper() + word[1:] for word in re.findall(r"\w+", code.name)),
        "shortDescription": {"text": f"{code.name[:1].upper()}{code.name[1:]}"},
        "fullDescription": {"text": meaning},
        "help": {
            "text": f"{meaning}\n\nExample:\n{code.example}\n\nRepair: {code.repair}",
            "markdown": f"{meaning}\n\n**Example**\n\n```{fence}\n{code.example}\n```\n\n**Repair:** {code.repair}",
        },
        "defaultConfiguration": {"level": _LEVELS[code.severity]},
        "properties": {
            "tags": ["model"],
            "problem.severity": {"info": "recommendation"}.get(code.severity, code.severity),
        },
    }


_UNREADABLE_RULE: dict[str, Any] = {
    "id": UNREADABLE,
    "name": "UnreadableFile",
    "shortDescription": {"text": "Unreadable file"},
    "fullDescription": {"text": "The file cannot be read as a model."},
    "help": {"text": "Correct the file, or leave it out."},
    "defaultConfiguration": {"level": "error"},
    "properties": {"tags": ["model"], "problem.severity": "error"},
}


def _results(report: FileReport) -> list[dict[str, Any]]:
    artifact = _artifact(report.path)
    if report.error is not None:
        location = {"physicalLocation": {"artifactLocation": artifact}}
        return [_result(UNREADABLE, "error", report.error, location, _fingerprint([artifact["uri"], UNREADABLE]))]
    seen: Counter[str] = Counter()
    found = []
    for finding in report.findings:
        # Lines move when something is inserted, so they are not part of it.
        parts = [artifact["uri"], finding.code, *map(str, (finding.layer_name, finding.layer_type, finding.port))]
        key = "\0".join(parts)
        fingerprint = _fingerprint([*parts, str(seen[key])])
        found.append(
            _result(
                finding.code, _LEVELS[finding.severity], message(finding), _location(artifact, finding), fingerprint
            )
        )
        seen[key] += 1
    return found


def _result(rule: str, level: str, text: str, location: dict[str, Any], fingerprint: str) -> dict[str, Any]:
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": text},
        "locations": [location],
        "partialFingerprints": {_FINGERPRINT: fingerprint},
    }


def _location(artifact: dict[str, Any], finding: Finding) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": artifact}
    if finding.line is not None:
        physical["region"] = {"startLine": finding.line}
    name = layer(finding)
    if not name:
        return {"physicalLocation": physical}
    logical: dict[str, Any] = {"name": finding.layer_name or name, "fullyQualifiedName": name, "kind": "element"}
    details = {"layerId": finding.layer_id, "layerType": finding.layer_type, "port": finding.port}
    logical["properties"] = {key: value for key, value in details.items() if value is not None}
    return {"physicalLocation": physical, "logicalLocations": [logical]}


def _artifact(path: str) -> dict[str, Any]:
    artifact = uri(path)
    return {"uri": artifact} if artifact.startswith("file:") else {"uri": artifact, "uriBaseId": _ROOT}


def _invocation(reports: Sequence[FileReport]) -> dict[str, Any]:
    unreadable = [report for report in reports if report.error is not None]
    notifications = [
        {
            "level": "error",
            "message": {"text": report.error},
            "locations": [{"physicalLocation": {"artifactLocation": _artifact(report.path)}}],
        }
        for report in unreadable
    ]
    return {"executionSuccessful": not unreadable} | (
        {"toolExecutionNotifications": notifications} if notifications else {}
    )


def _fingerprint(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
