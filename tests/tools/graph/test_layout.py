"""Layouts: nothing overlaps, lines go downwards, whatever the graph is; and repetitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irexec.schema import registry
from irexec.tools.graph import draw
from irexec.tools.graph.drawing import Frame, Link
from irexec.tools.graph.families import FAMILIES, family_of
from irexec.tools.graph.layout import lay_out
from irexec.tools.graph.placing import Columns
from irexec.tools.graph.repetition import Repetition, repetitions
from irexec.tools.graph.texts import fitted, listed, width
from tests.tools.graph.models import chain

_PAIRS = st.lists(st.tuples(st.integers(-1, 14), st.integers(-1, 14)), max_size=40)


def frame(pairs: list[tuple[int, int]], count: int = 15) -> Frame:
    """A frame of ``count`` items with these lines; -1 is what is outside."""
    links = [
        Link(None if a < 0 else a, None if b < 0 else b, (max(a, 0), k % 3))
        for k, (a, b) in enumerate(pairs)
        if a != b or a >= 0
    ]
    return Frame(0, "block", "", None, None, tuple(range(count)), tuple(dict.fromkeys(links)))


@settings(max_examples=200, deadline=None)
@given(_PAIRS)
def test_boxes_of_a_row_are_apart(pairs: list[tuple[int, int]]) -> None:
    pytest.importorskip("igraph")
    one = frame(pairs)
    layout = lay_out(one)
    assert len(layout.positions) == 15 and len(layout.bends) == len(one.links)
    by_row: dict[int, list[float]] = {}
    for column, row in layout.positions:
        by_row.setdefault(row, []).append(column)
        assert 0 <= column <= layout.columns + 1e-9 and 0 <= row < layout.rows
    for columns in by_row.values():
        assert all(b - a >= 0.99 for a, b in zip(sorted(columns), sorted(columns)[1:], strict=False))


@settings(max_examples=200, deadline=None)
@given(_PAIRS)
def test_lines_of_a_graph_without_cycles_go_downwards(pairs: list[tuple[int, int]]) -> None:
    pytest.importorskip("igraph")
    one = frame([(a, b) for a, b in pairs if a < b or b < 0])
    layout = lay_out(one)
    rows = {None: None} | {i: row for i, (_, row) in enumerate(layout.positions)}
    for link, bends in zip(one.links, layout.bends, strict=True):
        start = -1 if link.source is None else layout.positions[link.source][1]
        stop = layout.rows if link.target is None else layout.positions[link.target][1]
        assert start < stop
        assert bends is None or len(bends) == stop - start - 1
    assert len(rows) == 16


@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from([100.0, 172.0, 900.0])), min_size=1, max_size=20))
def test_columns_have_room_for_what_is_in_them(boxes: list[tuple[int, float]]) -> None:
    quarter = [(column / 4, size) for column, size in boxes]
    last = max(column for column, _ in quarter)
    columns = Columns([column for column, _ in quarter], [size for _, size in quarter], last)
    spans = [(columns.at(column) - size / 2, columns.at(column) + size / 2, column) for column, size in quarter]
    for left, right, column in spans:
        assert left >= -1e-6 and right <= columns.width + 1e-6
        for other_left, other_right, other in spans:
            if other - column >= 1:
                assert right < other_left, (left, right, other_left, other_right)


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
    registry.loader.load()
    files = {
        type: family_of(type, f"opset{max((n for n in versions if isinstance(n, int)), default=1)}")
        for type, versions in registry._REGISTRY.items()
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
    assert family_of("Relish", "opset1") == family_of("Add", "opset999") == "other"


@given(st.text(max_size=300), st.floats(40, 400))
def test_texts_fit(text: str, space: float) -> None:
    assert width(fitted(text, 10, space), 10) <= space + 10
    assert width(listed([text, "b", "c"], 10, space), 10) <= space + 10
