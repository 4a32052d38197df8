"""What is in a report, read as a browser would read it, and what is computed only once."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import irexec
from irexec.analysis.shape_inference import ShapeInference
from irexec.cli.main import run
from irexec.ir.graph import Node
from irexec.tools.report import ReportOptions, WrittenReport, page_of, report
from tests.analysis.test_damage import ROWS, Damage
from tests.benchmarks.reports import deep
from tests.display.test_markup import HOSTILE
from tests.support.markup import Element, parse

ROOT = Path(__file__).parent.parent.parent.parent
IRS = ROOT / "tests" / "data" / "openvino"
DIGITS = ROOT / "samples" / "digits"
EXECUTED = ROOT / "samples" / "execution_graph.xml"
PLAIN = ReportOptions(has_graph=False)


def page(model: Path | irexec.Model, options: ReportOptions = PLAIN) -> Element:
    """The report of a model."""
    return parse(page_of(irexec.read_model(model) if isinstance(model, Path) else model, options))


def section(found: Element, id: str) -> Element:
    """The section with the heading of that id."""
    (one,) = found.all("section", lambda part: part.attributes.get("aria-labelledby") == id)
    return one


def ids(found: Element) -> list[str | None]:
    """The ids of all sections."""
    return [part.attributes.get("aria-labelledby") for part in found.all("section")]


def terms(found: Element) -> dict[str, str]:
    """The definitions of the summary."""
    items = section(found, "summary").all("div", lambda part: bool(part.all("dt")))
    return {item.all("dt")[0].text: item.all("dd")[0].text for item in items}


def test_a_network() -> None:
    found = page(DIGITS / "classifier.xml")
    assert ids(found) == ["summary", "findings", "ports", "operations", "layers", "types", "memory", "weights", "notes"]
    shown = terms(found)
    assert shown["layers"] == "21, of 10 operations"
    assert shown["cost"] == "84.2 kMACs"
    assert shown["findings"] == "none"
    assert shown["weights"] == "24.4 kB in 7 constants, 32 bits per weight"
    assert section(found, "ports").rows()[1][:4] == ["input", "image", "f32", "[1,1,8,8]"]


def overview(found: Element) -> tuple[str, list[str]]:
    """The verdict and the figures."""
    (verdict,) = found.all("p", lambda one: "verdict" in (one.attributes.get("class") or ""))
    return verdict.text, [one.text for one in found.all("div", lambda one: one.attributes.get("class") == "figure")]


def test_it_begins_with_a_verdict_and_four_figures() -> None:
    assert overview(page(DIGITS / "classifier.xml")) == (
        "no errors and no warnings",
        ["21layers of 10 operations", "6.09 kparameters; 24.4 kB of constants", "84.2 kMACs in a run", "8.19 kBin tensors between layers at once"],
    )  # fmt: skip
    verdict, _ = overview(page(DIGITS / "damaged.xml"))
    assert verdict == "9 errors, 1 warning: the model cannot be run, or its results cannot be trusted"
    verdict, figures = overview(page(EXECUTED))
    assert verdict.startswith("an execution graph of OpenVINO, not a model")
    assert figures[1].endswith("with a time")
    (last,) = overview(page(DIGITS / "classifier.xml", ReportOptions(has_graph=False, is_run=True, runs=1)))[1][3:]
    assert "ms" in last and last.endswith("a run; median of 1 run")


def test_the_contents_bar_leads_to_each_section_and_the_graph_comes_first() -> None:
    found = page(DIGITS / "classifier.xml", ReportOptions())
    (bar,) = found.all("nav", lambda one: one.attributes.get("aria-label") == "contents")
    assert [link.attributes["href"] for link in bar.all("a")] == [f"#{id}" for id in ids(found) if id is not None]
    assert [id for id in ids(found) if id is not None][:2] == ["graph", "summary"]


def test_a_row_for_each_layer_with_what_the_file_says() -> None:
    rows = section(page(DIGITS / "classifier.xml"), "layers").all("tr")
    assert len(rows) == 22
    (details,) = rows[3].all("details")
    assert details.all("summary")[0].text == "conv0/Convolution"
    assert [line for line in details.text.splitlines() if "strides" in line or "input 0" in line] == [
        "strides = 1, 1",
        "input 0: f32[1,1,8,8] from image",
    ]
    assert details.all("a")[0].attributes["href"] == "#l0"
    assert [cell.text for cell in rows[3].all("td")][2:] == ["Convolution", "f32[1,16,8,8]", "9.22 k", "144", "4.93 kB"]


def test_links_lead_somewhere() -> None:
    found = page(DIGITS / "damaged.xml")
    targets = {part.attributes["id"] for part in found.all() if "id" in part.attributes}
    assert len(targets) == len([part for part in found.all() if "id" in part.attributes])
    links = {(part.attributes["href"] or "")[1:] for part in found.all("a")}
    assert links <= targets
    assert len(links) > 10


def test_a_model_with_errors() -> None:
    found = page(DIGITS / "damaged.xml")
    assert terms(found)["findings"] == "9 errors, 1 warning"
    assert len(section(found, "findings").rows()) == 11
    marked = [
        row.all("summary")[0].text
        for row in section(found, "layers").all("tr")
        if row.all("span", lambda mark: mark.attributes["class"] == "error")
    ]
    assert marked == ["conv0/Convolution error", "conv0 error", "dense6.w error", "dense6/MatMul error"]


def test_without_the_weights(tmp_path: Path) -> None:
    shutil.copy(DIGITS / "classifier.xml", tmp_path)
    found = page(tmp_path / "classifier.xml")
    assert "error" in terms(found)["findings"]
    assert "weights" in ids(found)
    assert "weights" not in ids(page(DIGITS / "classifier.xml", ReportOptions(has_graph=False, has_weights=False)))


def test_weights_have_statistics_and_histograms() -> None:
    rows = section(page(DIGITS / "classifier.xml"), "weights").all("tr")
    model = irexec.read_model(DIGITS / "classifier.xml")
    node = next(node for node in model.nodes if node.constant is not None)
    values = np.frombuffer(node.constant.raw, np.float32) if node.constant is not None else np.zeros(0)
    cells = [cell.text for cell in rows[1].all("td")]
    assert cells[:4] == ["conv0.w", "f32", "[16,1,3,3]", "576 bytes"]
    assert cells[4:8] == [f"{value:.4g}" for value in (values.min(), values.max(), values.mean(), values.std())]
    assert (
        rows[1].all("svg")[0].attributes["aria-label"]
        == f"histogram of 144 elements from {values.min():.4g} to {values.max():.4g}"
    )


def test_bodies() -> None:
    rows = section(page(IRS / "tensor_iterator.xml"), "layers").all("tr")
    names = [row.all("summary")[0].text for row in rows[1:]]
    assert any("/body/" in name for name in names)
    assert len(names) == len(list(irexec.read_model(IRS / "tensor_iterator.xml").walk()))


def test_dynamic_shapes() -> None:
    shown = terms(page(IRS / "dynamic.xml"))
    assert shown["memory"] == "depends on sizes of inputs that are not known"


def test_new_shapes() -> None:
    found = page(DIGITS / "classifier.xml", ReportOptions(has_graph=False, shapes={None: (4, 1, 8, 8)}))
    assert terms(found)["cost"] == "337 kMACs"
    assert "[4,1,8,8]" in section(found, "ports").text


def test_an_execution_graph() -> None:
    found = page(EXECUTED)
    assert ids(found) == ["summary", "findings", "operations", "layers", "notes"]
    assert terms(found)["format"] == "execution graph of OpenVINO"
    assert len(section(found, "layers").rows()) == len(irexec.read_model(EXECUTED).nodes) + 1


def test_times() -> None:
    found = page(DIGITS / "classifier.xml", ReportOptions(has_graph=False, is_run=True, runs=1))
    assert "a run takes" in terms(found)["time"]
    assert "conv0/Convolution +2" in section(found, "time").text
    assert "computed in the same step as conv0/Convolution" in section(found, "layers").text
    assert "arena" in section(found, "memory").text


def test_a_model_that_cannot_be_run_has_a_report_without_times(tmp_path: Path) -> None:
    written = report(str(DIGITS / "damaged.xml"), str(tmp_path / "r.html"), ReportOptions(has_graph=False, is_run=True))
    assert any(note.startswith("times: the model cannot be run: ") for note in written.notes)
    assert "time" not in written.sections


def test_an_onnx_model_that_cannot_be_converted_has_a_report_of_its_findings(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    node = onnx.helper.make_node("Frobnicate", ["x"], ["y"], name="<b>", domain="of.mine")
    graph = onnx.helper.make_graph(
        [node], "g", [value], [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])]
    )
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("of.mine", 1)]), tmp_path / "m.onnx"
    )
    written = report(str(tmp_path / "m.onnx"), str(tmp_path / "r.html"))
    assert written.sections == ("summary", "findings", "notes")
    assert written.findings["error"] == 1
    assert "Frobnicate" in section(parse((tmp_path / "r.html").read_text("utf-8")), "findings").text


def test_onnx(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    written = report(str(DIGITS / "classifier.onnx"), str(tmp_path / "r.html"), PLAIN)
    assert terms(parse((tmp_path / "r.html").read_text("utf-8")))["format"] == "ONNX, converted to IR"
    assert written.layers == 21


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.sampled(3)
def test_any_damage(row: Damage, tmp_path: Path) -> None:
    """A damaged file has a report with its findings."""
    lines = (IRS / f"{row.file}.xml").read_text("utf-8").splitlines(keepends=True)
    lines[row.line - 1] = lines[row.line - 1].replace(row.old, row.new)
    (tmp_path / "m.xml").write_text("".join(lines), "utf-8")
    shutil.copy(IRS / f"{row.file}.bin", tmp_path / "m.bin")
    found = page(tmp_path / "m.xml")
    assert row.code in section(found, "findings").text
    assert len(section(found, "layers").all("tr")) == 1 + len(list(irexec.read_model(tmp_path / "m.xml").walk()))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_shown_and_not_obeyed(name: str) -> None:
    def tags(text: str) -> list[str]:
        builder = irexec.Builder(text)
        x = builder.parameter("f32", (1, 3), text, [text])
        builder.result(
            builder.emit("Add", x, builder.constant(np.ones((1, 3), np.float32), name=f"{text}4"), name=f"{text}2"),
            f"{text}3",
        )
        model = builder.model()
        model.nodes[1].attributes[text] = text
        made = page(model, ReportOptions(has_graph=False, title=text, made_by=text))
        return [part.tag for part in made.all()]

    # Texts that XML cannot hold are findings of their own, which are rows more.
    assert set(tags(name)) == set(tags("not a name"))


def test_the_same_report_can_be_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    model = irexec.read_model(DIGITS / "classifier.xml")
    assert page_of(model, PLAIN) == page_of(irexec.read_model(DIGITS / "classifier.xml"), PLAIN)
    assert "Made by irexec on 1970-01-02" in page_of(model, PLAIN)


def test_what_was_written(tmp_path: Path) -> None:
    written = report(str(DIGITS / "damaged.xml"), str(tmp_path / "r.html"), PLAIN)
    assert isinstance(written, WrittenReport)
    assert written.bytes == (tmp_path / "r.html").stat().st_size
    assert dict(written.findings) == {"error": 9, "warning": 1}
    assert written.layers == 21
    assert list(tmp_path.iterdir()) == [tmp_path / "r.html"]


# What reports, drawings and listings of large models do only once.


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["report", "-o", "{folder}/r.html"], id="report"),
        pytest.param(["report", "-o", "{folder}/r.html", "--graph", "off", "--weights", "off"], id="report without a drawing"),
        pytest.param(["graph", "-o", "{folder}/g.dot", "--findings"], id="graph --findings"),
        pytest.param(["graph", "-o", "{folder}/g.mmd", "--cluster"], id="graph --cluster"),
        pytest.param(["inspect", "--json", "--layers", "--cost", "--precision", "--tree"], id="inspect"),
    ],
)  # fmt: skip
def test_shapes_are_inferred_once(options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for Parameters, whose facts are those of the inputs."""
    irexec.save_model(deep(60), tmp_path / "m.xml")
    counts: Counter[str] = Counter()
    infer = ShapeInference.node

    def counted(self: ShapeInference, node: Node) -> None:
        counts[node.name if node.type not in ("Parameter", "Constant") else ""] += 1
        infer(self, node)

    monkeypatch.setattr(ShapeInference, "node", counted)
    command, *rest = [text.format(folder=tmp_path) for text in options]
    assert run([command, str(tmp_path / "m.xml"), *rest]) == 0
    del counts[""]
    assert len(counts) > 30
    assert set(counts.values()) == {1}
