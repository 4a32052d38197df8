"""One random case of an operator of com.microsoft."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from tests.onnx.rows import Fixed, Row

Arrays = list[np.ndarray]
Input = np.ndarray | Fixed | None


@dataclass(frozen=True)
class ContribCase:
    """A model of one node.

    Attributes:
        row: the model and its inputs.
        reference: the results in NumPy, where ONNX Runtime has no kernel on the CPU or a wrong one.
        defined: the defined parts of the results.
        tolerance: relative to the largest value.
    """

    row: Row
    reference: Callable[[], Arrays] | None = None
    defined: Callable[[Arrays], Arrays] = list
    tolerance: float = 1e-4


Draw = Callable[[np.random.Generator], ContribCase]


def node(operator: str, inputs: Sequence[Input], outputs: int | Sequence[bool] = 1, **attributes: Any) -> Row:
    """The row of a node; attributes that are None are left out, and inputs that are None at the end."""
    present = list(inputs)
    while present and present[-1] is None:
        present.pop()
    wanted = (True,) * outputs if isinstance(outputs, int) else tuple(outputs)
    given = {name: value for name, value in attributes.items() if value is not None}
    return Row(operator, operator, "com.microsoft", 21, tuple(present), wanted, given, 1e-4, 9, 3)


def floats(rng: np.random.Generator, *shape: int, scale: float = 1.0, dtype: Any = np.float32) -> np.ndarray:
    return (rng.standard_normal(shape) * scale).astype(dtype)


def chance(rng: np.random.Generator, probability: float = 0.5) -> bool:
    return bool(rng.random() < probability)


def one_of(rng: np.random.Generator, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def runtime_answer(row: Row) -> Arrays:
    """The results of ONNX Runtime with one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    model = row.model()
    for output in model.graph.output:
        # The scores of MultiHeadAttention may have any type.
        if row.operator == "MultiHeadAttention":
            output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    if row.operator != "SparseAttention":
        return list(session.run(None, row.feeds))
    # Its caches must be changed in place.
    binding = session.io_binding()
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(x) for name, x in row.feeds.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("y0")
    binding.bind_ortvalue_output("y1", values["x3"])
    binding.bind_ortvalue_output("y2", values["x4"])
    session.run_with_iobinding(binding)
    return list(binding.copy_outputs_to_cpu())
