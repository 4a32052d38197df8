"""Judge language models with a planted fault, step by step.

A kind of fault is a name: the causal mask is off by one, rotary positions have another base, a cache is written one slot
late, the results of two experts are exchanged, a head is larger by 2 %, a decay is larger by 2 %. The fault is in one
layer of a model with state that runs a prompt and three steps after it: a Llama and a Qwen3 with variables, the Llama with
its cache in blocks, or a hybrid of gated delta nets, attention and experts. The verdict must name the layer and the first
step in which the fault shows; every other one fails, and so does a verdict about a run without a fault ("clean").
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec.dtypes.elements import F32, I64, element_of
from irexec.ir.constants import constant_value
from irexec.ir.facts import Fact
from irexec.ir.graph import Node, Value
from irexec.tools.judge import judge
from tests.judge_sweep.faults import replace_output
from tests.reduce_sweep import Editing
from tests.support.networks import feeds, unpacked
from tests.support.paths import DATA
from tests.sweep.kind import Case, Kind, Outcome, temporary
from tests.tools.judge.faulty import plant

_SPANS = ((0, 5), (5, 6), (6, 8), (8, 9))
"""The tokens of each step."""
_WIDTH, _HEADS, _SIZE, _EXPERTS, _WORDS = 16, 2, 8, 4, 60
_BASE = 4.0
"""Of rotary positions, so small that the few positions of a case show another one."""


def _hybrid(seed: int, kinds: str) -> tuple[irexec.Model, list[dict[str, np.ndarray]]]:
    """A model with a block for each letter, ``d`` a gated delta net, ``a`` attention, ``e`` experts; and its steps."""
    rng = np.random.default_rng(seed)
    make = irexec.Builder("hybrid")
    ids, positions = (make.parameter("i64", (1, -1), name) for name in ("input_ids", "position_ids"))

    def weights(*shape: int) -> np.ndarray:
        return (rng.normal(size=shape) / shape[-2] ** 0.5).astype(np.float32)

    def product(x: Value, columns: int = _WIDTH) -> Value:
        return make.emit("MatMul", x, weights(_WIDTH, columns))

    def heads(x: Value) -> Value:
        return make.emit("Reshape", x, np.int64([0, 0, _HEADS, _SIZE]), special_zero=True)

    def variable(name: str, start: np.ndarray) -> tuple[Value, dict[str, str]]:
        kinds = {"variable_id": name, "variable_type": "f32", "variable_shape": "?,?,?,?"}
        return make.emit("ReadValue", start, name=name, **kinds), {"variable_id": name}

    def rows(x: Value) -> Value:
        return make.emit("Reshape", x, np.int64([0, 0, _WIDTH]), special_zero=True)

    def delta(x: Value, i: int) -> Value:
        query, key, value = (heads(product(x)) for _ in range(3))
        state, ids = variable(f"{i}.state", np.zeros((1, _HEADS, _SIZE, _SIZE), np.float32))
        gate = make.emit("Multiply", make.emit("SoftPlus", product(x, _HEADS)), np.float32(-0.3))
        beta = make.emit("Sigmoid", product(x, _HEADS))
        found, kept = make.emit(
            "GatedDeltaNet", query, key, value, state, gate, beta, fuse_qk_l2norm=True, name=f"{i}.delta"
        )
        make.emit("Assign", kept, **ids)
        return rows(found)

    def attention(x: Value, i: int) -> Value:
        frequencies = (_BASE ** -np.linspace(0, 1, _SIZE // 2, endpoint=False)).astype(np.float32)
        place = make.emit("Unsqueeze", make.emit("Convert", positions, destination_type="f32"), np.int64([1, 3]))
        half = make.emit("Multiply", place, frequencies, name=f"{i}.angles")
        angles = make.emit("Concat", half, half, axis=3)
        cos, sin = (make.emit(function, angles) for function in ("Cos", "Sin"))
        query, key, value = (make.emit("Transpose", heads(product(x)), np.int64([0, 2, 1, 3])) for _ in range(3))
        query, key = (
            make.emit("RoPE", one, cos, sin, name=f"{i}.rotary", version="ie_internal_opset", config_rotary_ndims=_SIZE)
            for one in (query, key)
        )
        both = []
        for name, new in (("key", key), ("value", value)):
            past, ids = variable(f"{i}.{name}", np.zeros((1, _HEADS, 0, _SIZE), np.float32))
            both.append(make.emit("Concat", past, new, axis=2, name=f"{i}.{name}s"))
            make.emit("Assign", both[-1], **ids)
        total, count = (
            make.emit("Gather", make.emit("ShapeOf", one), np.int64(2), np.int64(0)) for one in (both[0], query)
        )
        columns = make.emit("Range", np.int64(0), total, np.int64(1), output_type="i64")
        first = make.emit("Subtract", total, count)
        own = make.emit("Unsqueeze", make.emit("Range", first, total, np.int64(1), output_type="i64"), np.int64([1]))
        seen = make.emit("LessEqual", columns, own, name=f"{i}.seen")
        mask = make.emit("Select", seen, np.float32(0), np.float32(-1e9))
        scores = make.emit("MatMul", query, both[0], transpose_b=True)
        scores = make.emit("Multiply", scores, np.float32(_SIZE**-0.5))
        shares = make.emit("Softmax", make.emit("Add", scores, mask, name=f"{i}.masked"), axis=-1)
        mixed = make.emit("MatMul", shares, both[1], name=f"{i}.attention")
        return rows(make.emit("Transpose", mixed, np.int64([0, 2, 1, 3])))

    def experts(x: Value, i: int) -> Value:
        router = make.emit("Softmax", product(x, _EXPERTS), axis=-1)
        best, which = make.emit(
            "TopK", router, np.int64(2), axis=-1, mode="max", sort="value", index_element_type="i64", name=f"{i}.topk"
        )
        shares = make.emit("Divide", best, make.emit("ReduceSum", best, np.int64([-1]), keep_dims=True))
        nothing = make.emit("Multiply", router, np.float32(0))
        routed = make.emit("ScatterElementsUpdate", nothing, which, shares, np.int64(-1), name=f"{i}.routed")
        each = make.emit("Unsqueeze", make.emit("Transpose", routed, np.int64([2, 0, 1])), np.int64([3]))
        found = make.emit("Unsqueeze", x, np.int64([0]))
        found = make.emit("Swish", make.emit("MatMul", found, weights(_EXPERTS, 1, _WIDTH, _WIDTH)), np.float32(1))
        found = make.emit("MatMul", found, weights(_EXPERTS, 1, _WIDTH, _WIDTH), name=f"{i}.experts")
        return make.emit("ReduceSum", make.emit("Multiply", found, each), np.int64([0]), keep_dims=False)

    x = make.emit("Gather", weights(_WORDS, _WIDTH), ids, np.int64(0))
    x = make.emit("Multiply", x, np.float32(_WORDS**0.5))
    for i, kind in enumerate(kinds):
        normal = make.emit("RMS", x, np.ones(_WIDTH, np.float32), epsilon=1e-5, version="ie_internal_opset")
        x = make.emit("Add", x, {"d": delta, "a": attention, "e": experts}[kind](normal, i))
    make.result(product(x, _WORDS), name="logits")
    tokens = rng.integers(0, _WORDS, (1, _SPANS[-1][1]))
    steps = [{"input_ids": tokens[:, a:b], "position_ids": np.arange(a, b)[None]} for a, b in _SPANS]
    return make.model(), steps


def _recorded(name: str, folder: Path) -> tuple[irexec.Model, list[dict[str, np.ndarray]]]:
    """A network of tests/data/networks, and its steps."""
    path = unpacked(name, folder)
    model = irexec.read_model(path)
    return model, [
        {port.name: array for port, array in zip(model.inputs, arrays, strict=True)}
        for arrays in feeds(path, model.inputs)
    ]


def _paged(folder: Path) -> tuple[irexec.Model, list[dict[str, np.ndarray]]]:
    """The Llama with its cache in blocks, of which the one sequence has two, and its steps."""
    with zipfile.ZipFile(DATA / "llama_paged.zip") as archive:
        archive.extractall(folder)
    tokens = np.random.default_rng(3).integers(0, 60, _SPANS[-1][1])
    caches = {f"{name}_cache.{i}": np.zeros((4, 2, 32, 6), np.float32) for i in range(2) for name in ("key", "value")}
    steps = [
        caches | {
            "input_ids": tokens[a:b], "position_ids": np.arange(a, b), "max_context_len": np.int32(b),
            "past_lens": np.int32([a]), "subsequence_begins": np.int32([0, b - a]), "block_indices": np.int32([2, 1]),
            "block_indices_begins": np.int32([0, 2]),
        }
        for a, b in _SPANS
    ]  # fmt: skip
    return irexec.read_model(folder / "llama_paged.xml"), steps


MODELS: dict[str, Callable[[Path], tuple[irexec.Model, list[dict[str, np.ndarray]]]]] = {
    "llama": lambda folder: _recorded("llama_sdpa", folder),
    "qwen3": lambda folder: _recorded("qwen3", folder),
    "paged": _paged,
    "hybrid": lambda folder: _hybrid(0, "deadea"),
    "delta": lambda folder: _hybrid(1, "ddade"),
}


@dataclass(frozen=True)
class Fault:
    """Where a fault can be.

    Attributes:
        model: a name of ``MODELS``.
        layer: whether a layer can have it.
        change: changes a layer with an editing, and returns the tensor that later layers read.
        step: the first one in which it shows.
        output: number of the wrong output.
    """

    model: str
    layer: Callable[[Node], bool]
    change: Callable[[_Damage, np.random.Generator], Value]
    step: int = 1
    output: int = 0


class _Damage:
    """Adds the layers of a fault around a layer."""

    def __init__(self, node: Node, edit: Editing, output: int) -> None:
        self.node, self.edit, self.result = node, edit, node.outputs[output]

    def emit(self, type: str, version: str, *inputs: Value | np.ndarray | np.generic, **attributes: str) -> Value:
        """The output of a new layer; arrays become constants."""
        values = [
            one if isinstance(one, Value) else self.edit.constant(np.asarray(one), element_of(one.dtype))
            for one in inputs
        ]
        first = values[0].fact
        fact = Fact(None if first is None else first.element, None)
        return self.edit.layer(type, version, values, fact, **attributes).outputs[0]

    def binary(self, type: str, one: Value, other: Value | np.ndarray | np.generic) -> Value:
        """The output of an arithmetic layer."""
        return self.emit(type, "opset1", one, other, auto_broadcast="numpy")

    def read(self, port: int, change: Callable[[Value], Value]) -> Value:
        """Let the layer read another tensor; its result."""
        source = self.node.inputs[port]
        assert source is not None
        self.node.ports[port].source = change(source)
        return self.result

    def size(self, value: Value, axis: int) -> Value:
        """The size of an axis, of shape [1]."""
        shape = self.edit.layer("ShapeOf", "opset3", [value], Fact(I64, None), output_type="i64").outputs[0]
        return self.emit("Gather", "opset8", shape, np.int64([axis]), np.int64(0), batch_dims="0")


def _of(type: str, *parts: str) -> Callable[[Node], bool]:
    return lambda node: node.type == type and all(part in node.name for part in parts)


def _rolled(port: int, by: int) -> Callable[[_Damage, np.random.Generator], Value]:
    """The mask of the layer is moved along the keys."""
    return lambda at, rng: at.read(port, lambda mask: at.emit("Roll", "opset7", mask, np.int64([by]), np.int64([-1])))


def _less(at: _Damage, rng: np.random.Generator) -> Value:
    at.node.type = "Less"
    return at.result


def _shorter_context(at: _Damage, rng: np.random.Generator) -> Value:
    return at.read(12, lambda length: at.binary("Subtract", length, np.int32(1)))


def _other_frequencies(at: _Damage, rng: np.random.Generator) -> Value:
    source = at.node.inputs[1]
    assert source is not None and source.node.constant is not None
    at.node.ports[1].source = at.edit.constant(constant_value(source.node.constant) ** np.float32(1.1), F32)
    return at.result


def _other_cosines(size: int, port: int = 1) -> Callable[[_Damage, np.random.Generator], Value]:
    """The layer has the cosines of another base."""
    ratios = np.tile(3.0 ** -np.linspace(0, 1, size // 2, endpoint=False), 2).astype(np.float32)

    def changed(at: _Damage, rng: np.random.Generator) -> Value:
        return at.read(
            port, lambda cos: at.emit("Cos", "opset1", at.binary("Multiply", at.emit("Acos", "opset1", cos), ratios))
        )

    return changed


def _late(at: _Damage, rng: np.random.Generator) -> Value:
    """The Concat of earlier and new tokens has zeros before the new ones, the last of which is lost, from step 2 on."""
    past, new = at.node.inputs
    assert past is not None
    assert new is not None
    numbers = np.int64([0]), np.int64([1]), np.int64([1]), np.int64([2])
    first = at.emit("Slice", "opset8", past, *numbers)
    nothing = at.binary("Multiply", first, np.float32(0))
    longer = at.emit("Concat", "opset1", past, nothing, new, axis="2")
    end = at.binary("Add", at.size(past, 2), at.size(new, 2))
    return at.emit("Slice", "opset8", longer, np.int64([0]), end, np.int64([1]), np.int64([2]))


def _lost(port: int) -> Callable[[_Damage, np.random.Generator], Value]:
    """The slot of the new token in a cache in blocks keeps its zeros, from step 2 on."""

    def changed(at: _Damage, rng: np.random.Generator) -> Value:
        past = at.node.inputs[5]
        assert past is not None
        is_first = at.emit("Convert", "opset1", at.binary("Equal", past, np.int32(0)), destination_type="f32")
        return at.read(port, lambda new: at.binary("Multiply", new, is_first))

    return changed


def _exchanged(axis: int, is_index: bool = False) -> Callable[[_Damage, np.random.Generator], Value]:
    """Two experts are exchanged, along an axis or in the indices themselves."""

    def changed(at: _Damage, rng: np.random.Generator) -> Value:
        a, b = rng.choice(_EXPERTS, 2, replace=False)
        order = np.arange(_EXPERTS)
        order[[a, b]] = order[[b, a]]
        operands: tuple[Any, Any] = (order, at.result) if is_index else (at.result, order)
        return at.emit("Gather", "opset8", *operands, np.int64(axis), batch_dims="0")

    return changed


def _head(shape: tuple[int, ...]) -> Callable[[_Damage, np.random.Generator], Value]:
    """One head of the result, whose axis is that above 1, is larger; the columns of paged heads are beside each other."""

    def changed(at: _Damage, rng: np.random.Generator) -> Value:
        count = max(shape)
        factors = np.ones(count, np.float32)
        factors[rng.integers(count)] = 1.02
        whole = np.repeat(factors, 6) if shape == (4,) else factors.reshape(shape)
        return at.binary("Multiply", at.result, whole)

    return changed


def _decay(at: _Damage, rng: np.random.Generator) -> Value:
    return at.read(4, lambda gate: at.binary("Add", gate, np.float32(np.log(1.02))))


_SDPA = _of("ScaledDotProductAttention")
_PAGED = _of("PagedAttentionExtension")
FAULTS: dict[str, Sequence[Fault]] = {
    "mask off by one": (
        Fault("llama", _SDPA, _rolled(3, 1)), Fault("qwen3", _SDPA, _rolled(3, -1)),
        Fault("paged", _PAGED, _shorter_context), Fault("hybrid", _of("Add", ".masked"), _rolled(1, 1)),
        Fault("delta", _of("LessEqual", ".seen"), _less),
    ),
    "rotary base": (
        Fault("llama", _of("Multiply", "rotary_emb"), _other_frequencies),
        Fault("qwen3", lambda node: "Cos" in _behind(node), _other_cosines(8)),
        Fault("paged", lambda node: "Cos" in _behind(node), _other_cosines(6)),
        Fault("hybrid", _of("Multiply", ".angles"), _other_frequencies),
        Fault("delta", _of("RoPE"), _other_cosines(8)),
    ),
    "cache one slot late": (
        Fault("llama", lambda node: "ReadValue" in _behind(node), _late, step=2),
        Fault("qwen3", lambda node: "ReadValue" in _behind(node), _late, step=2),
        Fault("paged", _PAGED, _lost(1), step=2), Fault("hybrid", _of("Concat", "s"), _late, step=2),
        Fault("paged", _PAGED, _lost(2), step=2),
    ),
    "expert order": (
        Fault("hybrid", _of("TopK"), _exchanged(0, True), output=1), Fault("delta", _of("TopK"), _exchanged(0, True), output=1),
        Fault("hybrid", _of("ScatterElementsUpdate"), _exchanged(-1)), Fault("hybrid", _of("MatMul", ".experts"), _exchanged(0)),
        Fault("delta", _of("ScatterElementsUpdate"), _exchanged(-1)),
    ),
    "scale of a head": (
        Fault("llama", _SDPA, _head((4, 1, 1))), Fault("qwen3", _SDPA, _head((4, 1, 1))),
        Fault("paged", _PAGED, _head((4,))), Fault("hybrid", _of("MatMul", ".attention"), _head((_HEADS, 1, 1))),
        Fault("delta", _of("GatedDeltaNet"), _head((_HEADS, 1))),
    ),
    "decay": (Fault("hybrid", _of("GatedDeltaNet"), _decay), *[Fault("delta", _of("GatedDeltaNet"), _decay)] * 2) ,
    "clean": [Fault(name, lambda node: True, lambda at, rng: at.result) for name in MODELS],
}  # fmt: skip


def _behind(node: Node) -> str:
    """The type of what a Multiply or a Concat reads, before layers that move it."""
    port = {"Multiply": 1, "Concat": 0}.get(node.type)
    value = None if port is None or len(node.inputs) < 2 else node.inputs[port]
    while value is not None and value.node.type in ("Unsqueeze", "Gather"):
        value = value.node.inputs[0]
    return "" if value is None else value.node.type


class Sweep(Kind):
    """Faults of language models."""

    cases = 5

    def names(self) -> list[str]:
        """The kinds of faults."""
        return list(FAULTS)

    @contextmanager
    def opened(self, name: str) -> Iterator[Case]:
        """A case is a place of the fault, in a layer and a head that its number chooses."""
        with temporary() as folder:
            yield lambda number: [_judged(name, number, folder)]


def _judged(kind: str, number: int, folder: Path) -> Outcome:
    rng = np.random.default_rng([number, *kind.encode()])
    fault = FAULTS[kind][number % len(FAULTS[kind])]
    model, steps = MODELS[fault.model](folder)
    layers = [node for node in model.nodes if fault.layer(node)]
    chosen = layers[int(rng.integers(len(layers)))]
    seed = int(rng.integers(1 << 30))

    def damage(own: irexec.Model, values: Sequence[Value]) -> None:
        node = next((one for one in own.nodes if one.name == chosen.name), None)
        if node is not None and kind != "clean":
            replace_output(
                own, values, node,
                lambda edit: fault.change(_Damage(node, edit, fault.output), np.random.default_rng(seed)), fault.output,
            )  # fmt: skip

    with pytest.MonkeyPatch.context() as patch:
        found = judge(model, steps, runtime=plant(patch, damage))
    text = f"{fault.model}, {chosen.name} ({chosen.type}) in step {fault.step}: {found.sentence}"
    data = {"model": fault.model, "layer": chosen.name, "verdict": found.verdict, "step": found.step}
    if kind == "clean":
        return Outcome("clean" if found.verdict == "agrees" else "accused", text, found.verdict != "agrees", data)
    is_named = found.is_bug and found.step == fault.step and {one.layer.name for one in found.at} == {chosen.name}
    outcome = "named" if is_named else "another" if found.is_bug else found.verdict
    return Outcome(outcome, text, not is_named, data)
