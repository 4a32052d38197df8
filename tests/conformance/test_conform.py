"""The corpus through runtimes."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from irexec.conformance import ConformOptions, conform
from irexec.conformance.corpus import cases, chosen
from irexec.errors import InputError

SOFTMAX = ConformOptions(ops=("Softmax",), quick=True)


def test_patterns_choose_operations() -> None:
    assert chosen(["Softmax"]) == [("Softmax", 1), ("Softmax", 8)]
    assert chosen(["Softmax-8", "Relu"]) == [("Relu", 1), ("Softmax", 8)]
    with pytest.raises(InputError, match="no operation matches 'Softmix'"):
        chosen(["Softmix"])


def test_a_seed_makes_the_same_cases_again() -> None:
    first, again = ([row.digest for row in cases([("Relu", 1)], 5, 3)] for _ in range(2))
    assert first == again
    assert len(set(first)) == 3


def test_the_reference_is_close_to_itself() -> None:
    done: list[float] = []
    found = conform("reference", SOFTMAX, done.append)
    assert found.counts == {"close": 4, "differs": 0, "refused": 0, "crashed": 0}
    assert sum(done) == pytest.approx(1)


def test_openvino_is_close() -> None:
    pytest.importorskip("openvino")
    assert conform("openvino", SOFTMAX).counts["close"] == 4


def test_onnx_runtime_runs_what_the_exporter_writes() -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    assert conform("onnxruntime", ConformOptions(ops=("Convolution",), quick=True)).counts["close"] == 2


def test_a_runtime_that_dies_ends_no_run(tmp_path: Path) -> None:
    runner = tmp_path / "runner.sh"
    runner.write_text("#!/bin/sh\nkill -9 $$\n")
    runner.chmod(0o755)
    found = conform(f"command:{runner}", SOFTMAX)
    assert len(found.cases) == 4
    assert found.counts["close"] == found.counts["differs"] == 0
    document = fromstring(found.junit())
    assert (document.get("tests"), document.get("failures")) == ("4", "0")
    assert len(document.findall("testcase/error")) == found.counts["crashed"]
