"""Inputs of a run: element types, arrays that a session keeps, and sizes that choose a plan."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.analysis.model import Model
from irexec.errors import NodeError
from irexec.runtime.program import PLANS, PlanCache
from irexec.tools.run.input_sources import random_array

BIG = 2**63 + 5
LONG = 2**53 + 1


def _identity(kind: Any, *shape: int) -> irexec.CompiledModel:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Identity", builder.parameter(kind, shape, "x"), version=16), "y")
    return irexec.compile_model(builder.model())


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("f32", np.float64([0.5, -0.0, np.inf, np.nan])),
        ("f32", np.int64([1, -3, 2**24])),
        ("f32", np.bool_([True, False])),
        ("f32", np.float16([0.1, 2])),
        ("f32", np.zeros(2, ">f4")),
        ("f64", np.float32([0.1])),
        ("f16", np.float64([0.5, 65504])),
        ("bf16", np.float64([0.5, 3])),
        ("i32", np.int64([-(2**31), 2**31 - 1])),
        ("i32", np.float64([3, -4])),
        ("u8", np.int64([0, 255])),
        ("i4", np.int64([-8, 7])),
        ("boolean", np.int64([0, 1])),
        ("i64", np.uint64([2**63 - 1])),
        ("f32", [0.1, 1]),
        ("i64", [1, 2]),
        ("u4", [15, 0]),
        ("i64", [1.0, 2.0]),
        ("f32", []),
    ],
)
def test_values_that_stay_the_same_are_taken(kind: str, given: Any) -> None:
    compiled = _identity(kind, len(given))
    (result,) = compiled(given if isinstance(given, np.ndarray) else {"x": given}).values()
    assert result.dtype == compiled.inputs[0].element.carrier
    np.testing.assert_array_equal(result, np.asarray(given).astype(result.dtype))


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        ("f32", np.float64([0.5, 0.1]), "0.1"),
        ("f32", np.float64([1e300]), "1e+300"),
        ("f32", np.int64([2**24 + 1]), "16777217"),
        ("f64", np.int64([LONG]), str(LONG)),
        ("i32", np.int64([2**31]), "2147483648"),
        ("i32", np.float64([1.5]), "1.5"),
        ("i32", np.float32([np.nan]), "nan"),
        ("i64", np.float64([2.0**63]), "9.223372036854775808e+18"),
        ("u8", np.int64([-1]), "-1"),
        ("u64", np.int64([-1]), "-1"),
        ("i64", np.uint64([BIG]), str(BIG)),
        ("i4", np.int64([8]), "8"),
        ("boolean", np.int64([2]), "2"),
        ("bf16", np.float64([1.001]), "1.001"),
        ("i64", [0.5], "0.5"),
    ],
)
def test_values_that_would_change_are_refused_unless_a_cast_is_allowed(kind: str, given: Any, value: str) -> None:
    compiled = _identity(kind, len(given))
    shown = re.escape(value) if "e+18" not in value else r"9\.22337203685477\d+e\+18"
    with pytest.raises(irexec.InputError, match=f"which cannot hold {shown}: convert it, or pass allow_cast=True"):
        compiled({"x": given})
    assert compiled({"x": given}, allow_cast=True)[0].dtype == compiled.inputs[0].element.carrier


def test_a_cast_is_that_of_convert() -> None:
    compiled = _identity("u8", 3)
    for run in (compiled, compiled.session(), compiled.run):
        assert run(np.float64([-1.5, 2.9, 300]), allow_cast=True)["y"].tolist() == [255, 2, 44]
    assert compiled.run([[1, 2, 3.5]], outputs="x", allow_cast=True)["x"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("given", ["text", [None], [[1], [1, 2]], np.array(["a"]), np.complex64([1])], ids=str)
def test_what_is_not_numbers_is_refused(given: Any) -> None:
    with pytest.raises(irexec.InputError, match="input 'x' is "):
        _identity("f32", 1)({"x": given})


def test_bytes_are_text_in_utf_8() -> None:
    model = _identity("string", 2)
    assert model(np.array(["déjà".encode(), b""]))["y"].tolist() == ["déjà", ""]
    with pytest.raises(irexec.InputError, match="input 'x' is bytes that are not UTF-8: invalid start byte"):
        model(np.array([b"a", b"\xff"]))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (np.array(["a", "\ud800"], object), "0xD800"),
        (np.array(["a", "\udfffb"]), "0xDFFF"),
        (np.array([[0x61], [0x110000]], np.uint32).view("U1")[:, 0], "0x110000"),
    ],
    ids=["a surrogate", "a surrogate of U", "beyond Unicode"],
)
def test_text_that_is_not_of_unicode(given: np.ndarray, says: str) -> None:
    with pytest.raises(
        irexec.InputError,
        match=f"^input 'x' is not text: it holds the code point {says}, which is not a character of Unicode",
    ):
        _identity("string", 2)(given)


def test_constants_that_are_not_of_unicode() -> None:
    builder = irexec.Builder("text")
    with pytest.raises(irexec.IrexecError, match="it holds the code point 0xD800"):
        builder.constant(np.array(["\ud800"], object))


# Inputs that a layer writes are kept by the session, as OpenVINO keeps them in the memory of the input.


TABLE = np.arange(12, dtype=np.float32).reshape(3, 1, 4)
WEIGHTS = np.float32([[[1, 10, 100, 1000]]])


def convolution(layers: int = 1, kind: str = "f32") -> Model:
    """Layers that share a table, whose second sum of the last four tokens is added to the first."""
    builder = irexec.Builder("conv")
    x, table = builder.parameter(kind, (None, 1), "x"), builder.parameter(kind, (3, 1, 4), "table")
    place = [
        builder.parameter("i32", (None,), name) for name in ("begins", "blocks", "block_begins", "past", "interval")
    ]
    weights, bias = builder.constant(WEIGHTS, kind), builder.constant(np.zeros(0, np.float32), kind)
    for i in range(layers):
        found = builder.emit("PagedCausalConv1D", x, table, weights, bias, *place, version="extension", name=f"conv{i}")
        builder.result(found)
    return builder.model()


def fed(*tokens: float, past: int = 0, blocks: tuple[int, ...] = (1, 1), table: np.ndarray = TABLE) -> dict[str, Any]:
    return {
        "x": np.float32(tokens)[:, None],
        "table": table,
        "begins": np.int32([0, len(tokens)]),
        "blocks": np.int32(blocks),
        "block_begins": np.int32([0, len(blocks)]),
        "past": np.int32([past]),
        "interval": np.int32([8]),
    }


def first(results: Any) -> list[float]:
    return np.ravel(next(iter(results.values()))).tolist()


def test_the_next_run_continues() -> None:
    session = irexec.compile_model(convolution())
    assert first(session(fed(1, 2))) == [5 + 60 + 700 + 1000, 6 + 70 + 100 + 2000]
    assert first(session(fed(3, past=2))) == [7 + 10 + 200 + 3000]
    assert session.variables["table"][1].tolist() == [[7, 1, 2, 3]]
    assert np.array_equal(TABLE, np.arange(12).reshape(3, 1, 4)), "the array of the caller is left alone"


@pytest.mark.parametrize("precision", ["as-written", "f32"])
def test_a_state_of_a_type_that_numpy_lacks(precision: Any) -> None:
    """It has the same name where the model computes in f32, between Converts."""
    session = irexec.compile_model(convolution(kind="bf16"), precision=precision)
    session(fed(1))
    assert session.variables["table"][1].tolist() == [[5, 6, 7, 1]]


def test_without_variables_it_begins_with_the_input_again() -> None:
    session = irexec.compile_model(convolution())
    before = first(session(fed(1)))
    session.variables.clear()
    assert first(session(fed(1))) == before


def test_a_state_can_be_set_and_must_fit() -> None:
    session = irexec.compile_model(convolution())
    session.variables["table"] = np.ones((3, 1, 4), np.float32)
    assert first(session(fed(2))) == [1 + 10 + 100 + 2000]
    with pytest.raises(irexec.InputError, match="table"):
        session.variables["table"] = np.ones((4, 1, 4), np.float32)


def test_layers_with_the_same_input_share_it() -> None:
    """The second layer begins with what the first has written."""
    session = irexec.compile_model(convolution(2))
    one, other = (np.ravel(array).tolist() for array in session(fed(1)).values())
    assert (one, other) == ([5 + 60 + 700 + 1000], [6 + 70 + 100 + 1000])


def test_a_run_that_fails_keeps_nothing() -> None:
    session = irexec.compile_model(convolution())
    session(fed(1))
    held = session.variables["table"].copy()
    with pytest.raises(NodeError, match="block 3 of sequence 0 is out of range for 3 blocks"):
        session(fed(1, blocks=(1, 3)))
    assert np.array_equal(session.variables["table"], held)


# The cache of plans: small, least recently used out first, and never in the way of another thread.


def _compiled() -> irexec.CompiledModel:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter("f32", ("?", 3), "x")), "y")
    return irexec.compile_model(builder.model())


def _rows(count: int) -> np.ndarray:
    return np.full((count, 3), count, np.float32)


def test_every_size_has_its_plan_and_a_dropped_one_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = _compiled()
    made: list[Any] = []
    original = compiled.program._make
    monkeypatch.setattr(
        compiled.program, "_make", lambda shapes, targets: made.append(shapes[0][0]) or original(shapes, targets)
    )
    for count in (*range(1, PLANS + 2), PLANS, 1):
        np.testing.assert_array_equal(compiled(_rows(count))["y"], _rows(count))
    assert made == [*range(1, PLANS + 2), 1]


def test_an_arena_of_a_smaller_plan_is_not_used() -> None:
    builder = irexec.Builder("m")
    x = builder.parameter("f32", ("?", 64), "x")
    for weights in (np.eye(64), 2 * np.eye(64), 3 * np.eye(64)):
        x = builder.emit("Softmax", builder.emit("MatMul", x, weights.astype(np.float32)), axis=1)
    builder.result(x, "y")
    compiled = irexec.compile_model(builder.model(), threads=1)
    for rows in (100, 130, 170, 220):
        # Equal elements stay equal: a softmax of them is one over their number.
        np.testing.assert_allclose(
            compiled(np.full((rows, 64), rows, np.float32))["y"], np.full((rows, 64), 1 / 64), rtol=1e-5
        )


@dataclass(eq=False)
class _Made:
    name: str
    steps: tuple[int, ...] = (0,)


def test_the_least_recently_used_plan_is_dropped() -> None:
    cache = PlanCache(size=2)
    plans = {key: cache.get(key, lambda key=key: _Made(key)) for key in ("a", "b")}
    again = _Made("made again")
    assert cache.get("a", lambda: again) is plans["a"]
    cache.get("c", lambda: _Made("c"))
    assert len(cache) == 2
    assert cache.get("a", lambda: again) is plans["a"]
    assert cache.get("b", lambda: again) is again


def test_as_many_plans_are_kept_as_their_steps_allow() -> None:
    cache = PlanCache(size=8, steps=10)
    for key, steps in (("a", 4), ("b", 4), ("c", 3)):
        cache.get(key, lambda steps=steps: _Made("", (0,) * steps))
    assert len(cache) == 2
    large = _Made("", (0,) * 100)
    assert cache.get("large", lambda: large) is cache.get("large", lambda: _Made("again")) is large
    assert len(cache) == 1


def test_a_thread_that_plans_stops_no_other() -> None:
    cache = PlanCache()
    ready, first = _Made("ready"), _Made("first")
    cache.get("ready", lambda: ready)
    started, finish = threading.Event(), threading.Event()

    def slow() -> _Made:
        started.set()
        assert finish.wait(10)
        return _Made("slow")

    thread = threading.Thread(target=lambda: cache.get("new", slow))
    thread.start()
    assert started.wait(10)
    assert cache.get("ready", lambda: _Made("again")) is ready
    # Another thread may plan the same; the first that is done is kept.
    assert cache.get("new", lambda: first) is first
    finish.set()
    thread.join()
    assert cache.get("new", lambda: _Made("again")) is first


def test_threads_with_sizes_of_their_own_agree() -> None:
    compiled, wrong = _compiled(), []

    def work(start: int) -> None:
        for count in range(start, start + 20):
            if not np.array_equal(compiled(_rows(count))["y"], _rows(count)):
                wrong.append(count)

    threads = [threading.Thread(target=work, args=(start,)) for start in (1, 5, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# Sizes that plans leave unknown: those that no product needs.


def _scaled(weights: bool = True) -> irexec.Model:
    """A product of rows, scaled by the mean of a vector of any length."""
    b = irexec.Builder("scaled")
    x, y = b.parameter("f32", ("?", 64), "x"), b.parameter("f32", ("?",), "y")
    x = b.emit("MatMul", x, np.eye(64, dtype=np.float32) * 2) if weights else b.emit("Multiply", x, 2.0)
    mean = b.emit("ReduceMean", b.emit("Multiply", y, 0.5), np.array([0]), keep_dims=True)
    b.result(b.emit("Multiply", x, mean), "out")
    return b.model()


def _planned(compiled: irexec.CompiledModel, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The shapes for which plans are made from now on."""
    made: list[Any] = []
    original = compiled.program._make
    monkeypatch.setattr(
        compiled.program, "_make", lambda shapes, targets: made.append(shapes) or original(shapes, targets)
    )
    return made


def _run(compiled: irexec.CompiledModel, rows: int, length: int) -> None:
    given = np.full((rows, 64), rows, np.float32), np.full(length, length, np.float32)
    np.testing.assert_allclose(compiled(given)["out"], np.full((rows, 64), rows * length), rtol=1e-6)


def test_a_length_that_grows_has_one_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = irexec.compile_model(_scaled())
    made = _planned(compiled, monkeypatch)
    for length in range(2, 40):
        _run(compiled, 50, length)
    assert [[str(size) for size in shape] for shapes in made for shape in shapes] == [["50", "64"], ["?"]]


def test_rows_of_a_product_have_plans_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = irexec.compile_model(_scaled())
    made = _planned(compiled, monkeypatch)
    for rows, length in ((5, 3), (6, 4), (7, 5), (5, 7)):
        _run(compiled, rows, length)
    assert [shapes[0] for shapes in made] == [(5, 64), (6, 64), (7, 64)]
    assert [str(shapes[1][0]) for shapes in made] == ["?", "?", "?"]


def test_sizes_that_are_equal_are_known_or_unknown_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ran before: rows and length may be the same size of the model, of which products need the rows."""
    for first in ((), ((6, 4), (5, 6), (7, 6))):
        compiled = irexec.compile_model(_scaled())
        for rows, length in first:
            _run(compiled, rows, length)
        made = _planned(compiled, monkeypatch)
        _run(compiled, 6, 6)
        assert made == [((6, 64), (6,))]


def _cached(axis: int) -> irexec.Model:
    """Attention of new rows to a cache of keys that is given and returned."""
    b = irexec.Builder("cached")
    x, past = b.parameter("f32", (1, 2, "?", 64), "x"), b.parameter("f32", ("?", 2, "?", 64), "past")
    mask = b.parameter("f32", (1, 1, 1, "?"), "mask")
    beams = b.emit("Gather", past, b.parameter("i64", ("?",), "beams"), np.array(0))
    new = b.emit("MatMul", x, np.eye(64, dtype=np.float32))
    keys = b.emit("Concat", beams, new, axis=axis)
    scores = b.emit("Add", b.emit("MatMul", new, keys, transpose_b=True), mask)
    b.result(b.emit("MatMul", scores, keys), "out")
    b.result(keys, "present")
    b.result(b.emit("MatMul", new, 2 * np.eye(64, dtype=np.float32)), "other")
    b.result(b.emit("MatMul", new, 3 * np.eye(64, dtype=np.float32)), "another")
    return b.model()


@pytest.mark.parametrize("axis", [2, -2])
def test_a_cache_that_grows_has_one_plan(monkeypatch: pytest.MonkeyPatch, axis: int) -> None:
    """Although products depend on its length, which the mask has too."""
    compiled = irexec.compile_model(_cached(axis=axis))
    made = _planned(compiled, monkeypatch)
    cache = np.zeros((1, 2, 0, 64), np.float32)
    for length in range(1, 12):
        x, mask = np.full((1, 2, 1, 64), length, np.float32), np.zeros((1, 1, 1, length), np.float32)
        results = compiled([x, cache, mask, np.array([0])])
        cache = results["present"]
        np.testing.assert_array_equal(cache[0, 0, :, 0], np.arange(1, length + 1))
        squares = float((np.arange(1, length + 1) ** 2).sum())
        np.testing.assert_allclose(results["out"], np.full((1, 2, 1, 64), 64 * length * squares), rtol=1e-5)
    # The first one has an empty cache and a mask of one: sizes of 1 stay.
    assert len(made) == 2


def test_inputs_that_are_joined_and_returned_are_known_where_all_products_need_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    b = irexec.Builder("joined")
    x = b.parameter("f32", ("?", 8), "x")
    b.result(b.emit("Concat", x, b.emit("MatMul", x, 2 * np.eye(8, dtype=np.float32)), axis=0), "out")
    compiled = irexec.compile_model(b.model())
    made = _planned(compiled, monkeypatch)
    for rows in (5, 6):
        given = np.full((rows, 8), rows, np.float32)
        np.testing.assert_array_equal(compiled(given)["out"], np.concatenate([given, 2 * given]))
    assert made == [((5, 8),), ((6, 8),)]


def test_without_products_every_size_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = irexec.compile_model(_scaled(weights=False))
    made = _planned(compiled, monkeypatch)
    for length in (3, 4, 5):
        _run(compiled, 5, length)
    assert [shapes[1] for shapes in made] == [(3,), (4,), (5,)]


def test_sizes_that_change_together_are_tried_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both rows change from 5 to 6, and the sum needs them to be equal."""
    b = irexec.Builder("sum")
    x, y = (b.parameter("f32", ("?", 64), name) for name in "xy")
    b.result(b.emit("Add", b.emit("MatMul", x, np.eye(64, dtype=np.float32)), y), "out")
    compiled = irexec.compile_model(b.model())
    made = _planned(compiled, monkeypatch)
    for rows in (5, 6):
        ones = np.ones((rows, 64), np.float32)
        np.testing.assert_array_equal(compiled([ones, ones])["out"], 2 * ones)
    assert made == [((5, 64), (5, 64)), ((6, 64), (6, 64))]


ROWS = np.zeros((4, 3), np.float32)


@pytest.mark.parametrize(
    ("type", "before", "after", "attributes", "shape", "most"),
    [
        ("Gather", (ROWS,), (np.array(1),), {}, (5,), 3),
        ("Gather", (ROWS,), (np.array(0),), {}, (5,), 4),
        ("GatherElements", (ROWS,), (), {"axis": 1}, (4, 2), 3),
        ("ScatterUpdate", (ROWS,), (np.ones((2, 3), np.float32), np.array(0)), {}, (2,), 4),
        ("EmbeddingBagPackedSum", (ROWS,), (), {}, (2, 3), 3),
    ],
)
def test_random_integers_select_rows_that_exist(
    type: str, before: Sequence[Any], after: Sequence[Any], attributes: dict[str, Any], shape: Sequence[int], most: int
) -> None:  # fmt: skip
    """Rows that do not exist are undefined, and no runtime is wrong that reads any memory for them."""
    b = irexec.Builder("m")
    rows = b.emit("Reshape", b.parameter("i64", (*shape, 1), "rows"), np.array(shape), special_zero=False)
    rows = b.emit("Convert", rows, destination_type="i32")
    b.result(b.emit(type, *before, rows, *after, **attributes))
    drawn = [random_array(b.model().inputs[0], seed) for seed in range(20)]
    assert (np.min(drawn), np.max(drawn)) == (0, most - 1)


@pytest.mark.parametrize("is_cycle", [True, False])
def test_rows_behind_a_chain_without_a_beginning(is_cycle: bool) -> None:
    """A damaged model has ports, too, and whoever asks for them gets an answer."""
    b = irexec.Builder("m")
    first = b.emit("Convert", b.parameter("i64", (2,), "rows"), destination_type="i32")
    second = b.emit("Reshape", first, np.array([2]), special_zero=False)
    b.result(b.emit("Gather", ROWS, second, np.array(0)))
    model = b.model()
    next(node for node in model.nodes if node.type == "Convert").ports[0].source = second if is_cycle else None
    assert [port.selects for port in model.inputs] == [None]
