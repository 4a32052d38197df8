"""Random graphs of If, Loop and TensorIterator give the same in ONNX Runtime."""

from __future__ import annotations

import contextlib

import numpy as np
import onnx
import pytest

import irexec
from converters.ir_to_onnx.export import export
from converters.ir_to_onnx.graph_writer import ExportError
from irexec.errors import OpError
from tests.graphs.growth import Growth
from tests.graphs.making import Made, made_of
from tests.graphs.steps import steps
from tests.support.exported import run_onnx

_STEPS = ("condition", "iterator", "loop", "nested", "growing", "cell")


def _grown(seed: int) -> Made:
    g, table = Growth(np.random.default_rng(seed)), steps()
    g.pool.append(g.parameter(g.gen.rng.uniform(-2, 2, [2, 3, 4]), "f32"))
    for name in g.gen.rng.choice(_STEPS, 3):
        with contextlib.suppress(OpError):
            table[name][1](g)
    return made_of(g)


@pytest.mark.parametrize("seed", range(24))
def test_random_bodies(seed: int) -> None:
    made = _grown(seed)
    try:
        proto = export(made.model).proto
    except ExportError as error:
        # The graphs in bodies have operations of every kind.
        assert not any(layer.type in ("If", "TensorIterator") for layer in error.layers)
        return
    onnx.checker.check_model(proto, full_check=True)
    expected = irexec.compile_model(made.model, optimize=False)(made.runs[0])
    results, runtime = run_onnx(proto, made.runs[0])
    if runtime == "onnxruntime":
        # The Loop of the reference evaluator concatenates where it has to stack.
        for i, result in enumerate(results):
            assert result.dtype == expected[i].dtype
            np.testing.assert_allclose(result, expected[i], rtol=2e-3, atol=1e-3)
