"""Whole networks as OpenVINO's converter writes them validate clean and give what OpenVINO gives.

The networks are kept in tests/data/networks; tests/networks says how they are made, and runs more of them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.analysis.evaluate import Precision
from irexec.analysis.shape_inference import infer_shapes
from irexec.runtime.compiled_model import CompiledModel
from tests.support.networks import NAMES, difference, feeds, unpacked
from tests.support.passes import ALONE
from tests.support.tiers import some

DEFAULT = ("diffusion_unet", "llama_int4_asym")
# Largest difference, relative to the largest number of the output.
TOLERANCE = 2e-5
AS_RECORDED: Precision = "as-written"
"""Compressed weights were unpacked in f16 when the answers were recorded; see ``tests.networks.check.oracle``."""


@pytest.fixture(scope="module", params=some(NAMES, DEFAULT))
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The .xml of a network, unpacked."""
    return unpacked(request.param, tmp_path_factory.mktemp("network"))


@pytest.fixture(scope="module")
def model(kept: Path) -> irexec.Model:
    return irexec.read_model(kept)


@pytest.mark.sampled(2)
def test_agrees_with_openvino(kept: Path, model: irexec.Model) -> None:
    errors = [finding for finding in irexec.validate(model) if finding.severity == "error"]
    assert errors == []
    compiled = irexec.compile_model(model, precision=AS_RECORDED)
    answers = np.load(kept.with_suffix(".npz"))
    for i, inputs in enumerate(feeds(kept, compiled.inputs)):
        for j, (name, array) in enumerate(compiled(inputs).items()):
            assert difference(array, answers[f"{i}.{j}"]) < TOLERANCE, f"run {i}, output {name!r}"


def test_plain_kernels_agree(kept: Path, model: irexec.Model) -> None:
    """Without any fast kernel, on the first run."""
    compiled = irexec.compile_model(model, optimize=False, precision=AS_RECORDED)
    answers = np.load(kept.with_suffix(".npz"))
    for j, (name, array) in enumerate(compiled(feeds(kept, compiled.inputs)[0]).items()):
        assert difference(array, answers[f"0.{j}"]) < TOLERANCE, f"output {name!r}"


@pytest.mark.parametrize("kept", some(NAMES, ()), indirect=True, scope="module")
def test_each_pass_alone_agrees(kept: Path, model: irexec.Model) -> None:
    """And fast kernels without any pass. A pass that changes nothing leaves the same plan as none."""
    answers = np.load(kept.with_suffix(".npz"))
    for names in ALONE:
        compiled = CompiledModel(model, optimize=names, precision=AS_RECORDED)
        inputs = feeds(kept, compiled.inputs)[0]
        if not names or compiled.program.plan(tuple(array.shape for array in inputs), None).passes:
            for j, (name, array) in enumerate(compiled(inputs).items()):
                assert difference(array, answers[f"0.{j}"]) < TOLERANCE, f"output {name!r}, passes {names}"


def test_shapes_are_known_as_well_as_openvino_knows_them(model: irexec.Model) -> None:
    facts = infer_shapes(model).facts
    looser = []
    for value in (value for node in model.nodes for value in node.outputs):
        declared, found = value.fact, facts[value]
        if declared is not None and declared.shape:
            known = found.shape is not None and not any(
                isinstance(a, int) and not isinstance(b, int) for a, b in zip(declared.shape, found.shape, strict=True)
            )
            looser += [] if known else [f"{value}: {found}"]
    assert looser == []


def test_written_again_it_is_the_same_file(kept: Path, model: irexec.Model) -> None:
    xml, weights = io.write_text(model)
    assert weights == kept.with_suffix(".bin").read_bytes()
    assert xml.split() == kept.read_bytes().replace(b" />", b"/>").split()
