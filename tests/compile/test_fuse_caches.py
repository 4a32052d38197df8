"""Attention with variables that keys and values are appended to: one step in place, and what it needs for that.

Expected values are computed in NumPy from all keys and values that were given so far.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.backend.native import attention
from irexec.errors import NodeError, RunTimeoutError
from irexec.native.library import library
from irexec.runtime.execute import RunLimits

pytestmark = pytest.mark.skipif(library() is None, reason="the C kernels were not built")

ALGORITHM = "C, attention with a cache in place"


@dataclass(frozen=True)
class Sizes:
    """Sizes and form of an attention."""

    batch: int = 1
    heads: int = 4
    key_heads: int = 4
    width: int = 16
    values: int = 24
    mask: str = "f32"
    beams: bool = True
    first: int | None = None
    sized_before: bool = False


def repeated(builder: irexec.Builder, x: Any, s: Sizes, columns: int, parts: tuple[Any, Any]) -> Any:
    """Each head several times, as transformers write it: sized by the whole, or by the rows before and the new ones."""
    times = s.heads // s.key_heads
    if times == 1:
        return x

    def size(of: Any, axis: int) -> Any:
        shape = builder.emit("ShapeOf", of, version=3, output_type="i64")
        return builder.emit("Gather", shape, np.array([axis]), np.array(0), version=8, batch_dims=0)

    batch, heads, rows, width = (size(x, axis) for axis in range(4))
    if s.sized_before:
        rows = builder.emit("Add", *(size(part, 2) for part in parts))
    spread = builder.emit("Concat", batch, heads, np.array([times]), rows, width, axis=0)
    x = builder.emit("Broadcast", builder.emit("Unsqueeze", x, np.array([2])), spread, version=3, mode="bidirectional")
    return builder.emit("Reshape", x, np.array([0, s.heads, -1, columns]), special_zero=True)


def model(s: Sizes, other_reader: str = "", axis: int = 2) -> irexec.Model:
    b = irexec.Builder("cached")
    query = b.parameter("f32", (s.batch, s.heads, "?", s.width), "query")
    new = [
        b.parameter("f32", (s.batch, s.key_heads, "?", width), name)
        for name, width in (("key", s.width), ("value", s.values))
    ]
    mask = b.parameter(s.mask, ("?", "?", "?", "?"), "mask")
    beams = b.parameter("i32", (s.batch,), "beams") if s.beams else None
    whole, parts = [], []
    for name, rows, width in (("k", new[0], s.width), ("v", new[1], s.values)):
        kind = {"variable_id": name, "variable_type": "f32", "variable_shape": f"?,{s.key_heads},?,{width}"}
        first = np.zeros((s.batch, s.key_heads, s.first or 0, width), np.float32)
        first += np.arange(first.size, dtype=np.float32).reshape(first.shape) / max(1, first.size)
        before = b.emit("ReadValue", *([] if s.first is None else [first]), version=6, **kind)
        if beams is not None:
            before = b.emit("Gather", before, beams, np.array(0), version=8, batch_dims=0)
        whole.append(b.emit("Concat", before, rows, axis=axis, name=f"all_{name}"))
        parts.append((before, rows))
        b.emit("Assign", whole[-1], version=6, variable_id=name)
    key, value = (repeated(b, whole[i], s, columns, parts[0]) for i, columns in enumerate((s.width, s.values)))
    scale = np.array(0.3, np.float32)
    b.result(b.emit("ScaledDotProductAttention", query, key, value, mask, scale, causal=False), "out")
    if other_reader == "result":
        b.result(whole[0], "keys")
    elif other_reader:
        b.result(b.emit(other_reader, whole[0]), "other")
    return b.model()


@dataclass
class Reference:
    """The same in NumPy."""

    sizes: Sizes
    key: np.ndarray = field(init=False)
    value: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        s = self.sizes
        for name, width in (("key", s.width), ("value", s.values)):
            first = np.zeros((s.batch, s.key_heads, s.first or 0, width), np.float32)
            first += np.arange(first.size, dtype=np.float32).reshape(first.shape) / max(1, first.size)
            setattr(self, name, first)

    def __call__(self, given: dict[str, np.ndarray]) -> np.ndarray:
        beams = given.get("beams", np.arange(self.sizes.batch))
        self.key = np.concatenate([self.key[beams], given["key"]], 2)
        self.value = np.concatenate([self.value[beams], given["value"]], 2)
        times = self.sizes.heads // self.sizes.key_heads
        key, value = (np.repeat(x.astype(np.float64), times, 1) for x in (self.key, self.value))
        scores = given["query"].astype(np.float64) * 0.3 @ key.swapaxes(2, 3)
        mask = given["mask"]
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        result: np.ndarray = weights / weights.sum(-1, keepdims=True) @ value
        return result


class Conversation:
    """Random inputs of runs one after another, each with its number of rows."""

    def __init__(self, s: Sizes, seed: int = 0) -> None:
        self.sizes, self.rng, self.length = s, np.random.default_rng(seed), s.first or 0

    def next(self, rows: int, beams: list[int] | None = None) -> dict[str, np.ndarray]:
        s, random = self.sizes, self.rng.standard_normal
        self.length += rows
        visible = np.tri(rows, self.length, self.length - rows, np.bool_)[None, None]
        mask = visible if s.mask == "boolean" else np.where(visible, 0, np.finfo(np.float32).min).astype(np.float32)
        given = {
            "query": random((s.batch, s.heads, rows, s.width), np.float32),
            "key": random((s.batch, s.key_heads, rows, s.width), np.float32),
            "value": random((s.batch, s.key_heads, rows, s.values), np.float32),
            "mask": mask,
        }
        if s.beams:
            given["beams"] = np.array(range(s.batch) if beams is None else beams, np.int32)
        return given


def algorithms(compiled: irexec.CompiledModel, given: dict[str, np.ndarray]) -> list[str]:
    """The algorithms of a run, on a state of its own."""
    seen: list[str] = []
    compiled.session().run(given, on_layer=lambda step: seen.append(step.algorithm))
    return seen


@pytest.mark.sampled(4)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "s",
    [
        Sizes(),
        Sizes(heads=6, key_heads=2, width=64, values=64),
        Sizes(heads=3, key_heads=1, width=7, values=5, beams=False),
        Sizes(batch=2, heads=4, key_heads=2, mask="boolean"),
        Sizes(batch=2, heads=4, key_heads=2, sized_before=True),
        Sizes(batch=2, first=3),
        Sizes(first=0, beams=False, mask="boolean"),
    ],
    ids=str,
)
@pytest.mark.parametrize("columns", [24, 512])
def test_runs_of_a_conversation(s: Sizes, threads: int, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rows first, then few and one, beyond the free rows of a buffer and the columns of a block."""
    monkeypatch.setattr(attention, "_CACHED_COLUMNS", columns)
    monkeypatch.setattr(attention, "_COLUMNS", columns)
    monkeypatch.setattr(attention, "_MORE", 4)
    compiled = irexec.compile_model(model(s), threads=threads)
    talk, expected = Conversation(s), Reference(s)
    first = talk.next(20)
    assert algorithms(compiled, first).count(ALGORITHM) == 1
    expected_first = expected(first)
    np.testing.assert_allclose(compiled(first)["out"], expected_first, rtol=1e-5, atol=1e-5)
    for rows in (1, 1, 1, 5, 1, 70, 1, 1):
        given = talk.next(rows)
        np.testing.assert_allclose(compiled(given)["out"], expected(given), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(compiled.variables["k"], expected.key)
        np.testing.assert_array_equal(compiled.variables["v"], expected.value)
    compiled.reset()
    np.testing.assert_allclose(compiled(first)["out"], expected_first, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 4])
def test_beams_are_reordered(rows: int) -> None:
    s = Sizes(batch=3, key_heads=2)
    compiled, talk, expected = irexec.compile_model(model(s)), Conversation(s), Reference(s)
    for beams in ([0, 1, 2], [2, 0, 0], [1, 1, 1], [0, 1, 2], [-1, 0, 1]):
        given = talk.next(rows, beams)
        np.testing.assert_allclose(compiled(given)["out"], expected(given), rtol=1e-5, atol=1e-5)


def test_new_rows_do_not_move_the_others() -> None:
    s = Sizes()
    compiled, talk = irexec.compile_model(model(s)), Conversation(s)
    compiled(talk.next(20))
    before = compiled.variables["k"]
    kept = before.copy()
    compiled(talk.next(1))
    after = compiled.variables["k"]
    assert np.shares_memory(before, after)
    assert before.shape[2] == 20
    np.testing.assert_array_equal(before, kept)


def test_a_state_that_is_set_is_not_written() -> None:
    """Two conversations that continue from the same state."""
    s = Sizes()
    compiled, talk, expected = irexec.compile_model(model(s)), Conversation(s), Reference(s)
    given = talk.next(20)
    compiled(given)
    expected(given)
    first, second = compiled.session(), compiled.session()
    kept = {name: array.copy() for name, array in compiled.variables.items()}
    for session in (first, second):
        for name, array in compiled.variables.items():
            session.variables[name] = array
    following = [talk.next(1), Conversation(s, seed=5).next(1)]
    following[1]["mask"] = following[0]["mask"]
    results = [session(one)["out"] for session, one in zip((first, second), following, strict=True)]
    for name, array in kept.items():
        np.testing.assert_array_equal(compiled.variables[name], array)
    np.testing.assert_allclose(results[0], expected(following[0]), rtol=1e-5, atol=1e-5)
    again = Reference(s)
    again(given)
    np.testing.assert_allclose(results[1], again(following[1]), rtol=1e-5, atol=1e-5)


def test_a_first_value_in_the_memory_of_an_input_is_not_extended_there() -> None:
    """The input is so large that it is not copied to the arena."""
    b, s = irexec.Builder("view"), Sizes(heads=2, key_heads=2, values=16, beams=False)
    query, start = b.parameter("f32", (1, 2, 1, 16), "query"), b.parameter("f32", (1, 2, 10_000, 16), "start")
    first, whole = b.emit("Slice", start, np.array([0]), np.array([3]), np.array([1]), np.array([2])), []
    for name in "kv":
        kind = {"variable_id": name, "variable_type": "f32", "variable_shape": "1,2,?,16"}
        whole.append(b.emit("Concat", b.emit("ReadValue", first, version=6, **kind), query, axis=2))
        b.emit("Assign", whole[-1], version=6, variable_id=name)
    b.result(b.emit("ScaledDotProductAttention", query, *whole, causal=False), "out")
    compiled = irexec.compile_model(b.model())
    given = {"query": np.ones((1, 2, 1, 16), np.float32), "start": np.zeros((1, 2, 10_000, 16), np.float32)}
    assert ALGORITHM in algorithms(compiled, given)
    compiled(given)
    assert not given["start"].any()
    assert compiled.variables["k"].shape == (1, 2, 4, s.width)


def test_a_run_that_fails_leaves_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Sizes()
    compiled, talk, expected = irexec.compile_model(model(s)), Conversation(s), Reference(s)
    given = talk.next(20)
    compiled(given)
    expected(given)
    following = talk.next(1)
    with pytest.raises(NodeError, match=r"attention_mask \[1,1,1,9\] does not fit scores \[1,4,1,21\]"):
        compiled(following | {"mask": np.zeros((1, 1, 1, 9), np.float32)})
    with monkeypatch.context() as patched:
        patched.setattr(RunLimits, "check_time", _out_of_time)
        with pytest.raises(RunTimeoutError):
            compiled(following)
    assert compiled.variables["k"].shape[2] == 20
    np.testing.assert_allclose(compiled(following)["out"], expected(following), rtol=1e-5, atol=1e-5)


def _out_of_time(self: RunLimits, layer: str = "") -> None:
    raise RunTimeoutError.at(layer, 1.0)


@pytest.mark.parametrize(
    ("s", "other_reader", "axis"),
    [(Sizes(), "result", 2), (Sizes(), "Relu", 2), (Sizes(heads=8, key_heads=2), "ShapeOf", 2)],
)
def test_what_is_read_elsewhere_too_is_not_a_single_step(s: Sizes, other_reader: str, axis: int) -> None:
    compiled, talk, expected = irexec.compile_model(model(s, other_reader, axis)), Conversation(s), Reference(s)
    first = talk.next(20)
    assert ALGORITHM not in algorithms(compiled, first)
    for given in (first, talk.next(1)):
        np.testing.assert_allclose(compiled(given)["out"], expected(given), rtol=1e-5, atol=1e-5)


def test_heads_that_are_repeated_as_a_whole_stay() -> None:
    """Head 0, 1, 0, 1 where the operation would have 0, 0, 1, 1."""
    b = irexec.Builder("tiled")
    query, new = b.parameter("f32", (1, 4, 1, 8), "query"), b.parameter("f32", (1, 2, 1, 8), "new")
    whole = []
    for name in "kv":
        before = b.emit("ReadValue", version=6, variable_id=name, variable_type="f32", variable_shape="1,2,?,8")
        whole.append(b.emit("Concat", before, new, axis=2))
        b.emit("Assign", whole[-1], version=6, variable_id=name)
    key, value = (b.emit("Tile", x, np.array([1, 2, 1, 1])) for x in whole)
    b.result(b.emit("ScaledDotProductAttention", query, key, value, causal=False), "out")
    given = {"query": np.ones((1, 4, 1, 8), np.float32), "new": np.arange(16, dtype=np.float32).reshape(1, 2, 1, 8)}
    compiled = irexec.compile_model(b.model())
    assert ALGORITHM not in algorithms(compiled, given)
    np.testing.assert_array_equal(compiled(given)["out"], np.tile(given["new"], (1, 2, 1, 1)))


def test_steps_of_a_token_are_one_segment() -> None:
    """The cache grows, and no step is outside of the one call of the library."""
    s = Sizes(beams=False)
    compiled, talk = irexec.compile_model(model(s)), Conversation(s)
    plan = compiled.program.plan(tuple(x.shape for x in talk.next(1).values()), None)
    assert [step.kernel is not None and step.kernel.algorithm for step in plan.steps] == [ALGORITHM]
