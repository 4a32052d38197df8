"""Every operation through its function of irexec.opset: the same model as Builder makes, and the stub of the functions."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import irexec
from irexec import io, opset
from irexec.authoring import operations
from irexec.authoring.operations import WRITTEN, function_name, function_of
from irexec.authoring.tensor import Tensor
from irexec.schema.opdef import OpDef
from irexec.schema.registry import NEWEST_OPSET, definitions, newest
from irexec.testing import Case, model_of
from irexec.testing.rows import read_attributes
from tests.docs.pages import blocks
from tests.support.cases import families
from tests.support.paths import ROOT

_ROWS: dict[OpDef, list[Case]] = {}
for _rows in families().values():
    for _row in _rows:
        if isinstance(_row, Case):
            _ROWS.setdefault(_row.definition, []).append(_row)
_FUNCTIONS = [definition for definition in definitions() if definition.type not in WRITTEN]
# Operations without rows; their tests are those of the variables of a model.
_STATES = {"Assign", "ReadValue"}


def _id(definition: OpDef) -> str:
    return f"{definition.type}-{definition.since}"


def _function(definition: OpDef) -> object:
    """The function as users find it."""
    name = function_name(definition.type)
    is_number = isinstance(definition.since, int)
    owner = getattr(opset, definition.version) if is_number else opset.extension(definition.version)
    return getattr(owner, name)


def _model(row: Case) -> irexec.Model:
    """The model of a row as irexec.testing.model_of makes it with Builder."""
    inputs = [opset.parameter(x.array.shape, x.element, f"input{i}") for i, x in enumerate(row.inputs)]
    made = _function(row.definition)(
        *inputs, **row.definition.ungrouped(read_attributes(row.definition, row.attributes))
    )  # type: ignore[operator]
    return irexec.Model(made if isinstance(made, tuple) else [made], inputs, name="case")


@pytest.mark.parametrize("definition", _FUNCTIONS, ids=_id)
@pytest.mark.sampled(8)
def test_the_model_of_every_row_is_that_of_builder(definition: OpDef) -> None:
    for row in _ROWS.get(definition, []):
        made, expected = _model(row), model_of(row)[0]
        assert io.write_text(made) == io.write_text(expected), row.id


@pytest.mark.parametrize("definition", _FUNCTIONS, ids=_id)
def test_a_model_of_every_operation_validates_and_runs(definition: OpDef) -> None:
    """Its values are those of the model of Builder, which the laws compare with the answers of the row."""
    rows = _ROWS.get(definition, [])
    assert rows or definition.type in _STATES
    for row in rows[:1]:
        model = _model(row)
        assert [finding for finding in irexec.validate(model) if finding.severity == "error"] == []
        outputs = irexec.compile_model(model)([x.array for x in row.inputs])
        expected = irexec.compile_model(model_of(row)[0])([x.array for x in row.inputs])
        assert [value.tobytes() for value in outputs.values() if value.dtype != object] == [
            value.tobytes() for value in expected.values() if value.dtype != object
        ]


def test_every_operation_has_a_function() -> None:
    assert all(callable(getattr(opset, function_name(type))) for type in WRITTEN)
    for definition in _FUNCTIONS:
        assert _function(definition) is function_of(definition)
        assert getattr(opset, function_name(definition.type)) is function_of(newest(definition.type))
    names = [function_name(definition.type) for definition in definitions()]
    assert len(set(names)) == len({definition.type for definition in definitions()})
    assert all(name.isidentifier() and name == name.lower() for name in names)


def test_no_attribute_has_the_name_of_a_parameter_of_all_functions() -> None:
    for definition in _FUNCTIONS:
        names = [parameter.parameter for parameter in definition.attributes] + [spec.name for spec in definition.inputs]
        assert not {"name", "names"} & set(names)


def test_an_opset_has_the_newest_version_that_is_not_newer() -> None:
    assert opset.opset1.softmax is not opset.softmax is opset.opset8.softmax
    assert opset.opset8.softmax is getattr(opset, f"opset{NEWEST_OPSET}").softmax
    assert opset.opset2.gelu.__doc__.startswith("Gelu of opset2.")
    with pytest.raises(AttributeError, match=r"^opset1 has no operation 'gelu'$"):
        opset.opset1.gelu  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"^module 'irexec\.opset' has no attribute 'gelo'$"):
        opset.gelo  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(
        AttributeError, match=r"^no operation has the namespace 'mine': no plug-in with it is in IREXEC_PLUGINS$"
    ):
        opset.extension("mine")


def test_signatures_and_docstrings() -> None:
    assert str(inspect.signature(opset.gelu)) == (
        '(data: Operand, *, approximation_mode: Literal["erf", "tanh"] = \'erf\', name: str | None = None, '
        "names: Sequence[str] = ()) -> Tensor"
    )
    assert "topk" in dir(opset)
    assert "topk" in dir(opset.opset1)
    assert "gelu" not in dir(opset.opset1)
    for definition in _FUNCTIONS:
        assert function_of(definition).__doc__.startswith(f"{definition.type} of {definition.version}. ")


def test_the_annotation_of_the_outputs_is_what_is_returned() -> None:
    for definition, rows in _ROWS.items():
        if definition.type in WRITTEN:
            continue
        row = rows[0]
        inputs = [opset.constant(x.array, x.element) for x in row.inputs]
        attributes = definition.ungrouped(read_attributes(definition, row.attributes))
        made = function_of(definition)(*inputs, **attributes)
        annotation = str(inspect.signature(function_of(definition)).return_annotation)
        if annotation == "Any":
            assert definition.type in ("BGRtoNV12", "RGBtoNV12")
        elif isinstance(made, Tensor):
            assert annotation == "Tensor", definition
        else:
            assert annotation in (f"tuple[{', '.join(['Tensor'] * len(made))}]", "tuple[Tensor, ...]"), definition


def test_wrong_arguments_are_type_errors_that_name_the_function() -> None:
    x = opset.parameter([1], "f32", "x")
    with pytest.raises(TypeError, match=r"^relu\(\) of opset1: missing a required argument: 'data'$"):
        opset.relu()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^relu\(\) of opset1: got an unexpected keyword argument 'axis'$"):
        opset.relu(x, axis=1)  # type: ignore[call-arg]
    by_name = r"\(inputs: data, shape; attributes, given by name: special_zero\)"
    with pytest.raises(TypeError, match=rf"^reshape\(\) of opset1: too many positional arguments {by_name}$"):
        opset.reshape(x, [1], True)  # type: ignore[call-arg]
    with pytest.raises(
        irexec.NodeError, match=r"^layer 'g' \(Gelu of opset7\): attribute 'approximation_mode': 'x' is"
    ):
        opset.gelu(x, approximation_mode="x", name="g")  # type: ignore[arg-type]


def test_the_stub_has_every_function() -> None:
    """Classes of versions with a method for each operation that is new in them, and the newest of each at the end."""
    tree = ast.parse(operations.text())
    classes = {
        node.name: {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    for definition in _FUNCTIONS:
        number = definition.since
        owner = f"Opset{number}" if isinstance(number, int) else f"Extension{number.title()}"
        assert function_name(definition.type) in classes[owner]
    assigned = {
        node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    imported = {
        name.asname for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names if name.asname
    }
    assert assigned | imported | {"extension"} >= {
        function_name(definition.type) for definition in definitions()
    } | set(opset._WRITTEN)
    assert max(map(len, operations.text().splitlines())) <= 120


_SAMPLE = """
import numpy as np
from irexec import Model, Tensor, infer, opset, to_onnx

x: Tensor = opset.parameter([1, 3, 8, 8], "f32", "x")
y: Tensor = opset.gelu(2 - x * 2 + 1, approximation_mode="tanh") @ x
values, indices = opset.topk(y[..., 1:3], 1, axis=-1, mode="max", sort="none")
old: Tensor = opset.opset2.gelu(y)
model: Model = Model([values.named("y"), old], [x], name="sample")

opset.relu()  # call-arg
opset.gelu(y, approximation_mod="tanh")  # call-arg
opset.gelu(y, approximation_mode="tan")  # arg-type
opset.opset2.gelu(y, approximation_mode="tanh")  # call-arg
opset.softmax(y, axis="1")  # arg-type
opset.topk(y, 1, axis=-1, mode="max")  # call-arg
opset.opset1.gelu(y)  # attr-defined
opset.gelo(y)  # attr-defined
a, b, c = opset.topk(y, 1, axis=-1, mode="max", sort="none")  # misc
opset.relu(y).softmax()  # attr-defined
opset.relu(object())  # arg-type

shapes: dict[str, str] = {"x": "1,3,?,?"}
model.reshape(shapes)
with model.edit() as g:
    g.rename("x", "image")
    steps: list[str] = g.steps
    g.rename("x")  # call-arg
    g.set_bach(2)  # attr-defined
weights: np.ndarray = model["weights"].array
rank: int = len(model["image"].outputs[0].shape or ())
result: np.ndarray = infer(model, {"x": weights}, ["image"])[0]
to_onnx(model, "sample.onnx")
"""


_CHECKERS = {
    # Bodies of functions of modules whose errors are not reported are not checked.
    "mypy": ["--strict", "--no-error-summary", "--cache-dir", os.devnull, "--follow-imports", "silent"],
    "pyright": ["--pythonpath", sys.executable],
}


@pytest.mark.parametrize("checker", _CHECKERS)
@pytest.mark.sampled(2)
def test_checkers_of_types_find_wrong_calls(checker: str, tmp_path: Path) -> None:
    """All examples of the guide are right."""
    pytest.importorskip(checker)
    (tmp_path / "sample.py").write_text(_SAMPLE, "utf-8")
    guide = [
        block.text for block in blocks((ROOT / "docs/python/guide.md").read_text("utf-8")) if block.language == "python"
    ]
    (tmp_path / "guide.py").write_text("\n".join(guide), "utf-8")
    # A checkout has no stub unless irexec was installed from it.
    package = Path(irexec.__file__).parent
    shutil.copytree(package, tmp_path / "irexec", ignore=shutil.ignore_patterns("__pycache__", "built", "source"))
    (tmp_path / "irexec" / operations.FILE.name).write_text(operations.text(), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", checker, *_CHECKERS[checker], "sample.py", "guide.py"],
        cwd=tmp_path, env=os.environ | {"MYPYPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    # pyright brings a program for Node, which it fetches when it first runs.
    if checker == "pyright" and "errors," not in done.stdout:
        pytest.skip(f"pyright cannot be started: {done.stderr[-200:]}")
    found = re.findall(r"^.*sample\.py:(\d+).*? error: (?:.*\[(.*)\]$)?", done.stdout, re.MULTILINE)
    wrong = [(str(i), line.partition("  # ")[2]) for i, line in enumerate(_SAMPLE.splitlines(), 1) if "  # " in line]
    # pyright's rules have other names.
    expected = wrong if checker == "mypy" else [(line, "") for line, _ in wrong]
    assert found == expected and "guide.py" not in done.stdout, done.stdout + done.stderr
