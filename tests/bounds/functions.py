"""Functions of one tensor in other runtimes, on dense grids of arguments, beside their bounds.

    python -m tests.bounds.functions [Sigmoid Erf ...]

Random cases rarely have an argument at which an approximation is worst, or nearly overflows. Prints each accusation;
exit code 1 for one that is not among the known faults.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx

import converters
from irexec import Model, Value, opset, save_model
from irexec.errors import IrexecError
from irexec.tools.judge import JudgeOptions, judge

Function = Callable[..., Value]

_BF16 = {"INFERENCE_PRECISION_HINT": "bf16"}
_RUNTIMES = (
    JudgeOptions(runtime="openvino"), JudgeOptions(runtime="openvino", properties=_BF16),
    JudgeOptions(runtime="onnxruntime"), JudgeOptions(runtime="onnx"), JudgeOptions(runtime="irexec"),
)  # fmt: skip
_KNOWN = {
    ("openvino", "SoftPlus"): "openvinotoolkit/openvino#23673",
    ("onnx", "LogSoftmax"): "the logarithm of a softmax that is 0",
}
_COUNT = 20_001
_GRIDS = {
    "[-20, 20]": np.linspace(-20, 20, _COUNT),
    "[-1.5, 1.5]": np.linspace(-1.5, 1.5, _COUNT),
    "[-120, 120]": np.linspace(-120, 120, _COUNT),
    "powers of 10": np.concatenate([sign * np.geomspace(1e-37, 1e37, _COUNT // 2) for sign in (1, -1)]),
}


def _functions() -> dict[str, Function]:
    """Each function by its type, with parameters after a slash."""
    alone = [
        "Exp", "Log", "Sqrt", "Tanh", "Sigmoid", "Erf", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh",
        "Asinh", "Acosh", "Atanh", "SoftPlus", "SoftSign", "Mish", "HSwish", "HSigmoid", "Relu", "Floor", "Ceiling",
        "Swish", "Abs", "Negative", "Sign",
    ]  # fmt: skip
    found: dict[str, Function] = {type: getattr(opset, type.lower()) for type in alone}
    number = np.float32
    return found | {
        "Elu": lambda x, **names: opset.elu(x, alpha=1.3, **names),
        "Selu": lambda x, **names: opset.selu(x, number(1.67), number(1.05), **names),
        "Gelu/erf": lambda x, **names: opset.gelu(x, approximation_mode="ERF", **names),
        "Gelu/tanh": lambda x, **names: opset.gelu(x, approximation_mode="TANH", **names),
        "Swish/1.7": lambda x, **names: opset.swish(x, number(1.7), **names),
        "Round": lambda x, **names: opset.round(x, mode="half_to_even", **names),
        "Power/2.5": lambda x, **names: opset.power(x, number(2.5), **names),
        "Power/3": lambda x, **names: opset.power(x, number(3), **names),
        "HardSigmoid": lambda x, **names: opset.hard_sigmoid(x, number(0.2), number(0.5), **names),
        "PRelu": lambda x, **names: opset.prelu(x, np.array([0.3], np.float32), **names),
        "Softmax": lambda x, **names: opset.softmax(x, axis=1, **names),
        "LogSoftmax": lambda x, **names: opset.log_softmax(x, axis=1, **names),
        "Divide": lambda x, **names: opset.divide(number(1), x, **names),
    }


def _arguments(name: str, grid: np.ndarray) -> np.ndarray:
    """The part of a grid in which a function has values, (1, count)."""
    x = grid.astype(np.float32)
    if name in ("Log", "Sqrt", "Power/2.5"):
        x = np.abs(x)
    if name in ("Asin", "Acos", "Atanh"):
        x = x[np.abs(x) < 1]
    if name == "Acosh":
        x = 1 + np.abs(x)
    return x[None]


def _accusations(name: str, function: Function, folder: Path) -> Iterator[tuple[JudgeOptions, str]]:
    """The runtime and the sentence of each accusation."""
    for where, grid in _GRIDS.items():
        x = _arguments(name, grid)
        parameter = opset.parameter(x.shape, "f32", "x")
        model = Model([function(parameter, name="y", names=["y"])], [parameter])
        save_model(model, folder / "m.xml")
        onnx.save(converters.to_onnx(model), str(folder / "m.onnx"))
        for options in _RUNTIMES:
            path = folder / ("m.onnx" if options.runtime.startswith("onnx") else "m.xml")
            try:
                found = judge(path, {"x": x}, options)
            except IrexecError as error:
                print(f"{name} {where} {options.runtime}: {error}")
                continue
            if found.is_bug:
                yield options, f"{where}: {found.sentence}"


def main() -> int:
    """Judge every function; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    names = parser.parse_args().names
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, function in _functions().items():
            if names and name.split("/")[0] not in names:
                continue
            for options, text in _accusations(name, function, Path(folder)):
                known = _KNOWN.get((options.runtime, name.split("/")[0]), "")
                wrong += not known
                print(f"{name} {options.runtime} {options.properties or ''} {known} {text}", flush=True)
    print(f"{wrong} accusations that are not known")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
