"""Options of a judgement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from irexec.compile.passes.quantise_activations import check_group, is_group
from irexec.tools.compare.options import CompareOptions
from irexec.tools.engines.runtimes import DYNAMIC_QUANTIZATION, RUNTIMES
from irexec.tools.engines.runtimes.caches import CacheTypes, cache_types
from irexec.tools.observing.sides import is_recorded
from irexec.tools.run.shapes import Shapes


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """The inputs and the state of the steps that a model runs.

    Attributes:
        weights: the .bin of the model; None is the file of the model's name.
        shapes: new shapes of inputs by name; None is the only input.
        seed: seed of random inputs.
        steps: number of runs one after the other, with state from step to step; None is 2 for a model with state that
            is not recorded, else 1. Where it is given, a source of arrays may have those of each step, see
            ``sources_of_step``.
        load_state: a .npz with the arrays of variables before the first step, by variable_id.
        threads, max_memory: as for open_runtime.
    """

    weights: str | None = None
    shapes: Shapes | None = None
    seed: int = 0
    steps: int | None = None
    load_state: str | None = None
    threads: int | None = None
    max_memory: int | None = None


@dataclass(frozen=True, kw_only=True)
class JudgeOptions(StepOptions):
    """How a runtime is judged, and its steps.

    Attributes:
        runtime: the runtime, see irexec.tools.engines.runtimes.open_runtime, or the path of recorded tensors: a .npz,
            or a folder of ``infer --dump-layers``.
        properties: of OpenVINO's plugin, by name.
        arithmetic: a name of irexec.bounds.ARITHMETICS; by default that of the runtime.
        functions: a name of irexec.bounds.FUNCTIONS; by default "ieee" for runtimes of CPUs, and "opencl" for others,
            such as recordings that do not say their device.
        timeout, environments: as for open_runtime.
        dynamic_quantization: size of the groups in which the runtime may quantise rows that are multiplied by
            compressed weights; OpenVINO and irexec are asked to. By default that of the property of OpenVINO.

    Others are those of StepOptions.
    """

    runtime: str = "openvino"
    properties: Mapping[str, str] | None = None
    arithmetic: str | None = None
    functions: str | None = None
    timeout: float | None = None
    environments: str | None = None
    dynamic_quantization: int | None = None

    @property
    def group(self) -> int | None:
        """Size of the groups in which the runtime may quantise rows; None where it does not.

        Raises:
            InputError: it is not a size that irexec has.
        """
        given = (self.properties or {}).get(DYNAMIC_QUANTIZATION, "")
        if self.dynamic_quantization is None and given.isdecimal() and is_group(int(given)):
            return int(given)
        return check_group(self.dynamic_quantization) or None

    @property
    def caches(self) -> CacheTypes | None:
        """How OpenVINO is asked to hold caches of attention."""
        return cache_types(self.properties or {})

    @property
    def is_recorded(self) -> bool:
        """Whether the runtime is a recording. A folder may have the name of a runtime: ./irexec is one of tensors."""
        return self.runtime not in RUNTIMES and is_recorded(Path(self.runtime))

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
            dynamic_quantization=self.group,
        )
