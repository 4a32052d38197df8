"""Rows, bodies, states and whole networks written as ONNX give what they give in IR."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import onnx
import pytest

import irexec
from converters.ir_to_onnx.export import Exported, export
from converters.ir_to_onnx.graph_writer import ExportError
from converters.ir_to_onnx.registry import Translation, translation_of
from irexec.errors import OpError
from irexec.testing import Case
from tests.graphs.growth import Growth
from tests.graphs.making import Made, made_of
from tests.graphs.steps import steps
from tests.support.cases import runnable_definitions
from tests.support.exported import run_onnx
from tests.support.networks import NAMES, difference, feeds, unpacked
from tests.support.tiers import some, spread
from tests.to_onnx.exceptions import EXCEPT, REFUSED, is_listed
from tests.to_onnx.sweep import cases, expected_of, exported

_ROWS: dict[str, list[tuple[str, Case]]] = {}
for _family, _row in cases():
    _ROWS.setdefault(_row.type, []).append((_family, _row))


def _translation(row: Case) -> Translation | None:
    return translation_of(row.definition)


@pytest.mark.parametrize("type", [t for t, rows in _ROWS.items() if any(_translation(row) for _, row in rows)])
@pytest.mark.parametrize("count", some([6, 1000], [6]))
@pytest.mark.sampled(6)
def test_rows(type: str, count: int) -> None:
    broken = []
    for family, row in spread(_ROWS[type], count):
        translation = _translation(row)
        if translation is None or translation.function is None or is_listed(row, EXCEPT):
            continue
        try:
            exported(row, expected_of(family, row))
        except ExportError as error:
            if not is_listed(row, REFUSED):
                broken.append(f"{row.id} is refused: {error}")
        except Exception as error:
            # A runtime raises errors of its own; all rows of the operation are looked at.
            broken.append(f"{row.id}: {error!r:.400}")
    assert not broken, "\n".join(broken)


def test_what_is_not_translated_has_a_reason() -> None:
    for definition in runnable_definitions():
        translation = translation_of(definition)
        if translation is not None:
            assert translation.text, f"{definition.type}-{definition.since} has no text"


# Whole networks written as ONNX give what OpenVINO gave for the IR.


TOLERANCE = 1e-4
"""Largest difference, relative to the largest number of the output."""

NETWORKS_REFUSED = {"spectrogram": "STFT is not written"}


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
        assert name in NETWORKS_REFUSED
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


# Random graphs of If, Loop and TensorIterator give the same in ONNX Runtime.


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
