"""The files of graphs: what is in each format, and that no name is obeyed."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree

import irexec
from irexec.tools.graph import draw, graph_page, write_graph
from irexec.tools.graph.draw import rendered
from irexec.tools.graph.drawing import Drawing
from irexec.tools.graph.svg import svg
from irexec.tools.graph.text_formats import dot, mermaid
from tests.tools.graph.models import DATA, DIGITS, HOSTILE, blocks, chain, diamond, digits

SVG = "{http://www.w3.org/2000/svg}"


def png_size(image: bytes) -> tuple[int, int]:
    """Width and height of a .png."""
    width, height = struct.unpack(">II", image[16:24])
    return width, height


def parsed(text: str) -> etree._Element:
    return etree.fromstring(text.encode())


def texts(root: etree._Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_an_svg_has_a_box_for_each_layer_and_a_label_for_each_tensor() -> None:
    root = parsed(svg(draw(digits())))
    found = texts(root)
    assert [found.count(name) for name in ("Convolution", "Add", "MaxPool", "Parameter", "Result")] == [2, 3, 2, 1, 1]
    assert "conv0" in found and "f32[1,16,8,8]" in found and "f32[16,1,3,3]" in found
    assert "Constant" not in found and "Const" not in found
    assert "convolution" in found and "recurrent cell" not in found


def test_an_svg_has_nothing_that_only_a_browser_reads() -> None:
    root = parsed(svg(draw(digits())))
    assert {element.tag for element in root.iter()} <= {
        SVG + name for name in ("svg", "g", "rect", "path", "text", "title", "circle")
    }
    assert not [
        name
        for element in root.iter()
        for name in element.attrib
        if name.startswith(("on", "class", "style")) or "href" in name
    ]


def rectangles(root: etree._Element) -> list[tuple[float, float, float, float]]:
    """The boxes: rectangles with rounded corners."""
    found = [element for element in root.iter(f"{SVG}rect") if element.get("rx") == "5"]
    return [tuple(float(element.get(name, "0")) for name in ("x", "y", "width", "height")) for element in found]


@pytest.mark.parametrize(
    "make",
    [
        digits,
        diamond,
        blocks,
        lambda: irexec.read_model(DATA / "tensor_iterator.xml"),
        lambda: irexec.read_model(DATA / "dynamic.xml"),
    ],
)
@pytest.mark.parametrize("cluster", [False, True])
def test_boxes_do_not_overlap_and_are_inside(make: Callable[[], irexec.Model], cluster: bool) -> None:
    root = parsed(svg(draw(make(), cluster=cluster)))
    boxes = rectangles(root)
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    assert boxes
    for i, (x, y, w, h) in enumerate(boxes):
        assert x >= 0 and y >= 0 and x + w <= width and y + h <= height
        for other_x, other_y, other_w, other_h in boxes[:i]:
            # A folded block has a second edge, moved by three pixels.
            assert (abs(x - other_x), abs(y - other_y)) == (3, 3) or not (
                x < other_x + other_w and other_x < x + w and y < other_y + other_h and other_y < y + h
            )


def hostile() -> Drawing:
    return draw(chain(HOSTILE))


def test_names_in_an_svg_are_text() -> None:
    root = parsed(svg(hostile()))
    found = texts(root)
    assert "<script>alert(1)</script>" in found
    assert any("\\x1b[31mred\\u202e" in (element.text or "") for element in root.iter(f"{SVG}title"))
    assert not list(root.iter(f"{SVG}script"))
    assert max(map(len, found)) < 100


def test_names_in_a_page_are_text() -> None:
    page = graph_page(hostile())
    assert page.lower().count("<script") == 2 and page.lower().count("</script>") == 2
    assert "<img" not in page and "\x1b" not in page and "\u202e" not in page
    assert "http-equiv" in page and "default-src &#x27;none&#x27;" in page
    page.encode()


def test_names_in_mermaid_are_text() -> None:
    text = mermaid(hostile())
    for line in text.splitlines():
        label = line[line.index('"') + 1 : line.rindex('"')] if '"' in line else ""
        assert not set(label.replace("<br/>", "")) & set("\"'`<>{}|\\&%;".replace(";", "").replace("%", "")), line
    assert "\x1b" not in text and "<script" not in text


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize(
    "make",
    [hostile, lambda: draw(blocks(), cluster=True), lambda: draw(irexec.read_model(DATA / "branch.xml"), bodies=True)],
)
def test_graphviz_reads_the_dot(make: Callable[[], Drawing]) -> None:
    done = subprocess.run(
        ["dot", "-Tplain"], input=dot(make()).encode("utf-8", "surrogatepass"), capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_half_a_pair_of_surrogates_is_an_escape_in_each_format() -> None:
    b = irexec.Builder("bad\ud800")
    b.result(b.emit("Relu", b.parameter("f32", (2,), "x\udc00"), name="r\x1b"))
    drawing = draw(b.model())
    for format in ("dot", "mmd", "svg", "html", "model-explorer"):
        assert b"udc00" in rendered(drawing, format), format


def test_a_dot_has_each_layer_and_edge() -> None:
    text = dot(draw(diamond()))
    assert text.count("fillcolor") == 6 and text.count(" -> ") == 6
    assert 'label="Add\\nc\\nf32[1,4]"' in text


def test_letters_of_any_script_stay_in_mermaid() -> None:
    text = mermaid(draw(chain(["вход,один", "层_1", "a\u202eb", "<b>"])))
    assert "вход,один" in text and "层_1" in text
    assert "\u202e" not in text and "<b>" not in text


def test_mermaid_has_each_layer_and_edge() -> None:
    lines = mermaid(draw(diamond())).splitlines()
    assert lines[0] == "flowchart TD"
    assert sum(" -->" in line for line in lines) == 6 and sum("<br/>" in line for line in lines) == 6
    assert '  n4["Add<br/>c<br/>f32[1,4]"]:::is_arithmetic' in lines


def test_blocks_are_subgraphs_or_single_boxes() -> None:
    drawing = draw(blocks(), cluster=True)
    assert [frame.name for frame in drawing.frames[1:]] == ["encoder.layer", "layer.0", "layer.1", "layer.2"]
    text = mermaid(drawing)
    assert text.count("subgraph") == text.count("\n  end") + text.count("\n    end") > 0
    assert dot(drawing).count("subgraph cluster_") == text.count("subgraph")


def test_a_png_is_an_image_of_the_size_of_the_svg() -> None:
    pytest.importorskip("resvg_py")
    drawing = draw(diamond())
    root = parsed(svg(drawing))
    notes: list[str] = []
    width, height = png_size(rendered(drawing, "png", scale=2, notify=notes.append))
    assert abs(width - 2 * float(root.get("width", "0"))) <= 2 and abs(height - 2 * float(root.get("height", "0"))) <= 2
    assert [text for text in notes if "font" not in text] == []


@pytest.mark.slow
def test_a_png_that_would_be_too_large_is_smaller() -> None:
    pytest.importorskip("resvg_py")
    notes: list[str] = []
    image = rendered(draw(chain(["layer"] * 400)), "png", scale=1, columns=1, notify=notes.append)
    assert max(png_size(image)) <= 16_001
    assert any("no side has more than 16,000 pixels" in text for text in notes)


@pytest.mark.parametrize("name", ["a.svg", "a.html", "a.HTM", "a.dot", "a.gv", "a.mmd", "a.mermaid"])
def test_files_have_the_format_of_their_suffix(name: str, tmp_path: Path) -> None:
    written = write_graph(draw(diamond()), str(tmp_path / name))
    content = (tmp_path / name).read_bytes()
    begin = {"svg": b"<?xml", "html": b"<!DOCTYPE html>", "dot": b"digraph", "mmd": b"flowchart"}[written.format]
    assert content.startswith(begin) and len(content) == written.bytes


@pytest.mark.skipif(shutil.which("rsvg-convert") is None, reason="librsvg is not installed")
def test_librsvg_reads_the_svg() -> None:
    done = subprocess.run(["rsvg-convert"], input=svg(hostile()).encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"") and done.stdout[:4] == b"\x89PNG"


def test_notebooks_show_the_image() -> None:
    shown = draw(diamond())._repr_html_()
    assert "<svg" in shown and "<?xml" not in shown
    assert "more than 500 boxes" in draw(chain(["n"] * 600))._repr_html_()


def test_damaged_models_are_drawn() -> None:
    model = irexec.read_model(DIGITS / "damaged.xml")
    drawing = draw(model, findings=irexec.validate(model))
    assert sum(len(layer.findings) for layer in drawing.layers) + len(drawing.findings) == len(irexec.validate(model))
    root = parsed(svg(drawing))
    assert len(list(root.iter(f"{SVG}circle"))) == sum(
        drawing.severity(layer) is not None for layer in drawing.layers if layer.drawn_in is None
    )
