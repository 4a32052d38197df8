"""irexec bisect: what it prints, and its exit codes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from irexec.opset import parameter, relu
from tests.support.fake_releases import fake_releases

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the fake releases are shell scripts")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("fault", "code"), [("", 0), ("relu", 1), ("refuses", 1)])
def test_exit_codes_and_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fault: str, code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    x = parameter((2,), "f32", "x")
    irexec.save_model(irexec.Model([relu(x, name="positive", names=["y"])], [x]), "m.xml")
    np.save("x.npy", np.float32([-1, 2]))
    fake_releases(tmp_path / "releases", {"2024.0.0": "", "2025.0.0": fault})
    words = ["--openvino", "2024.0..2025.0", "--installed", "--environments", "releases", "-i", "x.npy"]
    assert run(["bisect", "m.xml", *words]) == code
    shown = capsys.readouterr()
    assert ("2025.0.0 is the first release that" in shown.out) == bool(fault)
    command = "compare m.xml --b-runtime openvino==2025.0.0 --environments releases -i x.npy"
    assert (command in shown.err) == (fault == "relu")


def test_standard_input_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bisect", "m.xml", "--openvino", "2024.0", "-i", "-"]) == 2
    assert "standard input only gives them once" in capsys.readouterr().err
