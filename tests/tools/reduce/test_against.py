"""A model reduced against another version of it: the layer at fault is named, whatever was done to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.errors import InputError
from irexec.runtime.compiled_model import CompiledModel
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.reduce import DoesNotFail, Reduction, against, check_against, reduce
from tests.support.networks import feeds, unpacked
from tests.support.paths import DATA
from tests.support.tiers import some_rows
from tests.tools.compare.models import W2, chain, changed
from tests.tools.reduce.faults import FAULTS

_PLANTED = [
    ("resnet18", "weight", 0), ("resnet18", "weight", 9), ("resnet18", "rounded", 1), ("resnet18", "pad", 0), ("resnet18", "pad", 1),
    ("resnet18", "missing", 1), ("resnet18", "bias", 3), ("resnet18", "other", 0), ("resnet18", "extra", 9),
    ("mobilenet_v3", "weight", 3), ("mobilenet_v3", "rounded", 9), ("mobilenet_v3", "pad", 3), ("mobilenet_v3", "missing", 0),
    ("mobilenet_v3", "bias", 9), ("mobilenet_v3", "other", 1), ("mobilenet_v3", "extra", 0),
    ("vit_sdpa", "weight", 9), ("vit_sdpa", "epsilon", 0), ("vit_sdpa", "epsilon", 1), ("vit_sdpa", "missing", 3), ("vit_sdpa", "other", 3),
    ("unet", "weight", 1), ("unet", "pad", 9), ("unet", "missing", 1), ("unet", "extra", 1),
    ("conv_tasnet", "epsilon", 0), ("conv_tasnet", "epsilon", 9), ("conv_tasnet", "rounded", 3), ("conv_tasnet", "missing", 1),
    ("ssd", "axis", 0), ("ssd", "weight", 1), ("convnext", "rounded", 0), ("convnext", "bias", 1),
    ("yolo", "axis", 3), ("yolo", "swapped", 3), ("yolo", "pad", 3), ("t5", "swapped", 5), ("swin", "swapped", 0),
    ("bert_sdpa", "weight", 9), ("wavlm", "swapped", 5),
]  # fmt: skip


_DEFAULT = [
    ("resnet18", "pad", 1), ("resnet18", "rounded", 1), ("resnet18", "bias", 3), ("mobilenet_v3", "other", 1), ("vit_sdpa", "epsilon", 1),
    ("unet", "missing", 1), ("unet", "extra", 1), ("ssd", "axis", 0), ("ssd", "weight", 1), ("wavlm", "swapped", 5),
]  # fmt: skip
"""One of each kind, in a network that takes little time."""


def test_there_are_forty_of_them() -> None:
    assert len(set(_PLANTED)) == 40
    assert {kind for _, kind, _ in _PLANTED} == {kind for _, kind, _ in _DEFAULT} == set(FAULTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("networks")


@pytest.mark.parametrize(
    ("name", "kind", "number"), some_rows(_PLANTED, _DEFAULT), ids=["-".join(map(str, row)) for row in _PLANTED]
)
@pytest.mark.sampled(8)
def test_a_planted_fault(name: str, kind: str, number: int, folder: Path) -> None:
    path = folder / f"{name}.xml"
    path = path if path.exists() else unpacked(name, folder)
    model = irexec.read_model(path)
    guilty = FAULTS[kind](model, number)
    arrays = dict(zip([port.name for port in model.inputs], feeds(path, model.inputs)[0], strict=True))
    report = reduce(model, check_against(path), arrays)
    assert _named(report) <= guilty
    assert _named(report)
    assert report.after <= 2
    assert report.checks <= 6
    assert _still_differs(report)


def _named(report: Reduction) -> set[str]:
    """The layer at fault; in place of the one that reads what is missing, the missing ones."""
    assert report.blame is not None
    absent = {layer.name for layer in report.blame.absent}
    assert len(report.blame.suspects) == 1
    return absent or {report.blame.suspects[0].layer.name}


def _still_differs(report: Reduction) -> bool:
    """Whether the smallest model, run by the reference kernels, does not give what is expected."""
    results = irexec.compile_model(report.found.model, optimize=False)(report.found.inputs)
    return any(
        array.shape != results[name].shape or not np.allclose(array, results[name], 1e-5, 1e-6)
        for name, array in report.found.expected.items()
    )


def _arrays() -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).standard_normal((4, 6)).astype(np.float32)}


def test_what_is_said_of_the_layer() -> None:
    report = reduce(chain(w2=changed(W2)), check_against(chain()), _arrays())
    assert [(layer.name, layer.type) for layer in report.layers] == [("two", "MatMul")]
    assert report.blame is not None
    (suspect,) = report.blame.suspects
    assert [(row.index, row.agrees) for row in suspect.inputs] == [(0, True), (1, False)]
    assert "4 of 24 values differ" in report.failure
    assert list(report.found.inputs) == ["relu"]
    assert list(report.found.expected) == ["two"]


def test_tensors_that_do_not_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what the layer reads and gives is held."""
    monkeypatch.setattr(against, "_PART_OF_MEMORY", 1 << 60)
    check = check_against(chain())
    report = reduce(chain(w2=changed(W2)), check, _arrays())
    assert [layer.name for layer in report.layers] == ["two"]
    model = chain(w2=changed(W2))
    assert {value.name for value in check.reference(model, list(_arrays().values()))} == {"relu", "two"}


def test_an_attribute_is_named() -> None:
    model = chain()
    next(node for node in model.nodes if node.name == "soft").attributes["axis"] = "0"
    report = reduce(model, check_against(chain()), _arrays())
    assert report.blame is not None
    assert [suspect.attributes for suspect in report.blame.suspects] == [{"axis": ("1", "0")}]


def test_recorded_tensors(tmp_path: Path) -> None:
    """Between recorded tensors only: the part from one to the next is left. Their inputs are those of the run."""
    x = _arrays()["x"]
    model = chain()
    named = {node.name: node.outputs[0] for node in model.nodes if node.outputs}
    one, relu, two, soft = CompiledModel(model).values(
        {"x": x}, [named[name] for name in ("one", "relu", "two", "soft")]
    )
    np.savez(tmp_path / "all.npz", x=x, one=one, relu=relu, two=two, soft=soft)
    report = reduce(chain(w2=changed(W2)), check_against(tmp_path / "all.npz"))
    assert [layer.name for layer in report.layers] == ["two"]
    np.savez(tmp_path / "few.npz", x=x, relu=relu, soft=soft)
    report = reduce(chain(w2=changed(W2)), check_against(str(tmp_path / "few.npz")))
    assert {layer.name for layer in report.layers} == {"two", "soft"}
    np.savez(tmp_path / "outputs.npz", soft=soft)
    with pytest.raises(InputError, match="does not hold the inputs"):
        reduce(chain(w2=changed(W2)), check_against(tmp_path / "outputs.npz"))
    report = reduce(chain(w2=changed(W2)), check_against(tmp_path / "outputs.npz"), {"x": x})
    assert "two" in {layer.name for layer in report.layers}


def test_nothing_differs() -> None:
    with pytest.raises(DoesNotFail):
        reduce(chain(), check_against(chain()), _arrays())


def test_a_tolerance() -> None:
    weights = W2 + np.float32(1e-3)
    assert reduce(chain(w2=weights), check_against(chain()), _arrays()).layers[0].name == "two"
    with pytest.raises(DoesNotFail):
        reduce(chain(w2=weights), check_against(chain(), rtol=0.1, atol=0.1), _arrays())


def test_a_fault_inside_of_a_body() -> None:
    """The layer with the body is left, and the layer in it is named."""
    path = DATA / "openvino" / "tensor_iterator.xml"
    model = irexec.read_model(path)
    outer = next(node for node in model.nodes if node.bodies)
    inner = next(node for body in outer.bodies.values() for node in body.graph.nodes if node.type == "Tanh")
    inner.type = "Sigmoid"
    report = reduce(model, check_against(path))
    assert [layer.id for layer in report.layers] == [outer.id]
    assert report.blame is not None
    assert [layer.name.rpartition("/")[2] for layer in report.blame.inner][:1] == [inner.name]


def test_the_smallest_model_is_a_part_of_the_other(tmp_path: Path) -> None:
    """compare takes its inputs from there by itself."""
    report = reduce(chain(w2=changed(W2)), check_against(chain()), _arrays())
    notes: list[str] = []
    found = compare(chain(), report.found.model, options=CompareOptions(seed=3), notify=notes.append)
    assert [(row.b.name, row.agreement.agrees) for row in found.rows] == [("two", False)]
    assert notes[0] == "B is a part of A: its inputs ('relu') are the tensors of A"


def test_what_is_neither_a_runtime_nor_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a file or folder nor a runtime"):
        check_against(str(tmp_path / "missing.xml"))
