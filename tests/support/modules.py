"""The recorder of PyTorch's modules, and weights that show a fault."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from irexec.tools.compare.scopes import record_torch


def recorder(folder: Path) -> Callable[..., None]:
    """The function of the script that ``compare --record-torch`` writes."""
    record_torch(str(folder / "recorder.py"))
    found = importlib.util.spec_from_file_location("recorder", folder / "recorder.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    record: Callable[..., None] = module.record
    return record


def settle(model: nn.Module) -> None:
    """Set weights and statistics that show a fault: biases and statistics are random, not zero and one."""
    with torch.no_grad():
        for name, held in [*model.named_parameters(), *model.named_buffers()]:
            if name.endswith(("running_mean", "bias")):
                held.uniform_(-0.5, 0.5)
            elif name.endswith("running_var"):
                held.uniform_(0.5, 2)
            elif held.is_floating_point() and held.ndim > 1:
                held.normal_(0, held[0].numel() ** -0.5)
    model.eval()
