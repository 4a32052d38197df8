"""Which layers of two graphs are the same."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.analysis.matching import Matching, match_graphs, value_pairs
from irexec.analysis.matching.keys import Assignment, Numbers, Side, keys_of
from irexec.analysis.matching.match import Spread, aligned
from irexec.ir.graph import Graph, Input, Node
from tests.support.networks import unpacked

_NETWORKS = ("resnet18", "bert_quantised", "scripted_loop", "bilstm_exported", "yolo", "mamba", "llama_int4_asym")


def _chain(blocks: int = 6, *, weights: bool = True) -> irexec.Model:
    """Blocks of MatMul, Add and Relu with a connection around them."""
    builder, rng = irexec.Builder("chain"), np.random.default_rng(0)
    x = builder.parameter("f32", (1, 4), "x")
    for k in range(blocks):
        matrix = rng.standard_normal((4, 4)) if weights else np.eye(4)
        y = builder.emit("MatMul", x, builder.constant(matrix.astype(np.float32), "f32", f"w{k}"), name=f"mm{k}")
        y = builder.emit("Add", y, builder.constant(np.ones((1, 4), np.float32), "f32", f"b{k}"), name=f"add{k}")
        x = builder.emit("Add", x, builder.emit("Relu", y, name=f"relu{k}"), name=f"sum{k}")
    builder.result(x, "out")
    return builder.model()


def _mixed(model: Graph, rename: bool, seed: int = 0) -> tuple[Graph, dict[Node, Node]]:
    """A copy with other ids, another order (inputs and outputs keep theirs), other names if asked for; and where each layer is from."""
    mixed, rng = copy.copy(model), random.Random(seed)
    origin = dict(zip(mixed.nodes, model.nodes, strict=True))
    kept = [node for node in mixed.nodes if node.type in ("Parameter", "Result")]
    rng.shuffle(mixed.nodes)
    indexes = [i for i, node in enumerate(mixed.nodes) if node.type in ("Parameter", "Result")]
    for index, node in zip(indexes, kept, strict=True):
        mixed.nodes[index] = node
    for i, node in enumerate(mixed.nodes):
        node.id = 1000 + i
        if rename:
            node.name = f"renamed {i}"
            for value in node.outputs:
                value.names = []
    return mixed, origin


def _by_name(graph: Graph) -> dict[str, Node]:
    return {node.name: node for node in graph.nodes}


def _without(graph: Graph, gone: Iterable[str]) -> None:
    """Remove layers; what read one reads its first input."""
    names = _by_name(graph)
    for name in gone:
        node = names[name]
        for other in graph.nodes:
            for port in other.ports:
                if port.source is not None and port.source.node is node:
                    port.source = node.inputs[0]
        graph.nodes.remove(node)


def _insert(graph: Graph, after: str, name: str, type: str = "Relu") -> Node:
    """A layer between another and everything that reads it."""
    value = _by_name(graph)[after].outputs[0]
    node = Node(max(each.id for each in graph.nodes) + 1, name, type, "opset1", ports=[Input(value, value.fact)])
    node.outputs = [copy.copy(value)]
    node.outputs[0].node, node.outputs[0].names = node, []
    for other in graph.nodes:
        for port in other.ports:
            if port.source is value:
                port.source = node.outputs[0]
    graph.nodes.append(node)
    return node


def _wrong(matching: Matching, origin: dict[Node, Node]) -> list[tuple[str, str]]:
    return [(pair.a.name, pair.b.name) for pair in matching.pairs if origin.get(pair.b) is not pair.a]


def _names(nodes: Iterable[Node]) -> set[str]:
    return {node.name for node in nodes}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", _NETWORKS)
@pytest.mark.parametrize("rename", [False, True], ids=["same names", "renamed"])
def test_a_copy_in_another_order(name: str, rename: bool, tmp_path: Path) -> None:
    model = irexec.read_model(unpacked(name, tmp_path))
    mixed, origin = _mixed(model, rename)
    matching = match_graphs(model, mixed)
    assert (_wrong(matching, origin), matching.only_a, matching.only_b) == ([], [], [])


@pytest.mark.parametrize("rename", [False, True], ids=["same names", "renamed"])
def test_blocks_removed_from_the_middle(rename: bool) -> None:
    model = _chain(9)
    cut, origin = _mixed(model, False)
    gone = [f"{kind}{k}" for k in (3, 6) for kind in ("relu", "add", "mm", "w", "b", "sum")]
    for k in (3, 6):
        _without(cut, [f"sum{k}"])
    cut.nodes[:] = [node for node in cut.nodes if node.name not in gone]
    if rename:
        for i, node in enumerate(cut.nodes):
            node.name = f"renamed {i}"
    matching = match_graphs(model, cut)
    assert matching.only_b == []
    if rename:
        # Which of two sums in a row is gone, nothing but a name can tell.
        assert {name.rstrip("0123456789") for name in _names(matching.only_a)} == {"relu", "add", "mm", "w", "b", "sum"}
        assert all(pair.a.type in ("Add", "Relu") for pair in matching.pairs if origin[pair.b] is not pair.a)
    else:
        assert (_names(matching.only_a), _wrong(matching, origin)) == (set(gone), [])


def test_equal_blocks_are_paired_in_order() -> None:
    """Constants too, which all have the same contents."""
    model, shorter = _chain(8, weights=False), _chain(7, weights=False)
    matching = match_graphs(model, _mixed(shorter, True)[0])
    assert len(matching.pairs) == len(shorter.nodes)
    assert matching.only_b == []
    # One block, which may begin in the middle of one and end in the next.
    assert sorted(node.name.rstrip("0123456789") for node in matching.only_a) == ["add", "b", "mm", "relu", "sum", "w"]
    order = [pair.b for pair in matching.pairs]
    for pair in matching.pairs:
        for mine, theirs in zip(pair.a.inputs, pair.b.inputs, strict=True):
            partner = matching.in_b(mine.node)
            assert partner is theirs.node or mine.node in matching.only_a
    assert len(set(order)) == len(order)


@pytest.mark.parametrize("type", ["Relu", "Sigmoid"])
@pytest.mark.parametrize("rename", [False, True], ids=["same names", "renamed"])
def test_layers_inserted_into_a_chain(type: str, rename: bool) -> None:
    model = _chain(6)
    longer, origin = _mixed(model, False)
    added = {_insert(longer, f"mm{k}", f"new{k}", type) for k in (1, 4)}
    if rename:
        for i, node in enumerate(longer.nodes):
            node.name = f"renamed {i}"
    matching = match_graphs(model, longer)
    assert (matching.only_a, set(matching.only_b), _wrong(matching, origin)) == ([], added, [])


def _swap_names(graph: Graph) -> None:
    names = _by_name(graph)
    names["relu1"].name, names["relu4"].name = "relu4", "relu1"


def _rename_and_change(graph: Graph) -> None:
    node = _by_name(graph)["mm2"]
    node.name, node.attributes["transpose_b"] = "other", "true"


def _name_on_another_thing(graph: Graph) -> None:
    """The name of a Relu is that of a new one elsewhere."""
    _by_name(graph)["relu2"].name = "unknown"
    _insert(graph, "mm4", "relu2").name = "relu2"


def _change_weights(graph: Graph) -> None:
    other = irexec.Builder("other")
    for node in graph.nodes:
        if node.constant is not None:
            shape = node.constant.shape
            node.constant = other.constant(np.full(shape, 7.0, np.float32), "f32").node.constant


def _shape_of_input(graph: Graph) -> None:
    _by_name(graph)["x"].attributes["shape"] = "5,4"


def _rewire(graph: Graph) -> None:
    names = _by_name(graph)
    names["mm3"].ports[0].source = names["sum1"].outputs[0]


def _several(graph: Graph) -> None:
    for change in (_swap_names, _rename_and_change, _rewire, _shape_of_input):
        change(graph)


@pytest.mark.parametrize(
    "change",
    [_swap_names, _rename_and_change, _name_on_another_thing, _change_weights, _shape_of_input, _rewire, _several],
    ids=lambda change: change.__name__.strip("_"),
)
def test_changes(change: Callable[[Graph], None]) -> None:
    model = _chain(6)
    changed, origin = _mixed(model, False)
    old = set(changed.nodes)
    change(changed)
    matching = match_graphs(model, changed)
    assert (matching.only_a, set(matching.only_b)) == ([], set(changed.nodes) - old)
    assert _wrong(matching, origin) == []


def test_a_constant_after_layers_that_decompress_it() -> None:
    model = _chain(3)
    packed, origin = _mixed(model, False)
    names = _by_name(packed)
    for k in range(3):
        node = names[f"w{k}"]
        values = node.constant.raw.view(np.float32).reshape(node.constant.shape)
        node.name = f"w{k}_compressed"
        node.constant = irexec.Builder("other").constant(values.astype(np.float16), "f16").node.constant
        _insert(packed, node.name, f"w{k}", "Convert")
    matching = match_graphs(model, packed)
    assert matching.only_a == []
    assert {(node.name, node.type) for node in matching.only_b} == {(f"w{k}", "Convert") for k in range(3)}
    assert _wrong(matching, origin) == []


def test_a_layer_of_another_type_in_the_same_place() -> None:
    model = _chain(3)
    changed, origin = _mixed(model, False)
    node = _by_name(changed)["relu1"]
    node.type, node.name = "Sigmoid", "sigmoid"
    matching = match_graphs(model, changed)
    assert _wrong(matching, origin) == []
    assert [pair.reason for pair in matching.pairs if pair.b is node] == ["replaced"]


def test_a_candidate_whose_score_fell_waits_for_better_ones() -> None:
    """The name of an Add that has moved speaks for a pair, until its other input is known to be another layer."""

    def added(*names: str) -> Graph:
        builder = irexec.Builder("m")
        x = builder.parameter("f32", (4,), "x")
        p, q, r = (builder.emit(type, x, name=type) for type in ("Relu", "Tanh", "Exp"))
        q.names[:] = ["q"]
        for name, other in zip(names, (q, r), strict=True):
            builder.emit("Add", p, other, name=name)
        return builder.model()

    sides, numbers = (Side.of(added("moved", "other")), Side.of(added("new", "moved"))), Numbers()
    state = Assignment(*sides, *(keys_of(side, numbers, {}) for side in sides))
    mine, theirs = ({node.name: i for i, node in enumerate(side.nodes)} for side in sides)
    for name in ("x", "Relu"):
        state.add(mine[name], theirs[name], "given")
    # Tanh has the highest score; once it is paired, that of "moved" falls from 10 to 6, and that of "moved" and "new" is 8.5.
    Spread(state).run(0.5, [(mine["moved"], theirs["moved"]), (mine["Tanh"], theirs["Tanh"])])
    assert state.to_b[mine["Tanh"]] == theirs["Tanh"]
    assert state.to_b[mine["moved"]] == theirs["new"]


def test_unrelated_graphs_have_little_in_common() -> None:
    builder = irexec.Builder("other")
    x = builder.parameter("i64", (3,), "ids")
    builder.result(builder.emit("Sigmoid", builder.emit("Convert", x, destination_type="f32", name="c"), name="s"), "r")
    matching = match_graphs(_chain(2), builder.model())
    assert all(pair.a.type in ("Parameter", "Result") for pair in matching.pairs)


def test_bodies(tmp_path: Path) -> None:
    model = irexec.read_model(unpacked("scripted_loop", tmp_path))
    changed = copy.copy(model)
    (body,) = next(node for node in changed.nodes if node.bodies).bodies.values()
    body.graph.nodes[-1].name = "renamed"
    paths = [
        (path.count("/"), len(inner.pairs), len(inner.a.nodes)) for path, inner in match_graphs(model, changed).walk()
    ]
    assert len(paths) == 4
    assert all(pairs == layers for _, pairs, layers in paths)


def test_damaged_graphs() -> None:
    """A cycle, an input that nothing arrives at, and no layers at all."""
    model = _chain(3)
    damaged, origin = _mixed(model, False)
    names = _by_name(damaged)
    names["mm0"].ports[0].source = names["sum2"].outputs[0]
    names["relu1"].ports[0].source = None
    assert _wrong(match_graphs(model, damaged), origin) == []
    assert match_graphs(damaged, Graph()).only_b == []
    assert len(match_graphs(damaged, damaged).pairs) == len(damaged.nodes)


def test_it_is_the_same_each_time() -> None:
    model = _chain(8, weights=False)
    found = [
        [(pair.a.name, pair.b.name) for pair in match_graphs(model, _mixed(model, True)[0]).pairs] for _ in range(2)
    ]
    assert found[0] == found[1]


def test_values_are_paired_by_tensor_name_then_by_layer() -> None:
    model = _chain(2)
    other, _ = _mixed(model, False)
    mine, theirs = _by_name(model), _by_name(other)
    mine["relu0"].outputs[0].names = ["t"]
    theirs["relu0"].outputs[0].names = ["t", "u"]
    # A fused layer has the name of the last one that it was made of.
    mine["sum1"].outputs[0].names = theirs["out"].inputs[0].names = ["y"]
    pairs = value_pairs(match_graphs(model, other))
    assert [pair.a.node.name for pair in pairs if pair.reason == "tensor name"] == ["x", "relu0", "sum1"]
    assert len(pairs) == len(model.nodes) - 1
    assert [pair.a.node.name for pair in pairs] == [pair.b.node.name for pair in pairs]


def test_a_tensor_name_pairs_layers_that_have_no_partner() -> None:
    first, second = irexec.Builder("a"), irexec.Builder("b")
    for builder, type in ((first, "Relu"), (second, "Sigmoid")):
        x = builder.parameter("f32", (4,), "x")
        y = builder.emit(type, builder.emit("Floor" if type == "Relu" else "Ceiling", x, name="f"), name=f"{type}_last")
        y.names[:] = ["y"]
        builder.result(y, "out")
    pairs = value_pairs(match_graphs(first.model(), second.model()))
    assert [(pair.a.node.type, pair.b.node.type, pair.reason) for pair in pairs][-1] == (
        "Relu",
        "Sigmoid",
        "tensor name",
    )


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        ("", "abc", 0), ("abc", "abc", 3), ("abcdefg", "abxxdefg", 6), ("aaaabaaa", "aaabaaaa", 7),
        ("abababab", "bababab", 7), ("abcabba", "cbabac", 4), ("xabyabz", "abqab", 4),
    ],
)  # fmt: skip
def test_alignment(a: str, b: str, common: int) -> None:
    pairs = aligned([ord(c) for c in a], [ord(c) for c in b])
    assert len(pairs) == common
    assert all(a[i] == b[j] for i, j in pairs)
    assert pairs == sorted(pairs)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == common


@pytest.mark.slow
def test_alignment_of_long_sequences_ends() -> None:
    rng = random.Random(0)
    a, b = ([rng.randrange(3) for _ in range(20_000)] for _ in range(2))
    assert all(a[i] == b[j] for i, j in aligned(a, b))
