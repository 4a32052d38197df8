"""Workflow commands of GitHub Actions: a finding becomes an annotation of the file's line in a pull request.

Source: GitHub's documentation, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irexec.analysis.codes import CODES
from irexec.ir.findings import Finding
from irexec.messages import visible
from irexec.tools.finding_formats.locations import UNREADABLE, message, relative
from irexec.tools.validation.files import FileReport

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def github_lines(reports: Iterable[FileReport]) -> Iterator[str]:
    """One command for each finding and each file that cannot be read."""
    for report in reports:
        file = str(relative(report.path))
        if report.error is not None:
            yield workflow_command("error", {"file": file, "title": UNREADABLE}, report.error)
        for finding in report.findings:
            yield workflow_command(_COMMANDS[finding.severity], _properties(file, finding), message(finding))


def _properties(file: str, finding: Finding) -> dict[str, str]:
    line = {} if finding.line is None else {"line": str(finding.line)}
    return {"file": file, **line, "title": f"{finding.code} {CODES[finding.code].name}"}


def workflow_command(name: str, properties: dict[str, str], text: str) -> str:
    """A command with properties and a text."""
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {given}::{_data(text)}"


def _data(text: str) -> str:
    """The text with escapes for the characters that end a command, and for characters that a terminal obeys."""
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
