"""Findings of validation in the formats of other programs: SARIF, workflow commands of GitHub, and JUnit XML.

Sources: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0; GitHub's documentation, "Workflow
commands for GitHub Actions"; the schema of Jenkins' xUnit plugin (junit-10.xsd), which other programs read too.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from irexec.analysis.codes import CODES
from irexec.ir.codes import Code, Severity, by_number
from irexec.ir.findings import Finding, layer_text
from irexec.messages import cut, visible
from irexec.tools.validation import STDIN, FileReport

UNREADABLE = "unreadable"
"""The code of a file that cannot be read at all; no finding has this code."""

_LONGEST = 300


def relative(path: str) -> PurePath:
    """The path from the working folder, if the file is below it; else as given. Standard input is a file "stdin"."""
    if path == STDIN:
        return PurePath("stdin")
    full, folder = os.path.abspath(path), os.getcwd()
    return PurePath(os.path.relpath(full, folder)) if Path(full).is_relative_to(folder) else PurePath(path)


def uri(path: str) -> str:
    """A relative reference for a file below the working folder, else a file: URI."""
    target = relative(path)
    if target.is_absolute() or ".." in target.parts:
        return "file://" + quote(_bytes(f"/{Path(os.path.abspath(path)).as_posix().lstrip('/')}"), safe="/:")
    return quote(_bytes(target.as_posix()))


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogatepass")


def layer(finding: Finding) -> str:
    """The layer on one line, such as "4 conv0 (Add)"; empty for a finding of the whole model."""
    return visible(cut(layer_text(finding), _LONGEST))


def message(finding: Finding) -> str:
    """The layer and what is wrong with it."""
    where = layer(finding)
    return f"{where}: {finding.message}" if where else finding.message


_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def github_lines(reports: Iterable[FileReport]) -> Iterator[str]:
    """One command for each finding and each file that cannot be read."""
    for report in reports:
        file = str(relative(report.path))
        if report.error is not None:
            yield workflow_command("error", {"file": file, "title": UNREADABLE}, report.error)
        for finding in report.findings:
            line = {} if finding.line is None else {"line": str(finding.line)}
            properties = {"file": file, **line, "title": f"{finding.code} {CODES[finding.code].name}"}
            yield workflow_command(_COMMANDS[finding.severity], properties, message(finding))


def workflow_command(name: str, properties: dict[str, str], text: str) -> str:
    """A command with properties and a text."""
    written = (f"{key}={_data(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in properties.items())
    return f"::{name} {','.join(written)}::{_data(text)}"


def _data(text: str) -> str:
    """The text with escapes for the characters that end a command, and for characters that a terminal obeys."""
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


# XML excludes these beside control characters and surrogates, for which ``visible`` writes escapes.
_NO_CHARACTERS = re.compile("[\ufffe\uffff]")


def junit_xml(reports: Sequence[FileReport]) -> str:
    """The document: errors and warnings are failures, infos the output of passing tests, unreadable files errors.

    A file without findings is a passing test case. The time of a file is divided evenly between its cases.
    """
    suites = [_suite(report) for report in reports]
    counts = {name: str(sum(int(suite.attrib[name]) for suite in suites)) for name in ("tests", "failures", "errors")}
    seconds = sum(float(suite.attrib["time"]) for suite in suites)
    root = Element("testsuites", {"name": "irexec validate", **counts, "time": f"{seconds:.3f}"})
    root.extend(suites)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _suite(report: FileReport) -> Element:
    file = _text(str(relative(report.path)))
    suite = Element("testsuite", name=file)
    if report.error is not None:
        case = SubElement(suite, "testcase", name="read", classname=file)
        SubElement(case, "error", type=UNREADABLE, message=_text(report.error))
    elif not report.findings:
        SubElement(suite, "testcase", name="validate", classname=file)
    for finding in report.findings:
        suite.append(_case(file, finding))
    counts = {"tests": "testcase", "failures": "testcase/failure", "errors": "testcase/error"}
    suite.attrib |= {name: str(len(suite.findall(path))) for name, path in counts.items()}
    cases = suite.findall("testcase")
    suite.set("time", f"{report.seconds:.3f}")
    for case in cases:
        case.set("time", f"{report.seconds / len(cases):.3f}")
    return suite


def _case(file: str, finding: Finding) -> Element:
    where = [finding.code, "" if finding.line is None else f"line {finding.line}", layer(finding)]
    port = "" if finding.port is None else f"port {finding.port}"
    case = Element("testcase", name=_text(" ".join(part for part in [*where, port] if part)), classname=file)
    text = _text(f"{finding.at(file)}: {finding.message}\n{CODES[finding.code].repair}")
    if finding.severity == "info":
        SubElement(case, "system-out").text = text
    else:
        kind = f"{finding.severity} {finding.code}: {CODES[finding.code].name}"
        SubElement(case, "failure", type=_text(kind), message=_text(finding.message)).text = text
    return case


def _text(text: str) -> str:
    """A text in which every character may stand in XML; lines stay lines."""
    return "\n".join(
        visible(_NO_CHARACTERS.sub(lambda found: ascii(found[0])[1:-1], line)) for line in text.split("\n")
    )


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
    found = sorted({finding.code for report in reports for finding in report.findings}, key=by_number)
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
        location = _location(artifact, finding)
        found.append(_result(finding.code, _LEVELS[finding.severity], message(finding), location, fingerprint))
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
    found = {"toolExecutionNotifications": notifications} if notifications else {}
    return {"executionSuccessful": not unreadable} | found


def _fingerprint(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
