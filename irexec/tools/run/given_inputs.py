"""The sizes of given inputs, with which an ONNX model can be converted that leaves them open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.analysis.model import Port, find_port
from irexec.dtypes.elements import F32
from irexec.errors import InputError
from irexec.io.onnx_bytes import model_names
from irexec.ir.dims import PartialShape
from irexec.ir.graph import Node
from irexec.ir.shape_text import parse_shape
from irexec.tools.images.images import ImageOptions
from irexec.tools.run.input_sources import InputSource, input_arrays, sources_of_step


@dataclass(frozen=True)
class GivenInputs:
    """The inputs of runs of a model.

    Attributes:
        sources: where inputs come from.
        arrays: of each run, by names or positions of inputs; they may be meant for another model.
        image: how images become inputs.
        steps: number of steps, see ``sources_of_step``; None if sources have no steps.
    """

    sources: Sequence[InputSource] = ()
    arrays: Sequence[Mapping[Any, Any]] = ()
    image: ImageOptions | None = None
    steps: int | None = None

    def shapes(self, ports: Sequence[Port]) -> dict[str, PartialShape]:
        """Shapes of files by names of ports, without several shapes for one port.

        Raises:
            InputError, ModelError: as for input_arrays.
        """
        sources = self.sources if self.steps is None else sources_of_step(self.sources, 1, self.steps)
        files = [source for source in sources if source.path is not None]
        found = {
            name: {array.shape}
            for name, array in input_arrays(files, ports, image=self.image, notify=lambda text: None).items()
        }
        for key, array in (pair for run in self.arrays for pair in run.items()):
            try:
                found.setdefault(find_port(ports, key).name, set()).add(np.shape(array))
            except InputError:
                continue
        return {name: shapes.pop() for name, shapes in found.items() if len(shapes) == 1}


def given_runs(
    inputs: Mapping[str, np.ndarray] | Iterable[Mapping[str, np.ndarray]] | None,
) -> list[Mapping[str, np.ndarray]]:
    """The arrays of each run; one mapping is one run.

    Raises:
        InputError: they are not mappings.
    """
    runs = [inputs] if isinstance(inputs, Mapping) else list(() if inputs is None else inputs)
    for run in runs:
        if not isinstance(run, Mapping):
            raise InputError(
                "expected inputs by name, such as {'x': array}, or one such mapping for each run, "
                f"and not {type(run).__name__}"
            )
    return runs


def declared_inputs(path: str) -> list[Port]:
    """The inputs of an ONNX model that cannot be converted, with declared shapes; types are unknown and taken as f32.

    None of a file that cannot be read.
    """
    try:
        declared = model_names(path).inputs
    except (OSError, ValueError):
        declared = {}
    return [
        Port(name, (name,), F32, None if shape is None else parse_shape(shape), Node(i, name, "Parameter", "opset1"))
        for i, (name, shape) in enumerate(declared.items())
    ]
