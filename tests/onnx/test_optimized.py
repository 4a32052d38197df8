"""Networks that ONNX Runtime saves with ORT_ENABLE_ALL: converted, and compared with ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests import optimized_sweep
from tests.compare_sweep import onnx_networks
from tests.support.tiers import some

pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("name", some(onnx_networks.NETWORKS, ("encoder", "depthwise")))
def test_network(name: str, tmp_path: Path) -> None:
    source = tmp_path / f"{name}.onnx"
    onnx.save(onnx_networks.model(name), source)
    outcome = optimized_sweep.check(source, tmp_path)
    assert outcome.agrees, [str(one) for one in outcome.verification.agreements]
