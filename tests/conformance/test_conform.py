"""The corpus through runtimes."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest

import irexec
from irexec.bounds import ARITHMETICS
from irexec.cli.main import run
from irexec.cli.runtime_options import ARITHMETIC_NAMES
from irexec.conformance import VERDICTS, ConformOptions, cases, chosen, conform
from irexec.errors import ConversionError, InputError
from tests.support.fake_releases import fake_releases

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


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("error", "verdict"), [(0, "inside"), (1, "outside")])
def test_a_runtime_that_adds(tmp_path: Path, error: int, verdict: str) -> None:
    (tmp_path / "runner.py").write_text(ADDING.format(error=error))
    runner = f"command:{shlex.quote(sys.executable)} {shlex.quote(str(tmp_path / 'runner.py'))}"
    done: list[float] = []
    # Cases of numbers with all broadcasting of NumPy, empty and infinite ones included.
    found = conform(runner, ConformOptions(ops=("Add",), cases=6), done.append)
    assert found.counts[verdict] >= 3
    assert found.counts["inside" if verdict == "outside" else "outside"] <= (1 if verdict == "outside" else 0)
    assert found.has_failed is (verdict == "outside")
    assert found.junit().count("<failure") == found.counts["outside"]
    assert sum(done) == pytest.approx(1)


def test_openvino_is_inside() -> None:
    pytest.importorskip("openvino")
    assert conform("openvino", SOFTMAX).counts["inside"] == 4


@pytest.mark.skipif(os.name == "nt", reason="the fake releases are shell scripts")
def test_a_release_is_held_to_the_corpus_and_not_what_is_installed(tmp_path: Path) -> None:
    folder = str(fake_releases(tmp_path / "releases", {"2024.0.0": "", "2025.0.0": "relu"}))
    found = {}
    for version in ("2024.0.0", "2025.0.0"):
        options = ConformOptions(ops=("Relu",), cases=4, environments=folder)
        ran = conform(f"openvino=={version}", options)
        assert ran.version == version
        found[version] = {one.verdict for one in ran.cases}
    assert "outside" in found["2025.0.0"]
    assert "outside" not in found["2024.0.0"]


def test_a_difference_of_the_portability_table_is_open() -> None:
    pytest.importorskip("openvino")
    found = conform("openvino", ConformOptions(ops=("Range-1",), cases=2))
    assert {(case.verdict, case.codes) for case in found.cases} == {("open", ("IR969",))}
    assert not found.has_failed


@pytest.mark.slow
def test_a_coarser_arithmetic_allows_more(tmp_path: Path) -> None:
    (tmp_path / "runner.py").write_text(ADDING.format(error=1e-4))
    runner = f"command:{shlex.quote(sys.executable)} {shlex.quote(str(tmp_path / 'runner.py'))}"
    strict, loose = (
        conform(runner, ConformOptions(ops=("Add",), cases=8, arithmetic=name)).counts for name in ("f32", "bf16")
    )
    assert loose["outside"] < strict["outside"]


def test_names_of_arithmetics_are_those_of_the_bounds() -> None:
    assert tuple(ARITHMETICS) == ARITHMETIC_NAMES


def test_what_is_not_expressible_in_onnx_is_not_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")

    def refuse(model: object) -> None:
        raise ConversionError("no operator")

    monkeypatch.setattr("irexec.conformance.to_onnx", refuse)
    assert conform("onnxruntime", ConformOptions(ops=("Relu",), cases=1)).counts["inexpressible"] == 1


def test_files_of_a_run(tmp_path: Path) -> None:
    paths = {name: tmp_path / f"out.{name}" for name in ("html", "badge", "junit")}
    options = [text for name, path in paths.items() for text in (f"--{name}", str(path))]
    assert run(["conform", "--runtime", "irexec", "--ops", "Softmax-8", "--quick", *options]) == 0
    assert "Softmax-8" in paths["html"].read_text()
    assert "2 of 2 inside" in fromstring(paths["badge"].read_text()).get("aria-label", "")
    assert 'failures="0"' in paths["junit"].read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--runtime", "irexec", "--ops", ","], "',' names no operation"),
        (["--runtime", "irexec", "--html", "a.svg", "--badge", "a.svg"], "--badge a.svg is the file of --html"),
        (["--runtime", "irexec", "--html", "none/a.html"], "the folder none does not exist"),
        (["--runtime", "irexec", "--junit", "."], "--junit . is a folder, not a regular file"),
        (["--build", "corpus", "--junit", "a.xml"], "--junit is for --runtime, which is not given"),
    ],
)
def test_options_are_refused_before_the_run(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["conform", *options]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_corpus_of_files_is_what_its_index_says(tmp_path: Path) -> None:
    """The rules of its README, in NumPy alone, for the exact results and for wrong ones."""
    folder = tmp_path / "corpus"
    assert run(["conform", "--build", str(folder), "--ops", "Softmax-8,TopK-11", "--quick"]) == 0
    index = json.loads((folder / "index.json").read_text())
    assert [case["name"] for case in index["cases"]] == ["Softmax-8-0", "Softmax-8-1", "TopK-11-0", "TopK-11-1"]
    for case in index["cases"]:
        place = folder / case["name"]
        assert len(irexec.read_model(place / "model.xml").inputs) == len(list(place.glob("input_*.npy")))
        for i in range(len(case["outputs"])):
            expected, low, high = (np.load(place / f"{name}_{i}.npy") for name in ("expected", "low", "high"))
            assert ((low <= expected) & (expected <= high) | np.isnan(low)).all()
            assert not ((low <= expected + 9) & (expected + 9 <= high))[np.isfinite(low)].all() or not expected.size
    assert run(["conform", "--build", str(folder), "--ops", "Relu", "--quick"]) == 2


def test_onnx_runtime_runs_what_the_exporter_writes() -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    assert conform("onnxruntime", ConformOptions(ops=("Convolution",), cases=2)).counts["inside"] == 2


def test_a_runtime_that_dies_ends_no_run(tmp_path: Path) -> None:
    runner = tmp_path / "runner.sh"
    runner.write_text("#!/bin/sh\nkill -9 $$\n")
    runner.chmod(0o755)
    found = conform(f"command:{runner}", SOFTMAX)
    assert {name: number for name, number in found.counts.items() if number} == {"crashed": 4}
    document = fromstring(found.junit())
    assert (document.get("tests"), document.get("failures")) == ("4", "0")
    assert len(document.findall("testcase/error")) == 4


def test_a_crash_that_a_fresh_process_does_not_repeat_is_none(tmp_path: Path) -> None:
    """An earlier case may have damaged the process."""
    runner = tmp_path / "runner.sh"
    once = f"[ -e {shlex.quote(str(tmp_path))}/done ] || {{ touch {shlex.quote(str(tmp_path))}/done; kill -9 $$; }}"
    runner.write_text(f"#!/bin/sh\n{once}\nexit 1\n")
    runner.chmod(0o755)
    assert conform(f"command:{runner}", SOFTMAX).counts == {**dict.fromkeys(VERDICTS, 0), "refused": 4}


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
        (["--quick"], "one of --runtime and --build is needed"),
        (["--runtime", "reference", "--quick", "--cases", "3"], "--quick and --cases cannot be used together"),
    ],
)
def test_wrong_options(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conform", *options]) == 2
    assert message in capsys.readouterr().err
