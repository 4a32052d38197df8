"""A runtime with a planted fault: irexec's reference kernels with a damaged copy of each model that they are given."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from irexec.analysis.model import Model
from irexec.ir.graph import Value
from irexec.tools.compare import options as compare_options
from irexec.tools.engines.runtimes import Arrays, Runtime, open_runtime
from irexec.tools.engines.runtimes.kinds import OwnRuntime
from irexec.tools.judge import opponent

NAME = "command:faulty"
Damage = Callable[[Model, Sequence[Value]], None]
Change = Callable[[Value, np.ndarray], np.ndarray]


class Faulty(Runtime):
    """Runs ``damage``d copies; ``change`` changes a tensor that is asked for, but not what later layers read;
    ``forgets``: every run begins with the initial state."""

    def __init__(
        self, model: Model, damage: Damage, change: Change, kernels: str = "reference", forgets: bool = False
    ) -> None:
        super().__init__(NAME, model)
        self._damage, self._change, self._kernels, self._forgets = damage, change, kernels, forgets

    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        damaged = copy.copy(self.model)
        at = {node: i for i, node in enumerate(self.model.nodes)}
        own = [damaged.nodes[at[value.node]].outputs[value.index] for value in values]
        self._damage(damaged, own)
        rows = [[run] for run in runs] if self._forgets else [runs]
        given = [one for row in rows for one in OwnRuntime(self._kernels, damaged).run_all(row, own)]
        return [[self._change(value, array) for value, array in zip(values, arrays, strict=True)] for arrays in given]


def plant(
    patch: pytest.MonkeyPatch,
    damage: Damage = lambda model, values: None,
    change: Change = lambda value, array: array,
    kernels: str = "reference",
    forgets: bool = False,
) -> str:
    """Let a runtime have a fault; its name."""

    def opened(name: str, model: Model, **options: Any) -> Runtime:
        return Faulty(model, damage, change, kernels, forgets) if name == NAME else open_runtime(name, model, **options)

    for module in (opponent, compare_options):
        patch.setattr(module, "open_runtime", opened)
    return NAME
