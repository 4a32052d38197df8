"""Pictures of comparisons: what compare, judge and diff draw, in a real headless Chromium, and as an image."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder, packed
from irexec.errors import InputError
from irexec.tools.graph.beside import Beside, PairedTensor, beside_page, tensors
from tests.support.browser import Page, browser, chromium
from tests.tools.graph.models import DIGITS, HOSTILE, blocks, chain, digits

BESIDE = "document.querySelector('.irexec-beside').irexecBeside"
needs_browser = pytest.mark.skipif(chromium() is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    if chromium() is None:
        pytest.skip("Chromium is not installed")
    with browser() as opened:
        yield opened


def damaged() -> irexec.Model:
    """The digits with twice a bias, so that conv3 and everything after it differs."""
    model = digits()
    model["conv3.b_1"].constant = packed(2 * model["conv3.b_1"].array, irexec.f32)
    return model


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compared") / "page.html"
    found = irexec.compare(digits(), damaged(), output=str(path))
    assert found.first is not None and found.first.row.b.name == "conv3"
    return path


def details(page: Page) -> str:
    return page.run(
        "(() => { const d = document.querySelector('.irexec-beside > .details'); return d.hidden ? '' : d.innerText; })()"
    )


def selected(page: Page) -> list[str | None]:
    return page.run(
        f"{BESIDE}.pages.map((p) => p.selected === null ? null : p.graph.layerOf(p.selected)?.n ?? 'block')"
    )


def middles(page: Page) -> list[list[float]]:
    """The middle of the selected box of each graph, in pixels of its canvas, with the size of the canvas."""
    return page.run(f"""{BESIDE}.pages.map((p) => {{ const box = p.placed.byItem.get(p.selected);
      return [(box.x + box.w / 2 - p.view.x) * p.view.scale, (box.y + box.h / 2 - p.view.y) * p.view.scale, p.width, p.height]; }})""")


def show(page: Page, path: Path, **window: Any) -> None:
    page.problems.clear()
    page.open(path, **window)
    page.run("new Promise((done) => setTimeout(done, 100))")


@needs_browser
@pytest.mark.parametrize("is_dark", [False, True])
def test_the_first_difference_is_in_sight(page: Page, compared: Path, is_dark: bool) -> None:
    show(page, compared, width=1280, is_dark=is_dark)
    assert selected(page) == ["conv3", "conv3"]
    for x, y, width, height in middles(page):
        assert 0 < x < width and 0 < y < height
    panel = details(page)
    bias = digits()["conv3.b_1"].array.reshape(-1)
    for text in ("different, the first", "conv3.b_1: differs", f"{2 * bias[0]:.6g}", "SNR", "min", "max"):
        assert text in panel, text
    assert page.run("document.querySelectorAll('canvas.pixels').length") == 3
    counts = page.run("[...document.querySelectorAll('.counts button')].map((one) => one.innerText)")
    assert counts == ["1 different", "6 different by their inputs", "5 agreeing"]
    assert page.problems == []


@needs_browser
def test_inputs_have_the_names_of_their_model(page: Page, tmp_path: Path) -> None:
    other = damaged()
    other["relu1"].name = "first"
    irexec.diff(digits(), other, output=str(tmp_path / "page.html"))
    show(page, tmp_path / "page.html", width=1280)
    page.run(f"{BESIDE}.pages[0].showLayer({BESIDE}.pages[0].graph.layers.find((one) => one.n === 'maxpool2').index)")
    page.run("new Promise((done) => setTimeout(done, 100))")
    before, _, after = details(page).partition("Inputs in B")
    assert "relu1" in before and "first" in after and "relu1" not in after.partition("Layer in B")[0]


@needs_browser
def test_on_a_phone_one_graph_is_in_sight(page: Page, compared: Path) -> None:
    show(page, compared, width=390, height=844, is_phone=True)
    shown = f"{BESIDE}.pages.map((p) => getComputedStyle(p.root).display !== 'none')"
    assert page.run(shown) == [False, True] and selected(page)[1] == "conv3"
    x, y, width, height = middles(page)[1]
    assert 0 < x < width <= 390 and 0 < y < height
    page.run("document.querySelector('[data-go=show0]').click()")
    assert page.run(shown) == [True, False]
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert page.problems == []


@needs_browser
def test_a_click_shows_the_partner_and_keys_go_through_the_differences(page: Page, compared: Path) -> None:
    show(page, compared, width=1280)
    page.run(f"{BESIDE}.pages[0].showLayer({BESIDE}.pages[0].graph.layers.find((one) => one.n === 'relu1').index)")
    page.run("new Promise((done) => setTimeout(done, 100))")
    assert selected(page) == ["relu1", "relu1"] and "agreeing" in details(page)
    one, other = middles(page)
    assert one == pytest.approx(other, abs=1.5)
    page.run("document.querySelector('.irexec-beside canvas').focus()")
    # After the first, which the page began with.
    page.key("n")
    assert selected(page) == ["relu4", "relu4"] and "different by their inputs" in details(page)
    page.key("p")
    assert selected(page) == ["conv3", "conv3"]
    page.key("Escape")
    assert selected(page) == [None, None] and details(page) == ""
    assert page.problems == []


@needs_browser
def test_both_graphs_move_and_zoom_together(page: Page, compared: Path) -> None:
    show(page, compared, width=1280)
    page.key("Escape")
    page.run(f"{BESIDE}.pages[1].pan(-20, -90)")
    page.run(f"{BESIDE}.pages[1].zoom(1.3)")
    a, b = page.run(f"{BESIDE}.pages.map((p) => p.view)")
    assert (
        a["scale"] == b["scale"] and a["y"] == pytest.approx(b["y"], abs=2) and a["x"] == pytest.approx(b["x"], abs=2)
    )


@needs_browser
def test_blocks_fold_together_and_are_coloured_by_their_worst_layer(page: Page, tmp_path: Path) -> None:
    a, b = blocks(20), blocks(20)
    b["encoder/layer.7/relu"].type = "Sigmoid"
    irexec.diff(a, b, output=str(tmp_path / "diff.html"))
    show(page, tmp_path / "diff.html", width=1280)
    assert selected(page) == ["encoder/layer.7/relu"] * 2
    frames = f"{BESIDE}.pages.map((p) => p.graph.frames.filter((f) => f.name === 'layer.7' && f.folded).length)"
    before = page.run(frames)
    page.run(f"{BESIDE}.pages[0].toggle(~{BESIDE}.pages[0].graph.frames.find((f) => f.name === 'layer.7').index)")
    after = page.run(frames)
    assert before == [0, 0] and after == [1, 1]
    title = page.run(
        f"(() => {{ const {{ graph }} = {BESIDE}.pages[1]; const f = graph.frames.find((one) => one.name === 'layer.7'); return graph.shades.rows[graph.shadeOf(~f.index)][0]; }})()"
    )
    assert title == "changed"
    assert page.problems == []


@needs_browser
def test_colours_by_snr(page: Page, compared: Path) -> None:
    show(page, compared, width=1280)
    page.run(
        "(() => { const s = document.querySelector('select'); s.value = 'snr'; s.dispatchEvent(new Event('change')); })()"
    )
    titles = page.run(f"{BESIDE}.pages[1].graph.legend().map(([title]) => title)")
    assert "20 to 40 dB" in titles and "above 100 dB or equal" in titles
    assert page.problems == []


@needs_browser
def test_a_judgement_is_one_graph_with_intervals(page: Page, tmp_path: Path) -> None:
    found = irexec.judge(DIGITS / "classifier.xml", runtime="reference", output=str(tmp_path / "judge.html"))
    assert found.verdict == "agrees"
    show(page, tmp_path / "judge.html", width=1280)
    assert page.run(f"{BESIDE}.pages.length") == 1
    page.run(f"{BESIDE}.pages[0].showLayer({BESIDE}.pages[0].graph.layers.find((one) => one.n === 'relu1').index)")
    panel = details(page)
    assert "inside of the interval" in panel and " to " in panel and "interval" in panel
    low, high = map(float, re.findall(r"(\S+) to (\S+)", panel.split("[0, 0, 0, 0]")[1])[0])
    assert low <= high
    assert page.problems == []


@needs_browser
def test_hostile_names_are_shown_and_not_obeyed(page: Page, tmp_path: Path) -> None:
    irexec.diff(chain(HOSTILE), chain(HOSTILE[:-1]), output=str(tmp_path / "diff.html"))
    show(page, tmp_path / "diff.html", width=1280)
    page.run(f"{BESIDE}.rows.forEach((_, i) => {BESIDE}.open(i))")
    assert page.run("document.images.length") == 0 and page.problems == []


def wide(count: int) -> irexec.Model:
    """A chain of ``count`` layers in blocks."""
    builder = Builder("wide")
    value = builder.parameter("f32", (1, 4), "x")
    for i in range(count):
        value = builder.emit("Relu", value, name=f"stage.{i // 400}/block.{i // 20 % 20}/relu{i}")
    builder.result(value)
    return irexec.Model.of(builder.model())


@needs_browser
@pytest.mark.parametrize("count", [400, pytest.param(4000, marks=pytest.mark.slow)])
def test_large_models(page: Page, tmp_path: Path, count: int) -> None:
    a, b = wide(count), wide(count)
    name = f"stage.{(count // 2) // 400}/block.{(count // 2) // 20 % 20}/relu{count // 2}"
    b[name].type = "Sigmoid"
    irexec.diff(a, b, output=str(tmp_path / "page.html"))
    show(page, tmp_path / "page.html", width=1280)
    assert selected(page) == [name, name]
    assert (tmp_path / "page.html").stat().st_size < 1200 * count + 200_000
    assert page.problems == []


def test_an_image_has_both_graphs_in_the_colours_of_their_states(tmp_path: Path) -> None:
    path = tmp_path / "page.svg"
    irexec.compare(digits(), damaged(), output=str(path))
    root = ElementTree.fromstring(path.read_text("utf-8"))
    texts = ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("conv3") == 2 and "different by their inputs" in texts
    assert any("first difference is at 'conv3'" in text for text in texts)


def test_an_image_of_a_large_model_has_the_surroundings_of_the_first_difference(tmp_path: Path) -> None:
    a, b = wide(400), wide(400)
    b["stage.0/block.10/relu200"].type = "Sigmoid"
    irexec.diff(a, b, output=str(tmp_path / "page.svg"))
    text = (tmp_path / "page.svg").read_text("utf-8")
    assert "relu200" in text and "relu198" in text and "relu100" not in text


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.float32(1.5), np.float32(2.5)),
        (np.float32([np.nan, np.inf, -np.inf, 0]), np.float32([np.nan, 1, -np.inf, 0])),
        (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)),
        (np.zeros((2, 3), np.int64), np.full((2, 3), 2**62)),
        (np.zeros((5, 6), bool), np.ones((5, 6), bool)),
        (np.ones((2, 5, 6), np.float32), np.ones((2, 30), np.float32)),
        (None, np.float32([3e38, -3e38])),
        (np.array(["x"], object), np.array(["y"], object)),
    ],
)
def test_tensors_of_any_kind_are_written(a: Any, b: Any) -> None:
    """A page is JSON without NaN and infinity, which its writer refuses."""
    builder = Builder("one")
    builder.result(builder.emit("Relu", builder.parameter("f32", (1,), "x"), name="y"))
    model = builder.model()
    node = next(one for one in model.nodes if one.name == "y")
    shown = tensors(("A", "B"), None if a is None else np.asarray(a), np.asarray(b), is_drawn=True)
    text = beside_page(
        Beside(
            "t",
            (("m", model),),
            [PairedTensor(None, node, "differs", tensors=shown)],
            {"differs": "x", "unpaired": "y"},
            0,
        )
    )
    assert "irexec-beside" in text


def test_elements_that_differ_most_come_first() -> None:
    a = np.zeros((3, 50), np.float32)
    b = a.copy()
    b[2, 7], b[1, 3] = 5, -9
    shown = tensors(("A", "B"), a, b, (b - 1, b + 1))
    assert shown is not None
    assert shown["values"][:2] == [["[1, 3]", "0", "-9", "-10 to -8"], ["[2, 7]", "0", "5", "4 to 6"]]


def test_another_suffix_is_refused_before_anything_runs() -> None:
    for call in (
        lambda: irexec.compare("nowhere.xml", output="page.png"),
        lambda: irexec.judge(digits(), output="page.png", runtime="reference"),
        lambda: irexec.diff(digits(), digits(), output="page.png"),
    ):
        with pytest.raises(InputError, match=r"\.html"):
            call()
