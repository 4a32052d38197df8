"""Finding codes and checks of plug-ins: part of validate, explained like irexec's own, and every fault is one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import irexec
from irexec.analysis import codes
from irexec.analysis.validate import PLUGIN_CHECKS
from irexec.errors import InputError, PluginError
from irexec.ir import codes as code_table
from irexec.schema.plugins import VARIABLE
from tests.support.paths import DIGITS, ROOT

CHECK = """
import irexec
from irexec.plugins import finding_check, finding_code

LONG = finding_code(
    "lint:long", "{severity}", "long layer name", meaning="the name of a layer is longer than allowed",
    example='<layer id="0" name="a_very_long_name" type="Relu" version="opset1"/>', repair="Shorten the name.",
)

@finding_check
def long_names(model: irexec.Graph, inference: irexec.Inference):
    for node in model.walk():
        if len(node.name) > 5 and node.type == "MatMul":
            assert inference.facts[node.outputs[0]].rank == 2
            yield node.finding(LONG, f"the name has {len(node.name)} characters, more than 5")
"""
MODEL = str(DIGITS / "classifier.xml")


def _irexec(folder: Path, *arguments: str, code: int = 0, **variables: str) -> tuple[str, str]:
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-m", "irexec", *arguments],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT)} | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a plug-in that has a check."""
    (tmp_path / "lint.py").write_text(CHECK.replace("{severity}", "warning"))
    return tmp_path


def _matmul(folder: Path) -> str:
    x = irexec.opset.parameter([2, 3], "f32", "x")
    irexec.save_model(
        irexec.Model([irexec.opset.matmul(x, x, transpose_b=True, name="product")], [x]), folder / "m.xml"
    )
    return "m.xml"


def test_findings_in_every_format(folder: Path) -> None:
    model = _matmul(folder)
    message = "the name has 7 characters, more than 5"
    text, _ = _irexec(folder, "validate", model, "--plugin", "lint.py", "--explain", code=1)
    assert "lint:long" in text and message in text and "Repair: Shorten the name." in text
    document = json.loads(_irexec(folder, "validate", model, "--plugin", "lint.py", "--json", code=1)[0])
    (finding,) = document["findings"]
    assert (finding["code"], finding["severity"], finding["layer_name"]) == ("lint:long", "warning", "product")
    log = json.loads(_irexec(folder, "validate", model, "--plugin", "lint.py", "--format", "sarif", code=1)[0])
    (run,) = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["lint:long"]
    assert run["results"][0]["message"]["text"].endswith(message)
    for form in ("github", "junit"):
        assert message in _irexec(folder, "validate", model, "--plugin", "lint.py", "--format", form, code=1)[0]
    assert _irexec(folder, "validate", model, code=1, IREXEC_PLUGINS="lint.py")[0] == text.split("\n\nlint")[0] + "\n"
    assert _irexec(folder, "validate", model, "--plugin", "lint.py", "--ignore", "LINT:long")[0] == "m.xml: 1 ignored\n"
    assert _irexec(folder, "validate", model)[0] == "m.xml: no findings\n"


def test_an_error_of_a_check_is_exit_code_1(folder: Path) -> None:
    (folder / "lint.py").write_text(CHECK.replace("{severity}", "error"))
    assert "m.xml: 1 error" in _irexec(folder, "validate", _matmul(folder), "--plugin", "lint.py", code=1)[0]


def test_a_code_is_explained(folder: Path) -> None:
    for code in ("lint:long", "LINT:LONG"):
        assert _irexec(folder, "explain", code, "--plugin", "lint.py")[0].startswith(
            "lint:long long layer name (warning)"
        )
    assert "lint:long" in _irexec(folder, "explain", IREXEC_PLUGINS="lint.py")[0]
    error = _irexec(folder, "explain", "lint:lung", "--plugin", "lint.py", code=2)[1]
    assert error == "error: there is no finding code 'lint:lung'; similar codes are lint:long\n"


def test_a_model_is_reduced_to_a_finding_of_a_plugin(folder: Path) -> None:
    _irexec(folder, "reduce", _matmul(folder), "--finding", "lint:long", "-o", "small.xml", "--plugin", "lint.py")
    assert "lint:long" in _irexec(folder, "validate", "small.xml", "--plugin", "lint.py", code=1)[0]


_FAULTS = {
    "raise KeyError('x')": "raises KeyError: 'x'",
    "yield 'wrong'": "yields str, expected a Finding of node.finding(...)",
    "yield node.finding('lint:none', 'text')": "raises KeyError: 'lint:none'",
    "return 3": "raises TypeError: 'int' object is not iterable",
}


@pytest.mark.parametrize("fault", _FAULTS)
def test_a_fault_of_a_check_is_one_sentence(folder: Path, fault: str) -> None:
    source = f"from irexec.plugins import finding_check\n@finding_check\ndef bad(model, inference):\n    node = model.nodes[0]\n    {fault}\n"
    (folder / "bad.py").write_text(source)
    _, error = _irexec(folder, "validate", MODEL, "--plugin", "bad.py", code=3)
    assert f"the check bad of plug-in 'bad.py' ({folder / 'bad.py'}) {_FAULTS[fault]}" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("code", "severity", "message"),
    [
        ("IR103", "error", "expected a namespace and an identifier, such as 'my.ops:101'"),
        ("lint:a b", "error", "expected a namespace and an identifier"),
        ("lint:a", "fatal", "the severity is 'fatal', expected error, warning or info"),
    ],
)
def test_a_code_that_is_not_valid(code: str, severity: str, message: str) -> None:
    with pytest.raises(PluginError, match=message.replace(".", r"\.")):
        irexec.finding_code(code, severity, "a name", meaning="m", example="e", repair="r")  # type: ignore[arg-type]
    assert code == "IR103" or codes.find_code(code) is None


def test_a_plugin_that_fails_leaves_no_code_and_no_check(folder: Path) -> None:
    (folder / "lint.py").write_text(CHECK.replace("{severity}", "error") + "\nraise ValueError('no')\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(folder / "lint.py"))
        with pytest.raises(PluginError, match="ValueError: no"):
            irexec.findings()
    assert "lint:long" not in code_table.CODES
    assert not [key for key in PLUGIN_CHECKS if "lint.py" in key[0]]


def test_a_name_or_code_is_used_once(folder: Path) -> None:
    (folder / "again.py").write_text(CHECK.replace("{severity}", "error").replace("long layer name", "another name"))
    error = _irexec(folder, "validate", MODEL, "--plugin", "lint.py", "--plugin", "again.py", code=3)[1]
    assert "again.py" in error and "the code lint:long or the name 'another name' is used twice" in error
    with pytest.raises(InputError):
        irexec.explain("lint:nothing")
