"""Layouts: nothing overlaps, lines go downwards, whatever the graph is; and repetitions."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irexec.schema import registry
from irexec.tools.graph import draw
from irexec.tools.graph.drawing import FAMILIES, OF_FILES, DrawnFrame, Link, family_of, fitted, listed, width
from irexec.tools.graph.layout import Layered, lay_out, reduce_crossings
from irexec.tools.graph.names import Repetition, repetitions
from tests.tools.graph.models import chain

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
    part = Layered.of(lay_out(one, [(9.0, 9.0)] * 10).rows, lines)
    reduce_crossings(part)
    assert part.crossings() == 0


def test_crossings_are_counted() -> None:
    part = Layered.of([0, 0, 0, 1, 1, 1], [(0, 3), (0, 4), (1, 3), (2, 3), (2, 5), (1, 5)])
    part.order = [[0, 1, 2], [3, 4, 5]]
    # 0-4 crosses 1-3 and 2-3; 1-5 crosses 2-3.
    assert part.crossings() == 3


def test_a_path_is_straight_beside_skips_and_inputs() -> None:
    """A residual network: the path through all boxes has one horizontal position."""
    pairs = [(k, k + 1) for k in range(8)] + [(1, 4), (4, 7), (9, 3), (10, 6)]
    layout = lay_out(frame(pairs, 11), [(172.0, 45.0)] * 11)
    assert len({x for x, _ in layout.centres[:9]}) == 1
    assert all(len({x for x, _ in bends or ()}) <= 1 for bends in layout.bends)


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
        "Convolution",
        "Add",
        "Concat",
        "ReduceMean",
        "Loop",
        "LSTMSequence",
        "FakeQuantize",
        "TopK",
    } & plain == set()
    assert len(plain) < 40, sorted(plain)
    files_of_kernels = {definition.kernel.__module__.rpartition(".")[2] for definition in registry.definitions()}
    assert OF_FILES.keys() <= files_of_kernels, "families of files that have no kernel"
    assert family_of("Relish", "opset1") == family_of("Add", "opset999") == "other"


@given(st.text(max_size=300), st.floats(40, 400))
def test_texts_fit(text: str, space: float) -> None:
    assert width(fitted(text, 10, space), 10) <= space + 10
    assert width(listed([text, "b", "c"], 10, space), 10) <= space + 10
