"""OpenVINO, in a process of its own; intermediate values are Results of a copy of the model."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.api import save_model
from irexec.dtypes.elements import Element
from irexec.errors import EngineError
from irexec.ir.graph import Value
from irexec.messages import counted
from irexec.tools.engines.runtimes.process import ProcessRuntime
from irexec.tools.engines.runtimes.runtime import Arrays, fed, in_carrier, observed

# As written, as far as the CPU plugin can: no bf16, no quantisation of its own, FakeQuantize not in 8 bits.
_PROPERTIES = {
    "INFERENCE_PRECISION_HINT": "f32",
    "EXECUTION_MODE_HINT": "ACCURACY",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "KV_CACHE_PRECISION": "f32",
    "LP_TRANSFORMS_MODE": "NO",
}


class OpenVINORuntime(ProcessRuntime):
    """A model in OpenVINO. Each call of ``run_all`` compiles a copy with the values as outputs: pass many at once.

    A copy from which intermediate values are taken is fused less than the model itself.

    Args:
        name: "openvino", with a device after a colon unless it is the CPU.
        model: the graph whose values can be asked for.
        properties: of the plugin, by name. The CPU computes as written unless they say otherwise.
        process: see ProcessRuntime.
    """

    def __init__(self, name: str, model: Model, *, properties: Mapping[str, str] | None = None, **process: Any) -> None:
        super().__init__(name, model, **process)
        self._device = name.partition(":")[2] or "CPU"
        self._preferred = _PROPERTIES if self._device == "CPU" else {}
        self._properties = dict(properties or {})
        self._facts = infer_shapes(model, tolerant=True).facts

    def run_all(self, runs: Sequence[Arrays], values: Sequence[Value]) -> list[list[np.ndarray]]:
        asked = list(dict.fromkeys([*values, *self._of_loops(values)]))
        made = observed(self.model, asked, [self._element(value) for value in asked])
        feeds = [fed(self.inputs, arrays, made) for arrays in runs]
        what = str(self.model.path or self.model.name or "the model")
        with tempfile.TemporaryDirectory(prefix="irexec-openvino-") as folder:
            path = Path(folder) / "model.xml"
            save_model(made.model, path)
            settings = {"options": self._properties, "preferred": self._preferred, "device": self._device}
            outputs = self._ask(path, feeds, what, **settings)
        if any(len(given) != len(asked) for given in outputs):
            raise EngineError(
                f"openvino gives {len(outputs[0])} of {counted(len(asked), 'tensor')} of {what}", engine="openvino"
            )
        position = {value: i for i, value in enumerate(asked)}
        return [[in_carrier(given[position[value]], self._element(value)) for value in values] for given in outputs]

    def _element(self, value: Value) -> Element | None:
        return self._facts[value].element if value in self._facts else None

    def _of_loops(self, values: Sequence[Value]) -> Iterator[Value]:
        """Outputs of dynamic shape of loops before the values: the plugin runs no loop with such an unread output."""
        waiting, seen = [value.node for value in values], set()
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += [value.node for value in node.inputs if value is not None]
                if len(node.bodies) == 1:
                    yield from (
                        value for value in node.outputs if value not in self._facts or not self._facts[value].is_static
                    )
