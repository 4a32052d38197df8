"""What diff finds: random edits of networks, and cases made by hand."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.errors import InputError, ModelError
from irexec.ir.graph import Node
from irexec.tools.diff import Change, Diff, diff
from tests.diff_sweep.edits import EDITS
from tests.diff_sweep.judging import network, run
from tests.diff_sweep.mixing import copied, mix, rename
from tests.support.paths import DIGITS, IRS

_CLASSIFIER = DIGITS / "classifier.xml"
_SAMPLE = ("resnet18", "scripted_loop", "bert_quantised", "rnn_tagger")


@pytest.fixture(scope="module", params=_SAMPLE)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> irexec.Model:
    return network(request.param, tmp_path_factory.mktemp("network"))


@pytest.mark.parametrize("kind", EDITS)
@pytest.mark.sampled(8)
def test_an_edit_is_listed_and_nothing_else(kind: str, model: irexec.Model) -> None:
    """A short part of ``python -m tests.sweep diff``."""
    outcome, found = run(model, 1, edits=1, renamed=0.1, kind=kind)
    assert (outcome.missed, outcome.extra) == ([], [])
    if kind not in ("rename", "swap_names", "rename_tensor", "change_value", "change_version") and found.following:
        assert all(each.roots for each in found.following)


@pytest.mark.parametrize("seed", range(3))
def test_several_edits_are_listed_and_nothing_else(seed: int, model: irexec.Model) -> None:
    outcome, _ = run(model, seed, edits=5, renamed=0.1)
    assert (outcome.missed, outcome.extra) == ([], [])


@pytest.mark.parametrize("part", [0.0, 0.3, 1.0])
def test_of_a_mixed_copy_only_the_renames_are_listed(part: float, model: irexec.Model) -> None:
    import random

    other, _ = copied(model)
    rng = random.Random(0)
    renamed = rename(other, part, rng)
    mix(other, rng)
    found = diff(model, other)
    assert (found.model, found.following) == ((), ())
    assert {layer.status for layer in found.layers} <= {"renamed"}
    assert len(found.layers) == len(renamed)


def _model(weights: np.ndarray, element: str | None = None, *, name: str = "m", type: str = "Relu") -> irexec.Model:
    builder = irexec.Builder(name)
    x = builder.parameter("f32", (2, 4), "x")
    w = builder.constant(weights, element, "w")
    y = builder.emit(
        "MatMul", x, w if element in (None, "f32") else builder.emit("Convert", w, destination_type="f32"), name="y"
    )
    builder.result(builder.emit(type, y, name="z"), "out")
    return builder.model()


_WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3)


def _changes(found: Diff) -> list[Change]:
    return [change for layer in found.layers for change in layer.changes]


@pytest.mark.parametrize(
    ("edit", "changed", "largest", "relative", "not_finite"),
    [
        ({(0, 1): 4.0}, 1, 3.0, 3 / 22.494443758403985, 0),
        ({(0, 0): -0.0}, 0, 0.0, 0.0, 0),
        ({(3, 2): np.nan, (0, 0): np.inf}, 2, 0.0, 0.0, 2),
        ({(1, 0): 2.0, (2, 1): 9.0}, 2, 2.0, 5**0.5 / 22.494443758403985, 0),
    ],
)
def test_statistics_of_values(
    edit: dict[tuple[int, int], float], changed: int, largest: float, relative: float, not_finite: int
) -> None:
    weights = _WEIGHTS.copy()
    for position, value in edit.items():
        weights[position] = value
    (change,) = _changes(diff(_model(_WEIGHTS), _model(weights)))
    assert (change.kind, change.values.elements, change.values.changed, change.values.not_finite) == (
        "values",
        12,
        changed,
        not_finite,
    )
    assert change.values.largest == largest
    assert change.values.relative == pytest.approx(relative)


def test_from_nothing_the_relative_norm_is_infinite() -> None:
    (change,) = _changes(diff(_model(np.zeros((4, 3), np.float32)), _model(_WEIGHTS)))
    assert (change.values.changed, change.values.relative) == (11, np.inf)


def test_a_signaling_nan() -> None:
    weights = _WEIGHTS.copy()
    weights.view(np.uint32)[0, 1] = 0x7F800001
    with warnings.catch_warnings(action="error"):
        (change,) = _changes(diff(_model(_WEIGHTS), _model(weights)))
    assert (change.values.changed, change.values.not_finite) == (1, 1)


def test_integers_of_64_bits_are_compared_exactly() -> None:
    def model(value: int) -> irexec.Model:
        builder = irexec.Builder("m")
        builder.result(
            builder.emit("Add", builder.parameter("i64", (1,), "x"), builder.constant(np.array([value]), "i64", "c")),
            "out",
        )
        return builder.model()

    (change,) = _changes(diff(model(2**62), model(2**62 + 1)))
    assert change.values.changed == 1


def test_decompressed_weights_are_compared_as_they_are_used() -> None:
    """12 values of 4 bits times a scale, against what they stand for."""
    found = diff(_model(_WEIGHTS), _model(_WEIGHTS.astype(np.int8), "i8"))
    assert [layer.status for layer in found.layers] == ["changed", "added"]
    assert _changes(found) == [Change("types", "type", "f32", "i8"), *(_values(found))]
    (values,) = _values(found)
    assert (values.values.changed, values.values.decompressed) == (0, True)
    halves = diff(_model(_WEIGHTS + 0.25), _model(_WEIGHTS.astype(np.int8), "i8"))
    assert [(change.values.changed, change.values.largest) for change in _values(halves)] == [(12, 0.25)]


def _values(found: Diff) -> list[Change]:
    return [change for change in _changes(found) if change.values is not None]


def test_a_transposed_matrix() -> None:
    square = np.arange(16, dtype=np.float32).reshape(4, 4)

    def model(weights: np.ndarray, transposed: bool) -> irexec.Model:
        builder = irexec.Builder("m")
        y = builder.emit(
            "MatMul",
            builder.parameter("f32", (2, 4), "x"),
            builder.constant(weights, None, "w"),
            transpose_b=transposed,
            name="y",
        )
        builder.result(y, "out")
        return builder.model()

    found = diff(model(_WEIGHTS, False), model(np.ascontiguousarray(_WEIGHTS.T), True))
    assert _changes(found) == [
        Change("shapes", "shape", "[4,3]", "[3,4] (transposed)"),
        Change("attributes", "transpose_b", "false", "true"),
    ]
    # As many rows as columns: the shape does not tell.
    values, attribute = _changes(diff(model(square, False), model(square.T.copy(), True)))
    assert (values.values.changed, values.values.transposed, attribute.what) == (12, True, "transpose_b")


def test_a_layer_of_another_type_in_the_same_place() -> None:
    found = diff(_model(_WEIGHTS), _model(_WEIGHTS, type="Sigmoid"))
    assert _changes(found) == [Change("type", "type", "Relu", "Sigmoid")]


def test_defaults_and_spellings_are_not_changes() -> None:
    builder = irexec.Builder("m")
    builder.result(builder.emit("AvgPool", builder.parameter("f32", (1, 1, 8, 8), "x"), strides=(2, 2), pads_begin=(0, 0), pads_end=(0, 0),
        kernel=(2, 2), exclude_pad=True, name="y"), "out")  # fmt: skip
    model = builder.model()
    other, _ = copied(model)
    node = next(node for node in other.nodes if node.type == "AvgPool")
    node.attributes |= {"kernel": "2,2", "exclude-pad": "TRUE"}
    node.attributes.pop("rounding_type", None)
    assert diff(model, other).is_empty
    node.attributes["strides"] = "2,1"
    assert [(change.what, change.b) for change in _changes(diff(model, other))] == [("strides", "2,1")]


def test_equal_constants_may_be_one_or_several() -> None:
    def model(shared: bool) -> irexec.Model:
        builder = irexec.Builder("m")
        x = builder.parameter("f32", (4,), "x")
        one = builder.constant(np.ones(4, np.float32), None, "one")
        y = builder.emit("Add", x, one, name="a")
        other = one if shared else builder.constant(np.ones(4, np.float32), None, "another")
        builder.result(builder.emit("Multiply", y, other, name="b"), "out")
        return builder.model()

    found = diff(model(True), model(False))
    assert [(layer.status, layer.layer.name) for layer in found.layers] == [("added", "another")]


def test_the_order_of_inputs() -> None:
    def model(*names: str) -> irexec.Model:
        builder = irexec.Builder("m")
        inputs = {name: builder.parameter("f32", (4,), name) for name in names}
        builder.result(builder.emit("Subtract", inputs["x"], inputs["y"], name="d"), "out")
        return builder.model()

    found = diff(model("x", "y"), model("y", "x"))
    assert (found.model, found.layers) == ((Change("order", "order of the inputs", "x, y", "y, x"),), ())


def _loop(model: irexec.Model) -> Node:
    return next(node for node in model.nodes if node.bodies)


def test_port_maps_and_back_edges(tmp_path: Path) -> None:
    model = network("scripted_loop", tmp_path)
    other, _ = copied(model)
    (body,) = _loop(other).bodies.values()
    removed = body.back_edges.pop()
    names = {node.id: node.name for node in body.graph.nodes}
    found = diff(model, other)
    assert _changes(found) == [
        Change("bodies", f"body back edge: {names[removed.source]} to {names[removed.target]}", "there", None)
    ]


def test_a_wrong_argument() -> None:
    with pytest.raises(ModelError, match=r"a\.xml: cannot be read"):
        diff("a.xml", _model(_WEIGHTS))
    with pytest.raises(InputError, match="expected a path, bytes or a file"):
        diff(5, _model(_WEIGHTS))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'ids' is not a kind of change"):
        diff(_model(_WEIGHTS), _model(_WEIGHTS), ignore=["ids"])


def test_a_bin_that_is_gone(tmp_path: Path) -> None:
    """It is read when the first constant is asked for."""
    irexec.save_model(_model(_WEIGHTS), tmp_path / "m.xml")
    model = irexec.read_model(tmp_path / "m.xml")
    (tmp_path / "m.bin").write_bytes(b"")
    with pytest.raises(ModelError, match=r"'w' \(Constant\)"):
        diff(model, _model(_WEIGHTS + 1))


def test_constants_that_the_file_does_not_have(tmp_path: Path) -> None:
    """Nothing can be said of their values, and all else is compared."""
    text = _CLASSIFIER.read_text("utf-8")
    (tmp_path / "far.xml").write_text(
        text.replace('offset="640" size="18432"', 'offset="1000000" size="18432"'), "utf-8"
    )
    (tmp_path / "far.bin").write_bytes(_CLASSIFIER.with_suffix(".bin").read_bytes())
    found = diff(irexec.read_model(_CLASSIFIER), irexec.read_model(tmp_path / "far.xml"))
    assert _changes(found) == [Change("values", "bytes", "in the file", "not in the file")]
    same = diff(irexec.read_model(tmp_path / "far.xml"), irexec.read_model(tmp_path / "far.xml"))
    assert (found.unread, same.is_empty, same.unread) == (1, True, 1)


def test_repr_and_html() -> None:
    found = diff(_model(_WEIGHTS, name="a"), _model(_WEIGHTS + 1, name="b<"))
    assert repr(found) == "<Diff a b<: 1 layer changed, 1 change of the model>"
    assert "b&lt;" in found._repr_html_()
    assert found.counts == {"added": 0, "removed": 0, "changed": 1, "renamed": 0}


def test_a_byte_of_an_empty_constant_is_not_a_change() -> None:
    """OpenVINO writes a byte for a constant without elements where irexec writes none."""
    model = irexec.read_model(IRS / "operations" / "empty.xml")
    other = irexec.read_model(IRS / "operations" / "empty.xml")
    for node in other.nodes:
        if node.constant is not None and node.constant.count == 0:
            node.constant.size = 0
    assert diff(model, other).layers == ()
