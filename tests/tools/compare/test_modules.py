"""Recordings of the modules of PyTorch models beside what its exporters write."""

from __future__ import annotations

import importlib.util
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.cli.main import run
from irexec.tools.compare import CompareOptions, Comparison, compare

torch = pytest.importorskip("torch")
ov = pytest.importorskip("openvino")

from torch import nn  # noqa: E402

from tests.support.modules import recorder  # noqa: E402


class _Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.bn = nn.BatchNorm2d(channels)
        self.act = nn.SiLU()

    def forward(self, x: Any) -> Any:
        return self.act(self.bn(self.conv(x))) + x


class _Network(nn.Module):
    """A stem, blocks, a module that is called twice, a Dropout, and a pair of results."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2)
        self.blocks = nn.Sequential(_Block(8), _Block(8))
        self.shared = nn.Linear(8, 8)
        self.drop = nn.Dropout(0.1)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        x = self.blocks(self.stem(x)).flatten(2).transpose(1, 2)
        x = self.shared(torch.relu(self.shared(x)))
        x = self.norm(self.drop(x))
        return self.head(x.mean(1)), x


_TWICE = {f"module:shared#{call}[0]" for call in (1, 2)}
_ALWAYS = {"stem", "blocks.0.bn", "blocks.0.act", "blocks.0", "blocks.1.act", "blocks.1", "norm", "head"}


_BY_EXPORT = pytest.param(
    "exported.onnx",
    marks=[
        pytest.mark.slow,
        pytest.mark.skipif(importlib.util.find_spec("onnxscript") is None, reason="needs onnxscript"),
    ],
)


@pytest.fixture(scope="module")
def exporting(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, nn.Module, Any]:
    """A folder with the recording, the IR of OpenVINO's frontend and the ONNX model of the exporter; the model and its input."""
    folder = tmp_path_factory.mktemp("torch")
    record = recorder(folder)
    assert run(["compare", "--record-torch", str(folder / "other.py")]) == 0
    assert (folder / "other.py").read_bytes() == (folder / "recorder.py").read_bytes()
    torch.manual_seed(0)
    model, x = _Network().eval(), torch.randn(1, 3, 16, 16)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            held = module.state_dict()
            held["running_mean"].uniform_(-1, 1)
            held["running_var"].uniform_(0.5, 2)
    record(model, str(folder / "torch.npz"), x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ov.save_model(ov.convert_model(model, example_input=x), folder / "model.xml", compress_to_fp16=False)
        torch.onnx.export(model, (x,), folder / "model.onnx", dynamo=False, input_names=["x"])
    return folder, model, x


@pytest.fixture(params=["model.xml", "model.onnx", _BY_EXPORT])
def name(request: pytest.FixtureRequest, exporting: tuple[Path, nn.Module, Any]) -> str:
    """The file of a form; that of the newer exporter of PyTorch, which takes long, is written when it is asked for."""
    folder, model, x = exporting
    if request.param == "exported.onnx" and not (folder / request.param).exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(model, (x,), folder / "exported.onnx", dynamo=True, verbose=False)
    return request.param


@pytest.fixture
def recorded(exporting: tuple[Path, nn.Module, Any]) -> Path:
    return exporting[0]


def _compared(folder: Path, name: str) -> Comparison:
    return compare(str(folder / "torch.npz"), str(folder / name), None, CompareOptions())


@pytest.mark.sampled(4)
def test_modules_are_paired_and_agree(recorded: Path, name: str) -> None:
    found = _compared(recorded, name)
    assert found.agrees
    assert {row.how for row in found.rows} <= {"module", "name"}
    unpaired = {one.name for one in found.uncompared if one.side == "A"}
    assert not unpaired & {f"module:{scope}#1[0]" for scope in _ALWAYS}
    assert not unpaired & _TWICE
    assert not [name for name in unpaired if not name.startswith("module:")]


@pytest.mark.parametrize("scope", ["stem", "blocks.1", "shared", "norm", "head"])
def test_a_planted_fault_is_at_its_module(recorded: Path, name: str, scope: str, tmp_path: Path) -> None:
    """The tensor of the module is another in the recording, wherever it has it."""
    with np.load(recorded / "torch.npz") as file:
        arrays = dict(file)
    first = f"module:{scope}#1[0]"
    same = [key for key in arrays if key.startswith("module:") and np.array_equal(arrays[key], arrays[first])]
    for key in same:
        arrays[key] = arrays[key] + np.float32(0.5)
    np.savez(tmp_path / "torch.npz", **arrays)
    found = compare(str(tmp_path / "torch.npz"), str(recorded / name), None, CompareOptions())
    assert not found.agrees
    (row,) = (row for row in found.rows if not row.agreement.agrees)
    assert row.recorded in same
    if name == "exported.onnx":
        return
    assert re.fullmatch(rf"(__module\.|/(\w+/)*){re.escape(scope)}/(aten::\w+/)?\w+", row.b.name)


def test_a_recording_without_its_model_says_so(recorded: Path, tmp_path: Path) -> None:
    b = irexec.Builder()
    b.result(b.emit("Relu", b.parameter("f32", (3,), "z"), name="other"))
    b.model().save(tmp_path / "other.xml")
    with pytest.raises(irexec.InputError, match="has the name of a tensor or layer"):
        compare(str(recorded / "torch.npz"), str(tmp_path / "other.xml"), None, CompareOptions())
