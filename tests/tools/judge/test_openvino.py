"""What judge knows of OpenVINO: integers in 32 bits and in f32, low precision, caches of attention, and sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec import Builder
from irexec.analysis.model import Model
from irexec.tools.compare import blame
from irexec.tools.engines.runtimes.caches import CacheType, CacheTypes, cache_types
from irexec.tools.judge import judge, judgement
from tests.analysis.portability.several_layers import attended, with_levels
from tests.support.networks import feeds, unpacked
from tests.support.tiers import some, some_rows
from tests.tools.judge.test_evidence import Arrays, of_recording


@pytest.mark.slow
@pytest.mark.parametrize(
    ("type", "value"), some_rows([("Abs", -(2**40)), ("Sign", 2**33), ("Negative", 2**32 + 1)], [("Abs", -(2**40))])
)
def test_integers_of_64_bits_name_what_is_known_of_openvino(type: str, value: int) -> None:
    """The values are those of the input, which no table knows: the verdict names the code all the same."""
    pytest.importorskip("openvino")
    b = irexec.Builder("wide")
    b.result(b.emit(type, b.parameter("i64", (2,), "x"), name="y"))
    found = judge(b.model(), {"x": np.array([value, 3])}, runtime="openvino")
    assert (found.verdict, found.at[0].codes) == ("bug", ("IR987",)), found.sentence
    assert judge(b.model(), {"x": np.array([-7, 3])}, runtime="openvino").verdict == "agrees"


@pytest.mark.parametrize(
    ("values", "is_openvino", "verdict", "codes"),
    [
        ([44, 9], True, "agrees", ()),
        ([255, 255], True, "open", ("IR913",)),
        ([255, 255], False, "no-bound", ()),
        ([255, 9], True, "no-bound", ("IR913",)),
    ],
)
def test_a_known_difference_where_nothing_has_a_bound(
    values: list[int], is_openvino: bool, verdict: str, codes: tuple[str, ...], tmp_path: Path
) -> None:
    """200 + 100 and 255 + 10 in u8: wrapped, saturated as by OpenVINO, and half of each."""
    b = irexec.Builder("bytes")
    b.result(b.emit("Add", b.parameter("u8", (2,), "x"), b.parameter("u8", (2,), "z"), name="y"))
    inputs = {"x": np.uint8([200, 255]), "z": np.uint8([100, 10])}
    texts = {"irexec.arithmetic": np.array("f32 of OpenVINO on CPU")} if is_openvino else {}
    found = of_recording(b.model(), inputs, {"y": np.uint8(values), **texts}, tmp_path)
    assert (found.verdict, found.layers[0].codes) == (verdict, codes), found.sentence


@pytest.mark.parametrize("is_result", [False, True])
def test_the_end_of_an_axis_means_the_same_in_32_bits(is_result: bool) -> None:
    """2**63 - 1 as the end of a slice, which OpenVINO holds as 2**31 - 1, and which a result shows."""
    pytest.importorskip("openvino")
    b = irexec.Builder("ends")
    ends = b.emit("Concat", b.parameter("i64", (1,), "n"), b.constant(np.array([2**63 - 1])), axis=0, name="ends")
    begin, ones = b.constant(np.array([0, 1])), b.constant(np.array([1, 1]))
    b.result(b.emit("Slice", b.parameter("f32", (4, 6), "x"), begin, ends, ones, version="opset8"))
    if is_result:
        b.result(ends)
    inputs = {"x": np.arange(24, dtype=np.float32).reshape(4, 6), "n": np.array([3])}
    found = judge(b.model(), inputs, runtime="openvino")
    assert found.verdict == ("bug" if is_result else "agrees"), found.sentence


@pytest.mark.slow
@pytest.mark.parametrize("type", some(["FloorMod", "Divide", "ReduceMax", "Relu"], ["Divide"]))
def test_integers_that_openvino_computes_in_f32_name_it(type: str) -> None:
    pytest.importorskip("openvino")
    b = irexec.Builder("wide")
    operands = {"FloorMod": [b.constant(10, "i32")], "Divide": [b.constant(3, "i32")], "ReduceMax": [b.constant([0])]}
    b.result(b.emit(type, b.parameter("i32", (2,), "x"), *operands.get(type, []), name="y"))
    found = judge(b.model(), {"x": np.int32([2**24 + 3, 123456789])}, runtime="openvino")
    assert found.verdict == "bug", found.sentence
    assert "IR987" in found.at[0].codes
    assert judge(b.model(), {"x": np.int32([2**24, 3])}, runtime="openvino").verdict == "agrees"


@pytest.mark.slow
def test_what_openvino_does_by_default_is_said_where_it_is_switched_off() -> None:
    """Low-precision transformations of OpenVINO take one range for all channels (IR999)."""
    pytest.importorskip("openvino")
    builder = Builder("one end by channel")
    low = np.float32([-1, -0.75, -0.5]).reshape(1, 3, 1, 1)
    ends = np.float32(-1), np.float32(1), low, np.float32(1)
    builder.result(builder.emit("FakeQuantize", builder.parameter("f32", (1, 3, 4, 4), "x"), *ends, levels=256))
    x = np.linspace(-1, 1, 48, dtype=np.float32).reshape(1, 3, 4, 4)
    found = judge(builder.model(), {"x": x}, runtime="openvino")
    assert found.verdict == "agrees"
    assert found.notes == ("OpenVINO computed as written; -p LP_TRANSFORMS_MODE=YES is what it does by default",)
    found = judge(builder.model(), {"x": x}, runtime="openvino", properties={"LP_TRANSFORMS_MODE": "YES"})
    assert (found.verdict, found.notes) == ("bug", ())


@pytest.mark.slow
def test_a_zero_point_that_openvino_rounds_is_known() -> None:
    """In its low-precision convolutions, although the FakeQuantize is observed as it is written."""
    pytest.importorskip("openvino")
    model = with_levels(-0.504, 2.046)
    x = np.random.default_rng(1).uniform(-0.5, 2, (1, 8, 6, 6)).astype(np.float32)
    found = judge(model, {"x": x}, runtime="openvino", properties={"LP_TRANSFORMS_MODE": "YES"})
    assert (found.verdict, found.at[0].codes) == ("open", ("IR1001",)), found.sentence
    assert judge(model, {"x": x}, runtime="openvino").verdict == "agrees"


@pytest.mark.parametrize("bits", [7, 8])
def test_sums_of_openvino_in_16_bits_are_named(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino")
    is_such, model = blame._saturates(), with_levels(-0.5, 2.05, bits=bits)
    monkeypatch.setattr(blame, "_saturates", lambda: True)
    assert len(list(blame.products_of_bytes(model, model.nodes))) == bits - 7
    if is_such:
        x = np.full((1, 8, 6, 6), 2, np.float32)
        found = judge(model, {"x": x}, runtime="openvino", properties={"LP_TRANSFORMS_MODE": "YES"})
        assert (found.verdict, len(found.notes)) == (("agrees", 0), ("bug", 1))[bits - 7], found.sentence


_BYTES, _NIBBLES = {"KV_CACHE_PRECISION": "u8"}, {"KV_CACHE_PRECISION": "u8", "VALUE_CACHE_PRECISION": "u4"}


def _llama(folder: Path) -> tuple[Model, list[Arrays]]:
    """A transformer, and the inputs of its steps."""
    path = unpacked("llama_sdpa", folder)
    model = irexec.read_model(path)
    names = [port.name for port in model.inputs]
    return model, [dict(zip(names, run, strict=True)) for run in feeds(path, model.inputs)]


@pytest.mark.parametrize("steps", some([2, 4], [2]))
@pytest.mark.parametrize("properties", some([{}, _BYTES, _NIBBLES], [{}, _NIBBLES]), ids=["default", "u8", "u4"])
@pytest.mark.sampled(2)
def test_caches_of_attention_in_fewer_bits(properties: dict[str, str], steps: int, tmp_path: Path) -> None:
    """OpenVINO's default, which judge switches off, or holds it to."""
    pytest.importorskip("openvino")
    model, runs = _llama(tmp_path)
    found = judge(model, runs[:steps], runtime="openvino", properties=properties)
    assert found.verdict == "agrees"
    by_default = "OpenVINO computed as written; -p KV_CACHE_PRECISION=u8 is what it does by default"
    assert properties or found.notes == (by_default,)


@pytest.mark.slow
def test_a_cache_of_4_bits_is_not_one_of_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino")
    monkeypatch.setattr(judgement, "cache_types", lambda properties: cache_types(_BYTES))
    found = judge(*_llama(tmp_path), runtime="openvino", properties=_NIBBLES)
    assert (found.verdict, found.step) == ("unexplained", 2), found.sentence


@pytest.mark.slow
def test_caches_by_channel_are_computed_again_while_a_group_grows() -> None:
    pytest.importorskip("openvino")
    rng = np.random.default_rng(0)
    runs: list[Arrays] = [
        {name: rng.normal(size=(2, 2, length, 8)).astype(np.float32) for name in ("query", "key", "value")}
        | {"beams": np.arange(2, dtype=np.int32)}
        for length in (3, 1, 4, 1)
    ]
    properties = {"KV_CACHE_PRECISION": "u8", "KEY_CACHE_QUANT_MODE": "BY_CHANNEL"}
    for group in ({"KEY_CACHE_GROUP_SIZE": "4"}, {}):
        found = judge(attended(causal=False), runs, runtime="openvino", properties=properties | group)
        assert found.verdict == "agrees", found.sentence


@pytest.mark.parametrize(
    ("properties", "types"),
    [
        ({}, None),
        ({"KV_CACHE_PRECISION": "f32"}, None),
        ({"KV_CACHE_PRECISION": "u8"}, (CacheType(8), CacheType(8))),
        ({"KV_CACHE_PRECISION": "f16"}, (CacheType(16), CacheType(16))),
        # OpenVINO holds f16 for both or for none.
        ({"KEY_CACHE_PRECISION": "f16", "VALUE_CACHE_PRECISION": "u4"}, (None, CacheType(4))),
        (
            {"KV_CACHE_PRECISION": "u4", "KEY_CACHE_GROUP_SIZE": "32", "VALUE_CACHE_GROUP_SIZE": "16",
             "KEY_CACHE_QUANT_MODE": "BY_CHANNEL"},
            (CacheType(4, 32, by_channel=True), CacheType(4, 16)),
        ),
    ],
)  # fmt: skip
def test_types_of_caches_follow_from_properties(properties: dict[str, str], types: CacheTypes | None) -> None:
    assert cache_types(properties) == types


@pytest.mark.slow
def test_a_causal_cache_is_known_and_not_acquitted() -> None:
    """The plugin fuses it only where no inner tensor is observed, in which it computes as the specification says."""
    pytest.importorskip("openvino")
    found = judge(attended(causal=True), runtime="openvino")
    assert found.verdict == "unexplained" and found.sentence.startswith("step 2: "), found.sentence
    assert "(see also IR1002)" in found.sentence


def test_a_model_that_runs_with_fixed_sizes_only_does_not_agree() -> None:
    """OpenVINO runs the copy with observed tensors, and that with the sizes of the inputs."""
    pytest.importorskip("openvino")
    with pytest.raises(irexec.EngineError, match="Invalid graph status; it runs with the sizes of the inputs"):
        judge(attended(causal=False, gathered=False), runtime="openvino")
