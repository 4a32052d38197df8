"""SARIF, workflow commands of GitHub and JUnit XML: what programs read of findings, with names that were made to break them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from irexec.analysis.codes import CODES
from irexec.cli.main import run
from irexec.ir.findings import Finding
from irexec.tools.finding_formats import github_lines, junit_xml
from irexec.tools.finding_formats import sarif_log as log_of
from irexec.tools.validation import FileReport

ROOT = Path(__file__).parent.parent.parent
DIGITS = ROOT / "samples" / "digits"
Capture = pytest.CaptureFixture[str]

HOSTILE = (
    "a\nb\r\n::error file=x::gone",
    "]]></failure></testsuite>",
    "\x00\x01\x1b[31mred\x7f\x85\u2028\u202e",
    "x" * 10_000,
    "per%0Acent, colon: comma",
    '"><script>alert(1)</script>&amp;',
    "\ud800 lone, \uffff none",
    "Größe, 層",
)


def _finding(
    name: str | None = "conv",
    severity: str = "error",
    code: str = "IR107",
    line: int | None = 3,
    port: int | None = None,
) -> Finding:
    layer = (4, name, "Add") if name is not None else (None, None, None)
    return Finding(code, severity, *layer, port, line, f"{name} does not fit")


def sarif_log(reports: Sequence[FileReport]) -> dict[str, Any]:
    return log_of(reports, "1.2.3")


def _github(reports: Sequence[FileReport]) -> list[dict[str, str]]:
    """The commands, read as GitHub's runner reads them."""
    found = []
    undo = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}
    for line in "\n".join(github_lines(reports)).split("\n"):
        match = re.fullmatch(r"::(\w+) (.*?)::(.*)", line)
        assert match, line
        pairs = dict(part.split("=", 1) for part in match[2].split(","))
        pairs = {key: re.sub("%(0D|0A|3A|2C|25)", lambda m: undo[m[0]], value) for key, value in pairs.items()}
        found.append({"command": match[1], **pairs, "message": re.sub("%(0D|0A|25)", lambda m: undo[m[0]], match[3])})
    return found


REPORTS = (
    FileReport("models/a.xml", (_finding(), _finding(port=1), _finding(None, "warning", "IR303", None), _finding(severity="info", code="IR007"))),
    FileReport("models/b.xml", ()),
    FileReport("models/c.onnx", (_finding(line=None), _finding(line=None))),
    FileReport("d.xml", (), error="d.xml: not XML"),
)  # fmt: skip


def test_github_commands() -> None:
    found = _github(REPORTS)
    assert [one["command"] for one in found] == ["error", "error", "warning", "notice", "error", "error", "error"]
    assert found[0] == {
        "command": "error", "file": os.path.join("models", "a.xml"), "line": "3", "title": "IR107 inputs do not fit", "message": "4 conv (Add): conv does not fit",
    }  # fmt: skip
    assert "line" not in found[4]
    assert found[6] == {"command": "error", "file": "d.xml", "title": "unreadable", "message": "d.xml: not XML"}


def test_junit() -> None:
    root = ElementTree.fromstring(junit_xml(REPORTS))
    assert root.attrib == {"name": "irexec validate", "tests": "8", "failures": "5", "errors": "1", "time": "0.000"}
    assert [(s.get("name"), s.get("tests"), s.get("failures"), s.get("errors")) for s in root] == [
        (os.path.join("models", "a.xml"), "4", "3", "0"), (os.path.join("models", "b.xml"), "1", "0", "0"),
        (os.path.join("models", "c.onnx"), "2", "2", "0"), ("d.xml", "1", "0", "1"),
    ]  # fmt: skip
    assert root[0][3].find("system-out") is not None


def test_sarif() -> None:
    log = sarif_log(REPORTS)
    (one,) = log["runs"]
    rules = one["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["IR007", "IR107", "IR303", "unreadable"]
    assert [rule["defaultConfiguration"]["level"] for rule in rules] == ["note", "error", "error", "error"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in one["results"])
    first, second, of_model = one["results"][:3]
    assert first["locations"] == [{
        "physicalLocation": {"artifactLocation": {"uri": "models/a.xml", "uriBaseId": "%SRCROOT%"}, "region": {"startLine": 3}},
        "logicalLocations": [{"name": "conv", "fullyQualifiedName": "4 conv (Add)", "kind": "element", "properties": {"layerId": 4, "layerType": "Add"}}],
    }]  # fmt: skip
    assert second["locations"][0]["logicalLocations"][0]["properties"]["port"] == 1
    assert "region" not in of_model["locations"][0]["physicalLocation"]
    assert "logicalLocations" not in of_model["locations"][0]
    prints = [result["partialFingerprints"]["irexecFinding/v1"] for result in one["results"]]
    assert len(set(prints)) == len(prints)
    assert one["invocations"][0]["executionSuccessful"] is False


def test_fingerprints_do_not_depend_on_lines() -> None:
    def prints(*findings: Finding) -> list[str]:
        (one,) = sarif_log([FileReport("a.xml", findings)])["runs"]
        return [result["partialFingerprints"]["irexecFinding/v1"] for result in one["results"]]

    assert prints(_finding(line=3)) == prints(_finding(line=99))
    assert prints(_finding("x")) != prints(_finding("y"))
    assert prints(_finding(code="IR107")) != prints(_finding(code="IR105"))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_and_paths(name: str) -> None:
    reports = [
        FileReport(name, (_finding(name), _finding(name, "info", "IR007", None, 3))),
        FileReport(name, (), error=f"{name} cannot be read"),
    ]
    for text in github_lines(reports):
        assert re.search("[\x00-\x1f\x7f-\x9f\u2028\u202e]", text) is None
    found = _github(reports)
    assert [one["command"] for one in found] == ["error", "notice", "error"]
    assert set(found[0]) == {"command", "file", "line", "title", "message"}
    etree.fromstring(junit_xml(reports).encode())
    root = ElementTree.fromstring(junit_xml(reports))
    assert (len(root), root.get("tests"), len(root.findall(".//failure"))) == (2, "3", 1)
    log = json.loads(json.dumps(sarif_log(reports)))
    results = log["runs"][0]["results"]
    assert len(results) == 3
    assert results[0]["locations"][0]["logicalLocations"][0]["name"] == name
    assert re.fullmatch(
        r"[A-Za-z0-9%._~/\-]+", results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    )


@given(st.text(max_size=40), st.text(min_size=1, max_size=40))
def test_any_text(name: str, path: str) -> None:
    reports = [FileReport(path, (_finding(name),))]
    (one,) = _github(reports)
    assert one["line"] == "3"
    etree.fromstring(junit_xml(reports).encode())
    json.dumps(sarif_log(reports))


def test_paths_below_the_working_folder_are_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def uri(path: str) -> dict[str, str]:
        return sarif_log([FileReport(path, (_finding(),))])["runs"][0]["results"][0]["locations"][0][
            "physicalLocation"
        ]["artifactLocation"]

    assert uri(str(tmp_path / "sub" / "a b.xml")) == {"uri": "sub/a%20b.xml", "uriBaseId": "%SRCROOT%"}
    assert uri("./sub/../a.xml") == {"uri": "a.xml", "uriBaseId": "%SRCROOT%"}
    assert uri("-") == {"uri": "stdin", "uriBaseId": "%SRCROOT%"}
    outside = uri(str(tmp_path.parent / "a.xml"))
    assert list(outside) == ["uri"]
    assert unquote(outside["uri"]).endswith("/a.xml")
    assert outside["uri"].startswith("file:///")
    assert uri("../a.xml") == outside


def _sarif(text: str) -> int:
    return len(json.loads(text)["runs"][0]["results"])


def _junit(text: str) -> int:
    return len(ElementTree.fromstring(text).findall(".//testcase"))


FORMS: dict[str, Callable[[str], int]] = {
    "sarif": _sarif,
    "github": lambda text: len(text.splitlines()),
    "junit": _junit,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("arguments", "code", "counts"),
    [
        ([DIGITS / "classifier.xml"], 0, {"sarif": 0, "github": 0, "junit": 1}),
        ([DIGITS / "damaged.xml"], 1, {"sarif": 10, "github": 10, "junit": 10}),
        ([DIGITS / "damaged.xml", "--ignore", "IR302"], 1, {"sarif": 9, "github": 9, "junit": 9}),
        ([DIGITS / "classifier.xml", DIGITS / "damaged.xml"], 1, {"sarif": 10, "github": 10, "junit": 11}),
        ([ROOT / "pyproject.toml"], 3, {"sarif": 1, "github": 1, "junit": 1}),
        (["missing.xml"], 3, {"sarif": 1, "github": 1, "junit": 1}),
        ([DIGITS / "damaged.xml", "missing.xml"], 3, {"sarif": 11, "github": 11, "junit": 11}),
    ],
    ids=["clean", "damaged", "ignored", "several", "unreadable", "missing", "one is missing"],
)  # fmt: skip
def test_the_command(form: str, arguments: list[object], code: int, counts: dict[str, int], capsys: Capture) -> None:
    assert run(["validate", *map(str, arguments), "--format", form]) == code
    assert FORMS[form](capsys.readouterr().out) == counts[form]


def test_explanations_of_what_was_found(capsys: Capture) -> None:
    assert run(["validate", str(DIGITS / "damaged.xml"), "--explain"]) == 1
    text = capsys.readouterr().out
    codes = re.findall(r"(?m)^(IR\d+) .* \((?:error|warning|info)\)$", text)
    assert codes == ["IR011", "IR013", "IR103", "IR107", "IR202", "IR203", "IR204", "IR302", "IR401"]
    assert run(["validate", str(DIGITS / "damaged.xml"), "--explain", "--format", "sarif"]) == 2


def test_every_code_makes_a_rule() -> None:
    findings = tuple(_finding(code=code, severity=row.severity) for code, row in CODES.items())
    rules = sarif_log([FileReport("a.xml", findings)])["runs"][0]["tool"]["driver"]["rules"]
    assert len(rules) == len(CODES)
    assert all(re.fullmatch(r"[A-Z]\w*", rule["name"]) for rule in rules), [rule["name"] for rule in rules]


def test_it_is_what_the_published_schemas_describe(capsys: Capture) -> None:
    """Needs them as files, which environment variables name: OASIS's sarif-schema-2.1.0.json and Jenkins' junit-10.xsd."""
    sarif, junit = os.environ.get("SARIF_SCHEMA"), os.environ.get("JUNIT_SCHEMA")
    if not sarif or not junit:
        pytest.skip("SARIF_SCHEMA and JUNIT_SCHEMA are not set")
    schema = json.loads(Path(sarif).read_text("utf-8"))
    hostile = [
        FileReport(name, (_finding(name), _finding(name, "info", "IR007", None)), error=None) for name in HOSTILE[:6]
    ]
    validator = jsonschema.validators.validator_for(schema)(schema, format_checker=jsonschema.FormatChecker())
    for reports in (REPORTS, hostile, []):
        validator.validate(json.loads(json.dumps(sarif_log(reports))))
        etree.XMLSchema(etree.parse(junit)).assertValid(etree.fromstring(junit_xml(reports).encode()))
