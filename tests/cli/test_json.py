"""The document of --json of every command follows its schema in docs/reference/schemas, and its text is exact."""

from __future__ import annotations

import importlib.util
import json
import math
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irexec.cli.commands import COMMANDS
from irexec.cli.main import run
from irexec.cli.render import json_text, to_plain
from tests.support.fake_releases import fake_releases
from tests.support.language_model import language_model

ROOT = Path(__file__).parent.parent.parent
SCHEMAS = ROOT / "docs" / "reference" / "schemas"


@dataclass(frozen=True)
class Row:
    """A command line without --json.

    Attributes:
        line: {digits} is samples/digits, {samples}, {data} is tests/data and {tmp} an own folder with the files of ``_files``.
        code: the exit code; where it says that the command failed, the document is that of an error.
        needs: modules without which the row is skipped.
    """

    line: str
    code: int = 0
    needs: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        return self.line.split()[0]


ROWS = (
    Row("validate {digits}/classifier.xml"),
    Row("validate {digits}/classifier.xml {digits}/damaged.xml --ignore IR302 --weights", 1),
    Row("validate {digits} {tmp}/cut.xml", 3),
    Row("validate {samples}/execution_graph.xml"),
    Row("validate {digits}/classifier.xml --portability --for 2023.3", 1),
    Row("validate {data}/openvino/dynamic.xml --portability"),
    Row("validate {digits}/classifier.xml --for 2021.4 --fix {tmp}/fixed.xml"),
    Row("validate {data}/openvino/dynamic.xml --for NPU --fix {tmp}/npu.xml", 4),
    Row("demo {tmp}/demo"),
    Row("explain"),
    Row("explain IR103 IR007"),
    Row("ops"),
    Row("ops Conv"),
    Row("ops --onnx Conv", needs=("onnx",)),
    Row("ops --check {digits}/classifier.xml"),
    Row("ops --check {digits}/classifier.onnx", needs=("onnx",)),
    Row("ops --check {tmp}/unknown.xml", 4),
    Row("inspect {digits}/classifier.xml"),
    Row("inspect {digits}/classifier.xml --layers --ops --weights --plan --verbose"),
    Row("inspect {data}/openvino/tensor_iterator.xml --layers --weights --plan"),
    Row("inspect {data}/openvino/types.xml --layers --weights"),
    Row("inspect {data}/openvino/dynamic.xml --layers --plan"),
    Row("inspect {digits}/damaged.xml --layers"),
    Row("inspect {digits}/classifier.xml --cost --tree --depth 1 --precision --memory --histogram conv0.w --histogram Constant --bins 3"),
    Row("inspect {data}/openvino/tensor_iterator.xml --cost --tree --precision --memory"),
    Row("inspect {data}/openvino/dynamic.xml --cost --tree --precision --memory"),
    Row("inspect {digits}/damaged.xml --cost --tree --precision --memory"),
    Row("inspect {samples}/execution_graph.xml"),
    Row("inspect {samples}/execution_graph.xml --layers --ops"),
    Row("diff {digits}/denoiser.xml {digits}/denoiser_onednn.xml", 1),
    Row("diff {digits}/classifier.xml {digits}/damaged.xml --weights", 1),
    Row("diff {digits}/classifier.xml {digits}/classifier.xml --ignore names,values"),
    Row("diff {digits}/classifier.xml {digits}/damaged.xml --ignore values=1e-6 --ignore layer=conv*", 1),
    Row("diff {digits}/classifier.onnx {digits}/classifier.xml", needs=("onnx",)),
    Row("infer {digits}/classifier.xml -i random"),
    Row("infer {digits}/classifier.xml -i random --all --topk 2 --labels {digits}/labels.txt"),
    Row("infer {digits}/classifier.xml -i random --assert {tmp}/other.npz", 1),
    Row("infer {tmp}/not_finite.xml -i {tmp}/not_finite.npy"),
    Row("infer {tmp}/not_finite.xml -i {tmp}/not_finite.npy --trap nan", 1),
    Row("infer {tmp}/not_finite.xml -i {tmp}/not_finite.npy --trap inf --histogram"),
    Row("infer {digits}/classifier.xml -i random --trap f16,nan --record-range {tmp}/ranges.json --histogram --bins 3"),
    Row("infer {data}/openvino/tensor_iterator.xml -i random --trap range={tmp}/narrow.json", 1),
    Row("profile {digits}/classifier.xml --runs 1"),
    Row("profile {digits}/classifier.xml --runs 1 --by layer"),
    Row("profile {digits}/classifier.xml --runs 1 --by type"),
    Row("profile {digits}/classifier.xml --static"),
    Row("profile {data}/openvino/dynamic.xml --static"),
    Row("bench {digits}/classifier.xml --runs 1"),
    Row("test {tmp}/tested", 1),
    Row("bench {digits}/classifier.xml --runs 1 --threads 1 --against openvino", needs=("openvino",)),
    Row("convert {digits}/classifier.onnx -o {tmp}/a.xml", needs=("onnx",)),
    Row("convert {digits}/classifier.onnx -o {tmp}/a.xml --verify", needs=("onnx",)),
    Row("convert {digits}/classifier.xml -o {tmp}/a.onnx --verify --report {tmp}/r.json", needs=("onnx",)),
    Row("convert {digits}/classifier.xml -o {tmp}/a.xml --for 2021.4 --verify", needs=("onnx",)),
    Row("inside {digits}/classifier.xml -o {tmp}/a.xml --check", needs=("openvino",)),
    Row("upgrade {digits}/classifier_v5.xml -o {tmp}/a.xml"),
    Row("upgrade {digits}/classifier_v5.xml -o {tmp}/a.xml --verify"),
    Row("script {digits}/classifier.xml -o {tmp}/a.py"),
    Row("script {digits}/damaged.xml -o {tmp}/a.py", 3),
    Row("edit {digits}/classifier.xml -o {tmp}/a.xml --cut-to relu1 --batch 2"),
    Row("edit {digits}/classifier.xml --dry-run --rename *=n/*"),
    Row("edit {digits}/classifier.xml --dry-run --remove nowhere", 2),
    Row("join {digits}/denoiser.xml {digits}/classifier.xml --map cleaned=image -o {tmp}/a.xml"),
    Row("extract {digits}/classifier.xml --layers conv3,relu4 -o {tmp}/a.xml"),
    Row("reduce {digits}/damaged.xml -o {tmp}/min.xml --finding IR107"),
    Row("reduce {digits}/damaged.xml -o {tmp}/min.xml --finding IR302"),
    Row("reduce {digits}/classifier.xml -o {tmp}/min.xml --finding IR107", 1),
    Row("reduce {tmp}/faulty.xml -o {tmp}/min.xml --against {digits}/classifier.xml"),
    Row("generate {tmp}/language --ids 1,2 --max-new-tokens 2 --runtime reference"),
    Row("generate {tmp}/language -p text --max-new-tokens 1"),
    Row("generate {tmp} -p text", 3),
    Row("bisect {digits}/classifier.xml --openvino 2024.0..2025.0 --installed --environments {tmp}/releases", 1),
    Row("bisect {digits}/classifier.xml --openvino 2025.0..2024.0", 2),
    Row("judge {digits}/classifier.xml --runtime reference"),
    Row("judge {digits}/classifier.xml -i random --runtime {tmp}/other.npz --bundle {tmp}/fault", 1),
    Row("judge {digits}/classifier.xml -i random --sensitivity int8 --target 43"),
    Row("conform --runtime reference --ops Relu --quick"),
    Row("conform --runtime reference --ops Nothing", 2),
    Row("report {digits}/classifier.xml -o {tmp}/a.html --graph off"),
    Row("report {digits}/damaged.xml -o {tmp}/a.html --profile --runs 1"),
    Row("report {samples}/execution_graph.xml -o {tmp}/a.html"),
    Row("report {digits}/classifier.xml -o {tmp}/a.xml", 2),
    Row("batch {digits}/classifier.xml {digits} --scale 255 -o {tmp}/out.npz --jobs 1", needs=("PIL",)),
    Row("batch {digits}/classifier.xml {tmp}/other.npz -o {tmp}/out.jsonl --jobs 1", 1),
    Row("compare {digits}/classifier.xml {digits}/classifier.xml --a-runtime reference"),
    Row("compare {digits}/classifier.xml {digits}/classifier.xml --a-runtime reference --isolate"),
    Row("compare {digits}/classifier.xml {tmp}/faulty.xml -i random", 1),
    Row("compare {tmp}/other.npz {digits}/classifier.xml -i random", 1),
    Row("graph {digits}/classifier.xml"),
    Row("graph {digits}/damaged.xml -o {tmp}/a.dot --findings"),
    Row("graph {data}/openvino/tensor_iterator.xml -o {tmp}/a.mmd --bodies --cluster"),
    Row("graph {digits}/classifier.xml -o {tmp}/a.svg --profile --runs 1 --around conv0"),
    Row("graph {digits}/classifier.xml --around nowhere", 2),
    Row("serve =x", 2),
    Row("validate", 2),
    Row("validate {tmp}/missing.xml", 3),
    Row("inspect {tmp}/cut.xml", 3),
    Row("infer {tmp}/unknown.xml -i random", 4),
)  # fmt: skip


def _files(folder: Path) -> None:
    """Files that rows name as {tmp}/..."""
    language_model(folder / "language", 1500)
    fake_releases(folder / "releases", {"2024.0.0": "refuses", "2025.0.0": "refuses"})
    text = (ROOT / "samples/digits/classifier.xml").read_text("utf-8")
    (folder / "cut.xml").write_text(text[:500], "utf-8")
    (folder / "unknown.xml").write_text(text.replace('type="ReLU"', 'type="Relish"'), "utf-8")
    shutil.copy(ROOT / "samples/digits/classifier.bin", folder / "unknown.bin")
    (folder / "tested").mkdir()
    for file in (ROOT / "samples" / "digits").glob("classifier.[xb]*"):
        shutil.copy(file, folder / "tested")
    image = np.ones((1, 1, 8, 8), np.float32)
    np.savez(folder / "tested" / "classifier.inputs.npz", image=image)
    np.savez(folder / "tested" / "classifier.outputs.npz", probabilities=np.zeros((1, 10), np.float32))
    data = bytearray((ROOT / "samples/digits/classifier.bin").read_bytes())
    data[3] ^= 0x40
    (folder / "faulty.xml").write_text(text, "utf-8")
    (folder / "faulty.bin").write_bytes(data)
    np.savez(folder / "other.npz", probabilities=np.zeros((1, 10), np.float32), nothing=np.zeros(1))
    (folder / "not_finite.xml").write_text(_NOT_FINITE, "utf-8")
    (folder / "narrow.json").write_text(json.dumps(_NARROW), "utf-8")
    np.save(folder / "not_finite.npy", np.array([np.inf, np.nan, 1], np.float32))


_NARROW = {
    "format": "irexec ranges",
    "model": "m",
    "runs": 1,
    "tensors": {"TensorIterator_243/body/Add_236": [100, 101]},
}
_NOT_FINITE = """<net name="m" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="3" element_type="f32"/><output><port id="0" precision="FP32"><dim>3</dim></port></output></layer>
<layer id="1" name="y" type="Result" version="opset1"><input><port id="0" precision="FP32"><dim>3</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"""


def _schema(name: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every part of a schema that lists the keys of an object."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield schema
        for part in schema.values():
            yield from _objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _objects(part)


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without keys that it does not list: a new key must be described, although readers must accept it."""
    for part in _objects(schema):
        part.setdefault("additionalProperties", False)
    return schema


def test_each_command_has_a_schema_a_link_and_a_row() -> None:
    names = sorted(path.stem for path in SCHEMAS.glob("*.json"))
    assert names == sorted([*COMMANDS, "error"])
    page = (ROOT / "docs/reference/json.md").read_text("utf-8")
    assert [name for name in names if f"(schemas/{name}.json)" not in page] == []
    assert {*COMMANDS} - {row.command for row in ROWS} == set()


@pytest.mark.parametrize("name", sorted(path.stem for path in SCHEMAS.glob("*.json")))
def test_schemas_are_valid(name: str) -> None:
    schema = _schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.line)
@pytest.mark.sampled(8)
def test_documents_follow_their_schema(row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for module in row.needs:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    _files(tmp_path)
    folders = {
        "digits": ROOT / "samples/digits",
        "samples": ROOT / "samples",
        "data": ROOT / "tests/data",
        "tmp": tmp_path,
    }
    line = [word.format(**folders) for word in shlex.split(row.line)]
    assert run([*line, "--json"]) == row.code
    out = capsys.readouterr().out
    # A command that works for long reports in lines.
    for document in map(json.loads, out.splitlines() if row.command == "batch" else [out]):
        name = "error" if "error" in document else row.command
        jsonschema.validate(document, _closed(_schema(name)), cls=jsonschema.Draft202012Validator)


def test_a_new_key_needs_a_line_of_the_schema() -> None:
    document = {"schema": 1, "error": {"type": "ModelError", "message": "m", "exit_code": 3}}
    jsonschema.validate(document, _closed(_schema("error")))
    for changed in (
        {**document, "new": 1},
        {**document, "error": {**document["error"], "new": 1}},
        {**document, "schema": 2},
    ):
        jsonschema.validate({**changed, "schema": 1}, _schema("error"))
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(changed, _closed(_schema("error")))


# The text of JSON: exact in every value, indented, with the members of a long list in a line each.


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), st.sampled_from([None, 1, 2]), st.booleans())
def test_short_documents_are_as_json_writes_them(
    document: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    plain = to_plain(document)
    expected = json.dumps(plain, indent=indent, ensure_ascii=ascii_only, allow_nan=False)
    assert json_text(plain, indent, ascii_only=ascii_only) == expected


def test_members_of_a_long_list_are_a_line_each() -> None:
    document = to_plain(
        {"a": 1, "all": [{"name": "line\nbreak", "position": (0, n)} for n in range(2000)], "b": [1, 2]}
    )
    text = json_text(document, 2, ascii_only=False)
    assert json.loads(text) == document
    lines = text.splitlines()
    assert lines[:4] == ["{", '  "a": 1,', '  "all": [', '    {"name": "line\\nbreak", "position": [0, 0]},']
    assert lines[-6:] == ["  ],", '  "b": [', "    1,", "    2", "  ]", "}"]
    assert len(lines) == 2000 + 9


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(math.nan, None, id="NaN"),
        pytest.param(-math.inf, "-inf", id="infinity"),
        pytest.param((1, 2.5), [1, 2.5], id="tuple"),
        pytest.param({1: {"b": ()}}, {"1": {"b": []}}, id="key"),
        pytest.param(range(2), "range(0, 2)", id="another type"),
    ],
)
def test_values_that_json_lacks(value: object, expected: object) -> None:
    assert to_plain(value) == expected
