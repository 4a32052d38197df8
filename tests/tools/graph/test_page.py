"""The page of a graph in a real headless Chromium."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import irexec
from irexec.tools.graph import draw, graph_fragment, write_graph
from irexec.tools.graph.drawing import Drawing
from irexec.tools.graph.placing import place
from tests.support.browser import Page, browser, chromium
from tests.tools.graph.models import DATA, DIGITS, HOSTILE, blocks, chain, digits

pytestmark = pytest.mark.skipif(chromium() is None, reason="Chromium is not installed")

GRAPH = "document.querySelector('.irexec-graph').irexecGraph"


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser() as opened:
        yield opened


def show(page: Page, drawing: Drawing, tmp_path: Path, **window: Any) -> None:
    write_graph(drawing, str(tmp_path / "graph.html"))
    page.problems.clear()
    page.open(tmp_path / "graph.html", **window)


def box(page: Page, name: str) -> tuple[float, float]:
    """The middle of the box of a layer or of a folded block, in pixels of the window."""
    found = page.run(f"""(() => {{
      const page = {GRAPH}, {{ graph, placed, view }} = page;
      const box = [...placed.boxes, ...placed.frames].find(({{ item }}) => (
        item >= 0 ? graph.layers[item].n === {json.dumps(name)} : graph.frames[~item].name === {json.dumps(name)}));
      const {{ left, top }} = page.canvas.getBoundingClientRect(), y = box.open ? box.y + 10 : box.y + box.h / 2;
      return [left + (box.x + box.w / 2 - view.x) * view.scale, top + (y - view.y) * view.scale];
    }})()""")
    return found[0], found[1]


def details(page: Page) -> str:
    """The text of the panel; "" if it is closed."""
    return page.run("(() => { const d = document.querySelector('.details'); return d.hidden ? '' : d.innerText; })()")


def selected(page: Page) -> str | None:
    """The name of the selected layer."""
    return page.run(
        f"(() => {{ const p = {GRAPH}; return p.selected === null ? null : p.graph.layerOf(p.selected)?.n ?? p.graph.frames[~p.selected].name; }})()"
    )


def visible(page: Page) -> list[str]:
    """The names of all boxes, folded blocks included."""
    return page.run(
        f"{GRAPH}.placed.boxes.map(({{ item }}) => item < 0 ? {GRAPH}.graph.frames[~item].name : {GRAPH}.graph.layers[item].n)"
    )


@pytest.mark.parametrize("is_phone", [False, True])
@pytest.mark.parametrize("is_dark", [False, True])
def test_a_click_shows_a_layer(page: Page, tmp_path: Path, is_phone: bool, is_dark: bool) -> None:
    model = digits()
    size = {"width": 390, "height": 760} if is_phone else {"width": 1200, "height": 800}
    show(
        page,
        draw(model, statistics=True, findings=irexec.validate(model)),
        tmp_path,
        is_phone=is_phone,
        is_dark=is_dark,
        **size,
    )
    assert details(page) == ""
    x, y = box(page, "conv0/Convolution")
    if is_phone:
        page.touch([(x, y)])
    else:
        page.click(x, y)
    assert selected(page) == "conv0/Convolution"
    panel = details(page)
    for text in (
        "Convolution",
        "strides",
        "1,1",
        "pads_begin",
        "f32[1,16,8,8]",
        "line of the .xml",
        "conv0.w",
        "f32[16,1,3,3]",
        "mean",
        "kMACs"[:1],
    ):
        assert text in panel, text
    assert page.problems == []


def test_a_window_that_gets_narrower_keeps_the_graph_in_sight(page: Page, tmp_path: Path) -> None:
    show(page, draw(digits()), tmp_path)
    before, width = box(page, "relu1"), page.run("innerWidth")
    page.send("Emulation.setDeviceMetricsOverride", width=390, height=760, deviceScaleFactor=1, mobile=False)
    page.run("new Promise((done) => setTimeout(done, 200))")
    assert abs(box(page, "relu1")[0] - (before[0] - (width - 390) / 2)) < 2


def test_a_selected_layer_stays_in_sight(page: Page, tmp_path: Path) -> None:
    """The panel takes a part of the width, and a phone that is turned more of it."""
    show(page, draw(digits()), tmp_path, width=700, height=800)
    page.click(*box(page, "relu4"))
    for width in (700, 390, 700):
        page.show(width, 800)
        page.run("new Promise((done) => setTimeout(done, 200))")
        (x, y), shown = (
            box(page, "relu4"),
            page.run(
                f"(({{ left, top, right, bottom }}) => [left, top, right, bottom])({GRAPH}.canvas.getBoundingClientRect())"
            ),
        )
        assert shown[0] + 40 < x < shown[2] - 40 and shown[1] < y < shown[3], width


def test_a_click_beside_all_boxes_closes_the_panel(page: Page, tmp_path: Path) -> None:
    show(page, draw(digits()), tmp_path)
    page.click(*box(page, "relu1"))
    assert "Relu" in details(page) or "ReLU" in details(page)
    page.click(8, 400)
    assert details(page) == "" and selected(page) is None


def search(page: Page, text: str) -> list[str]:
    """Type a text into the field, and what is listed."""
    page.run("(() => { const f = document.querySelector('.search input'); f.value = ''; f.focus(); })()")
    page.type(text)
    return page.run("[...document.querySelectorAll('.results [role=option]')].map((one) => one.innerText)")


@pytest.mark.parametrize("text", ["relu4", "RELU4", "conv3.w", "dense6.flat"])
def test_search_finds_a_layer(page: Page, tmp_path: Path, text: str) -> None:
    show(page, draw(digits()), tmp_path)
    assert text.lower() in search(page, text)[0].lower()
    page.key("Enter")
    assert text.lower() in details(page).lower()
    x, y = box(page, selected(page) or "")
    assert 0 < x < 1200 and 0 < y < 800
    assert page.problems == []


def test_search_says_that_there_is_nothing(page: Page, tmp_path: Path) -> None:
    show(page, draw(digits()), tmp_path)
    assert search(page, "nowhere") == []
    assert "no layer" in page.run("document.querySelector('.results').innerText")
    page.key("Escape")
    assert page.run("document.querySelector('.results').hidden")


@pytest.mark.parametrize("name", ["classifier", "tensor_iterator", "branch", "loop", "state", "shared", "names"])
def test_every_layer_is_found(page: Page, tmp_path: Path, name: str) -> None:
    path = DIGITS / f"{name}.xml" if name == "classifier" else DATA / f"{name}.xml"
    model = irexec.read_model(path)
    show(page, draw(model, cluster=True), tmp_path)
    missed = page.run(f"""(() => {{
      const {{ graph }} = {GRAPH};
      return graph.layers.filter((layer) => !graph.search(layer.n || layer.t, 1e6).found.includes(layer)).map((layer) => layer.n);
    }})()""")
    assert missed == []
    shown = page.run(
        f"{GRAPH}.graph.layers.map((layer) => {{ {GRAPH}.showLayer(layer.index); return document.querySelector('.details code').innerText; }})"
    )
    names = [node.name for node in model.walk()]
    assert [text.rpartition("/")[2] for text in shown] == [text.rpartition("/")[2] for text in names]
    assert page.problems == []


def test_blocks_fold_and_unfold(page: Page, tmp_path: Path) -> None:
    show(page, draw(blocks(), cluster=True), tmp_path)
    assert "encoder/layer.1/relu" in visible(page) and "layer.1" not in visible(page)
    page.click(*box(page, "layer.1"), count=2)
    assert "encoder/layer.1/relu" not in visible(page) and "layer.1" in visible(page)
    page.click(*box(page, "layer.1"), count=2)
    assert "encoder/layer.1/relu" in visible(page)
    page.run("document.querySelector('[data-do=fold]').click()")
    assert sorted(visible(page)) == ["encoder.layer", "head", "x", ""] or len(visible(page)) == 4
    search(page, "encoder/layer.2/gate/tanh")
    page.key("Enter")
    assert "encoder/layer.2/gate/tanh" in visible(page) and "encoder/layer.1/relu" not in visible(page)
    page.run("document.querySelector('[data-do=unfold]').click()")
    assert len(visible(page)) == 15
    assert page.problems == []


def test_keys(page: Page, tmp_path: Path) -> None:
    show(page, draw(blocks(1), cluster=True), tmp_path)
    page.run("document.querySelector('.irexec-graph canvas').focus()")
    page.key("ArrowDown")
    assert selected(page) == "x"
    page.key("ArrowDown")
    page.key("Enter")
    assert "encoder/layer.0/relu" not in visible(page)
    page.key("ArrowDown")
    assert selected(page) == "head"
    page.key("ArrowUp")
    page.key("ArrowUp")
    assert selected(page) == "x"
    before = page.run(f"{GRAPH}.view.scale")
    page.key("+")
    assert page.run(f"{GRAPH}.view.scale") > before
    page.key("/")
    assert page.run("document.activeElement.type") == "search"
    page.key("Escape")
    page.key("?")
    assert page.run("document.querySelector('dialog').open")
    page.key("Escape")
    page.key("Escape")
    assert details(page) == ""


def test_mouse_and_fingers_move_and_zoom(page: Page, tmp_path: Path) -> None:
    show(page, draw(digits()), tmp_path)
    before = page.run(f"{GRAPH}.view")
    page.drag(200, 500, 260, 420)
    after = page.run(f"{GRAPH}.view")
    assert after["x"] == pytest.approx(before["x"] - 60 / before["scale"])
    assert after["y"] == pytest.approx(before["y"] + 80 / before["scale"])
    assert selected(page) is None
    page.send("Input.dispatchMouseEvent", type="mouseWheel", x=600, y=400, deltaX=0, deltaY=-200, modifiers=2)
    page.settle()
    assert page.run(f"{GRAPH}.view.scale") > after["scale"]
    show(page, draw(digits()), tmp_path, width=390, height=760, is_phone=True)
    before = page.run(f"{GRAPH}.view.scale")
    page.touch([(180, 400), (150, 400), (100, 400)], [(210, 400), (240, 400), (290, 400)])
    assert page.run(f"{GRAPH}.view.scale") > 1.5 * before
    assert page.problems == []


def test_hostile_names_are_shown_and_not_obeyed(page: Page, tmp_path: Path) -> None:
    show(page, draw(chain(HOSTILE)), tmp_path)
    page.run(f"{GRAPH}.graph.layers.forEach((layer) => {GRAPH}.showLayer(layer.index))")
    assert page.run("document.scripts.length") == 2 and page.run("document.images.length") == 0
    search(page, "<script>alert(1)</script>")
    page.key("Enter")
    assert "<script>alert(1)</script>" in details(page)
    assert page.problems == []


@pytest.mark.parametrize("is_folded", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        digits,
        lambda: blocks(4),
        lambda: irexec.read_model(DATA / "branch.xml"),
        lambda: irexec.read_model(DATA / "loop.xml"),
    ],
)
def test_nothing_overlaps_however_it_is_folded(page: Page, tmp_path: Path, make: Any, is_folded: bool) -> None:
    """Every second frame is folded, or none; boxes are apart and inside of their frames, lines begin and end at boxes."""
    drawing = draw(make(), cluster=True, bodies=True)
    show(page, drawing, tmp_path)
    page.run(
        f"(() => {{ const p = {GRAPH}; p.graph.frames.forEach((f, i) => {{ if (i && f.kind !== 'body') "
        f"f.folded = {str(is_folded).lower()} && i % 2 === 0; }}); p.place(); }})()"
    )
    boxes = {
        item: rest
        for item, *rest in page.run(f"[...{GRAPH}.placed.byItem].map(([i, b]) => [i, b.x, b.y, b.w, b.h, b.frame])")
    }
    width, height = page.run(f"[{GRAPH}.placed.width, {GRAPH}.placed.height]")
    for item, (x, y, w, h, frame) in boxes.items():
        ox, oy, ow, oh = boxes[~frame][:4] if frame else (0, 0, width, height)
        assert ox <= x and oy <= y and x + w <= ox + ow and y + h <= oy + oh
        for other, (bx, by, bw, bh, its_frame) in boxes.items():
            if other != item and its_frame == frame:
                assert x + w < bx or bx + bw < x or y + h < by or by + bh < y
    for source, target, points in page.run(f"{GRAPH}.placed.lines.map((l) => [l.source, l.target, l.points])"):
        for item, (px, py), side in ((source, points[:2], 1), (target, points[-2:], 0)):
            if item is not None:
                x, y, w, h, _ = boxes[item]
                assert x <= px <= x + w and py == pytest.approx(y + side * h)
        assert points[1::2] == sorted(points[1::2])
    assert page.problems == []


def test_what_is_folded_is_placed_as_in_an_image(page: Page, tmp_path: Path) -> None:
    drawing = draw(digits())
    show(page, drawing, tmp_path)
    ours = {one.item: (one.x, one.y, one.width, one.height) for one in place(drawing).boxes}
    theirs = page.run(f"[...{GRAPH}.placed.byItem].map(([item, b]) => [item, b.x, b.y, b.w, b.h])")
    assert {int(item): pytest.approx(rest, abs=0.2) for item, *rest in theirs} == ours


def test_it_prints(page: Page, tmp_path: Path) -> None:
    show(page, draw(chain(["layer"] * 60)), tmp_path)
    pdf = page.pdf()
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") + pdf.count(b"/Type /Page/") >= 3
    assert pdf.count(b"/Subtype /Image") >= 3
    assert page.run("document.querySelectorAll('.prints img').length") == 0
    assert page.problems == []


def test_two_graphs_in_one_page(page: Page, tmp_path: Path) -> None:
    parts = [graph_fragment(draw(model), id=f"graph{i}") for i, model in enumerate((digits(), blocks()))]
    (tmp_path / "two.html").write_text(
        f"<!DOCTYPE html><meta charset=utf-8><title>two</title>{''.join(parts)}", encoding="utf-8"
    )
    page.problems.clear()
    page.open(tmp_path / "two.html")
    assert page.run(
        "[...document.querySelectorAll('.irexec-graph')].map((one) => one.irexecGraph.graph.layers.length)"
    ) == [21, 15]
    assert page.problems == []
