"""Long graphs in columns: nothing is lost, nothing overlaps, and lines go on where their numbers say."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import irexec
from irexec.tools.graph import draw
from irexec.tools.graph.placing import place, wrapped
from irexec.tools.graph.svg import svg_and_size
from tests.tools.graph.models import blocks, chain, digits


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


def test_unfolded_blocks_go_on_in_the_next_column() -> None:
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
