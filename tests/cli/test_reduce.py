"""irexec reduce: what it writes and says, its exit codes, and what interrupts it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from tests.support.paths import ROOT
from tests.support.tiers import some_rows

DIGITS = ROOT / "samples" / "digits"
CLASSIFIER, DAMAGED = str(DIGITS / "classifier.xml"), str(DIGITS / "damaged.xml")


def check(tmp_path: Path, body: str) -> str:
    """A --check that runs Python with the paths in ``model`` and ``inputs``."""
    script = tmp_path / "check it.py"
    script.write_text(f"import sys\nmodel, inputs = sys.argv[1:]\ntext = open(model).read()\n{body}\n")
    return shlex.join([sys.executable, str(script), "{}", "{inputs}"])


def types(path: Path) -> list[str]:
    return [node.type for node in irexec.read_model(path).nodes if node.type not in ("Parameter", "Constant", "Result")]


def test_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "min.xml"
    assert run(["reduce", DAMAGED, "-o", str(output), "--finding", "IR103"]) == 0
    assert types(output) == ["Convolution"]
    assert f"irexec validate {output}" in capsys.readouterr().out
    assert [finding.code for finding in irexec.validate(irexec.read_model(output))] == ["IR103"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["min.bin", "min.npz", "min.xml"]


@pytest.mark.parametrize(
    ("options", "layer", "command", "code"),
    [
        pytest.param(["--finding", "IR901", "--for", "2023.3"], "MaxPool", "validate --for 2023.3", 1, id="a release"),
        pytest.param(["--finding", "ir911"], "Divide", "validate --portability", 0, id="portability"),
        pytest.param(["--finding", "IR911", "--for", "2025.1"], "Divide", "validate --portability --for 2025.1", 0, id="both"),
    ],
)  # fmt: skip
def test_a_finding_about_openvino(
    options: list[str], layer: str, command: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command that is printed shows it."""
    builder = irexec.Builder("m")
    x = builder.emit("Abs", builder.parameter("i32", (4,), "x"))
    x = builder.emit("Divide", x, np.int32(3))
    irexec.save_model(builder_result(builder, builder.emit("Negative", x)), tmp_path / "m.xml")
    output = tmp_path / "min.xml"
    model = CLASSIFIER if layer == "MaxPool" else str(tmp_path / "m.xml")
    assert run(["reduce", model, "-o", str(output), *options]) == 0
    assert f"irexec {command} {output}" in capsys.readouterr().out
    types = [node.type for node in irexec.read_model(output).nodes]
    assert [type for type in types if type not in ("Parameter", "Constant", "Result")] == [layer]
    assert run([*command.split(), str(output)]) == code
    assert options[1].upper() in capsys.readouterr().out


def builder_result(builder: irexec.Builder, value: irexec.Value) -> irexec.Model:
    """The model with one result."""
    builder.result(value)
    return builder.model()


@pytest.mark.parametrize("type", ["Convolution", "MaxPool", "Softmax", "Reshape"])
@pytest.mark.sampled(3)
def test_a_command(type: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = {"Softmax": "SoftMax"}.get(type, type)
    command = check(tmp_path, f"""sys.exit(3 if 'type="{written}"' in text else 0)""")
    assert run(["reduce", CLASSIFIER, "-o", str(tmp_path / "min.xml"), "--check", command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert types(tmp_path / "min.xml") == [type]
    assert document["kind"] == "exit code 3"
    assert document["command"]["arguments"] == [
        sys.executable, str(tmp_path / "check it.py"), str(tmp_path / "min.xml"), str(tmp_path / "min.npz"),
    ]  # fmt: skip
    with np.load(tmp_path / "min.npz") as inputs:
        model = irexec.read_model(tmp_path / "min.xml")
        recorded = irexec.compile_model(CLASSIFIER).run(
            np.random.default_rng(0).random((1, 1, 8, 8), np.float32), inputs.files
        )
        for name in inputs.files:
            np.testing.assert_allclose(inputs[name], recorded[name], rtol=1e-4, atol=1e-5)
        irexec.compile_model(model)(dict(inputs))


@pytest.mark.slow
def test_two_layers_that_only_fail_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = check(tmp_path, """sys.exit('type="MaxPool"' in text and 'type="SoftMax"' in text)""")
    assert run(["reduce", CLASSIFIER, "-o", str(tmp_path / "min.xml"), "--check", command]) == 0
    assert types(tmp_path / "min.xml") == ["MaxPool", "Softmax"]


@pytest.mark.slow
def test_another_exit_code_is_another_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Without the Softmax it fails in another way, which must not be taken for the same one.
    command = check(tmp_path, """sys.exit((3 if 'type="SoftMax"' in text else 4) if 'type="MaxPool"' in text else 0)""")
    assert run(["reduce", CLASSIFIER, "-o", str(tmp_path / "min.xml"), "--check", command]) == 0
    assert types(tmp_path / "min.xml") == ["MaxPool", "Softmax"]


def test_expected_text_takes_the_place_of_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = check(
        tmp_path,
        """print("it is wrong" if 'type="MaxPool"' in text else "fine", file=sys.stderr)\nsys.exit(len(text) % 3)""",
    )
    assert (
        run(["reduce", CLASSIFIER, "-o", str(tmp_path / "min.xml"), "--check", command, "--expect-text", "is wrong"])
        == 0
    )
    assert types(tmp_path / "min.xml") == ["MaxPool"]


@pytest.mark.slow
def test_what_hangs_is_reduced_to_what_hangs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = check(tmp_path, """import time\ntime.sleep(60 if 'type="SoftMax"' in text else 0)""")
    assert (
        run(["reduce", CLASSIFIER, "-o", str(tmp_path / "min.xml"), "--check", command, "--timeout", "1", "--json"])
        == 0
    )
    assert types(tmp_path / "min.xml") == ["Softmax"]
    assert json.loads(capsys.readouterr().out)["kind"] == "timeout"


def test_names_cannot_become_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a; touch injected; 'b $(touch injected) {x}"
    folder.mkdir()
    command = check(tmp_path, "sys.exit(1)")
    assert run(["reduce", CLASSIFIER, "-o", str(folder / "min.xml"), "--check", command, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["command"]
    assert shlex.split(shown["text"]) == shown["arguments"]
    assert not list(tmp_path.rglob("injected"))


def test_a_check_that_always_fails_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reduce", CLASSIFIER, "-o", str(tmp_path / "min.xml"), "--check", check(tmp_path, "sys.exit(1)")]) == 0
    shown = capsys.readouterr()
    assert "without any layer" in shown.err
    assert types(tmp_path / "min.xml") == []


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("sys.exit(0)", 1, "does not fail"),
        ("sys.exit(125)", 2, "exit code 125, which says that the model cannot be tested"),
        ("print('nothing to compare'); sys.exit(2)", 2, "exit code 2, which commands give for usage that is wrong: nothing to compare"),
        ("sys.exit(127)", 2, "exit code 127"),
    ],
)  # fmt: skip
def test_a_model_that_does_not_fail(
    body: str, code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reduce", CLASSIFIER, "-o", str(tmp_path / "min.xml"), "--check", check(tmp_path, body)]) == code
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["check it.py"]


def _faulty(folder: Path) -> str:
    """The classifier with other pads in its second convolution."""
    model = irexec.read_model(CLASSIFIER)
    next(node for node in model.nodes if node.id == 8).attributes |= {"pads_begin": "2,1", "pads_end": "0,1"}
    irexec.save_model(model, folder / "faulty.xml")
    return str(folder / "faulty.xml")


def test_another_version_of_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The layer is named, and the command that is printed shows the difference."""
    output = tmp_path / "min.xml"
    assert run(["reduce", _faulty(tmp_path), "-o", str(output), "--against", CLASSIFIER]) == 0
    out = capsys.readouterr().out
    assert types(output) == ["Convolution"]
    assert "at fault: 'conv3/Convolution' (Convolution, layer 8, line 141)" in out
    assert "pads_begin: (1, 1) in A, (2, 1) in B" in out
    assert "input 0 'maxpool2' agrees" in out
    command = shlex.split(out.splitlines()[-1])
    assert command[:2] == ["irexec", "compare"]
    assert run(command[1:]) == 1
    assert run(["compare", CLASSIFIER, str(output)]) == 1
    assert "pads_begin: (1, 1) in A, (2, 1) in B" in capsys.readouterr().out


def test_recorded_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder of --dump-layers holds all that is needed."""
    assert run(["infer", CLASSIFIER, "-i", "random", "--dump-layers", str(tmp_path / "layers")]) == 0
    output = tmp_path / "min.xml"
    assert run(["reduce", _faulty(tmp_path), "-o", str(output), "--against", str(tmp_path / "layers")]) == 0
    assert types(output) == ["Convolution"]
    assert run(["reduce", CLASSIFIER, "-o", str(tmp_path / "none.xml"), "--against", str(tmp_path / "layers")]) == 1
    assert "does not fail" in capsys.readouterr().err


@pytest.mark.slow
def test_compare_as_a_check(tmp_path: Path) -> None:
    """compare feeds each part from the whole, and says with exit code 2 where there is nothing to compare."""
    output = tmp_path / "min.xml"
    command = shlex.join([sys.executable, "-m", "irexec", "compare", CLASSIFIER, "{}", "-i", "random"])
    assert run(["reduce", _faulty(tmp_path), "-o", str(output), "--check", command]) == 0
    assert types(output) == ["Convolution"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "one of --check, --finding, --against, --trap says what a failure is, and none is given"),
        (["--finding", "IR107", "--trap", "nan"], "--finding and --trap are given"),
        (["--finding", "IR899"], "there is no finding code 'IR899'"),
        (["--finding", "IR011"], "about the file itself"),
        (["--finding", "ON201"], "about an .onnx file"),
        (["--finding", "IR901"], "IR901 is a finding about a release of OpenVINO, which is to be given (--for)"),
        (["--finding", "IR901", "--for", "1999.1"], "'1999.1' is not a known release of OpenVINO"),
        (["--finding", "IR107", "--for", "2023.3"], "IR107 does not depend on a release of OpenVINO, of which 2023.3 is given"),
        (["--trap", "nan", "--for", "2023.3"], "--for is for --finding, which is not given"),
        (["--trap", "f16"], "'f16' is not one of nan, inf"),
        (["--check", "python check.py"], "has no {}"),
        (["--check", "python 'check.py {}"], "no closing quotation"),
        (["--check", "no-such-command {}"], "'no-such-command' cannot be started"),
        (["--finding", "IR107", "--expect-text", "x"], "--expect-text is for --check"),
        (["--finding", "IR107", "--rtol", "1"], "--rtol is for --against"),
        (["--against", "tensorrt"], "--against tensorrt is neither a file or folder nor a runtime (openvino, onnxruntime, onnx, reference)"),
    ],
)  # fmt: skip
def test_wrong_usage(options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reduce", CLASSIFIER, "-o", str(tmp_path / "min.xml"), *options]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("output", "existing", "message"),
    [
        ("min.onnx", "", "does not end in .xml"),
        ("none/min.xml", "", "does not exist"),
        ("classifier.xml", "", "is the model"),
        ("min.xml", "min.npz", "exists without min.xml beside it"),
        ("min.xml", "min.reduce", "exists and is something else"),
    ],
)
def test_files_of_the_user_are_not_overwritten(
    output: str, existing: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for suffix in (".xml", ".bin"):
        (tmp_path / f"classifier{suffix}").write_bytes(Path(CLASSIFIER).with_suffix(suffix).read_bytes())
    if existing:
        (tmp_path / existing).write_text("mine")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(["reduce", str(tmp_path / "classifier.xml"), "-o", str(tmp_path / output), "--trap", "nan"]) == 2
    assert message in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_answers_nested_deeper_than_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "min.reduce").write_text("[" * 100_000)
    assert run(["reduce", CLASSIFIER, "-o", str(tmp_path / "min.xml"), "--trap", "nan"]) == 2
    assert "exists and is something else" in capsys.readouterr().err


SLOW = """import os, signal, time
counter = os.path.join(os.path.dirname(sys.argv[0]), "counter")
with open(counter, "a") as file:
    file.write(".")
stop = os.environ.get("STOP_AT")
if stop is not None and os.path.getsize(counter) == int(stop):
    os.kill(os.getppid(), int(os.environ["SIGNAL"]))
    time.sleep(5)
sys.exit('type="MaxPool"' in text and 'type="ReLU"' in text)"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("number", "stop_at"),
    some_rows([(signal.SIGINT, 9), (signal.SIGTERM, 4), (signal.SIGKILL, 9)], [(signal.SIGINT, 9)]),
)
@pytest.mark.slow
def test_an_interrupted_reduction_continues(number: signal.Signals, stop_at: int, tmp_path: Path) -> None:
    output, counter = tmp_path / "min.xml", tmp_path / "counter"
    command = [
        sys.executable, "-m", "irexec", "reduce", CLASSIFIER, "-o", str(output), "--check", check(tmp_path, SLOW),
        "--json",
    ]  # fmt: skip

    def start(*more: str, **variables: str) -> subprocess.CompletedProcess[str]:
        counter.unlink(missing_ok=True)
        return subprocess.run(
            [*command, *more], env={**os.environ, "PYTHONPATH": str(ROOT), **variables}, capture_output=True, text=True
        )

    whole = json.loads(start().stdout)
    expected = output.read_bytes()
    for path in tmp_path.glob("min.*"):
        path.unlink()
    stopped = start(STOP_AT=str(stop_at), SIGNAL=str(int(number)))
    assert stopped.returncode == (-9 if number == signal.SIGKILL else 128 + number), stopped.stderr
    best = types(output)
    # A process that is killed at once may have a smaller part than the one that it wrote last.
    assert {"MaxPool", "Relu"} <= set(best) and len(best) <= (12 if stop_at == 4 or number == signal.SIGKILL else 6)
    assert irexec.validate(irexec.read_model(output)) == []
    if number != signal.SIGKILL:
        assert "--resume" in stopped.stderr
    resumed = json.loads(start("--resume").stdout)
    # The model itself and the candidate that was being checked are checked again.
    assert resumed["checks"] == whole["checks"] - (stop_at - 2)
    assert resumed["recalled"] == stop_at - 2 + whole["recalled"]
    assert output.read_bytes() == expected
    assert not (tmp_path / "min.reduce").exists()


def test_a_file_of_another_reduction_is_not_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "min.reduce").write_text(
        json.dumps({"format": "irexec reduce 1", "check": "other"}) + "\nabc fails\nbroken"
    )
    options = ["reduce", DAMAGED, "-o", str(tmp_path / "min.xml"), "--finding", "IR103"]
    assert run([*options, "--resume"]) == 2
    assert "is of another model" in capsys.readouterr().err
    assert run(options) == 0


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (DAMAGED, "can be reduced only to a finding"),
        (str(ROOT / "samples" / "execution_graph.xml"), "an execution graph"),
        (str(ROOT / "samples"), "it is a folder"),
    ],
)
def test_a_model_that_cannot_be_run(
    model: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reduce", model, "-o", str(tmp_path / "min.xml"), "--trap", "nan"]) == 3
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
