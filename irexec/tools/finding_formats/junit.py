"""JUnit XML: a test suite for each file, and in it a test case for each finding.

The elements and attributes are those of the schema of Jenkins' xUnit plugin (junit-10.xsd), which other programs read
too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from irexec.analysis.codes import CODES
from irexec.ir.findings import Finding
from irexec.messages import visible
from irexec.tools.finding_formats.locations import UNREADABLE, layer, relative
from irexec.tools.validation.files import FileReport

# XML excludes these beside control characters and surrogates, for which ``visible`` writes escapes.
_NO_CHARACTERS = re.compile("[\ufffe\uffff]")


def junit_xml(reports: Sequence[FileReport]) -> str:
    """The document: errors and warnings are failures, infos the output of passing tests, unreadable files errors.

    A file without findings is a passing test case. The time of a file is divided evenly between its cases.
    """
    suites = [_suite(report) for report in reports]
    root = Element("testsuites", {"name": "irexec validate", **_sums(suites)})
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


def _sums(suites: Sequence[Element]) -> dict[str, str]:
    counts = {name: str(sum(int(suite.attrib[name]) for suite in suites)) for name in ("tests", "failures", "errors")}
    return counts | {"time": f"{sum(float(suite.attrib['time']) for suite in suites):.3f}"}


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
