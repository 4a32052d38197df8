"""Recordings of PyTorch models, judged: modules are paired as compare pairs them, and a wrong one is named."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from irexec.cli.main import run
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.judge import Judgement, judge

torch = pytest.importorskip("torch")
ov = pytest.importorskip("openvino")

from torch import nn  # noqa: E402

from tests.support.modules import recorder, settle  # noqa: E402
from tests.support.tiers import some  # noqa: E402


def _types(*default: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("arithmetic", some(["f32", "f16", "bf16"], default))


class _Residual(nn.Module):
    """A convolution with a normalization, which OpenVINO folds into it, and an activation in place."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        return x + self.act(self.norm(self.conv(x)))


def _convolutional() -> tuple[nn.Module, Any]:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), _Residual(8), _Residual(8), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 5)
    )
    return model, torch.randn(2, 3, 8, 8)


class _Attention(nn.Module):
    """A block of a transformer; keys, queries and values are computed at once."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm, self.all, self.out = nn.LayerNorm(size), nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.wide = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))

    def forward(self, x: Any) -> Any:
        of_heads = self.all(self.norm(x)).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(*of_heads).transpose(1, 2).flatten(2)
        x = x + self.out(y)
        return x + self.wide(x)


def _transformer() -> tuple[nn.Module, Any]:
    layers = nn.Linear(6, 16), _Attention(16), _Attention(16), nn.LayerNorm(16), nn.Linear(16, 3)
    return nn.Sequential(*layers), torch.randn(2, 5, 6)


@pytest.fixture(scope="module", params=[_convolutional, _transformer], ids=["convolutional", "transformer"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, nn.Module, Any]:
    """A folder with the IR of OpenVINO's frontend, the model and its input."""
    folder = tmp_path_factory.mktemp("exported")
    torch.manual_seed(0)
    model, x = request.param()
    settle(model)
    ov.save_model(ov.convert_model(copy.deepcopy(model), example_input=x), folder / "model.xml", compress_to_fp16=False)
    return folder, model, x


def _recorded(exported: tuple[Path, nn.Module, Any], arithmetic: str, folder: Path, scope: str = "") -> Path:
    """A recording in an arithmetic; the weights of a module are others."""
    _, model, x = exported
    dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[arithmetic]
    model = copy.deepcopy(model)
    if scope:
        with torch.no_grad():
            weight = model.get_submodule(scope).weight
            weight.add_(0.3 * weight.abs().mean() * torch.randn(weight.shape))
    record = recorder(folder)
    record(model.to(dtype), str(folder / "torch.npz"), x.to(dtype))
    return folder / "torch.npz"


def _judged(exported: tuple[Path, nn.Module, Any], recording: Path) -> Judgement:
    return judge(str(exported[0] / "model.xml"), runtime=str(recording))


@_types("bf16")
@pytest.mark.sampled(2)
def test_a_model_as_it_is_agrees(exported: tuple[Path, nn.Module, Any], arithmetic: str, tmp_path: Path) -> None:
    found = _judged(exported, _recorded(exported, arithmetic, tmp_path))
    assert (found.verdict, found.arithmetic) == ("agrees", arithmetic)
    last = len(list(exported[1].children())) - 1
    assert {"module:0#1[0]", f"module:{last}#1[0]"} <= {one.recorded for one in found.layers}


@pytest.mark.sampled(2)
@_types("f32")
def test_the_wrong_module_is_named(
    exported: tuple[Path, nn.Module, Any], arithmetic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = f"{len(list(exported[1].children())) - 1}"
    for scope in ("0", last):
        recording = _recorded(exported, arithmetic, tmp_path, scope)
        found = _judged(exported, recording)
        assert found.verdict == "bug"
        assert found.at[0].recorded == f"module:{scope}#1[0]"
        assert run(["judge", str(exported[0] / "model.xml"), "--runtime", str(recording)]) == 1
        assert f"bug of the runtime: 'module:{scope}#1[0]'" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_a_folded_normalization_is_named(tmp_path: Path) -> None:
    """Its convolution has no tensor of its own, and the activation in place does not change the recorded one."""
    torch.manual_seed(0)
    model, x = _convolutional()
    settle(model)
    ov.save_model(
        ov.convert_model(copy.deepcopy(model), example_input=x), tmp_path / "model.xml", compress_to_fp16=False
    )
    exported = tmp_path, model, x
    assert {"module:1.norm#1[0]", "module:1.act#1[0]"} <= {
        one.recorded for one in _judged(exported, _recorded(exported, "f32", tmp_path)).layers
    }
    found = _judged(exported, _recorded(exported, "f32", tmp_path, "1.norm"))
    assert [one.recorded for one in found.at] == ["module:1.norm#1[0]"]


@_types("bf16")
@pytest.mark.slow
def test_a_mean_that_cancels_out_is_not_a_fault(arithmetic: str, tmp_path: Path) -> None:
    """The runtime rounds it; in the model the folded bias is the small difference."""
    torch.manual_seed(0)
    model, x = _convolutional()
    settle(model)
    with torch.no_grad():
        for one in model.modules():
            if isinstance(one, nn.BatchNorm2d):
                one.running_mean.fill_(3.0)
                one.bias.copy_(3.0 * one.weight / (one.running_var + one.eps).sqrt())
    ov.save_model(
        ov.convert_model(copy.deepcopy(model), example_input=x), tmp_path / "model.xml", compress_to_fp16=False
    )
    exported = tmp_path, model, x
    found = _judged(exported, _recorded(exported, arithmetic, tmp_path))
    assert found.verdict == "agrees", found.sentence


def test_compare_takes_the_tolerance_of_the_stated_arithmetic(
    exported: tuple[Path, nn.Module, Any], tmp_path: Path
) -> None:
    """Tensors of bf16 are kept as f32, since NumPy has no bf16."""
    recording = _recorded(exported, "bf16", tmp_path)
    assert compare(str(recording), str(exported[0] / "model.xml"), None, CompareOptions()).agrees
