"""The part of a graph that is drawn, and the groups of layers: properties of random graphs, and tables."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irexec
from irexec.analysis.builder import Builder
from irexec.errors import InputError
from irexec.ir.graph import Node
from irexec.tools.graph import draw
from irexec.tools.graph.drawing import Drawing
from irexec.tools.graph.names import group_by_scope, make_acyclic, scope, strong_components
from irexec.tools.graph.text_formats import flat_edges, visible_boxes
from tests.tools.graph.models import DATA, blocks, chain, diamond, digits

_SCOPES = ("", "a/", "b/", "a/c/", "a/d/", "b/c/e/", "x.0.", "x.1.")


@st.composite
def models(draw_value: st.DrawFn) -> irexec.Model:
    """A graph of up to 24 element-wise layers with random edges and scopes, and up to three results."""
    builder = Builder("random")
    values = [builder.parameter("f32", (2,), "p0"), builder.parameter("f32", (2,), "p1")]
    for i in range(draw_value(st.integers(1, 24))):
        name = f"{draw_value(st.sampled_from(_SCOPES))}n{i}"
        first = draw_value(st.sampled_from(values))
        kind = draw_value(st.integers(0, 2))
        if kind == 0:
            values.append(builder.emit("Relu", first, name=name))
        elif kind == 1:
            values.append(builder.emit("Add", first, draw_value(st.sampled_from(values)), name=name))
        else:
            values.append(
                builder.emit("Multiply", first, builder.constant(np.ones(2, np.float32), "f32", f"{name}.w"), name=name)
            )
    for value in values[-draw_value(st.integers(1, 3)) :]:
        builder.result(value)
    return irexec.Model.of(builder.model())


def boxes(drawing: Drawing) -> set[str]:
    return {layer.line.name for layer in drawing.layers if layer.drawn_in is None}


def names(nodes: Iterable[Node]) -> set[str]:
    return {node.name for node in nodes}


def reached(model: irexec.Model, start: str, hops: int | None, forwards: bool, backwards: bool) -> set[str]:
    """The layers within this number of steps, by repeated passes over all edges; paths through constants do not count."""
    found = {start}
    steps = 0
    while hops is None or steps < hops:
        more = set()
        for node in model.nodes:
            for value in node.inputs:
                if value is None or value.node.type == "Constant":
                    continue
                if forwards and value.node.name in found:
                    more.add(node.name)
                if backwards and node.name in found:
                    more.add(value.node.name)
        if more <= found:
            break
        found |= more
        steps += 1
    return found


_FEW = settings(max_examples=60, deadline=None)


@pytest.mark.slow
@_FEW
@given(models(), st.data(), st.integers(0, 4))
def test_around_has_what_is_that_number_of_edges_away(model: irexec.Model, data: st.DataObject, hops: int) -> None:
    start = data.draw(
        st.sampled_from(sorted(names(model.nodes) - names(n for n in model.nodes if n.type == "Constant")))
    )
    assert boxes(draw(model, around=[start], hops=hops)) == reached(model, start, hops, True, True)


@pytest.mark.slow
@_FEW
@given(models(), st.data())
def test_from_and_to_have_what_lies_between(model: irexec.Model, data: st.DataObject) -> None:
    candidates = sorted(names(n for n in model.nodes if n.type != "Constant"))
    first, last = data.draw(st.sampled_from(candidates)), data.draw(st.sampled_from(candidates))
    after, before = reached(model, first, None, True, False), reached(model, last, None, False, True)
    assert boxes(draw(model, from_=[first])) == after
    assert boxes(draw(model, to=[last])) == before
    if after & before:
        assert boxes(draw(model, from_=[first], to=[last])) == after & before
    else:
        with pytest.raises(InputError, match="no path leads from"):
            draw(model, from_=[first], to=[last])


@pytest.mark.slow
@_FEW
@given(models(), st.booleans())
def test_a_drawing_has_each_layer_once_and_each_edge(model: irexec.Model, cluster: bool) -> None:
    drawing = draw(model, cluster=cluster)
    assert sorted(layer.line.name for layer in drawing.layers) == sorted(node.name for node in model.nodes)
    in_frames = sorted(item for frame in drawing.frames for item in frame.items if item >= 0)
    assert in_frames == sorted(layer.index for layer in drawing.layers if layer.drawn_in is None)
    frames = sorted(~item for frame in drawing.frames for item in frame.items if item < 0)
    assert frames == list(range(1, len(drawing.frames)))
    assert len(drawing.edges) == sum(value is not None for node in model.nodes for value in node.inputs)


@pytest.mark.slow
@_FEW
@given(models())
def test_no_block_is_on_a_cycle(model: irexec.Model) -> None:
    for frame in draw(model, cluster=True).frames:
        pairs = {
            (link.source, link.target) for link in frame.links if link.source is not None and link.target is not None
        }
        assert strong_components(pairs) == []
        assert frame.kind != "block" or len(frame.items) >= 1


@pytest.mark.slow
@_FEW
@given(models(), st.integers(0, 255))
def test_edges_of_folded_blocks_are_those_of_the_layers_in_them(model: irexec.Model, folds: int) -> None:
    from dataclasses import replace

    drawing = draw(model, cluster=True)
    frames = tuple(
        replace(frame, folded=frame.kind == "block" and bool(folds >> frame.index % 8 & 1)) for frame in drawing.frames
    )
    drawing = replace(drawing, frames=frames)
    box = visible_boxes(drawing)
    wanted = {
        (box[edge.source], box[edge.target])
        for edge in drawing.edges
        if edge.source in box and edge.target in box and (box[edge.source] != box[edge.target])
    }
    assert {(source, target) for source, target, _ in flat_edges(drawing)} == wanted


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_strong_components(pairs: list[tuple[int, int]]) -> None:
    reach = {i: {i} for i in range(10)}
    for _ in range(10):
        for a, b in pairs:
            for i in reach:
                if a in reach[i]:
                    reach[i].add(b)
    wanted = {frozenset(j for j in range(10) if j in reach[i] and i in reach[j]) for i in range(10)}
    assert {frozenset(one) for one in strong_components(pairs)} == {one for one in wanted if len(one) > 1}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("encoder/layer.3/attention/MatMul", ("encoder", "layer", "3", "attention")),
        ("__module.model.layers.0.mlp/aten::linear/MatMul", ("model", "layers", "0", "mlp")),
        ("Multiply_8123", ()),
        ("/model.0/conv/Conv/WithoutBiases", ("model", "0", "conv", "Conv")),
        ("", ()),
        ("///...", ()),
        ("a/" * 5_000 + "b", ("a",) * 32),
    ],
)
def test_scopes(name: str, wanted: tuple[str, ...]) -> None:
    assert scope(name) == wanted


def test_a_cycle_of_two_groups_dissolves_the_smaller() -> None:
    scopes = {0: ("a",), 1: ("b",), 2: ("a",), 3: ("a",), 4: ("a",), 5: ("b",), 6: ("b",)}
    group = group_by_scope(scopes)
    make_acyclic(group, [(0, 1), (1, 2), (2, 3), (3, 4)])
    assert [inner.name for inner in group.groups] == ["a"]
    # Layer 1 is between two layers of the group that is left, so it is taken in.
    assert sorted(group.groups[0].all_layers()) == [0, 1, 2, 3, 4] and sorted(group.layers) == [5, 6]


@pytest.mark.parametrize(("key", "found"), [("a", "a"), ("w", "c"), ("a:0", "a"), ("a.0", "a"), ("1", "a")])
def test_layers_are_named_as_in_infer(key: str, found: str) -> None:
    assert boxes(draw(diamond(), around=[key], hops=0)) == {found}


def test_tensor_names_come_first() -> None:
    model = diamond()
    next(node for node in model.nodes if node.name == "d").outputs[0].names.append("b")
    assert boxes(draw(model, around=["b"], hops=0)) == {"d"}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("sigmoid", "there is no tensor or layer 'sigmoid'"),
        ("rellu1", "similar names are 'relu1'"),
        ("relu1:1", "there is no tensor or layer 'relu1:1'"),
        ("", "there is no tensor or layer ''"),
        ("n" * 100_000, "there is no tensor or layer"),
    ],
)
def test_names_that_nothing_has(key: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw(digits(), around=[key])
    with pytest.raises(InputError, match="around is 'relu1', expected a list of layers or tensors"):
        draw(digits(), around="relu1")


def test_a_layer_of_a_body_is_found_by_its_path() -> None:
    model = irexec.read_model(DATA / "tensor_iterator.xml")
    owner = next(node for node in model.nodes if node.bodies)
    inner = owner.bodies["body"].graph.nodes[-1]
    drawing = draw(model, around=[f"{owner.name}/body/{inner.name}"], hops=0)
    assert [layer.line.path for layer in drawing.layers if layer.drawn_in is None] == [f"{owner.name}/body/"]


def test_cut_edges_are_named() -> None:
    drawing = draw(diamond(), around=["b"], hops=0)
    assert drawing.cut == {0: (("a",), ("d",))}
    assert draw(diamond()).cut == {}


def test_constants_are_drawn_in_their_first_reader() -> None:
    drawing = draw(diamond())
    weight = next(layer for layer in drawing.layers if layer.line.name == "w")
    assert weight.drawn_in is not None and drawing.layers[weight.drawn_in].line.name == "c"
    assert drawing.layers[weight.drawn_in].reads == ("f32[1,4]",)


def test_blocks_of_numbers_are_named_by_what_they_count() -> None:
    assert [frame.name for frame in draw(blocks(), cluster=True).frames[1:]] == [
        "encoder.layer",
        "layer.0",
        "layer.1",
        "layer.2",
    ]


def test_blocks_are_folded_where_there_are_many() -> None:
    drawing = draw(blocks(50), cluster=True)
    shown = sum(len(frame.items) for frame in drawing.frames if not frame.folded)
    assert len(drawing.frames) == 52 and shown <= 61
    assert sum(frame.folded for frame in drawing.frames) == 50


def test_layers_without_a_scope_join_those_before_them() -> None:
    drawing = draw(chain(["a/one", "Multiply_1", "a/two", "b/one", "b/two", "b/three", "Add_7"]), cluster=True)
    inside = {frame.name: sorted(layer.line.name for layer in drawing.inside(frame)) for frame in drawing.frames[1:]}
    assert inside["a"] == ["Multiply_1", "a/one", "a/two"]
    assert inside["b"][:4] == ["Add_7", "b/one", "b/three", "b/two"]
