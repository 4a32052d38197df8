"""compare: what is compared with what: maps, recorded tensors, parts, runs, and what cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import Builder, InputError, Model, ModelError, NodeError
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.run.input_sources import InputSource
from tests.support.networks import unpacked
from tests.tools.compare.models import RNG, W1, W2, chain, changed


def test_layers_of_one_side_are_listed_and_named_in_front() -> None:
    def model(with_scale: float | None) -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (4, 6), "x")
        y = x if with_scale is None else builder.emit("Multiply", x, np.float32(with_scale), name="scale")
        builder.result(builder.emit("Sigmoid", builder.emit("Exp", y, name="exp"), name="out"))
        return builder.model()

    found = compare(model(None), model(2))
    assert found.first is not None and found.first.row.b.name == "exp"
    assert [suspect.layer.name for suspect in found.first.between] == ["scale"]
    assert [(one.side, one.name, one.reason) for one in found.uncompared] == [("B", "scale", "only B has it")]
    assert compare(model(None), model(1)).agrees


def test_map() -> None:
    def model(*names: str) -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (4, 6), "x")
        values = [
            builder.emit("Multiply", x, np.float32(scale), name=name) for name, scale in zip(names, (2, 3), strict=True)
        ]
        builder.result(builder.emit("Concat", *values, axis=1, name="both"))
        return builder.model()

    found = compare(model("a", "b"), model("b", "a"), options=CompareOptions(maps=(("a", "b"), ("b", "a"))))
    assert [(row.a.name, row.b.name, row.how) for row in found.rows if row.a and row.how == "map"] == [
        ("a", "b", "map"),
        ("b", "a", "map"),
    ]
    assert found.agrees
    with pytest.raises(InputError, match="there is no tensor or layer 'c'"):
        compare(model("a", "b"), model("b", "a"), options=CompareOptions(maps=(("a", "c"),)))


def test_state_over_runs() -> None:
    def model(factor: float) -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (2,), "x")
        start = builder.constant(np.zeros(2, np.float32), name="start")
        old = builder.emit("ReadValue", start, variable_id="s", variable_shape="2", variable_type="f32", name="old")
        builder.result(builder.emit("Add", old, x, name="sum"))
        kept = builder.emit("Multiply", x, np.float32(factor), name="kept")
        builder.emit("Assign", kept, variable_id="s", name="assign")
        return builder.model()

    found = compare(model(1), model(2))
    assert found.runs == 2
    assert found.first is not None and (found.first.row.b.name, found.first.row.run) == ("kept", 1)
    rows = {row.b.name: row for row in found.rows}
    assert (rows["old"].agreement.agrees, rows["old"].run, rows["sum"].run) == (False, 2, 2)
    assert [layer.name for layer in found.independent] == ["kept"]
    assert compare(model(1), model(1)).agrees


def test_random_layers_are_left_out() -> None:
    def model() -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (4,), "x")
        noise = builder.emit(
            "RandomUniform", np.array([4]), np.float32(0), np.float32(1), output_type="f32", name="noise"
        )
        builder.result(builder.emit("Add", builder.emit("Relu", x, name="relu"), noise, name="noisy"))
        return builder.model()

    found = compare(model(), model())
    assert [row.b.name for row in found.rows] == ["relu"]
    assert [(one.name, one.reason) for one in found.uncompared] == [
        ("noise", "its values are random"), ("noisy", "it depends on 'noise', whose values are random"),
    ]  # fmt: skip
    assert found.agrees


def test_recorded_tensors(tmp_path: Path) -> None:
    model = chain()
    x = RNG.standard_normal((4, 6)).astype(np.float32)
    relu = np.maximum(x @ W1, 0)
    np.savez(tmp_path / "t.npz", x=x, relu=relu, two=relu @ W2 + np.eye(4, 6), unknown=x)
    found = compare(tmp_path / "t.npz", model)
    assert [(row.b.name, row.agreement.agrees) for row in found.rows] == [("relu", True), ("two", False)]
    assert [(one.side, one.name) for one in found.uncompared] == [("A", "unknown"), ("B", "one"), ("B", "soft")]
    np.savez(tmp_path / "no_input.npz", relu=relu)
    with pytest.raises(InputError, match="does not hold the inputs"):
        compare(tmp_path / "no_input.npz", model)
    np.savez(tmp_path / "other.npz", y=relu)
    with pytest.raises(InputError, match=r"no tensor of .* has the name of a tensor or layer"):
        compare(tmp_path / "other.npz", model)


def test_a_part_is_fed_from_the_whole() -> None:
    builder = Builder("part")
    builder.result(
        builder.emit("MatMul", builder.parameter("f32", (4, 6), "relu"), builder.constant(W2, name="w2"), name="two")
    )
    part = builder.model()
    found = compare(chain(), part, options=CompareOptions(inputs_of="A"))
    assert [(row.b.name, row.agreement.agrees) for row in found.rows] == [("two", True)]
    found = compare(part, chain(w2=changed(W2)), options=CompareOptions(inputs_of="B"))
    assert found.first is not None and found.first.row.b.name == "two"


def test_a_part_is_recognised() -> None:
    """By the name of its input, in either order, unless values are given for it."""
    builder = Builder("part")
    builder.result(
        builder.emit("MatMul", builder.parameter("f32", (4, 6), "relu"), builder.constant(W2, name="w2"), name="two")
    )
    part = builder.model()
    for seed in range(3):
        notes: list[str] = []
        assert compare(chain(), part, options=CompareOptions(seed=seed), notify=notes.append).agrees
        assert notes[0] == "B is a part of A: its inputs ('relu') are the tensors of A"
        assert compare(part, chain(), options=CompareOptions(seed=seed)).agrees
    with pytest.raises(InputError, match="have no tensor in common that can be compared"):
        compare(chain(), part, {"relu": np.ones((4, 6), np.float32)})


def test_a_name_in_common_does_not_make_a_part() -> None:
    """The input of one model has the name, type and shape of a tensor in the middle of the other: both are whole."""
    other = chain(prefix="other.")
    next(node for node in other.nodes if node.type == "Relu").outputs[0].names = ["x"]
    for pair in ((chain(), other), (other, chain())):
        notes: list[str] = []
        found = compare(*pair, options=CompareOptions(seed=1), notify=notes.append)
        assert found.agrees
        assert len(found.rows) == 4
        assert notes == ["inputs are random, with seed 1; -i gives others"]


def test_random_values_for_one_side_are_refused() -> None:
    builder = Builder("more")
    x, y = (builder.parameter("f32", (4, 6), name) for name in ("x", "bias"))
    builder.result(
        builder.emit("Add", builder.emit("MatMul", x, builder.constant(W1, name="w1"), name="one"), y, name="sum")
    )
    more = builder.model()
    with pytest.raises(
        InputError, match=r"B has inputs that are neither inputs nor tensors of A \('bias'\).*-i bias=SOURCE"
    ):
        compare(chain(), more)
    found = compare(chain(), more, {"bias": np.zeros((4, 6), np.float32)})
    assert (found.rows[0].b.name, found.rows[0].agreement.agrees) == ("one", True)
    assert compare(chain(), more, sources=[InputSource(None, "random")]).rows[0].agreement.agrees


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rtol": 1.0, "metric": "snr"}, "rtol and atol are for the metric max"),
        ({"threshold": 1.0}, "a threshold is for the metrics rel, cosine and snr"),
        ({"runs": 0}, "runs is 0, expected at least 1"),
        ({"b_runtime": "tensorrt"}, "there is no runtime 'tensorrt'"),
        ({"b_runtime": "onnx", "isolate": True}, "onnx runs whole .onnx files"),
    ],
)
def test_what_is_wrong(options: dict[str, object], message: str) -> None:
    pytest.importorskip("onnx")
    with pytest.raises(InputError, match=message):
        compare(chain(), chain(), options=CompareOptions(**options))


def test_a_layer_that_cannot_be_run_is_left_out() -> None:
    def model() -> Model:
        builder = Builder("m")
        x = builder.parameter("f32", (4, 6), "x")
        good = builder.emit("Relu", x, name="good")
        builder.result(builder.emit("Sigmoid", builder.emit("Softmax", good, axis=1, name="bad"), name="after"))
        made = builder.model()
        next(node for node in made.nodes if node.name == "bad").attributes["axis"] = "7"
        return made

    found = compare(model(), model())
    assert [row.b.name for row in found.rows] == ["good"]
    assert [one.name for one in found.uncompared] == ["bad", "after"]
    assert "axis 7" in found.uncompared[0].reason
    assert found.missing_results == ("after",)
    assert not found.agrees
    assert found.uncompared[1].reason == "it depends on 'bad', which irexec does not run"


def test_inputs_for_several_runs() -> None:
    runs = [{"x": np.full((4, 6), value, np.float32)} for value in (1, 2, 3)]
    assert compare(chain(), chain(), runs).runs == 3
    with pytest.raises(InputError, match="inputs are given for 3 runs, and runs is 2"):
        compare(chain(), chain(), runs, CompareOptions(runs=2))


@pytest.mark.parametrize(
    "index",
    [
        "",
        "[" * 100_000,
        "[]",
        "{}",
        '{"tensors": 1}',
        '{"tensors": [{"file": "a.npy", "name": 1, "tensor_names": []}]}',
    ],
)
def test_a_folder_with_a_damaged_index(index: str, tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text(index)
    with pytest.raises(ModelError, match="is not a folder that infer --dump-layers wrote"):
        compare(tmp_path, chain())


def test_recorded_halves_have_the_tolerance_of_halves(tmp_path: Path) -> None:
    """Devices record what they compute in f32 as float16."""
    x = np.random.default_rng(5).normal(size=(4, 6)).astype(np.float32)
    session = irexec.compile_model(chain())
    arrays = {name: np.asarray(session.run({"x": x}, outputs=[name])[name]) for name in ("one", "relu", "two", "soft")}
    np.savez(tmp_path / "f16.npz", **{name: array.astype(np.float16) for name, array in arrays.items()})
    found = compare(tmp_path / "f16.npz", chain(), {"x": x})
    assert found.agrees and found.tolerance.startswith("|b - a| <= 0.01 rms(a)")
    assert "the tensors of A are stored as f16: their tolerance is that of f16" in found.notes
    assert not compare(tmp_path / "f16.npz", chain(changed(W1)), {"x": x}).agrees
    np.savez(tmp_path / "f32.npz", **{name: array * np.float32(1.003) for name, array in arrays.items()})
    assert not compare(tmp_path / "f32.npz", chain(), {"x": x}).agrees


def test_tensors_below_the_smallest_number_of_f16_agree_as_stored(tmp_path: Path) -> None:
    """A scale of a layer of 1e-6, as in ConvNeXt, leaves multiples of 6e-8 in f16."""
    b = irexec.Builder("m")
    x = b.parameter("f32", (64,), "x")
    b.result(b.emit("Add", x, b.emit("Multiply", x, np.float32(1e-7), name="small"), name="sum"))
    array = RNG.standard_normal(64).astype(np.float32)
    np.savez(tmp_path / "f16.npz", small=(array * 1e-7).astype(np.float16), sum=array.astype(np.float16))
    assert compare(tmp_path / "f16.npz", b.model(), {"x": array}).agrees
    np.savez(tmp_path / "f16.npz", small=(array * 1e-6).astype(np.float16), sum=array.astype(np.float16))
    assert not compare(tmp_path / "f16.npz", b.model(), {"x": array}).agrees


def language(exchanged: bool = False) -> Model:
    """Attention over tokens of an open number, with queries and keys exchanged or not."""
    b = Builder("language")
    tokens, mask = b.parameter("i64", (-1, -1), "input_ids"), b.parameter("f32", (-1, -1), "mask")
    rng = np.random.default_rng(2)
    x = b.emit("Gather", rng.normal(size=(10, 8)).astype(np.float32), tokens, np.array(0), name="embedded")
    q, k, v = (b.emit("MatMul", x, rng.normal(size=(8, 8)).astype(np.float32), name=name) for name in "qkv")
    shown = b.emit("Unsqueeze", b.emit("Log", mask), np.array([1]), name="shown")
    q, k = (k, q) if exchanged else (q, k)
    b.result(b.emit("ScaledDotProductAttention", q, k, v, shown, causal=False, version=13, name="attention"))
    return b.model()


def test_open_sizes_are_chosen_so_that_attention_shows() -> None:
    """With one token every fault of attention agrees: the verdict says so. Tokens and their mask have one size."""
    notes: list[str] = []
    found = compare(language(), language(exchanged=True), notify=notes.append)
    assert not found.agrees and found.inputs == {"input_ids": (2, 7), "mask": (2, 7)}
    assert "input input_ids: i64[?,?] gets the shape [2,7]: the model leaves sizes open; --shape sets them" in notes
    one = {"input_ids": np.zeros((2, 1), np.int64), "mask": np.ones((2, 1), np.float32)}
    found = compare(language(), language(exchanged=True), one)
    hidden = "input_ids[2,1], mask[2,1], which shows no fault of ScaledDotProductAttention"
    assert found.agrees and found.verdict == f"the models agree with {hidden}"
    found = compare(language(), language(exchanged=True), one, CompareOptions(shapes=dict.fromkeys(one, (2, 1))))
    assert found.verdict == f"the models agree with {hidden}"


def images() -> Model:
    """Convolutions over an image; the last tensor has as many channels as rows and columns."""
    b = Builder("images")
    x = b.parameter("f32", (1, 3, 8, 8), "x")
    for name, size in (("first", (4, 3, 3, 3)), ("second", (8, 4, 3, 3))):
        kernel = np.random.default_rng(len(name)).normal(size=size).astype(np.float32)
        pads = {"pads_begin": (1, 1), "pads_end": (1, 1)}
        x = b.emit("Convolution", x, kernel, name=name, strides=(1, 1), dilations=(1, 1), **pads)
    b.result(b.emit("ReduceMean", x, np.array([2, 3]), keep_dims=True, name="mean"))
    return b.model()


@pytest.mark.slow
def test_a_model_that_fails_in_a_later_step_is_named(tmp_path: Path) -> None:
    """Queries and keys are exchanged in a model with a cache, which is longer than the queries from the second step on."""
    path, notes = unpacked("gpt2_sdpa", tmp_path), list[str]()
    faulty = irexec.read_model(path)
    attention = next(node for node in faulty.nodes if node.type == "ScaledDotProductAttention")
    attention.ports[0].source, attention.ports[1].source = attention.ports[1].source, attention.ports[0].source
    irexec.save_model(faulty, tmp_path / "faulty.xml")
    with pytest.raises(
        NodeError, match=r"faulty.xml runs 1 step \(--steps 1\), and not step 2 .*length of key and value"
    ):
        compare(path, tmp_path / "faulty.xml", notify=notes.append)
    found = compare(path, tmp_path / "faulty.xml", options=CompareOptions(runs=1), notify=notes.append)
    assert found.first is not None
    assert found.first.row.b.name == attention.name


def test_recordings_in_another_layout_are_arranged(tmp_path: Path) -> None:
    x = np.random.default_rng(3).normal(size=(1, 3, 8, 8)).astype(np.float32)
    names = ["first", "second", "mean"]
    own = irexec.compile_model(images()).session().run({"x": x}, outputs=names)
    arrays = {name: np.asarray(own[name]) for name in names}
    last = {name: array.transpose(0, 2, 3, 1) for name, array in arrays.items()}
    np.savez(tmp_path / "last.npz", x=x.transpose(0, 2, 3, 1), **last)
    found = compare(tmp_path / "last.npz", images())
    assert found.agrees and len(found.rows) == 3
    assert found.notes[0] == "A's tensors are B's in N,H,W,C: axes 0,3,1,2 of 3"
    last["second"] = last["second"] + np.float32(0.1)
    np.savez(tmp_path / "wrong.npz", x=x.transpose(0, 2, 3, 1), **last)
    found = compare(tmp_path / "wrong.npz", images())
    assert found.first is not None and found.first.row.b.name == "second"
    np.savez(
        tmp_path / "flat.npz",
        x=x,
        first=arrays["first"].ravel(),
        second=arrays["second"],
        mean=arrays["mean"][0, :, 0, 0],
    )
    found = compare(tmp_path / "flat.npz", images())
    assert found.agrees and found.notes[0] == "A's tensors are B's flattened or without axes of size 1: 2 of them"
