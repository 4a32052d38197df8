"""Inference Engine of 2020 in its process; it runs where it is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from irexec.errors import EngineError, UnsupportedError
from irexec.tools.engines.inference_engine import VARIABLE, InferenceEngine, environments
from tests.legacy_sweep.network import Network


def _environment(folder: Path) -> Path:
    """A virtual environment of this Python, with a library that cannot be loaded."""
    libraries = folder / "2020.4/lib/python3.7/site-packages/cv2"
    libraries.mkdir(parents=True)
    (libraries / "libinference_engine_c_api.so").write_bytes(b"no library")
    python = folder / "2020.4/bin/python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return folder / "2020.4"


def test_environments_are_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = _environment(tmp_path)
    (tmp_path / "2020.1").mkdir()
    assert environments(str(tmp_path)) == {"2020.4": environment}
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert environments() == {"2020.4": environment}
    monkeypatch.delenv(VARIABLE)
    assert environments() == {}


def test_no_library(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="opencv-python-inference-engine"):
        InferenceEngine("2020.4", tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="the script is one of a shell")
def test_the_process_ends(tmp_path: Path) -> None:
    (tmp_path / "a.xml").touch()
    with (
        InferenceEngine("2020.4", _environment(tmp_path)) as engine,
        pytest.raises(EngineError, match=r"the process of Inference Engine 2020\.4 ended"),
    ):
        engine.run(tmp_path / "a.xml", tmp_path / "a.xml", [{}])


@pytest.mark.skipif(not environments(), reason="Inference Engine is not installed")
@pytest.mark.parametrize("release", ["2020.1", "2020.4"])
def test_a_network(release: str, tmp_path: Path) -> None:
    net = Network(5, np.random.default_rng(0))
    x = net.input(np.array([[1, 2, 3]], np.float32), name="x")
    net.layer("Power", [x], [(1, 3)], {"power": 2, "scale": 2, "shift": 1}, name="y")
    (tmp_path / "a.xml").write_text(net.xml())
    (tmp_path / "a.bin").touch()
    with InferenceEngine(release, environments()[release]) as engine:
        (found,) = engine.run(tmp_path / "a.xml", tmp_path / "a.bin", net.feeds)
        np.testing.assert_array_equal(found["y"], [[9, 25, 49]])
        with pytest.raises(EngineError, match="it refuses to read the network"):
            engine.run(tmp_path / "a.bin", tmp_path / "a.bin", [{}])
