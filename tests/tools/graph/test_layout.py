"""Layouts: nothing overlaps, lines go downwards, whatever the graph is; repetitions, blocks and columns."""

from __future__ import annotations

import re
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irexec
from irexec.analysis.builder import Builder
from irexec.schema import registry
from irexec.tools.graph import Drawing, draw
from irexec.tools.graph.drawing import FAMILIES, OF_FILES, DrawnFrame, Link, family_of, fitted, listed, width
from irexec.tools.graph.layout import Layered, lay_out, reduce_crossings
from irexec.tools.graph.names import Repetition, repetitions
from irexec.tools.graph.placing import place, wrapped
from irexec.tools.graph.svg import svg_and_size
from tests.tools.graph.models import blocks, chain, digits

_PAIRS = st.lists(st.tuples(st.integers(-1, 14), st.integers(-1, 14)), max_size=40)


def frame(pairs: list[tuple[int, int]], count: int = 15) -> DrawnFrame:
    """A frame of ``count`` items with these lines; -1 is what is outside."""
    links = [
        Link(None if a < 0 else a, None if b < 0 else b, (max(a, 0), k % 3))
        for k, (a, b) in enumerate(pairs)
        if a != b or a >= 0
    ]
    return DrawnFrame(0, "block", "", None, None, tuple(range(count)), tuple(dict.fromkeys(links)))


SIZES = st.lists(st.sampled_from([(172.0, 45.0), (900.0, 400.0)]), min_size=15, max_size=15)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(_PAIRS, SIZES)
def test_boxes_and_lines_are_apart(pairs: list[tuple[int, int]], sizes: list[tuple[float, float]]) -> None:
    one = frame(pairs)
    layout = lay_out(one, sizes)
    assert len(layout.centres) == 15 and len(layout.bends) == len(one.links)
    rectangles = [(x - w / 2, y, x + w / 2, y + h) for (x, y), (w, h) in zip(layout.centres, sizes, strict=True)]
    for left, top, right, bottom in rectangles:
        assert left >= -0.1 and top >= 0 and right <= layout.width + 0.1 and bottom <= layout.height
    for i, (left, top, right, bottom) in enumerate(rectangles):
        for other_left, other_top, other_right, other_bottom in rectangles[:i]:
            assert right + 27 < other_left or other_right + 27 < left or bottom < other_top or other_bottom < top
        for x, y in (point for bends in layout.bends for point in bends or ()):
            assert x < left - 5 or x > right + 5 or y < top or y > bottom


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(_PAIRS)
def test_lines_of_a_graph_without_cycles_go_downwards(pairs: list[tuple[int, int]]) -> None:
    one = frame([(a, b) for a, b in pairs if a < b or b < 0])
    layout = lay_out(one, [(172.0, 45.0)] * 15)
    for link, bends in zip(one.links, layout.bends, strict=True):
        start = -1 if link.source is None else layout.rows[link.source]
        stop = max(layout.rows) + 1 if link.target is None else layout.rows[link.target]
        assert start < stop
        assert bends is None or len(bends) == 2 * (stop - start - 1)
        heights = [y for _, y in bends or ()]
        assert heights == sorted(heights)


def test_lines_do_not_cross_where_they_need_not() -> None:
    """Two columns whose connections are given the wrong way around, and a line past both."""
    one = frame([(0, 2), (1, 3), (2, 5), (3, 4), (4, 6), (5, 7), (0, 8), (6, 9), (7, 9), (8, 9)], 10)
    lines = [(link.source or 0, link.target or 0) for link in one.links]
    part = Layered(lay_out(one, [(9.0, 9.0)] * 10).rows, lines)
    reduce_crossings(part)
    assert part.crossings() == 0


def test_crossings_are_counted() -> None:
    part = Layered([0, 0, 0, 1, 1, 1], [(0, 3), (0, 4), (1, 3), (2, 3), (2, 5), (1, 5)])
    part.order = [[0, 1, 2], [3, 4, 5]]
    # 0-4 crosses 1-3 and 2-3; 1-5 crosses 2-3.
    assert part.crossings() == 3


def test_a_path_is_straight_beside_skips_and_inputs() -> None:
    """A residual network: the path through all boxes has one horizontal position."""
    pairs = [(k, k + 1) for k in range(8)] + [(1, 4), (4, 7), (9, 3), (10, 6)]
    layout = lay_out(frame(pairs, 11), [(172.0, 45.0)] * 11)
    assert len({x for x, _ in layout.centres[:9]}) == 1
    assert all(len({x for x, _ in bends or ()}) <= 1 for bends in layout.bends)


@pytest.mark.slow
def test_a_large_graph_is_laid_out_in_time() -> None:
    """20,000 boxes in a row of blocks of three branches: linear in time, about three seconds."""
    pairs = []
    for k in range(0, 20_000, 5):
        pairs += [(k, k + 1), (k, k + 2), (k, k + 3), (k + 1, k + 4), (k + 2, k + 4), (k + 3, k + 4), (k + 4, k + 5)]
    pairs.pop()
    start = time.process_time()
    layout = lay_out(frame(pairs, 20_000), [(172.0, 45.0)] * 20_000)
    assert time.process_time() - start < 30
    assert layout.width == 3 * 172 + 2 * 28


def sequence(text: str) -> list[Repetition]:
    labels = np.array([ord(letter) for letter in text])
    return repetitions(labels, np.zeros(len(labels) + 1, np.int64), np.full(len(labels), 2))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("abcdefghijkl", []),
        ("abcabcabcabc", [(0, 3, 4)]),
        ("xyabcabcabcabcz", [(2, 3, 4)]),
        ("abcdeabcde", [(0, 5, 2)]),
        ("abcabc", []),
        ("aaaaaaaaaaaaaaaa", []),
        ("pqrsbpqrsb" + "uvw" * 6, [(0, 5, 2), (10, 3, 6)]),
    ],
)
def test_repetitions(text: str, found: list[tuple[int, int, int]]) -> None:
    assert [(one.start, one.period, one.copies) for one in sequence(text)] == found


def test_blocks_begin_where_few_lines_cross() -> None:
    crossing = np.array([3, 3, 1, 3, 3, 1, 3, 3, 1, 3, 3, 1, 3, 3, 1, 3])
    (found,) = repetitions(np.array([1, 2, 3] * 5), crossing, np.full(15, 2))
    assert (found.start, found.period, found.copies) == (2, 3, 4)


@given(st.text("ab", max_size=80))
def test_repetitions_are_alike_and_apart(text: str) -> None:
    stop = 0
    for one in sequence(text):
        assert one.start >= stop and one.stop <= len(text) and one.copies >= 2
        stop = one.stop
        parts = {text[k : k + one.period] for k in range(one.start, one.stop, one.period)}
        assert len(parts) == 1


def test_layers_without_names_fold_by_what_repeats() -> None:
    model = chain([f"n{i}" for i in range(60)])
    kinds = ("Relu", "Sigmoid", "Tanh", "Abs", "Exp")
    for i, node in enumerate(node for node in model.nodes if node.type == "Relu"):
        node.type = node.spelling = kinds[i % 5]
    drawing = draw(model, cluster=True)
    assert [frame.name for frame in drawing.frames[1:3]] == ["Relu … 1 of 12", "Relu … 2 of 12"] and len(
        drawing.frames
    ) == 13
    assert all(len(frame.items) == 5 for frame in drawing.frames[1:])


def test_what_repeats_in_a_part_that_repeats_folds_in_it() -> None:
    """Three times a block of four layers, and two others, six times over."""
    kinds = ("Relu", "Sigmoid", "Tanh", "Abs") * 3 + ("Exp", "Floor")
    model = chain([f"n{i}" for i in range(len(kinds) * 6)])
    for i, node in enumerate(node for node in model.nodes if node.type == "Relu"):
        node.type = node.spelling = kinds[i % len(kinds)]
    frames = draw(model, cluster=True).frames
    outer = [frame for frame in frames if frame.parent == 0]
    assert [frame.name for frame in outer] == [f"Relu … {i + 1} of 6" for i in range(6)]
    for one in outer:
        inner = [frame for frame in frames if frame.parent == one.index]
        assert [frame.name for frame in inner] == [f"Relu … {i + 1} of 3" for i in range(3)]
        assert all(len(frame.items) == 4 for frame in inner)
        assert sorted(len(frame.items) for frame in (one, *inner)) == [4, 4, 4, 5]


def test_each_operation_has_a_family() -> None:
    files = {
        definition.type: family_of(definition.type, f"opset{definition.since}")
        for definition in registry.definitions()
        if isinstance(definition.since, int)
    }
    assert set(files.values()) <= set(FAMILIES)
    plain = {type for type, family in files.items() if family == "other"}
    assert {
        "Convolution", "Add", "Concat", "ReduceMean", "Loop", "LSTMSequence", "FakeQuantize", "TopK",
    } & plain == set()  # fmt: skip
    assert len(plain) < 40, sorted(plain)
    files_of_kernels = {definition.kernel.__module__.rpartition(".")[2] for definition in registry.definitions()}
    assert OF_FILES.keys() <= files_of_kernels, "families of files that have no kernel"
    assert family_of("Relish", "opset1") == family_of("Add", "opset999") == "other"


@given(st.text(max_size=300), st.floats(40, 400))
def test_texts_fit(text: str, space: float) -> None:
    assert width(fitted(text, 10, space), 10) <= space + 10
    assert width(listed([text, "b", "c"], 10, space), 10) <= space + 10


# Blocks: layers that a transformation renamed, and shape arithmetic.


def block_of(drawing: Drawing, name: str) -> str:
    """The name of the block that a layer stands in; "" for the whole."""
    return next(
        frame.name
        for frame in drawing.frames
        for item in frame.items
        if item >= 0 and drawing.layers[item].line.name == name
    )


def test_a_renamed_layer_stands_beside_its_reader() -> None:
    """MobileNet as OpenVINO writes it: convolutions that a normalization was fused into have lost their names."""
    names = ["Multiply_1", "bn1.act/Clamp"]
    for block in range(3):
        scope = f"blocks.{block}.0"
        names += [
            f"Multiply_{block}2",
            f"{scope}.bn1.act/Clamp",
            f"Multiply_{block}3",
            f"{scope}.bn2.act/Clamp",
            f"Multiply_{block}4",
        ]
    drawing = draw(chain(names), cluster=True)
    assert block_of(drawing, "Multiply_1") == block_of(drawing, "bn1.act/Clamp") == ""
    for block in range(3):
        found = {block_of(drawing, f"Multiply_{block}{k}") for k in (2, 3, 4)}
        assert found == {f"blocks.{block}.0"}


def test_a_module_used_in_several_places_is_in_the_blocks_of_its_producers() -> None:
    """A YOLO of ultralytics has one object for all activations, under whose name the frontend writes each of them."""
    names = [
        name
        for block in range(4)
        for name in (
            f"model.{block}.cv/conv",
            f"model.{block}.cv/bias",
            "model.9.cv3.act/Swish",
            f"model.{block}.cv/pool",
        )
    ]
    drawing = draw(chain(names), cluster=True)
    inside = {frame.name: [drawing.layers[i].line.name for i in frame.items if i >= 0] for frame in drawing.frames}
    assert {name: layers for name, layers in inside.items() if name.endswith("cv")} == {
        f"model.{block}.cv": names[4 * block : 4 * block + 4] for block in range(4)
    }


def test_convolutions_without_a_name_do_not_join_a_module_used_in_several_places() -> None:
    """As OpenVINO's frontend writes a YOLOv8, with normalizations fused into the convolutions."""
    names = [name for block in range(4) for name in (f"Multiply_{2 * block}", f"model.9.act/Swish_{2 * block}",
             *(f"model.{block}/part{i}" for i in range(3)),
             f"Multiply_{2 * block + 1}", f"model.9.act/Swish_{2 * block + 1}")]  # fmt: skip
    drawing = draw(chain(names), cluster=True)
    assert {block_of(drawing, name) for name in names} == {"", *(f"model.{block}" for block in range(4))}
    assert block_of(drawing, "Multiply_3") == block_of(drawing, "model.9.act/Swish_3") == "model.1"


def in_sight(drawing: Drawing, frame: int = 0) -> list[int]:
    """The number of layers of each box that is not inside of a folded frame."""

    def size(item: int) -> int:
        return 1 if item >= 0 else sum(map(size, drawing.frames[~item].items))

    found = []
    for item in drawing.frames[frame].items:
        is_open = item < 0 and not drawing.frames[~item].folded
        found += in_sight(drawing, ~item) if is_open else [size(item)]
    return found


def test_the_largest_block_is_unfolded_first_and_none_holds_most_of_the_layers() -> None:
    names = [f"model/head.{i % 3}/layer{i}" for i in range(30)] + [f"model/body/part{i % 2}.{i}/x" for i in range(100)]
    drawing = draw(chain(sorted(names)), cluster=True)
    folded = {frame.name: frame.folded for frame in drawing.frames if frame.kind == "block"}
    assert not folded["model"] and not folded["body"]
    assert len(in_sight(drawing)) <= 60 and 2 * max(in_sight(drawing)) <= 132


def test_layers_outside_of_blocks_are_folded_into_those_that_they_lead_to() -> None:
    """Ten sums of different layers, each of which reads a shared input: a box for each, as none reads another."""
    builder = Builder("sums")
    x = builder.parameter("f32", (2,), "x")
    kinds = ("Relu", "Tanh", "Sigmoid", "Exp", "Floor", "Abs", "Sin", "Cos", "Sqrt", "Erf")
    for i in range(10):
        value = x
        for k in range(6):
            value = builder.emit(kinds[i * (k + 1) % 10], value, name=f"layer_{i}_{k}")
        builder.result(builder.emit("Add", value, x, name=f"sum_{i}"))
    drawing = draw(irexec.Model.of(builder.model()), cluster=None)
    assert sorted(frame.name for frame in drawing.frames[1:]) == sorted(f"{kind} … Add" for kind in kinds)
    assert {block_of(drawing, name) for name in ("layer_3_0", "sum_3")} == {"Exp … Add"}
    assert block_of(drawing, "x") == ""


def test_blocks_around_each_other_are_divided() -> None:
    """A decoder between whose layers a head refines boxes, as in DETR."""
    names = [f"{'head' if k % 2 else 'decoder'}/layer{8 * k + i}" for k in range(4) for i in range(4 + k % 2)]
    drawing = draw(chain(names), cluster=True)
    blocks = {name: block_of(drawing, name) for name in names}
    assert list(dict.fromkeys(blocks.values())) == [
        "decoder … 1 of 2", "head … 1 of 2", "decoder … 2 of 2", "head … 2 of 2"
    ]  # fmt: skip
    assert all(block.startswith(name.partition("/")[0]) for name, block in blocks.items())


def shapes(has_name: bool = True) -> irexec.Model:
    """Two blocks, each of which reshapes its input by what it computes from the shape of that."""
    builder = Builder("shapes")
    value = builder.parameter("f32", ("?", "?", 4), "x")
    for i in range(2):
        scope = f"encoder/layer.{i}/" if has_name else ""
        shape = builder.emit("ShapeOf", value, name=f"{scope}shape", output_type="i64")
        first = builder.emit(
            "Gather", shape, builder.constant([0], "i64"), builder.constant(0, "i64"), name=f"{scope}gather"
        )
        target = builder.emit("Concat", first, builder.constant([-1], "i64"), axis=0, name=f"{scope}concat")
        flat = builder.emit(
            "Reshape",
            builder.emit("Relu", value, name=f"{scope}relu"),
            target,
            special_zero=False,
            name=f"{scope}reshape",
        )
        value = builder.emit(
            "Reshape", builder.emit("Tanh", flat, name=f"{scope}tanh"), shape, special_zero=False, name=f"{scope}back"
        )
    builder.result(value)
    return irexec.Model.of(builder.model())


def test_shape_arithmetic_is_a_block_in_each_block() -> None:
    drawing = draw(shapes(), cluster=True)
    for i in range(2):
        for name in ("shape", "gather", "concat"):
            assert block_of(drawing, f"encoder/layer.{i}/{name}") == "shape arithmetic"
        for name in ("relu", "reshape", "tanh", "back"):
            assert block_of(drawing, f"encoder/layer.{i}/{name}") == f"layer.{i}"
    dimmed = [frame for frame in drawing.frames if frame.is_dimmed]
    assert len(dimmed) == 2 and all(frame.folded for frame in dimmed)


def test_shape_arithmetic_of_later_tensors_is_a_block_of_its_own() -> None:
    """One block of both would be on a cycle with the layers between."""
    drawing = draw(shapes(has_name=False), cluster=True)
    dimmed = [frame for frame in drawing.frames if frame.is_dimmed]
    assert [len(frame.items) for frame in dimmed] == [3, 3]
    assert all(block_of(drawing, name) != "shape arithmetic" for name in ("relu", "reshape", "tanh"))


def test_graphs_of_many_boxes_fold_by_default() -> None:
    names = [f"block.{i // 10}/layer{i}" for i in range(70)]
    assert len(draw(chain(names), cluster=None).frames) > 1
    assert len(draw(chain(names[:50]), cluster=None).frames) == 1
    assert len(draw(chain(names), cluster=False).frames) == 1


# Long graphs in columns: nothing is lost, nothing overlaps, and lines continue where their numbers say.


def long() -> irexec.Model:
    """A chain of 200 layers."""
    return chain([f"n{i}" for i in range(200)])


def test_a_long_graph_is_about_as_high_as_wide() -> None:
    placed = place(draw(long()))
    found = wrapped(placed)
    assert placed.height > 40 * placed.width
    assert 0.5 < found.height / found.width < 2


def test_a_graph_of_a_page_stays_in_one_piece() -> None:
    placed = place(draw(digits()))
    assert wrapped(placed) is placed
    assert wrapped(place(draw(long())), 1).height == place(draw(long())).height


@pytest.mark.parametrize("columns", [None, 2, 5])
def test_each_box_is_drawn_once_and_apart(columns: int | None) -> None:
    drawing = draw(long())
    found = wrapped(place(drawing), columns)
    assert sorted(box.item for box in found.boxes) == sorted(drawing.frames[0].items)
    for i, box in enumerate(found.boxes):
        assert box.x >= 0 and box.x + box.width <= found.width and box.y >= 0 and box.y + box.height <= found.height
        for other in found.boxes[:i]:
            is_beside = box.x + box.width < other.x or other.x + other.width < box.x
            assert is_beside or box.y + box.height < other.y or other.y + other.height < box.y
    # A chain has one line from column to column, with a number at both ends.
    assert set(Counter(one.text for one in found.connectors).values()) == {2}
    lefts = {round(box.x) for box in found.boxes}
    assert len(found.connectors) == 2 * (len(lefts) - 1)
    if columns:
        assert len(lefts) == columns


def test_unfolded_blocks_continue_in_the_next_column() -> None:
    drawing = draw(blocks(6), cluster=True)
    placed = place(drawing)
    found = wrapped(placed, 3)
    frames = [box for box in found.boxes if box.box is None]
    assert len(frames) > sum(box.box is None for box in placed.boxes)
    titles = [box.title for box in frames if box.title]
    assert len(titles) == len(set(titles)) == sum(box.box is None for box in placed.boxes)


def test_images_are_in_columns() -> None:
    text, (width, height) = svg_and_size(draw(long()))
    assert height < 2 * width
    assert len(re.findall("<circle", text)) > 4
    assert svg_and_size(draw(long()), 1)[1][1] > 10_000
