"""Options of a judgement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irexec.tools.compare.options import CompareOptions
from irexec.tools.run.shapes import Shapes


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """How a runtime is judged.

    Attributes:
        runtime: the runtime, see irexec.tools.engines.runtimes.open_runtime, or the path of recorded tensors: a .npz,
            or a folder of ``infer --dump-layers``.
        properties: of OpenVINO's plugin, by name.
        arithmetic: a name of irexec.bounds.ARITHMETICS; by default that of the runtime.
        weights: the .bin of the model; None is the file of the model's name.
        shapes: new shapes of inputs by name; None is the only input.
        seed: seed of random inputs.
        threads, max_memory, timeout, environments: as for open_runtime.
    """

    runtime: str = "openvino"
    properties: Mapping[str, str] | None = None
    arithmetic: str | None = None
    weights: str | None = None
    shapes: Shapes | None = None
    seed: int = 0
    threads: int | None = None
    max_memory: int | None = None
    timeout: float | None = None
    environments: str | None = None

    @property
    def running(self) -> CompareOptions:
        """The options of runs of single layers."""
        return CompareOptions(
            b_runtime=self.runtime,
            properties=self.properties,
            threads=self.threads,
            max_memory=self.max_memory,
            timeout=self.timeout,
            environments=self.environments,
        )
