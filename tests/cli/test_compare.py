"""irexec compare: what it prints, exit codes and wrong usage. What it finds is tested in tests/tools/compare."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from tests.cli.calling import Capture, streams
from tests.support.paths import DIGITS

MODEL = DIGITS / "classifier.xml"


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """The classifier with a wrong exponent in the first convolution's first weight."""
    data = bytearray((DIGITS / "classifier.bin").read_bytes())
    data[1] ^= 0x40
    data[3] ^= 0x02
    shutil.copy(MODEL, tmp_path / "faulty.xml")
    (tmp_path / "faulty.bin").write_bytes(data)
    return tmp_path / "faulty.xml"


def test_a_fault(faulty: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out, err = streams(capsys, "compare", MODEL, faulty, code=1)
    assert max(map(len, out.splitlines())) <= 80
    assert "first divergence: 'conv0/Convolution' (Convolution, layer 2, line 26)" in out
    assert "input 0 'image' agrees" in out
    assert "input 1 'conv0.w' differs: 1 of 144 values differ" in out
    assert "results that differ: probabilities" in out
    command = f"next: irexec reduce {faulty} -o min.xml --against {MODEL}"
    assert err.splitlines() == ["note: inputs are random, with seed 0; -i gives others", command]


def test_all_and_isolate(faulty: Path, capsys: Capture) -> None:
    out, _ = streams(capsys, "compare", MODEL, faulty, "-i", "random", "--all", "--isolate", code=1)
    rows = [line for line in out.splitlines() if " agrees " in line or " differs " in line]
    table = [row for row in rows if not row.startswith(" ")]
    assert len(table) == 12
    assert [row.split()[0] for row in table if "differs" in row] == ["conv0/Convolution"]


def test_the_same_is_not_a_fault(capsys: Capture) -> None:
    out, _ = streams(capsys, "compare", MODEL, MODEL, "-i", "ones")
    assert "12 tensors compared: 12 agree, 0 differ" in out


def test_tolerances(faulty: Path, capsys: Capture) -> None:
    streams(capsys, "compare", MODEL, faulty, "-i", "zeros", "--rtol", "1e-6", "--atol", 0)
    document = json.loads(
        streams(capsys, "compare", MODEL, faulty, "-i", "ones", "--metric", "snr", "--threshold", "-300", "--json")[0]
    )
    assert document["agrees"] is True
    assert document["tolerance"] == "SNR >= -300 dB"


def test_recorded_layers(faulty: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run(["infer", str(MODEL), "-i", "ones", "--dump-layers", str(tmp_path / "dump")]) == 0
    assert run(["infer", str(MODEL), "-i", "ones", "--all", "-o", str(tmp_path / "dump.npz")]) == 0
    capsys.readouterr()
    for recorded in (tmp_path / "dump", tmp_path / "dump.npz"):
        assert "12 agree, 0 differ" in streams(capsys, "compare", recorded, MODEL, "-i", "ones")[0]
        assert "'conv0/Convolution'" in streams(capsys, "compare", recorded, faulty, "-i", "ones", code=1)[0]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([MODEL], 2, "one model in one runtime has nothing to be compared with"),
        ([MODEL, "missing.xml"], 3, "missing.xml: cannot be read"),
        ([MODEL, DIGITS / "damaged.xml"], 3, "damaged.xml, line 353: an edge from layer 1 goes to layer 999"),
        ([MODEL, "--b-runtime", "onnx"], 2, "onnx runs .onnx files only"),
        ([MODEL, MODEL, "--map", "conv0"], 2, "'conv0' is not a pair of names, expected A=B"),
        ([MODEL, MODEL, "--map", "conv0=nothing"], 2, "there is no tensor or layer 'nothing'"),
        ([MODEL, MODEL, "--metric", "snr", "--rtol", "1"], 2, "rtol and atol are for the metric max"),
        ([MODEL, MODEL, "--threshold", "1"], 2, "a threshold is for the metrics"),
        ([MODEL, MODEL, "--rtol", "-1"], 2, "rtol is -1.0, expected a finite value of at least 0"),
        ([MODEL, MODEL, "--shape", "9,9"], 2, "the model does not take"),
        ([MODEL, MODEL, "--shape", "9,9"], 2, "the model does not take --shape [9,9]: layer 2 'conv0/Convolution'"),
        (["{tmp}", MODEL], 3, "is not a folder that infer --dump-layers wrote"),
        ([MODEL, "{tmp}/t.npz"], 2, "can only be A"),
        (["{tmp}/t.npz", MODEL, "--isolate"], 2, "--from-inputs-of and --isolate need two models"),
        (["{tmp}/t.npz", MODEL], 2, "does not hold the inputs of its tensors (image: f32[1,1,8,8])"),
        (["--record-torch", "{tmp}/t.npz"], 2, "t.npz does not end in .py"),
        (["--record-torch", "{tmp}/own.py"], 2, "own.py exists, and irexec has not written it"),
    ],
)  # fmt: skip
def test_what_is_wrong(arguments: list[object], code: int, message: str, tmp_path: Path, capsys: Capture) -> None:
    if "onnx" in arguments:
        pytest.importorskip("onnx")
    np.savez(tmp_path / "t.npz", conv0=np.zeros((1, 16, 8, 8), np.float32))
    (tmp_path / "own.py").write_text("print(1)\n")
    out, err = streams(capsys, "compare", *(str(one).format(tmp=tmp_path) for one in arguments), code=code)
    assert out == ""
    errors = [line for line in err.splitlines() if not line.startswith("note: ")]
    assert len(errors) == 1
    assert message in errors[0]


def test_a_single_tensor(tmp_path: Path, capsys: Capture) -> None:
    builder = irexec.Builder("one")
    builder.result(builder.emit("Relu", builder.parameter("f32", (2,), "x")))
    irexec.save_model(builder.model(), tmp_path / "m.xml")
    out, _ = streams(capsys, "compare", str(tmp_path / "m.xml"), str(tmp_path / "m.xml"), "-i", "ones")
    assert "1 tensor compared: 1 agree, 0 differ" in out
