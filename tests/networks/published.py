"""Published architectures as torchvision and timm define them, with random weights, traced or by way of ONNX.

Some are quantised by NNCF too. Needs torchvision and timm.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import openvino as ov
import torch
from torch import nn

from tests.networks.compressed import quantised
from tests.networks.network import Network, RandomInput, convert, network, randomise

_TORCHVISION: dict[str, int] = {
    "squeezenet1_1": 64, "googlenet": 64, "shufflenet_v2_x0_5": 64, "mnasnet0_5": 64, "densenet121": 64,
    "efficientnet_b0": 64, "regnet_y_400mf": 64, "inception_v3": 80, "swin_v2_t": 64, "resnext50_32x4d": 64,
    "segmentation.lraspp_mobilenet_v3_large": 64, "segmentation.deeplabv3_mobilenet_v3_large": 64,
}  # fmt: skip
"""Models of torchvision, and the size of their images."""

_TIMM: dict[str, dict[str, Any]] = {
    "ghostnet_050": {}, "hrnet_w18_small": {}, "mixer_s32_224": {"img_size": 64}, "deit_tiny_patch16_224":
    {"img_size": 64}, "levit_128s": {"img_size": 64}, "edgenext_xx_small": {}, "cspresnet50": {}, "res2net50_14w_8s": {},
    "nf_resnet50": {}, "xcit_nano_12_p16_224": {"img_size": 64}, "repvgg_a0": {}, "mobileone_s0": {}, "fbnetc_100": {},
    "coat_tiny": {"img_size": 64}, "pit_ti_224": {"img_size": 64}, "selecsls42": {}, "dla34": {}, "mobilevitv2_050": {},
    "eca_halonext26ts": {}, "gmlp_s16_224": {"img_size": 64},
}  # fmt: skip
"""Models of timm for images of 64 x 64, with the options of timm.create_model."""

_QUANTISED = (
    "squeezenet1_1", "shufflenet_v2_x0_5", "ghostnet_050", "mnasnet0_5", "fbnetc_100", "deit_tiny_patch16_224",
)  # fmt: skip
"""Models that are quantised by NNCF too."""

_BY_ONNX = ("squeezenet1_1", "shufflenet_v2_x0_5", "densenet121", "edgenext_xx_small", "levit_128s")
"""Models that are written as ONNX too, and read by OpenVINO's frontend of ONNX."""


class _First(nn.Module):
    """A model whose result is the first tensor of a dictionary."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.inner(x)
        return found["out"] if isinstance(found, dict) else found


def _module(name: str) -> nn.Module:
    if name in _TIMM:
        import timm

        return randomise(timm.create_model(name, **_TIMM[name]))
    from torchvision import models

    options: dict[str, Any] = {"weights": None}
    if name in ("googlenet", "inception_v3"):
        options |= {"aux_logits": False, "init_weights": False}
    if name.startswith("segmentation."):
        options |= {"weights_backbone": None}
    owner, _, last = name.rpartition(".")
    return _First(randomise(getattr(getattr(models, owner) if owner else models, last)(**options)))


def _model(name: str, by_onnx: bool) -> Network:
    size = _TORCHVISION.get(name, 64)
    image = torch.randn(1, 3, size, size)
    runs = [[RandomInput((1, 3, size, size))]]
    if not by_onnx:
        return Network(convert(_module(name), [image], [[1, 3, size, size]]), runs)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = Path(folder) / "model.onnx"
        torch.onnx.export(_module(name), (image,), path, dynamo=False)
        return Network(ov.convert_model(path), runs)


def _register(name: str) -> None:
    short = name.removeprefix("segmentation.")
    network(f"published_{short}")(lambda _: _model(name, by_onnx=False))
    if name in _QUANTISED:
        network(f"published_{short}_quantised")(lambda _: quantised(_model(name, by_onnx=False)))
    if name in _BY_ONNX:
        network(f"published_{short}_onnx")(lambda _: _model(name, by_onnx=True))


for _name in (*_TORCHVISION, *_TIMM):
    _register(_name)
