"""The test suites in files of the onnx wheel: models of PyTorch's operators and layers, and simple ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import converters
import irexec
from converters.onnx.translate import unsupported_nodes
from irexec import io

_DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
_MODELS = sorted(
    path
    for suite in ("pytorch-operator", "pytorch-converted", "simple")
    for path in (_DATA / suite).glob("*/model.onnx")
)
# IR has no training.
_NOT_IN_IR = ("test_gradient",)


def _load(path: Path) -> np.ndarray:
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def _numbered(folder: Path, kind: str) -> list[np.ndarray]:
    return [_load(path) for path in sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.split("_")[1]))]


@pytest.mark.parametrize("path", _MODELS, ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}")
def test_suite(path: Path) -> None:
    if path.parent.name.startswith(_NOT_IN_IR):
        assert unsupported_nodes(path)
        return
    read = io.read_text(*io.write_text(converters.convert(path)))
    assert [finding for finding in irexec.validate(read) if finding.severity == "error"] == []
    compiled = irexec.compile_model(read)
    for folder in sorted(path.parent.glob("test_data_set_*")):
        results = compiled(_numbered(folder, "input"))
        for result, expected in zip(results.values(), _numbered(folder, "output"), strict=True):
            if expected.dtype == object:
                assert (result.shape, result.tolist()) == (expected.shape, expected.astype(str).tolist())
                continue
            np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-6)
