"""What a network is here: an OpenVINO model, the inputs it is to be run on, and a registry of builders."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import openvino as ov
import torch
from torch import nn


@dataclass(frozen=True)
class RandomInput:
    """One random input: integers in [low, high), floats uniform in the same range, or the values themselves."""

    shape: tuple[int, ...]
    low: float = -1
    high: float = 1
    values: list[Any] | None = None


def ids(*shape: int, below: int) -> RandomInput:
    """Tokens."""
    return RandomInput(shape, 0, below)


def exactly(values: list[Any]) -> RandomInput:
    """The values themselves."""
    return RandomInput(tuple(torch.tensor(values).shape), values=values)


@dataclass
class Network:
    """A converted model and its inputs.

    Attributes:
        model: what openvino.convert_model gave.
        runs: one sequence of random inputs, in the order of the model's inputs, for each run; state goes from run to run.
        half: save with weights as f16.
    """

    model: ov.Model
    runs: list[Sequence[RandomInput]]
    half: bool = False


BUILDERS: dict[str, Callable[[bool], Network]] = {}


def network(name: str) -> Callable[[Callable[[bool], Network]], Callable[[bool], Network]]:
    """Decorator: the builder of a network; it takes whether the widths are the published ones (else: small)."""

    def register(builder: Callable[[bool], Network]) -> Callable[[bool], Network]:
        assert name not in BUILDERS, name
        BUILDERS[name] = builder
        return builder

    return register


def build(name: str, wide: bool, folder: Path) -> Path:
    """Build one network and save its IR, with the specification of its random inputs beside it."""
    torch.manual_seed(0)
    made = BUILDERS[name](wide)
    path = folder / f"{name}.xml"
    folder.mkdir(parents=True, exist_ok=True)
    ov.save_model(made.model, path, compress_to_fp16=made.half)
    path.with_suffix(".json").write_text(json.dumps({"runs": [[asdict(spec) for spec in run] for run in made.runs]}))
    return path


class Calling(nn.Module):
    """A module of tensors in and tensors out around a call of another module."""

    def __init__(self, inner: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.inner, self.call = inner, call

    def forward(self, *inputs: Any) -> Any:
        return self.call(self.inner, *inputs)


def randomise(module: nn.Module) -> nn.Module:
    """Weights under which every layer matters: variance kept by products, normalisations a little off 1 and 0.

    They have ten bits after the point, so that archives of them are small.
    """
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if not tensor.is_floating_point() or tensor.numel() == 0 or "inv_freq" in name:
                continue
            noise = torch.randn(tensor.shape, generator=generator)
            if "running_var" in name:
                values = 1 + 0.5 * torch.tanh(noise)
            elif tensor.dim() > 1:
                values = noise * (1.4 / max(tensor[0].numel(), 1) ** 0.5)
            elif name.endswith("weight"):
                values = 1 + 0.1 * noise
            else:
                values = 0.1 * noise
            tensor.copy_((values * 1024).round() / 1024)
    return module.eval()


def convert(module: nn.Module, example: Sequence[Any], shapes: Sequence[Any] | None = None) -> ov.Model:
    """The model of a module; ``shapes`` are partial shapes for its inputs (fully dynamic unless given)."""
    with torch.no_grad():
        model = ov.convert_model(module, example_input=tuple(example))
    if shapes is not None:
        model.reshape({port: ov.PartialShape(list(shape)) for port, shape in zip(model.inputs, shapes, strict=True)})
    return model
