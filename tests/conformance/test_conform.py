"""The corpus through runtimes."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from irexec.cli.main import run
from irexec.conformance import ConformOptions, conform
from irexec.conformance.corpus import cases, chosen
from irexec.errors import InputError

SOFTMAX = ConformOptions(ops=("Softmax",), cases=2)


def test_patterns_choose_operations() -> None:
    assert chosen(["Softmax"]) == [("Softmax", 1), ("Softmax", 8)]
    assert chosen(["Softmax-8", "Relu"]) == [("Relu", 1), ("Softmax", 8)]
    with pytest.raises(InputError, match="no operation matches 'Softmix'"):
        chosen(["Softmix"])


def test_a_seed_makes_the_same_cases_again() -> None:
    first, again = ([row.digest for row in cases([("Relu", 1)], 5, 3)] for _ in range(2))
    assert first == again
    assert len(set(first)) == 3


# Add, computed by NumPy alone, with an error that each test chooses.
ADDING = """
import sys
import numpy as np
with np.load(sys.argv[2]) as inputs:
    a, b = inputs.values()
if a.dtype.kind == "V" or a.dtype.kind != b.dtype.kind:
    raise SystemExit(1)
total = np.asarray(a + b, a.dtype)
np.savez(sys.argv[3], total + total.dtype.type({error}))
"""


@pytest.mark.parametrize(("error", "verdict"), [(0, "close"), (1, "differs")])
def test_a_runtime_that_adds(tmp_path: Path, error: int, verdict: str) -> None:
    (tmp_path / "runner.py").write_text(ADDING.format(error=error))
    runner = f"command:{shlex.quote(sys.executable)} {shlex.quote(str(tmp_path / 'runner.py'))}"
    done: list[float] = []
    # Cases of numbers with all broadcasting of NumPy, empty and infinite ones included.
    found = conform(runner, ConformOptions(ops=("Add",), cases=6), done.append)
    assert found.counts[verdict] >= 3
    assert found.counts["close" if verdict == "differs" else "differs"] <= (1 if verdict == "differs" else 0)
    assert sum(done) == pytest.approx(1)


def test_openvino_is_close() -> None:
    pytest.importorskip("openvino")
    assert conform("openvino", SOFTMAX).counts["close"] == 4


def test_onnx_runtime_runs_what_the_exporter_writes() -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    assert conform("onnxruntime", ConformOptions(ops=("Convolution",), cases=2)).counts["close"] == 2


def test_a_runtime_that_dies_ends_no_run(tmp_path: Path) -> None:
    runner = tmp_path / "runner.sh"
    runner.write_text("#!/bin/sh\nkill -9 $$\n")
    runner.chmod(0o755)
    found = conform(f"command:{runner}", SOFTMAX)
    assert found.counts == {"close": 0, "differs": 0, "refused": 0, "crashed": 4}
    document = fromstring(found.junit())
    assert (document.get("tests"), document.get("failures")) == ("4", "0")
    assert len(document.findall("testcase/error")) == 4


def test_a_runtime_that_runs_nothing_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    refuse = f"command:{shlex.quote(sys.executable)} -c {shlex.quote('raise SystemExit(str(5) * 3)')}"
    assert run(["conform", "--runtime", refuse, "--ops", "Relu", "--quick"]) == 1
    shown = capsys.readouterr().out
    assert "2 refused" in shown
    assert "exit code 1: 555" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--runtime", "irexec", "-p", "A=B"], "has no properties"),
        (["--runtime", "reference", "--quick", "--cases", "3"], "--quick and --cases cannot be used together"),
    ],
)
def test_wrong_options(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conform", *options]) == 2
    assert message in capsys.readouterr().err
