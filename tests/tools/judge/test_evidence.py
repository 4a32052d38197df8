"""What a verdict may rest on: narrow intervals, differences with a size, tensors to the precision of their storage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import irexec
from irexec import Builder
from irexec.analysis.builder import packed
from irexec.analysis.model import Model
from irexec.bounds import ARITHMETICS
from irexec.ir.graph import Value
from irexec.ir.order import find_value
from irexec.tools.arrays.files import write_npz
from irexec.tools.judge import Judgement, judge
from tests.support.networks import feeds, unpacked
from tests.support.tiers import some
from tests.tools.judge.faulty import plant
from tests.tools.judge.test_judge import IMAGE, network

Arrays = dict[str, np.ndarray]


def recorded(model: Model, inputs: Arrays) -> Arrays:
    """All tensors that judge looks at, in irexec's reference kernels."""
    found = judge(model, inputs, runtime="reference")
    names = [one.layer.tensor for one in found.layers]
    session = irexec.compile_model(model, optimize=False).session()
    values = session.values(inputs, [find_value(model, name) for name in names])
    return dict(zip(names, values, strict=True))


def of_recording(model: Model, inputs: Arrays, tensors: Arrays, folder: Path, **options: str) -> Judgement:
    with (folder / "recorded.npz").open("wb") as file:
        write_npz(file, tensors)
    return judge(model, inputs, runtime=str(folder / "recorded.npz"), **options)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Arrays, Arrays]:
    """A transformer, its inputs, and all of its tensors."""
    path = unpacked("llama_sdpa", tmp_path_factory.mktemp("llama"))
    model = irexec.read_model(path)
    arrays = feeds(path, model.inputs)[0]
    inputs = {port.name: array for port, array in zip(model.inputs, arrays, strict=True)}
    return model, inputs, recorded(model, inputs)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", some(["zero", "last eighth", "1 %", "bias"], ["last eighth", "1 %"]))
def test_a_recording_with_wrong_logits_is_not_acquitted_by_a_region_of_many_layers(
    fault: str, llama: tuple[Model, Arrays, Arrays], tmp_path: Path
) -> None:
    model, inputs, tensors = llama
    (name,) = {value.name for node in model.results for value in node.inputs if value is not None} & tensors.keys()
    logits = tensors[name].copy()
    if fault == "last eighth":
        logits.reshape(-1)[-logits.size // 8 :] = 0
    else:
        logits = logits * np.float32({"zero": 0, "1 %": 1.01}.get(fault, 1)) + np.float32(0.1 * (fault == "bias"))
    found = of_recording(model, inputs, {**tensors, name: logits}, tmp_path)
    assert found.verdict == "bug", found.sentence
    assert [one.layer.tensor for one in found.at] == [name]
    assert found.severity == "major"


def test_results_that_nothing_explains_are_said_to_be_so(tmp_path: Path) -> None:
    """Of the output alone the region is the whole network, whose interval is as wide as the values: it acquits nothing."""
    rng, b = np.random.default_rng(3), irexec.Builder("deep")
    y = b.parameter("f32", (1, 32), "x")
    for i in range(9):
        y = b.emit("MatMul", y, b.constant(rng.standard_normal((32, 32)).astype(np.float32) / 5), name=f"layer{i}")
        y = b.emit("Softmax", b.emit("Multiply", y, b.constant(np.float32(40))), axis=1, name=f"soft{i}")
        y = b.emit("Multiply", y, b.constant(np.float32(30)), name=f"scaled{i}")
    b.result(y)
    model, inputs = b.model(), {"x": rng.standard_normal((1, 32)).astype(np.float32)}
    right = recorded(model, inputs)["scaled8"]
    assert of_recording(model, inputs, {"scaled8": right}, tmp_path).verdict == "agrees"
    found = of_recording(model, inputs, {"scaled8": right * np.float32(1.01)}, tmp_path)
    assert found.verdict in ("unexplained", "bug"), found.sentence
    assert found.verdict == "bug" or found.sentence.startswith("not explained: between 'x' and 'scaled8'")


def test_results_that_rounding_does_not_move_as_far_are_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval of a sum of 4,096 products has room for 0.3 %, but errors of one rounding do not move it as far."""
    rng, b = np.random.default_rng(0), irexec.Builder("wide")
    x = b.parameter("f32", (4, 4096), "x")
    weights = b.constant(rng.standard_normal((4096, 3)).astype(np.float32))
    b.result(b.emit("Relu", b.emit("MatMul", x, weights, name="product"), name="relu"))

    def unobserved(model: Model, values: Sequence[Value]) -> None:
        if all(value.node.name != "product" for value in values):
            (node,) = (node for node in model.nodes if node.constant is not None)
            node.constant = packed(node.array * np.float32(1.003), irexec.f32)

    inputs = {"x": rng.standard_normal((4, 4096)).astype(np.float32)}
    found = judge(b.model(), inputs, runtime=plant(monkeypatch, damage=unobserved))
    assert found.verdict == "unexplained", found.sentence
    assert found.sentence.startswith("not explained: between 'product' and 'relu'")


def quantised() -> Model:
    """A convolution whose input and weights come through a FakeQuantize, as NNCF writes them."""
    rng, b = np.random.default_rng(1), irexec.Builder("quantised")
    x = b.parameter("f32", (1, 2, 6, 6), "x")
    ends = [b.constant(np.float32([[[[end]]]])) for end in (-2.9, 2.6)]
    data = b.emit("FakeQuantize", x, *ends, *ends, levels=256, name="levels")
    limits = [b.constant(np.float32([[[[end]]]])) for end in (-0.7, 0.69)]
    weights = b.constant(rng.uniform(-0.7, 0.7, (3, 2, 3, 3)).astype(np.float32))
    held = b.emit("FakeQuantize", weights, *limits, *limits, levels=255, name="weights")
    windows = {"strides": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
    b.result(b.emit("Relu", b.emit("Convolution", data, held, name="conv", **windows), name="relu"))
    return b.model()


@pytest.mark.parametrize("is_openvino", [False, True])
def test_a_known_difference_excuses_nothing_beyond_its_size(is_openvino: bool, tmp_path: Path) -> None:
    """IR939 is two ulps; an activation of -7 in a range of -2.9 to 2.6 is not."""
    model, inputs = quantised(), {"x": IMAGE}
    tensors = recorded(model, inputs)
    texts = {"irexec.arithmetic": np.array("f32 of OpenVINO on CPU")} if is_openvino else {}
    for name, wrong in (
        ("levels", np.full_like(tensors["levels"], -7)),
        ("conv", tensors["conv"] * np.float32(1.01)),
        ("conv", tensors["conv"][:, ::-1]),
    ):
        found = of_recording(model, inputs, {**tensors, name: wrong, **texts}, tmp_path)
        assert (found.verdict, found.at[0].layer.tensor) == ("bug", name), found.sentence
    assert of_recording(model, inputs, {**tensors, **texts}, tmp_path).verdict == "agrees"


@pytest.mark.parametrize("change", [lambda a: a * np.float32(1.01), lambda a: np.roll(a, 1, -1), lambda a: a * 0 - 7])
def test_faults_of_a_quantised_convolution_are_seen_in_a_runtime(
    change: Callable[[np.ndarray], np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = plant(monkeypatch, change=lambda v, a: change(a) if v.node.name == "conv" else a)
    found = judge(quantised(), {"x": IMAGE}, runtime=runtime)
    assert (found.verdict, found.at[0].layer.name) == ("bug", "conv"), found.sentence


def test_values_on_an_edge_of_a_level_explain_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter lies between the levels 0 and 0.5: a runtime may choose either, and its choice explains its results."""
    b = irexec.Builder("edge")
    x = b.parameter("f32", (4,), "x")
    ends = [b.constant(np.float32(0)), b.constant(np.float32(1))]
    held = b.emit("FakeQuantize", x, *ends, *ends, levels=3, name="levels")
    b.result(b.emit("Multiply", held, b.constant(np.float32(3)), name="y"))

    def upwards(model: Model, values: object) -> None:
        for node in model.nodes:
            if node.name == "levels" and node.type == "FakeQuantize":
                more = irexec.Builder("more").constant(np.float32(1e-7)).node
                moved = irexec.Builder("s")
                added = moved.emit("Add", moved.parameter("f32", (4,), "a"), moved.constant(np.float32(0))).node
                more.id, more.name, added.id, added.name = 97, "more", 98, "moved"
                added.ports[0].source, added.ports[1].source = node.inputs[0], more.outputs[0]
                node.ports[0].source = added.outputs[0]
                model.nodes += [more, added]
                return

    found = judge(b.model(), {"x": np.float32([0.25, 0.1, 0.9, 0.6])}, runtime=plant(monkeypatch, damage=upwards))
    assert found.verdict == "precision", found.sentence
    assert "1 of 4 values of 1 FakeQuantize layer on another level" in found.sentence


@pytest.mark.parametrize("which", ["all", "one"])
@pytest.mark.sampled(2)
def test_tensors_stored_in_f16_accuse_nobody(which: str, llama: tuple[Model, Arrays, Arrays], tmp_path: Path) -> None:
    model, inputs, tensors = llama
    halves = {name: array.astype(np.float16) for name, array in tensors.items() if array.dtype == np.float32}
    names = list(halves) if which == "all" else list(halves)[::5]
    found = of_recording(model, inputs, {**tensors, **{name: halves[name] for name in names}}, tmp_path)
    assert not found.is_bug, found.sentence
    assert found.arithmetic == ("f16" if which == "all" else "f32")
    assert any("stored in f16" in note for note in found.notes) == (which == "all")
    name = names[len(names) // 2]
    wrong = {**tensors, **{one: halves[one] for one in names}, name: halves[name] * np.float16(1.2) + np.float16(0.5)}
    assert of_recording(model, inputs, wrong, tmp_path).verdict in ("bug", "unexplained")


def test_tensors_stored_in_bf16_are_held_to_it(tmp_path: Path) -> None:
    model, inputs = network(), {"x": IMAGE}
    tensors = recorded(model, inputs)
    cut = {n: (a.view(np.uint32) + 0x8000 & 0xFFFF0000).astype(np.uint32).view(np.float32) for n, a in tensors.items()}
    found = of_recording(model, inputs, cut, tmp_path)
    assert (found.arithmetic, found.is_bug) == ("bf16", False), found.sentence


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "agrees"), (1.05, "bug")])
def test_a_fused_layer_reads_a_tensor_of_bf16_before_its_rounding(
    factor: float, verdict: str, tmp_path: Path
) -> None:  # fmt: skip
    """A difference of large sums has few digits in bf16; an interval of both layers as written excludes nothing."""
    rng = np.random.default_rng(0)
    x, weights = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((16, 64), (64, 32)))
    exact = x @ weights + 1000
    b = Builder("m")
    moved = b.emit("Add", b.emit("MatMul", b.parameter("bf16", x.shape, "x"), b.constant(weights, "bf16")),
                   b.constant(1000, "bf16"), name="moved")  # fmt: skip
    b.result(b.emit("Subtract", moved, b.constant(1004, "bf16"), name="y"))
    model = b.model()
    tensors = {"MatMul": exact - 1000, "moved": exact, "y": (exact - 1004) * np.float32(factor)}
    tensors = {name: array.astype(ml_dtypes.bfloat16).astype(np.float32) for name, array in tensors.items()}
    found = of_recording(model, {"x": x}, {"x": x, **tensors}, tmp_path, arithmetic="f32")
    assert found.verdict == verdict, found.sentence


def test_integers_of_64_bits_that_a_runtime_computes_in_32_are_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    b = irexec.Builder("wide")
    b.result(b.emit("Add", b.parameter("i64", (2,), "x"), b.constant(np.array([1])), name="sum"))
    wrapped = plant(monkeypatch, change=lambda value, array: array.astype(np.int32).astype(np.int64))
    found = judge(b.model(), {"x": np.array([2**40, 3])}, runtime=wrapped)
    assert (found.verdict, found.at[0].layer.name) == ("bug", "sum")


@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_what_all_values_of_16_bits_have_in_common_is_not_rounding(type: str, tmp_path: Path) -> None:
    """A factor and an offset below the largest rounding of a value are seen in their mean; numbers that are cut have a
    factor, which accuses nobody; and a verdict says what it cannot see."""
    rng, b, of = np.random.default_rng(5), irexec.Builder("common"), ARITHMETICS[type]
    x = b.parameter("f32", (16, 64), "x")
    held = b.emit("MatMul", x, b.constant(rng.standard_normal((64, 64)).astype(np.float32)), name="product")
    b.result(
        b.emit(
            "Relu", b.emit("Add", held, b.constant(rng.standard_normal(64).astype(np.float32)), name="sum"), name="y"
        )
    )
    model, inputs = b.model(), {"x": rng.standard_normal((16, 64)).astype(np.float32)}
    exact = recorded(model, inputs)

    def judged(change: Callable[[np.ndarray], np.ndarray] = lambda array: array, is_cut: bool = False) -> Judgement:
        tensors = {name: array.astype(np.float64) for name, array in exact.items()}
        tensors["sum"] = change(tensors["sum"])
        held = {n: (a * (1 - of.unit) if is_cut else of.nearest(a)).astype(np.float32) for n, a in tensors.items()}
        return of_recording(model, inputs, held, tmp_path, arithmetic=type)

    clean = judged()
    assert (clean.verdict, clean.hidden) == ("agrees", 16 * of.unit), clean.sentence
    assert f"less than {clean.hidden:.1%} of the largest of its tensor cannot be seen" in clean.sentence
    for change in (lambda a: a * (1 + 3 * of.unit), lambda a: a + of.unit / 2 * np.abs(a).max()):
        found = judged(change)
        assert (found.verdict, found.at[0].layer.tensor) in (("bug", "sum"), ("unexplained", "sum")), found.sentence
    assert judged(lambda a: np.where(a == a.max(), a * (1 + 24 * of.unit), a)).verdict == "bug"
    assert type != "bf16" or judged(is_cut=True).verdict == "agrees"


def test_a_small_bug_is_told_apart_from_one_that_matters(tmp_path: Path) -> None:
    """OpenVINO 2026.4 computes SoftPlus(-5.788) as 0.00305843353, beside 0.00305810..: 3e-7 of 1."""
    b = irexec.Builder("small")
    b.result(b.emit("SoftPlus", b.parameter("f32", (2,), "x"), name="y"))
    x = np.float32([-5.788, 2])
    right = np.log1p(np.exp(x.astype(np.float64))).astype(np.float32)
    for error, severity in ((1e-6, "minor"), (1e-3, "major")):
        found = of_recording(b.model(), {"x": x}, {"y": right + np.float32([error, 0])}, tmp_path)
        assert (found.verdict, found.severity) == ("bug", severity), found.sentence
        assert found.sentence.startswith(
            "small bug of the runtime: " if severity == "minor" else "bug of the runtime: "
        )
        assert found.at[0].relative == pytest.approx(error / 2.13, rel=0.5)
        assert ("no value differs visibly" in str(found)) == (severity == "minor")
    # Of the small value alone little is left by a difference: the result differs visibly.
    y = b.emit("SoftPlus", b.parameter("f32", (2,), "again"), name="sum")
    b.result(b.emit("Subtract", b.emit("Gather", y, np.int64([0]), np.int64(0)), np.float32(0.00305), name="rest"))
    wrong = right + np.float32([1e-6, 0])
    given = {"x": x, "again": x}
    tensors = {"y": right, "sum": wrong, "rest": wrong[:1] - np.float32(0.00305)}
    found = of_recording(b.model(), given, tensors, tmp_path)
    assert (found.verdict, found.severity, found.at[0].layer.name) == ("bug", "major", "sum"), found.sentence


def test_a_recording_in_another_layout_accuses_nobody(tmp_path: Path) -> None:
    model, inputs = network(), {"x": IMAGE}
    tensors = recorded(model, inputs)
    moved = {name: array.transpose(0, 2, 3, 1) if array.ndim == 4 else array.ravel() for name, array in tensors.items()}
    found = of_recording(model, inputs, moved, tmp_path)
    assert found.verdict == "agrees", found.sentence
    assert any("the recorded tensors are the model's in N,H,W,C: axes 0,3,1,2 of 3" in note for note in found.notes), (
        found.notes
    )
    wrong = {**moved, "conv": moved["conv"] * np.float32(1.01)}
    assert of_recording(model, inputs, wrong, tmp_path).at[0].layer.name == "conv"


NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
"""The values of nf4. Source: bitsandbytes and the paper on QLoRA, appendix E."""


def compressed(levels: np.ndarray, scales: np.ndarray, element: str) -> Model:
    """A product with weights of few bits, which scales of f16 decompress."""
    b = irexec.Builder("compressed")
    held = b.emit("Convert", b.constant(levels, element), destination_type="f16")
    weights = b.emit("Convert", b.emit("Multiply", held, b.constant(scales)), destination_type="f32")
    b.result(b.emit("MatMul", b.parameter("f32", (1, 8, 96), "x"), weights, transpose_b=True, name="y"))
    return b.model()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("element", ["i8", "nf4"])
@pytest.mark.parametrize("reading", ["f32", "f16", "converted to f16"])
def test_weights_of_few_bits_are_read_in_one_way(reading: str, element: str, tmp_path: Path) -> None:
    """Each of them is right, and an error of a 500th beside any of them is seen, of one element too."""
    rng = np.random.default_rng(5)
    levels = (
        rng.integers(-120, 120, (64, 96)).astype(np.float32)
        if element == "i8"
        else np.float32(rng.choice(NF4, (64, 96)))
    )
    scales = rng.uniform(0.01, 0.02, (64, 1)).astype(np.float16)
    x = rng.standard_normal((1, 8, 96)).astype(np.float32)
    halves = levels if reading == "f32" else levels.astype(np.float16)
    weights = halves * scales if reading == "f16" else halves.astype(np.float64) * scales
    right = (x @ weights.astype(np.float64).T).astype(np.float32)
    model, one = compressed(levels, scales, element), np.zeros_like(right)
    one[0, 3, 5] = 2e-3 * np.abs(right).max()
    assert not of_recording(model, {"x": x}, {"y": right}, tmp_path).is_bug
    for wrong in (right * np.float32(1.002), right + one):
        found = of_recording(model, {"x": x}, {"y": wrong}, tmp_path)
        assert (found.verdict, found.at[0].layer.name) == ("bug", "y"), found.sentence


def test_a_type_of_indices_is_not_an_edge(tmp_path: Path) -> None:
    """A conversion from integers to integers jumps nowhere: what is computed from it is held to its interval."""
    rng, b = np.random.default_rng(6), irexec.Builder("indices")
    rows = b.constant(rng.integers(-120, 120, (20, 16)).astype(np.int8))
    held = b.emit("Convert", rows, destination_type="f16", name="held")
    table = b.emit("Convert", b.emit("Multiply", held, b.constant(np.float16(0.013))), destination_type="f32")
    index = b.emit("Convert", b.parameter("i64", (1, 7), "x"), destination_type="i32", name="index")
    found = b.emit("Gather", table, index, b.constant(np.array(0)), batch_dims=0, name="row")
    b.result(
        b.emit(
            "MVN", found, b.constant(np.array([2])), eps=1e-5, normalize_variance=True, eps_mode="inside_sqrt", name="y"
        )
    )
    model, inputs = b.model(), {"x": rng.integers(0, 20, (1, 7))}
    tensors = recorded(model, inputs)
    assert of_recording(model, inputs, tensors, tmp_path).verdict == "agrees"
    wrong = of_recording(model, inputs, {**tensors, "y": tensors["y"] * np.float32(1.01)}, tmp_path)
    assert (wrong.verdict, wrong.at[0].layer.name) == ("bug", "y"), wrong.sentence


def test_positions_that_are_counted_are_not_an_edge(tmp_path: Path) -> None:
    """As OPT has them: a mask is summed in f32, and the integers of it read a table in front of a wrong layer."""
    rng, b = np.random.default_rng(2), Builder("positions")
    x, mask = b.parameter("f32", (1, 4, 8), "x"), b.parameter("f32", (1, 4), "mask")
    counted = b.emit("Subtract", b.emit("Multiply", b.emit("CumSum", mask, np.int64(1)), mask), np.float32(1))
    table = b.constant(rng.normal(size=(5, 8)).astype(np.float32))
    places = b.emit("Gather", table, b.emit("Convert", counted, destination_type="i64"), np.int64(0), batch_dims=0)
    total = b.emit("Add", x, places, name="total")
    normal = b.emit("MVN", total, np.int64([2]), normalize_variance=True, eps=1e-6, eps_mode="inside_sqrt")
    b.result(b.emit("Multiply", normal, rng.normal(size=8).astype(np.float32), name="scaled"))
    model, inputs = b.model(), {"x": rng.normal(size=(1, 4, 8)).astype(np.float32), "mask": np.float32([[1, 1, 0, 1]])}
    right = recorded(model, inputs)["scaled"]
    assert of_recording(model, inputs, {"scaled": right}, tmp_path).verdict == "agrees"
    found = of_recording(model, inputs, {"scaled": right * np.float32(1.1)}, tmp_path)
    assert (found.verdict, found.at[0].layer.name) == ("bug", "scaled"), found.sentence


@pytest.mark.parametrize("is_stated", [False, True])
@pytest.mark.parametrize(("size", "hides"), [(1, ["the inputs have x[1,1], which shows no fault of Softmax"]), (3, [])])
def test_an_open_axis_of_size_1_is_said_to_hide_faults(size: int, hides: list[str], is_stated: bool) -> None:
    b = irexec.Builder("tokens")
    notes: list[str] = []
    b.result(b.emit("Softmax", b.parameter("f32", (1, "?"), "x"), axis=1, name="y"))
    shapes = {"x": (1, size)} if is_stated else None
    x = {"x": np.ones((1, size), np.float32)}
    assert judge(b.model(), x, runtime="reference", notify=notes.append, shapes=shapes).verdict == "agrees"
    assert notes == hides


@pytest.mark.parametrize("kind", ["U", "O"])
def test_strings_have_one_right_value_in_arrays_of_text_and_of_objects(kind: str, tmp_path: Path) -> None:
    builder = Builder("strings")
    moved = builder.emit("Transpose", builder.parameter("string", "2,2", "x"), builder.constant([1, 0], "i64"))
    builder.result(moved)
    model = builder.model()
    text = np.array([["a", "long"], ["", "b"]])
    right = {moved.name: text.T}
    wrong = {moved.name: np.array([["a", ""], ["long", "c"]])}
    assert of_recording(model, {"x": text.astype(kind)}, right, tmp_path).verdict == "agrees"
    found = of_recording(model, {"x": text.astype(kind)}, wrong, tmp_path)
    assert [(one.outside, one.layer.type) for one in found.at] == [(1, "Transpose")]
    assert "1 of 4 strings are wrong; the first is 'c' at [1, 1], expected 'b'" in found.sentence
