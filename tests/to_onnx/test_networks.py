"""Whole networks written as ONNX give what OpenVINO gave for the IR."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import irexec
from converters.ir_to_onnx.export import Exported, export
from tests.support.exported import run_onnx
from tests.support.networks import NAMES, difference, feeds, unpacked
from tests.support.tiers import some

TOLERANCE = 1e-4
"""Largest difference, relative to the largest number of the output."""

REFUSED = {
    "spectrogram": "STFT is not written",
}


def _nothing(exported: Exported, batch: int) -> list[np.ndarray]:
    """The first values of the states of a decoder: keys and values of no token."""
    infos = exported.proto.graph.input[len(exported.inputs) :]
    types = [info.type.tensor_type for info in infos]
    shapes = [[size.dim_value for size in kind.shape.dim] for kind in types]
    return [
        np.zeros([batch, *shape[1:]], onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        for kind, shape in zip(types, shapes, strict=True)
    ]


@pytest.mark.parametrize("name", some(NAMES, ("bert_quantised",)))
def test_network(name: str, tmp_path: Path) -> None:
    path = unpacked(name, tmp_path)
    model = irexec.read_model(path)
    try:
        exported = export(model)
    except irexec.ConversionError:
        assert name in REFUSED
        return
    onnx.checker.check_model(exported.proto, full_check=True)
    answers = np.load(path.with_suffix(".npz"))
    runs = feeds(path, model.inputs)
    # The answers to further runs of a model with states depend on the runs before.
    for i, inputs in enumerate(runs[:1] if exported.states else runs):
        results, runtime = run_onnx(exported.proto, [*inputs, *_nothing(exported, len(inputs[0]))])
        assert runtime == "onnxruntime"
        for j, result in enumerate(results[: len(exported.outputs)]):
            assert difference(result, answers[f"{i}.{j}"]) < TOLERANCE, f"run {i}, output {j}"
