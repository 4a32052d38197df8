"""Reports in a real browser: nothing in the console, layers are found, sorted and unfolded, on a phone and on paper too."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.tools.report import page_of
from tests.support.browser import Page

DIGITS = Path(__file__).parent.parent.parent.parent / "samples" / "digits"
LAYERS = "table[class~=searchable]"
SHOWN = f"[...document.querySelectorAll('{LAYERS}')[0].tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.querySelector('summary').textContent)"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages by name."""
    folder = tmp_path_factory.mktemp("reports")
    models = {
        "digits": irexec.read_model(DIGITS / "classifier.xml"),
        "damaged": irexec.read_model(DIGITS / "damaged.xml"),
        "deep": deep(1200),
    }
    for name, model in models.items():
        (folder / f"{name}.html").write_text(page_of(model), "utf-8")
    return {name: folder / f"{name}.html" for name in models}


def deep(layers: int) -> irexec.Model:
    """A chain of about this number of layers."""
    builder = irexec.Builder("deep")
    x = builder.parameter("f32", (1, 8), "x")
    for i in range(layers // 3):
        x = builder.emit(
            "Relu",
            builder.emit("Multiply", x, builder.constant(np.full((1, 8), i, np.float32)), name=f"block.{i}/scale"),
            name=f"block.{i}/act",
        )
    builder.result(x, "y")
    return builder.model()


def search(page: Page, text: str) -> list[str]:
    """The layers that are shown for what a reader types into the search of the layers."""
    page.run("(document.querySelector('.tools input').focus(), document.querySelector('.tools input').select())")
    page.type(text)
    return page.run(SHOWN)


@pytest.mark.parametrize("name", ["digits", "damaged", "deep"])
@pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (390, False), (1280, True)])
def test_nothing_is_in_the_console_and_nothing_is_wider_than_the_window(
    page: Page, files: dict[str, Path], name: str, width: int, is_dark: bool
) -> None:
    page.problems.clear()
    page.open(files[name], width, 900, is_phone=width < 600, is_dark=is_dark)
    assert page.problems == []
    assert page.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1280, 390])
def test_the_contents_bar_stays_and_headings_are_below_it(page: Page, files: dict[str, Path], width: int) -> None:
    page.open(files["digits"], width, 700, is_phone=width < 600)
    page.run("document.getElementById('layers').scrollIntoView()")
    page.settle()
    assert page.run("document.querySelector('nav').getBoundingClientRect().top") == 0
    bar = "document.querySelector('nav').getBoundingClientRect().bottom"
    assert page.run(f"document.getElementById('layers').getBoundingClientRect().top >= {bar}")


def test_search_finds_layers(page: Page, files: dict[str, Path]) -> None:
    page.open(files["digits"])
    assert search(page, "conv3") == ["conv3.w", "conv3/Convolution", "conv3.b_1", "conv3"]
    assert search(page, "MaxPool maxpool5") == ["maxpool5"]
    assert page.run("document.querySelector('.tools [role=status]').textContent") == "1 of 21 found"
    assert search(page, "no such layer") == []


def test_a_click_unfolds_a_layer(page: Page, files: dict[str, Path]) -> None:
    page.open(files["digits"], 1280, 3000)
    x, y = page.run(
        "(({x, y}) => [x + 5, y + 5])([...document.querySelectorAll('summary')].find((one) => one.textContent === 'conv0/Convolution').getBoundingClientRect())"
    )
    page.click(x, y)
    opened = page.run("[...document.querySelectorAll('details[open]')].map((one) => one.innerText)")
    assert len(opened) == 1
    assert "strides = 1, 1" in opened[0]


def test_a_link_leads_to_a_layer_that_a_search_has_hidden(page: Page, files: dict[str, Path]) -> None:
    page.open(files["damaged"], 1280, 3000)
    search(page, "relu1")
    x, y = page.run(
        "(({x, y}) => [x + 5, y + 5])(document.querySelector('section[aria-labelledby=findings] td a').getBoundingClientRect())"
    )
    page.click(x, y)
    assert "conv0.w warning" in page.run(SHOWN)
    assert page.run("document.querySelector('tr:target details').open") is True


def test_tables_are_sorted_by_a_click(page: Page, files: dict[str, Path]) -> None:
    page.open(files["digits"], 1280, 3000)
    click = f"[...document.querySelectorAll('{LAYERS} th button')].find((one) => one.textContent === 'MACs').click()"
    before = page.run(SHOWN)
    page.run(click)
    assert page.run(SHOWN)[:3] == ["conv3/Convolution", "conv0/Convolution", "dense6/MatMul"]
    assert page.run(f"document.querySelector('{LAYERS} th[aria-sort]').getAttribute('aria-sort')") == "descending"
    page.run(click)
    assert page.run(SHOWN)[0] not in ("conv3/Convolution", "conv0/Convolution")
    page.run(click)
    assert page.run(SHOWN) == before


def test_long_tables_show_their_first_rows_until_all_are_asked_for(page: Page, files: dict[str, Path]) -> None:
    page.open(files["deep"])
    assert len(page.run(SHOWN)) == 500
    assert "block.399/act" not in page.run(SHOWN)
    assert search(page, "block.399/") == ["block.399/scale", "block.399/act"]
    search(page, "block")
    page.run("[...document.querySelectorAll('.tools button')][0].click()")
    assert len(page.run(SHOWN)) > 700
    assert page.problems == []


def test_a_layer_is_found_in_the_drawing_too(page: Page, files: dict[str, Path]) -> None:
    page.open(files["digits"], 1280, 3000)
    page.run("document.querySelector('#drawing input').focus()")
    page.type("conv3/Convolution")
    page.key("Enter")
    assert "conv3/Convolution" in page.run("document.querySelector('#drawing .details').innerText")
    assert page.problems == []


def test_it_prints(page: Page, files: dict[str, Path]) -> None:
    page.open(files["digits"])
    assert page.pdf().startswith(b"%PDF")


CONTRAST = """
(() => {
  const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
  const light = ([r, g, b]) => { const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const page = parse(getComputedStyle(document.body).backgroundColor);
  const worst = {};
  for (const one of document.querySelectorAll('p, a, td, th, dt, dd, h1, h2, .error, .warning, .info')) {
    const style = getComputedStyle(one);
    const [a, b] = [light(parse(style.color)), light(page)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) worst[one.outerHTML.slice(0, 80)] = ratio;
  }
  return worst;
})()
"""


@pytest.mark.parametrize("is_dark", [False, True])
def test_texts_have_enough_contrast(page: Page, files: dict[str, Path], is_dark: bool) -> None:
    """At least 4.5 to 1. Source: WCAG 2.2, 1.4.3."""
    page.open(files["damaged"], is_dark=is_dark)
    assert page.run(CONTRAST) == {}


def test_all_is_there_without_javascript(page: Page, files: dict[str, Path], tmp_path: Path) -> None:
    text = files["deep"].read_text("utf-8")
    bare = tmp_path / "bare.html"
    bare.write_text(re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL), "utf-8")
    page.open(bare)
    assert page.run("document.querySelector('.tools')") is None
    assert len(page.run(SHOWN)) > 1100
    x, y = page.run(
        "(({x, y}) => [x + 5, y + 5])((document.querySelector('#layers').scrollIntoView(), document.querySelector('tr summary').getBoundingClientRect()))"
    )
    page.click(x, y)
    assert page.run("document.querySelectorAll('tr details[open]').length") == 1
