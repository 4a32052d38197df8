"""Differences between implementations: validate --portability and --for, devices, and layers that OpenVINO refuses."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irexec
from irexec import Model, Tensor, opset
from irexec.analysis.builder import Builder
from irexec.analysis.codes import CODES
from irexec.analysis.portability import DIFFERENCES
from irexec.analysis.portability.findings import DEVICES, NOT_TAKEN, Target, parse_target
from irexec.analysis.portability.releases import NEWEST, OPERATIONS, OPSETS, Release, first_release, parse_release
from irexec.authoring.downgrade import downgrade
from irexec.cli.main import run
from irexec.errors import EngineError, InputError
from irexec.io import write_text
from irexec.ir.shape_text import parse_shape
from irexec.runtime.compiled_model import CompiledModel
from irexec.schema.registry import definitions, opset_versions
from irexec.testing import Case, case, random, typed
from irexec.tools.compare import CompareOptions, compare
from irexec.tools.reduce import FindingCheck, reduce
from tests.analysis.portability import ROWS, Row
from tests.analysis.portability.several_layers import SEVERAL_LAYERS, attended, extreme, with_levels
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


@pytest.mark.sampled(4)
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
@pytest.mark.sampled(8)
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


_SWITCHED_ON = {"IR1001": {"LP_TRANSFORMS_MODE": "YES"}}
"""Properties of OpenVINO with which it has a difference."""


@pytest.mark.parametrize("code", SEVERAL_LAYERS)
def test_a_difference_of_several_layers(code: str, live: bool) -> None:
    for fires, model in enumerate(SEVERAL_LAYERS[code]):
        assert (code in {found.code for found in irexec.validate(model, portability=True)}) == bool(fires)
        if live and fires and DIFFERENCES[code].effect == "fails":
            with pytest.raises(EngineError):
                compare(model, options=CompareOptions(b_runtime="openvino"))
        elif live:
            properties = _SWITCHED_ON.get(code)
            found = compare(model, options=CompareOptions(b_runtime="openvino", properties=properties))
            assert found.agrees is not bool(fires)
            assert {one.code for one in found.known} == ({code} if fires else set())


@pytest.mark.parametrize(
    ("first", "before"), [("Abs", "Log"), ("Exp", "Sqrt"), ("epsilon", "Relu"), ("Sigmoid", "Log")]
)
def test_bounded_operands_give_no_nan(first: str, before: str) -> None:
    model = extreme("TopK", before, first=first)
    assert [one for one in irexec.validate(model, portability=True) if one.code in DIFFERENCES] == []


@pytest.mark.parametrize("type", ["Gather", "Concat", "Assign"])
def test_a_chain_that_is_a_cycle_has_an_end(type: str) -> None:
    model = attended(causal=True)
    stuck = next(node for node in model.nodes if node.type == type)
    source = stuck if stuck.outputs else next(node for node in model.nodes if node.type == "ScaledDotProductAttention")
    next(node for node in model.nodes if node.type == "Gather").ports[0].source = source.outputs[0]
    found = {finding.code for finding in irexec.validate(model, portability=True)}
    assert "IR1002" not in found and found


def test_a_matmul_of_levels_keeps_their_zero_point() -> None:
    model = with_levels(-0.504, 2.046, "MatMul")
    assert "IR1001" not in {found.code for found in irexec.validate(model, portability=True)}


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
        ("2024.4", "opset15", ["IR902"]), ("2024.5", "opset15", []), ("2026.4", "opset17", ["IR902"]),
        ("2022.3", "opset10", []), ("2022.2", "opset10", ["IR902"]),
    ],
)  # fmt: skip
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


# What a device refuses, and how a model is written for it.


_WINDOWS = {"strides": [1], "pads_begin": [0], "pads_end": [0], "dilations": [1]}


def _of(type: str, version: int, *shapes: str, **attributes: object) -> Model:
    """A model of one layer, whose inputs are as "f32 2,?" says."""
    builder, operands = Builder("m"), []
    for i, text in enumerate(shapes):
        element, _, sizes = text.partition(" ")
        shape = None if sizes == "..." else [irexec.Dim() if size == "?" else int(size) for size in sizes.split(",")]
        operands.append(builder.parameter(element, shape, f"x{i}"))
    found = builder.emit(type, *operands, version=version, **attributes)
    builder.result(found[0] if isinstance(found, tuple) else found)
    return builder.model()


def test_the_tables_name_versions_of_operations() -> None:
    assert set(NOT_TAKEN) == set(DEVICES)
    assert set().union(*NOT_TAKEN.values()) <= set(opset_versions())


def test_targets() -> None:
    assert parse_target("gpu") == Target(NEWEST, "GPU")
    assert str(parse_target("2023.3.0")) == "2023.3"
    with pytest.raises(InputError, match=r"'TPU' is not a known release of OpenVINO, .*, CPU, GPU or NPU"):
        parse_target("TPU")


@pytest.mark.parametrize(
    ("device", "model", "says"),
    [
        ("NPU", _of("IsNaN", 10, "f32 2"), "the NPU does not have IsNaN-10"),
        ("NPU", _of("Relu", 1, "f32 ?"), "the NPU does not take sizes without an upper bound"),
        ("NPU", _of("Relu", 1, "f32 ..."), "the NPU does not take tensors of unknown rank; so it is in 1 more layer"),
        ("NPU", _of("Identity", 16, "string 2"), "the NPU does not compute in string; so it is in 1 more layer"),
        ("GPU", _of("Inverse", 14, "f32 2,2", adjoint=False), "the GPU does not have Inverse-14"),
        ("GPU", _of("Softmax", 8, "f32 ...", axis=1), "the GPU does not take a Softmax of unknown rank"),
        ("CPU", _of("RGBtoNV12", 17, "u8 1,4,4,3", single_plane=True), "has no kernel for it (IR959)"),
    ],
)  # fmt: skip
def test_what_a_device_refuses(device: str, model: Model, says: str) -> None:
    found = irexec.validate(model, release=device)
    assert {(one.code, one.severity) for one in found} == {("IR908", "error")}
    assert any(one.message.endswith(says) for one in found)


def test_what_is_computed_from_constants_never_comes_to_a_device() -> None:
    builder = Builder("m")
    unique = builder.emit("Unique", np.array([3, 3, 1], np.int32), version=10, sorted=True)
    builder.result(builder.emit("Add", builder.parameter("i32", [1], "x"), unique[0], version=1))
    assert not irexec.validate(builder.model(), release="NPU")


@pytest.mark.parametrize(
    ("device", "model", "into"),
    [
        ("NPU", _of("SoftSign", 9, "f32 3"), ("Abs-1", "Add-1", "Divide-1")),
        ("GPU", _of("BitwiseNot", 13, "i32 3"), ("Subtract-1",)),
        ("CPU", _of("GroupConvolutionBackpropData", 1, "f32 1,2,4", "f32 1,2,3,2", **_WINDOWS), ("Squeeze-1", "ConvolutionBackpropData-1")),
        ("CPU", _of("Subtract", 1, "f32 2,3,4", "f32 2,3", auto_broadcast="pdpd"), ("Unsqueeze-1", "Subtract-1")),
    ],
)  # fmt: skip
def test_layers_are_written_for_a_device(device: str, model: Model, into: tuple[str, ...]) -> None:
    found = downgrade(model, device)
    assert not found.findings
    assert [one.into for one in found.changes] == [into]
    assert not irexec.validate(found.model, release=device)


def test_the_command_that_fixes(tmp_path: Path, capsys: Capture) -> None:
    source, target = tmp_path / "m.xml", tmp_path / "npu.xml"
    irexec.save_model(_of("SoftSign", 9, "f32 3"), source)
    assert run(["validate", str(source), "--for", "npu", "--fix", str(target), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["code"] for one in document["findings"]] == ["IR908"]
    assert [one["agrees"] for one in document["fix"]["verify"]["outputs"]] == [True]
    x = np.array([-1, 0, 3], np.float32)
    np.testing.assert_allclose(CompiledModel(irexec.read_model(target))([x])[0], x / (1 + abs(x)), rtol=1e-6)


def test_the_command_says_what_it_cannot_fix(tmp_path: Path, capsys: Capture) -> None:
    source = tmp_path / "m.xml"
    irexec.save_model(_of("Inverse", 14, "f32 2,2", adjoint=False), source)
    assert run(["validate", str(source), "--for", "GPU", "--fix", str(tmp_path / "gpu.xml")]) == 4
    assert "1 finding: nothing is written for the GPU" in capsys.readouterr().out
    assert not (tmp_path / "gpu.xml").exists()
    assert run(["validate", str(source), "--for", "GPU", "--fix", str(source)]) == 2
    assert f"--fix {source} is the model, which would be overwritten" in capsys.readouterr().err
    for arguments in (["--fix", "a.xml"], ["--for", "GPU", "--fix", "a.xml", "--format", "sarif"]):
        assert run(["validate", str(source), *arguments]) == 2


# Layers that OpenVINO refuses are findings, although shape inference accepts them.


def _parts(shape: str) -> irexec.Model:
    x, lengths = opset.parameter([4], "f32", name="x"), opset.parameter(shape, "i64", name="lengths")
    parts = opset.variadic_split(x, np.int64(0), lengths)
    return irexec.Model([parts if isinstance(parts, Tensor) else parts[0]], [x, lengths])


def _transform(element: str) -> irexec.Model:
    x = opset.parameter([4, 2], element, name="x")
    return irexec.Model([opset.dft(x, np.array([0], np.int64))], [x])


def _mapped(mode: str) -> irexec.Model:
    x = opset.parameter([3], "f32", name="x")
    axes = np.array([1 if mode == "explicit" else 0], np.int64)
    return irexec.Model([opset.broadcast(x, np.array([2, 3], np.int64), axes, mode=mode)], [x])


@pytest.mark.parametrize(
    ("make", "argument", "message"),
    [
        (_mapped, "explicit", None),
        (_mapped, "numpy", "axes_mapping is given, though mode is not explicit"),
        (_transform, "f16", None),
        (_transform, "f64", "data is f64, expected bf16, f16 or f32"),
        (_parts, "2", None),
        (_parts, "?", "the length of split_lengths, and so the number of outputs, is not known"),
    ],
)
def test_layers_that_openvino_refuses(make: Any, argument: Any, message: str | None) -> None:
    model = make("2" if make is _parts else argument)
    if argument == "?":
        model.reshape({"lengths": "?"})
    assert [finding.message for finding in irexec.validate(model)] == [message] * (message is not None)
    ov = pytest.importorskip("openvino")
    text, weights = write_text(model)
    with pytest.raises(RuntimeError) if message else nullcontext():
        ov.Core().read_model(text, ov.Tensor(np.frombuffer(bytes(weights), np.uint8)))


_IMAGE = random("f32", 1, 2, 3, 3)
_NEAREST = {"mode": "nearest", "nearest_mode": "floor"}
_BY_SIZES, _BY_SCALES = ({"shape_calculation_mode": mode, **_NEAREST} for mode in ("sizes", "scales"))


def _blocks(type: str, *elements: str) -> Case:
    data = random("f32", 4, 2, 2) if type == "BatchToSpace" else random("f32", 1, 4, 4)
    values = ([1, 2, 2], [0, 0, 0], [0, 0, 0])
    return case(type, 2, data, *map(typed, elements, values), id=f"{type} {' '.join(elements)}")


def _columns(*elements: str) -> Case:
    sizes = map(typed, elements, ([4, 4], [2, 2]))
    attributes = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    return case("Col2Im", 15, random("f32", 1, 4, 9), *sizes, id=f"Col2Im {' '.join(elements)}", **attributes)


def _largest(since: int, element: str) -> Case:
    k = typed(element, 1)
    return case("TopK", since, random("f32", 2, 5), k, id=f"TopK-{since} {element}", axis="1", mode="max", sort="value")


def _resized_4(sizes: str, scales: str, axes: str) -> Case:
    inputs = typed(sizes, [6, 6]), typed(scales, [2, 2]), typed(axes, [2, 3])
    return case("Interpolate", 4, _IMAGE, *inputs, id=f"Interpolate-4 {sizes} {scales} {axes}", **_BY_SIZES)


def _resized_11(given: str, axes: str = "i64") -> Case:
    by, values = (_BY_SCALES, [2, 2]) if given.startswith(("f", "b")) else (_BY_SIZES, [6, 6])
    return case(
        "Interpolate", 11, _IMAGE, typed(given, values), typed(axes, [2, 3]), id=f"Interpolate-11 {given} {axes}", **by
    )


_SIZES = "expected i32, i64, u32 or u64"
_SCALES = "expected f32, f16 or bf16"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (_blocks("BatchToSpace", "i32", "i32", "i32"), None),
        (_blocks("BatchToSpace", "i64", "i64", "i32"), "block_shape is i64, crops_begin is i64, crops_end is i32, expected one element type"),
        (_blocks("SpaceToBatch", "i64", "i64", "i32"), None),
        (_columns("i32", "i32"), None),
        (_columns("i32", "i64"), "output_size is i32, kernel_size is i64, expected one element type"),
        *((_largest(1, element), None) for element in ("i8", "i32", "i64")),
        *((_largest(1, one), f"k has element type {one}, expected i8, i32 or i64") for one in ("u8", "i16", "u64")),
        *((_largest(since, "u16"), None) for since in (3, 11)),
        (_resized_4("u64", "bf16", "u32"), None),
        (_resized_4("u8", "f32", "i64"), f"output_shape has element type u8, {_SIZES}"),
        (_resized_4("i64", "f64", "i64"), f"scales has element type f64, {_SCALES}"),
        (_resized_4("i64", "f32", "i8"), f"axes has element type i8, {_SIZES}"),
        *((_resized_11(given), None) for given in ("i32", "u64", "f16", "f32")),
        (_resized_11("i4"), f"scales_or_sizes has element type i4, {_SIZES}"),
        (_resized_11("i16"), f"scales_or_sizes has element type i16, {_SIZES}"),
        (_resized_11("f64"), f"scales_or_sizes has element type f64, {_SCALES}"),
        (_resized_11("i64", "u16"), f"axes has element type u16, {_SIZES}"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)  # fmt: skip
def test_element_types_that_openvino_refuses(row: Case, message: str | None, tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    one_operation(row, {0: row.inputs[0].array.shape}).text.write(path)
    found = irexec.validate(irexec.read_model(path))
    assert [one.message.split("; inputs")[0] for one in found if one.code == "IR107"] == [message] * (
        message is not None
    )
    ov = pytest.importorskip("openvino")
    with pytest.raises(RuntimeError) if message else nullcontext():
        ov.Core().read_model(path)
