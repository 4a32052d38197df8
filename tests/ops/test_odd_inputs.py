"""Operations on odd inputs: they answer or raise OpError, and nothing else."""

from __future__ import annotations

import dataclasses
import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

import irexec
from irexec import io
from irexec.analysis.builder import Builder
from irexec.analysis.model import Model
from irexec.dtypes.elements import BOOLEAN, F16, F32, I32, I64, STRING, U8, element_of
from irexec.errors import NodeError, OpError
from irexec.ir.dims import ANY, Dim
from irexec.ir.facts import Fact
from irexec.schema.attributes import Variables
from irexec.schema.opdef import OpDef
from irexec.schema.registry import definitions, resolve
from irexec.testing import Case, Typed
from irexec.testing.laws import infer, kernel, read_only
from irexec.testing.rows import exact_facts, read_attributes
from tests.support.cases import families

_ROWS: dict[tuple[str, object], list[Case]] = {}
for _rows in families().values():
    for _row in _rows:
        if isinstance(_row, Case):
            _ROWS.setdefault((_row.type, _row.since), []).append(_row)

_SIZES = [0, 1, 2, 3, 7, ANY, Dim(0, 4), Dim(2, 9), Dim(1, None), 10**30]
_VALUES = [0, 1, -1, 2, 3, -7, 100, 2**31 - 1, -(2**63), 2**63 - 1]
_TEXTS = [
    "", "0", "1", "-1", "2", "1, 1", "0, 0, 0", "-1, 2", "99999999999999999999", "true", "false", "nan", "inf", "1e9",
    "x", "...",
]  # fmt: skip


def _odd_fact(rng: random.Random, fact: Fact) -> Fact:
    """The fact with its type, its shape or its value spoiled, or as it is."""
    kind = rng.choice([fact.element] * 6 + [F32, F16, I64, I32, U8, BOOLEAN, STRING, None])
    choice = rng.random()
    if choice < 0.3:
        return Fact(kind, fact.shape, fact.value if kind is fact.element else None)
    if choice < 0.4:
        return Fact(kind, None)
    if fact.value is not None and kind is not None and kind.is_integer and choice < 0.75:
        limits = np.iinfo(kind.carrier)
        shape = rng.choice([(), (0,), (1,), (2,), (3,), (5,), (2, 2), fact.value.shape])
        count = int(np.prod(shape))
        values = [min(max(rng.choice(_VALUES), int(limits.min)), int(limits.max)) for _ in range(count)]
        return Fact(kind, shape, np.array(values, kind.carrier).reshape(shape))
    return Fact(kind, tuple(rng.choice(_SIZES) for _ in range(rng.randint(0, 6))))


def _odd_attributes(rng: random.Random, texts: dict[str, str]) -> dict[str, str]:
    return {
        name: rng.choice(_TEXTS) if rng.random() < 0.15 else text for name, text in texts.items() if rng.random() > 0.03
    }


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "definition", [d for d in definitions() if (d.type, d.since) in _ROWS], ids=lambda d: f"{d.type}-{d.since}"
)
def test_rules_answer_or_refuse(definition: OpDef) -> None:
    rng = random.Random(f"{definition.type}-{definition.since}")
    rows = _ROWS[definition.type, definition.since]
    injected = {name: {} for name, kind in definition.injected.items() if kind is Variables}
    for _ in range(300):
        row = rng.choice(rows)
        facts = [_odd_fact(rng, Fact(x.element, x.array.shape, x.array)) for x in row.inputs]
        texts = _odd_attributes(rng, row.attributes)
        try:
            attributes = read_attributes(definition, texts)
            definition.infer(facts, attributes | injected)
        except OpError:
            continue
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error} for {facts} with {texts}") from error


# Integers beyond what an operation allows: it answers within its facts, or refuses with a sentence, and never trips.


_MAX_CHANGES = 3


def _changed(row: Case, index: int, number: int) -> Case | None:
    """The row with the last number of an input replaced; None if the input's type does not have the number."""
    array = row.inputs[index].array.copy()
    try:
        array.flat[array.size - 1] = number
    except (OverflowError, ValueError):
        return None
    inputs = tuple(Typed(x.element, array) if i == index else x for i, x in enumerate(row.inputs))
    return dataclasses.replace(row, inputs=inputs, gives=None, name=f"{row.name}, input {index} with {number}")


def _rows() -> Iterator[Case]:
    """A few rows of each operation for each input of integers."""
    taken: Counter[tuple[str, int | str, int, int]] = Counter()
    for row in itertools.chain(*families().values()):
        if not isinstance(row, Case):
            continue
        for index, number in itertools.product(range(len(row.inputs)), (99, -99, -1, 0)):
            x = row.inputs[index]
            key = (row.type, row.since, index, number)
            changed = (
                _changed(row, index, number)
                if x.element.is_integer and x.array.size and taken[key] < _MAX_CHANGES
                else None
            )
            if changed is not None:
                taken[key] += 1
                yield changed


_RANGE_ROWS: dict[str, list[Case]] = {}
for _row in _rows():
    _RANGE_ROWS.setdefault(_row.type, []).append(_row)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("type", sorted(_RANGE_ROWS))
def test_answers_or_refuses(type: str) -> None:
    for row in _RANGE_ROWS[type]:
        try:
            facts = infer(row, exact_facts(row))
            results = kernel(row, read_only(row))
        except OpError:
            continue
        for fact, result in zip(facts, results, strict=True):
            assert fact.admits(result), f"{row.id}: {fact} does not admit {result.dtype} {result.shape}"


# What no row can show: a size that is not known is assumed to be 1, and then is not.


def _squeezed(since: int, optimize: bool) -> irexec.CompiledModel:
    builder = Builder("squeeze")
    data = builder.parameter(F32, (ANY, 2), "data")
    squeezed = builder.emit("Squeeze", data, np.array([0]), version=since)
    assert builder.fact(squeezed).shape == (2,)
    builder.result(squeezed)
    return irexec.compile_model(builder.model(), optimize=optimize)


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("since", [1, 15])
def test_an_axis_of_another_size_contradicts_what_was_inferred(since: int, optimize: bool) -> None:
    compiled = _squeezed(since, optimize)
    assert compiled([np.zeros((1, 2), np.float32)])[0].shape == (2,)
    # OpenVINO's plugin refuses it as well.
    with pytest.raises(
        NodeError,
        match=r"\(Squeeze of .*\): the result has shape \[3,2\], \[2\] was inferred before its inputs were known",
    ):
        compiled([np.zeros((3, 2), np.float32)])


@pytest.mark.parametrize("optimize", [False, True])
def test_so_it_does_where_the_size_is_known_only_in_the_run(optimize: bool) -> None:
    builder = Builder("squeeze")
    indices = builder.emit("NonZero", builder.parameter(F32, (4,), "data"))
    builder.result(builder.emit("Squeeze", indices, np.array([1]), version=1))
    compiled = irexec.compile_model(builder.model(), optimize=optimize)
    assert compiled([np.array([0, 0, 5, 0], np.float32)])[0].tolist() == [2]
    with pytest.raises(
        NodeError, match=r"the result has shape \[1,2\], \[1\] was inferred before its inputs were known"
    ):
        compiled([np.array([0, 3, 5, 0], np.float32)])


# Loop without an iteration: its outputs have the shapes that are inferred, whatever its ports declare. OpenVINO gives
# the same ones.


MODEL = """<net name="m" version="11"><layers>
<layer id="0" name="n" type="Parameter" version="opset1"><data shape="" element_type="i64"/><output><port id="0" precision="I64"/></output></layer>
<layer id="1" name="x" type="Parameter" version="opset1"><data shape="3" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>3</dim></port></output></layer>
<layer id="2" name="go" type="Const" version="opset1"><data element_type="boolean" shape="" offset="0" size="1"/>
<output><port id="0" precision="BOOL"/></output></layer>
<layer id="3" name="loop" type="Loop" version="opset5"><input><port id="0"/><port id="1"/><port id="2"><dim>3</dim></port></input>
<output><port id="3" precision="FP32"><dim>-1</dim><dim>-1</dim></port></output>
<port_map><input external_port_id="2" internal_layer_id="0"/><output external_port_id="3" internal_layer_id="4" axis="0"/>
<output external_port_id="-1" internal_layer_id="5" purpose="execution_condition"/></port_map>
<back_edges/>
<body><layers>
<layer id="0" name="v" type="Parameter" version="opset1"><data shape="?" element_type="f32"/>
<output><port id="0" precision="FP32"><dim>-1</dim></port></output></layer>
<layer id="1" name="axis" type="Const" version="opset1"><data element_type="i64" shape="" offset="1" size="8"/>
<output><port id="0" precision="I64"/></output></layer>
<layer id="2" name="row" type="Unsqueeze" version="opset1"><input><port id="0"><dim>-1</dim></port><port id="1"/></input>
<output><port id="2" precision="FP32"><dim>1</dim><dim>-1</dim></port></output></layer>
<layer id="3" name="more" type="Const" version="opset1"><data element_type="boolean" shape="" offset="0" size="1"/>
<output><port id="0" precision="BOOL"/></output></layer>
<layer id="4" name="rows" type="Result" version="opset1"><input><port id="0"><dim>1</dim><dim>-1</dim></port></input></layer>
<layer id="5" name="condition" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/><edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="4" to-port="0"/><edge from-layer="3" from-port="0" to-layer="5" to-port="0"/>
</edges></body></layer>
<layer id="4" name="y" type="Result" version="opset1"><input><port id="0"><dim>-1</dim><dim>-1</dim></port></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="3" to-port="0"/><edge from-layer="2" from-port="0" to-layer="3" to-port="1"/>
<edge from-layer="1" from-port="0" to-layer="3" to-port="2"/><edge from-layer="3" from-port="3" to-layer="4" to-port="0"/>
</edges></net>"""


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("trips", [0, 2])
def test_shape_is_inferred(trips: int, optimize: bool) -> None:
    model = Model.of(io.read_text(MODEL, b"\x01" + bytes(8)))
    x = np.arange(3, dtype=np.float32)
    result = irexec.compile_model(model, optimize=optimize)([np.array(trips), x])[0]
    np.testing.assert_array_equal(result, np.tile(x, (trips, 1)))


# MVN of equal values, of which exact arithmetic leaves 0.


@pytest.mark.parametrize("value", [0.1, 3.3, 123.4])
@pytest.mark.parametrize(("shape", "axis"), [((1024, 3), 0), ((3, 1024), 1), ((100_003, 2), 0)])
def test_equal_values_have_no_deviation(shape: tuple[int, int], axis: int, value: float) -> None:
    data, axes = np.full(shape, value, np.float32), np.array([axis])
    definition = resolve("MVN", "opset6")
    result = definition(data, axes, normalize_variance=True, eps=1e-6, eps_mode="inside_sqrt")
    assert result.dtype == np.float32 and not result.any()


@pytest.mark.parametrize(("shape", "axis"), [((1024, 3), 0), ((3, 1024), 1), ((20_000, 2), 0), ((2, 20_000), 1)])
def test_fast_kernels_center_equal_values_too(shape: tuple[int, int], axis: int) -> None:
    """123.4 less a mean that is off by rounding is 1e-3, which the root of a small epsilon makes 0.7."""
    builder = irexec.Builder("m")
    axes = builder.constant([axis])
    options = {"normalize_variance": True, "eps": 1e-6, "eps_mode": "inside_sqrt"}
    builder.result(builder.emit("MVN", builder.parameter("f32", shape, "x"), axes, **options), "y")
    result = irexec.compile_model(builder.model())([np.full(shape, 123.4, np.float32)])["y"]
    assert np.abs(result).max() < 1e-4


# Scores without boxes take no memory, so that a small file may have any number of classes.


def test_classes_without_boxes_take_no_time() -> None:
    definition = resolve("NonMaxSuppression", "opset9")
    attributes = read_attributes(definition, {})
    inputs = [np.zeros((1, 0, 4), np.float32), np.zeros((1, 10**7, 0), np.float32), np.array(3)]
    start = time.process_time()
    indices, scores, count = definition(*inputs, **attributes)
    assert time.process_time() - start < 5
    assert (indices.shape, scores.shape, count.tolist()) == ((0, 3), (0, 3), [0])


# VariadicSplit into no parts, of an axis of size 0.


def test_no_lengths_are_not_parts() -> None:
    definition = resolve("VariadicSplit", "opset1")
    inputs = [np.zeros((0, 2), np.float32), np.array(0), np.zeros(0, np.int64)]
    assert definition.infer([Fact(element_of(x.dtype), x.shape, x) for x in inputs], {}) == ()
    assert definition(*inputs) == ()


# Mode area of Interpolate-1: its shape is inferred, its values are computed by no implementation.


def test_mode_area_has_a_shape_but_no_values() -> None:
    builder = irexec.Builder("area")
    x = builder.parameter(irexec.f32, (1, 2, 4, 5), "x")
    builder.result(builder.emit("Interpolate", x, [8, 9], version=1, axes=(2, 3), mode="area"))
    model = builder.model()
    assert [str(finding) for finding in irexec.validate(model) if finding.severity == "error"] == []
    assert str(model.outputs[0].shape) == "(1, 2, 8, 9)"
    with pytest.raises(NodeError, match="mode area is not computed by any implementation"):
        irexec.compile_model(model)([np.zeros((1, 2, 4, 5), np.float32)])
