"""A command for irexec conform: OpenVINO's own evaluation of a model, operation by operation, without a plugin.

    irexec conform --runtime "command:python tests/conformance/evaluate.py"

Ends with exit code 1 where OpenVINO has no evaluation of the operation.
"""

from __future__ import annotations

import sys

import numpy as np
import openvino as ov


def main(path: str, inputs: str, outputs: str) -> None:
    """Evaluate the model at ``path``."""
    model = ov.Core().read_model(path)
    with np.load(inputs) as file:
        arrays = {name: file[name] for name in file.files}
    given = [_tensor(port, arrays[port.get_node().get_friendly_name()]) for port in model.inputs]
    made = [ov.Tensor(port.get_element_type(), _shape(port)) for port in model.outputs]
    if not model.evaluate(made, given):
        raise SystemExit("there is no evaluation")
    np.savez(outputs, *(_array(one) for one in made))


def _shape(port: ov.Output) -> ov.Shape:
    shape = port.get_partial_shape()
    return shape.to_shape() if shape.is_static else ov.Shape([0])


def _tensor(port: ov.Output, array: np.ndarray) -> ov.Tensor:
    """A tensor of the port's type, from an array or its carrier."""
    element = port.get_element_type()
    if element == ov.Type.bf16:
        made = ov.Tensor(element, array.shape)
        made.data[...] = array.astype(made.data.dtype)
        return made
    if element.to_dtype() != array.dtype:
        raise SystemExit(f"inputs of {element} cannot be passed")
    return ov.Tensor(array.copy(order="C"))


def _array(tensor: ov.Tensor) -> np.ndarray:
    return tensor.data.astype(np.float32) if tensor.element_type == ov.Type.bf16 else np.array(tensor.data)


if __name__ == "__main__":
    main(*sys.argv[1:])
