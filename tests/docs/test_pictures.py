"""Pictures of the documentation: what their lines do, and that all of them are run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.docs.pages import pages
from tests.support.paths import ROOT

sphinx = pytest.importorskip("sphinx")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="commands are those of a POSIX shell")

_PICTURE = re.compile(r"^```\{picture\}\n((?::.*\n)*)((?:(?!```).*\n)*)```$", re.MULTILINE)


def pictures() -> list[tuple[str, str, str]]:
    """Page, options and lines of every picture."""
    return [
        (path.relative_to(ROOT).as_posix(), options, lines)
        for path in pages()
        for options, lines in _PICTURE.findall(path.read_text("utf-8"))
    ]


def test_every_picture_has_a_text_for_those_who_do_not_see_it() -> None:
    assert len(pictures()) > 20
    assert [page for page, options, _ in pictures() if ":alt: " not in options] == []


@pytest.mark.slow
def test_a_terminal_is_drawn_light_and_dark(tmp_path: Path) -> None:
    from irexec_pictures.runs import Studio

    found = Studio(tmp_path).picture(["$ irexec validate samples/digits/damaged.xml"], 100, 6)
    light, dark = ((tmp_path / f"{found.name}-{theme}.svg").read_text("utf-8") for theme in ("light", "dark"))
    assert found.kind == "terminal" and found.width > 400
    assert "IR103" in light and "IR103" in dark and "more&#160;lines" in light and light != dark
    # No font or style comes from a server.
    assert not re.search(r"url\((?!#)|@import|href", light)
    before = (tmp_path / f"{found.name}-light.svg").stat().st_mtime_ns
    assert Studio(tmp_path).picture(["$ irexec validate samples/digits/damaged.xml"], 100, 6) == found
    assert (tmp_path / f"{found.name}-light.svg").stat().st_mtime_ns == before


@pytest.mark.slow
def test_a_graph_a_page_and_a_notebook_are_taken_as_they_are(tmp_path: Path) -> None:
    from irexec_pictures.runs import Studio

    studio = Studio(tmp_path)
    image = studio.picture(["$ irexec graph samples/digits/classifier.xml -o picture.svg"], 88, 0)
    assert image.kind == "image" and image.height > 500
    assert "#14171b" in (tmp_path / f"{image.name}-dark.svg").read_text("utf-8")
    shown = studio.picture(["import irexec", 'irexec.read_model("samples/digits/classifier.xml")'], 88, 0)
    assert shown.kind == "page" and "digits classifier" in (tmp_path / f"{shown.name}.html").read_text("utf-8")


def test_a_command_that_fails_is_not_a_picture(tmp_path: Path) -> None:
    from irexec_pictures.runs import CannotBeMade, Studio

    with pytest.raises(CannotBeMade, match="exit code 3"):
        Studio(tmp_path).picture(["$ irexec inspect nowhere.xml"], 88, 0)


def test_a_trace_is_drawn() -> None:
    from irexec_pictures.timeline import timeline

    events = [{"ph": "X", "name": "first", "ts": 10, "dur": 30, "pid": 1, "tid": 1}]
    events += [{"ph": "X", "name": "second", "ts": 40, "dur": 10, "pid": 1, "tid": 2}, {"ph": "M", "name": "thread"}]
    text = timeline('{"traceEvents": ' + str(events).replace("'", '"') + "}")
    assert 'width="675.0"' in text and 'width="225.0"' in text and ">first<" in text and "40 µs" in text


def test_the_diagram_has_every_layer_and_goes_downwards(tmp_path: Path) -> None:
    from irexec_pictures.architecture import architecture

    architecture(tmp_path / "architecture")
    text = (tmp_path / "architecture-light.svg").read_text("utf-8")
    heights = {
        name: float(y)
        for y, name in re.findall(r'y="([\d.]+)" text-anchor="middle" font-weight="bold"[^>]*>(\w+)<', text)
    }
    order = ("cli", "tools", "runtime", "compile", "analysis", "ops", "schema", "ir", "dtypes", "errors")
    assert [heights[name] for name in order] == sorted(heights[name] for name in order)


def test_the_list_of_packages_is_complete() -> None:
    from irexec_pictures.packages import packages

    lines = packages().splitlines()
    listed: list[str] = []
    parents: list[str] = []
    for line in lines:
        level, name = (len(line) - len(line.lstrip())) // 2, line.split()[0]
        if level < 3:
            parents = [*parents[:level], name.rstrip("/")]
            listed.append("/".join(parents))
    inits = [path for name in ("irexec", "converters") for path in (ROOT / name).rglob("__init__.py")]
    folders = [path.parent.relative_to(ROOT).as_posix() for path in inits]
    assert {name for name in listed if not name.endswith(".py")} == {name for name in folders if name.count("/") < 3}
    assert {"irexec/api.py", "irexec/tools/images.py", "irexec/analysis/portability"} <= set(listed)
    assert max(map(len, lines)) <= 100


def test_the_picture_of_the_readme_is_that_of_a_run() -> None:
    text = (ROOT / "docs" / "_static" / "readme.svg").read_text("utf-8")
    assert "IR103" in text and "relu1" in text and text.count("<svg ") == 3
    assert not re.search(r"url\((?!#)|@import|href", text)


def test_titles_break_before_capitals() -> None:
    from irexec_reference import break_titles

    context = {"body": "<h1>GroupConvolutionBackpropData<a></a></h1><h2>MVN-6<a></a></h2><p>ShapeOf</p>"}
    break_titles(None, "generated/operations/GroupConvolutionBackpropData", "", context, None)
    assert (
        context["body"]
        == "<h1>Group<wbr>Convolution<wbr>Backprop<wbr>Data<a></a></h1><h2>MVN-6<a></a></h2><p>ShapeOf</p>"
    )


def test_operations_link_to_openvino() -> None:
    from irexec_reference.openvino_pages import openvino_page

    site = "https://docs.openvino.ai/2026/documentation/openvino-ir-format/operation-sets/operation-specs"
    assert openvino_page("Convolution", 1) == f"{site}/convolution/convolution-1.html"
    assert openvino_page("Interpolate", 11) == f"{site}/image/interpolate-11.html"
    assert openvino_page("NonMaxSuppression", 5) == f"{site}/sort/no-max-suppression-5.html"
    assert openvino_page("ConvTranspose", "onednn") == ""


def test_what_one_types_here_is_run_on_the_page() -> None:
    """The right column of the tables names commands; each is in a block of the page, with the same options."""
    text = (ROOT / "docs" / "coming-from.md").read_text("utf-8")
    run = [
        set(re.findall(r"(?:^|\s)(-{1,2}[\w-]+)", line)) | {line.split()[2]}
        for line in re.findall(r"(?m)^\$ irexec .*", text)
    ]
    named = re.findall(r"`irexec ([^`]+)`", "\n".join(re.findall(r"(?m)^\|.*\|$", text)))
    assert len(named) > 12
    for command in named:
        words = {command.split()[0], *re.findall(r"(?:^|\s)(-{1,2}[\w-]+)", command)}
        if not words & {"--a-runtime", "--check"}:  # other software
            assert any(words <= one for one in run), command
