"""What OpenVINO is seen to do with a model, in a process of its own: some models bring it down.

python -m tests.oracle.portability model.xml    prints it, from the inputs and expected results beside the model
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from irexec.errors import OpError
from irexec.testing.laws import kernel, read_only
from tests.analysis.portability import Row
from tests.support.one_operation import One, version_of

_OPTIONS = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}


def sees(row: Row, one: One, path: Path) -> str:
    """What differs from irexec: an effect as irexec.analysis.portability has them, or "nothing"."""
    np.savez(path.with_suffix(".fed.npz"), **{name: _stored(array) for name, array in one.fed.items()})
    np.savez(path.with_suffix(".expected.npz"), *map(_stored, _expected(row)))
    code = row.code
    command = [
        sys.executable, "-m", "tests.oracle.portability", str(path), code, row.case.type, version_of(row.case.since),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120)
    return done.stdout.split("\n")[0].split(":")[0] if done.returncode == 0 else "fails"


def _stored(array: np.ndarray) -> np.ndarray:
    """The array as a .npz can hold it: strings in NumPy's own type."""
    return array.astype(str) if array.dtype == object else array


def _expected(row: Row) -> tuple[np.ndarray, ...]:
    """The results of irexec's reference kernel; nothing where it has none that can be compared."""
    try:
        return kernel(row.case, read_only(row.case))
    except OpError:
        return ()


def _seen(path: Path, code: str) -> str:
    """What is seen of one model; an exception where it is not read, compiled or run."""
    import openvino as ov

    model = ov.Core().read_model(path)
    expected = list(np.load(path.with_suffix(".expected.npz")).values())
    if code in _BY_SHAPE:
        return "shape" if not all(map(_admits, model.outputs, expected)) else "nothing"
    if code in _BY_FOLDING:
        return _compared(_folded(model), expected)
    request = ov.Core().compile_model(model, "CPU", _OPTIONS).create_infer_request()
    fed = np.load(path.with_suffix(".fed.npz"))
    results = _run(request, fed)
    if code in _BY_REPETITION:
        return _compared(_run(request, fed), results)
    return _compared(results, expected)


# The differences that are not seen by one run on the CPU plugin.
_BY_SHAPE = ("IR932", "IR934", "IR964", "IR968")
_BY_FOLDING = ("IR938",)
_BY_REPETITION = ("IR936",)


def _run(request, fed) -> list[np.ndarray]:
    inputs = request.model_inputs
    request.infer([fed[port.get_node().get_friendly_name()] for port in inputs])
    tensors = [request.get_output_tensor(i) for i in range(len(request.model_outputs))]
    return [np.array(one.str_data if one.get_element_type().to_string() == "string" else one.data) for one in tensors]


def _folded(model) -> list[np.ndarray]:
    from openvino.passes import ConstantFolding, Manager

    manager = Manager()
    manager.register_pass(ConstantFolding())
    manager.run_passes(model)
    return [np.array(result.input_value(0).get_node().data) for result in model.get_results()]


def _admits(output, array: np.ndarray) -> bool:
    """Whether the shape that is inferred is that of the result, as far as it is known."""
    shape = output.get_partial_shape()
    if shape.rank.is_dynamic:
        return True
    return len(shape) == array.ndim and all(
        dim.min_length <= size <= (dim.max_length if dim.max_length >= 0 else size)
        for dim, size in zip(shape, array.shape, strict=True)
    )


def _compared(results: list[np.ndarray], expected: list[np.ndarray]) -> str:
    if [a.shape for a in results] != [b.shape for b in expected]:
        return f"shape: {[a.shape for a in results]}, expected {[b.shape for b in expected]}"
    for a, b in zip(results, expected, strict=True):
        if a.dtype.kind != "f" and b.dtype.kind != "f":
            same = np.array_equal(a, b)
        else:
            same = np.allclose(a.astype(np.float64), b.astype(np.float64), 1e-3, 1e-4, equal_nan=True)
        if not same:
            return f"values: {a.ravel()[:8].tolist()}, expected {b.ravel()[:8].tolist()}"
    return "nothing"


if __name__ == "__main__":
    print(_seen(Path(sys.argv[1]), sys.argv[2]))
