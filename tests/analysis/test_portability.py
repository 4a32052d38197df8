"""validate --portability and --for: which layers have a difference, which have not, and whether OpenVINO does what is said of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import irexec
from irexec.analysis.codes import CODES
from irexec.analysis.portability import DIFFERENCES
from irexec.analysis.portability.releases import NEWEST, OPERATIONS, OPSETS, Release, first_release, parse_release
from irexec.cli.main import run
from irexec.errors import EngineError, InputError
from irexec.ir.shape_text import parse_shape
from irexec.schema.registry import definitions, opset_versions
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.reduce import FindingCheck, reduce
from tests.analysis.portability import ROWS, Row
from tests.analysis.portability.several_layers import SEVERAL_LAYERS, extreme
from tests.support.networks import unpacked
from tests.support.one_operation import One, one_operation
from tests.support.paths import DIGITS, IRS

Capture = pytest.CaptureFixture[str]


def model_of(row: Row, path: Path) -> One:
    """Write the model of a row to the .xml of this path."""
    known = {i: row.case.inputs[i].array.shape for i in row.parameters}
    one = one_operation(row.case, known | {i: parse_shape(text) for i, text in row.shapes.items()}, row.gathered)
    one.text.write(path)
    return one


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_it_is_found_where_it_is(row: Row, tmp_path: Path) -> None:
    model_of(row, tmp_path / "m.xml")
    model = irexec.read_model(tmp_path / "m.xml")
    found = irexec.validate(model, portability=True)
    assert [f.message for f in found if f.severity == "error" and not f.code.startswith("IR2")] == []
    assert (row.code in {f.code for f in found}) == row.fires
    assert all(CODES[f.code].severity == "info" for f in found if f.code in DIFFERENCES)
    assert {f.code for f in irexec.validate(model)} & set(DIFFERENCES) == set()


@pytest.mark.parametrize("row", [row for row in ROWS if row.fires], ids=lambda row: row.id)
def test_a_model_is_reduced_to_it(row: Row, tmp_path: Path) -> None:
    """What is beside the layer goes; a Parameter or Constant may be enough to have it."""
    model_of(row, tmp_path / "m.xml")
    model = irexec.read_model(tmp_path / "m.xml")
    builder = irexec.Builder("beside it")
    x = builder.parameter("f32", (2, 3), "beside")
    for type in ("Abs", "Sigmoid", "Negative"):
        x = builder.emit(type, x)
    builder.result(x)
    first = max(node.id for node in model.nodes) + 1
    for node in builder.model().nodes:
        node.id += first
        model.nodes.append(node)
    report = reduce(model, FindingCheck(row.code))
    assert {layer.type for layer in report.layers} <= {row.case.type, *(["GatherElements"] if row.gathered else [])}
    assert row.code in {finding.code for finding in irexec.validate(report.found.model, portability=True)}


def test_each_difference_has_rows_of_both_kinds() -> None:
    for fires in (True, False):
        assert {row.code for row in ROWS if row.fires is fires} | SEVERAL_LAYERS.keys() == set(DIFFERENCES), fires


@pytest.mark.parametrize("code", SEVERAL_LAYERS)
def test_a_difference_of_several_layers(code: str, live: bool) -> None:
    for fires, model in enumerate(SEVERAL_LAYERS[code]):
        assert (code in {found.code for found in irexec.validate(model, portability=True)}) == bool(fires)
        if live and fires and DIFFERENCES[code].effect == "fails":
            with pytest.raises(EngineError):
                compare(model, options=CompareOptions(b_runtime="openvino"))
        elif live:
            found = compare(model, options=CompareOptions(b_runtime="openvino"))
            assert found.agrees is not bool(fires)
            assert {one.code for one in found.known} == ({code} if fires else set())


@pytest.mark.parametrize(
    ("first", "before"), [("Abs", "Log"), ("Exp", "Sqrt"), ("epsilon", "Relu"), ("Sigmoid", "Log")]
)
def test_bounded_operands_give_no_nan(first: str, before: str) -> None:
    model = extreme("TopK", before, first=first)
    assert [one for one in irexec.validate(model, portability=True) if one.code in DIFFERENCES] == []


def test_differences_are_of_operations_that_exist() -> None:
    known = {definition.type for definition in definitions()}
    assert {type for row in DIFFERENCES.values() for type in row.types} <= known
    for row in DIFFERENCES.values():
        assert not row.does.endswith(".")
        for release in (row.since, row.until):
            assert release is None or parse_release(release)


@pytest.mark.parametrize("row", [row for row in ROWS if row.asked], ids=lambda row: row.id)
def test_openvino_does_what_is_said(row: Row, tmp_path: Path, live: bool) -> None:
    if not live:
        pytest.skip("asks OpenVINO, with --oracle")
    from tests.oracle.portability import sees

    one = model_of(row, tmp_path / "m.xml")
    seen = sees(row, one, tmp_path / "m.xml")
    assert (seen == DIFFERENCES[row.code].effect) == row.fires or (
        row.fires and DIFFERENCES[row.code].effect == "undefined values" and seen != "nothing"
    ), seen


TABLE = (
    ("classifier", "2026.4", set()),
    ("classifier", "2024.0", set()),
    ("classifier", "2023.3", {"IR901"}),
    ("classifier", "2021.4", {"IR901", "IR904"}),
)


@pytest.mark.parametrize(("name", "release", "codes"), TABLE)
def test_what_a_release_does_not_read(name: str, release: str, codes: set[str]) -> None:
    model = irexec.read_model(DIGITS / f"{name}.xml")
    assert {f.code for f in irexec.validate(model, release=release)} == codes


@pytest.mark.parametrize(
    ("release", "version", "found"),
    [
        ("2024.4", "opset15", ["IR902"]),
        ("2024.5", "opset15", []),
        ("2026.4", "opset17", ["IR902"]),
        ("2022.3", "opset10", []),
        ("2022.2", "opset10", ["IR902"]),
    ],
)
def test_an_opset_is_newer_than_the_release(release: str, version: str, found: list[str], tmp_path: Path) -> None:
    text = (IRS / "branch.xml").read_text("utf-8")
    (tmp_path / "m.xml").write_text(
        text.replace('type="Parameter" version="opset1"', f'type="Parameter" version="{version}"', 1), "utf-8"
    )
    model = irexec.read_model(tmp_path / "m.xml", IRS / "branch.bin")
    assert [f.code for f in irexec.validate(model, release=release) if f.code in ("IR901", "IR902")] == found


def test_element_types_are_newer_than_the_release() -> None:
    model = irexec.read_model(IRS / "types.xml")
    for release, codes in (("2023.1", 9), ("2023.2", 8), ("2024.2", 2), ("2024.3", 0)):
        assert [f.code for f in irexec.validate(model, release=release)].count("IR903") == codes, release


def test_releases() -> None:
    assert parse_release("2023.3") == parse_release("2023.3.0") == Release(2023, 3)
    for text in ("2019.3", "2027.0", "2023", "latest", "", "2023.x", "2023.3.0.1", "٢٠٢٣.3"):
        with pytest.raises(InputError, match=r"is not a known release of OpenVINO, expected 2020\.1 to 2026\.4"):
            parse_release(text)
    assert list(OPSETS.values()) == sorted(OPSETS.values())
    assert max(OPERATIONS.values()) == NEWEST
    assert set(OPERATIONS) <= set(opset_versions())
    assert [operation for operation in opset_versions() if first_release(*operation) is None] == []


def test_the_command(capsys: Capture) -> None:
    path = str(DIGITS / "classifier.xml")
    assert run(["validate", path, "--for", "2023.3", "--json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["code"], finding["layer_name"]) == ("IR901", "maxpool2")
    assert (
        finding["message"]
        == "OpenVINO 2023.3 does not have MaxPool of opset14; 2024.0 is the first that does; so it is in 1 more layer"
    )
    assert run(["validate", path, "--for", "2024.0", "--portability"]) == 0
    assert run(["validate", path, "--for", "2019.1"]) == 2
    capsys.readouterr()
    assert run(["validate", str(IRS / "dynamic.xml"), "--portability"]) == 0
    assert "IR960" in capsys.readouterr().out
    assert run(["validate", str(IRS / "dynamic.xml"), "--portability", "--ignore", "IR960"]) == 0
    assert "IR960" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["bilstm_tagger", "gru_tagger", "deberta", "swin", "ssd", "resnet18"])
def test_networks_of_every_day_have_none(name: str, tmp_path: Path) -> None:
    """Lengths of sequences that are sizes of the data, quotients of sizes: nothing differs there."""
    model = irexec.read_model(unpacked(name, tmp_path))
    assert [f for f in irexec.validate(model, portability=True) if f.code in DIFFERENCES] == []


def test_only_what_holds_for_the_release_is_reported(tmp_path: Path) -> None:
    for row in DIFFERENCES.values():
        if row.since is None and row.until is None:
            continue
        if row.code in SEVERAL_LAYERS:
            model = SEVERAL_LAYERS[row.code][-1]
        else:
            model_of(next(one for one in ROWS if one.code == row.code and one.fires), tmp_path / "m.xml")
            model = irexec.read_model(tmp_path / "m.xml")

        def found(release: str, model: irexec.Model = model) -> set[str]:
            return {f.code for f in irexec.validate(model, portability=True, release=release)}

        assert (row.code in found(str(NEWEST))) == (row.until is None)
        if row.until is not None:
            assert row.code not in found(row.until)
        if row.since is not None:
            assert row.code in found(row.since)
