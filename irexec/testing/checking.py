"""``check``: all that must hold of a row of a plug-in, and of its conversion from ONNX; ``parametrize``: rows as
tests of pytest.

The tests of irexec hold these for its own operations in other ways.
"""

from __future__ import annotations

import runpy
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.model import Model
from irexec.analysis.shape_inference import infer_shapes
from irexec.api import compile_model, validate
from irexec.dtypes.elements import F32, I64
from irexec.errors import InputError
from irexec.ir import codes
from irexec.ir.facts import Fact
from irexec.reading import convert
from irexec.runtime.session import StepRun
from irexec.testing.kernels import check_kernels
from irexec.testing.laws import LAWS, Arrays, assert_same, can_run, every_law, inferred, refusal, refused_when_it_runs
from irexec.testing.rows import Case, FactsCase, Row, Typed, model_of, read_attributes
from irexec.tools.diff import diff
from irexec.tools.operations import matching
from irexec.tools.script import script


def observed_runs_are_the_same(row: Case, expected: Arrays) -> None:
    """A run that is observed gives the same, and the observer sees the outputs of the layer, unless compilation has
    computed a layer without inputs."""
    for optimize in (False, True):
        model, fed = model_of(row)
        compiled = compile_model(model, optimize=optimize, precision="as-written")
        seen: list[list[np.ndarray]] = []

        def observe(step: StepRun, seen: list[list[np.ndarray]] = seen) -> None:
            if step.operation == row.type:
                seen.append([output.copy() for output in step.outputs if output is not None])

        assert_same(list(compiled.run(fed, on_layer=observe).values()), expected, row)
        assert len(seen) == 1 or not (seen or row.inputs), f"the layer is observed {len(seen)} times, expected once"
        for outputs in seen:
            assert_same(outputs, expected, row)


def fast_kernels_agree(row: Case, expected: Arrays) -> None:
    """Each fast kernel gives what the reference kernel gives, for all orders in memory and numbers of threads."""
    if row.definition.fast_kernels and all(x.element.native for x in row.inputs):
        attributes = row.definition.ungrouped(read_attributes(row.definition, row.attributes))
        arrays = [x.array for x in row.inputs]
        check_kernels(row.type, row.definition.version, arrays, attributes, only=False)


def wrong_ports_are_found(row: Case, expected: Arrays) -> None:
    """The validator finds an output port that declares another shape or element type."""
    for index, result in enumerate(expected):
        for code in (codes.OUTPUT_SHAPE, codes.OUTPUT_ELEMENT):
            model, _ = model_of(row)
            output = next(node for node in model.nodes if node.type == row.type).outputs[index]
            fact = infer_shapes(model).facts[output]
            if code == codes.OUTPUT_SHAPE:
                output.fact = Fact(fact.element, (*result.shape, 3))
            else:
                output.fact = Fact(I64 if fact.element is F32 else F32, fact.shape)
            found = [finding.code for finding in validate(model) if finding.layer_type == row.type]
            assert code in found, f"output {index} declares {output.fact}, of which validate finds {found}"


def its_script_makes_it_again(row: Case, expected: Arrays) -> None:
    """``irexec script`` writes Python that makes the same model again."""
    model, _ = model_of(row, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.py"
        script(model, path)
        made = runpy.run_path(str(path))["model"]()
    changes = diff(model, made)
    assert changes.is_empty, f"the model that the script makes has changed: {changes.summary()}"


def it_is_documented(row: Case, expected: Arrays) -> None:
    """``irexec ops`` shows a sentence about the operation, which is the first line of its docstring."""
    identity = row.type, row.definition.version
    (line,) = [line for line in matching((row.type,)) if (line.type, line.version) == identity]
    assert line.summary.endswith("."), f"the kernel of {row.type} has no sentence as its docstring"


PLUGIN_LAWS = (
    *LAWS,
    observed_runs_are_the_same,
    fast_kernels_agree,
    wrong_ports_are_found,
    its_script_makes_it_again,
    it_is_documented,
)


def check(row: Row) -> None:
    """Run a row through all laws.

    The results of a ``case`` are the expected ones: of the reference kernel, of fast kernels, of the model written,
    read and compiled with every option, on one thread and two, observed and not, again and again. Shape inference
    admits them however little is known of the inputs, the validator finds a wrong port, the script of the model makes
    it again, and the operation is documented. The results of a ``facts_case`` are those of shape inference, and what
    ``refuses`` lists is refused by shape inference and by a run.

    Raises:
        AssertionError: a law does not hold; its name is in the notes. ExceptionGroup for several laws.
        InputError: the row has no expected outputs.
    """
    if isinstance(row, Case):
        if row.gives is None:
            raise InputError(f"the row {row.id} has no expected outputs")
        every_law(row, row.gives, PLUGIN_LAWS)
    elif isinstance(row, FactsCase):
        inferred(row)
    else:
        refusal(row)
        if can_run(row):
            refused_when_it_runs(row)


def parametrize(rows: Iterable[Row]) -> Any:
    """Decorator of a test of pytest with a parameter ``row``: it is run for each row, whose id is in its name.

    Raises:
        InputError: two rows have the same id.
    """
    import pytest

    found = list(rows)
    for name, count in Counter(row.id for row in found).items():
        if count > 1:
            raise InputError(f"{count} rows have the id {name!r}")
    return pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in found])


def check_conversion(
    row: Case, domain: str, type: str, *, opset: int = 1, attributes: Mapping[str, Any] | None = None
) -> Model:
    """Convert an ONNX operator, run it, and assert the results of a row; the converted model is returned.

    An ONNX model of one node is converted and run, with inputs and with initializers.

    Args:
        row: inputs and expected outputs of the node.
        domain, type, opset: the operator.
        attributes: attributes of the ONNX node; those of the row unless given.

    Raises:
        InputError: the row has no expected outputs, or ONNX lacks a type of its inputs.
        ConversionError: the model cannot be converted, or the package onnx is not installed.
    """
    if row.gives is None:
        raise InputError(f"the row {row.id} has no expected outputs")
    if attributes is None:
        attributes = row.definition.ungrouped(read_attributes(row.definition, row.attributes))
    converted = None
    for first_constant in (None, 1, 0):
        content = _onnx_model(row, domain, type, opset, attributes, first_constant)
        converted = convert(content)
        errors = [finding for finding in validate(converted) if finding.severity == "error"]
        assert not errors, f"the converted model has {errors}"
        fed = [x.array for x in row.inputs[:first_constant]]
        assert_same(list(compile_model(converted)(fed).values()), row.gives, row)
    assert converted is not None
    return converted


def _onnx_model(
    row: Case, domain: str, type: str, opset: int, attributes: Mapping[str, Any], first_constant: int | None
) -> bytes:
    """An ONNX file of one node; inputs from ``first_constant`` on are initializers."""
    from onnx import helper

    names = [f"input{i}" for i in range(len(row.inputs))]
    outputs = [f"output{i}" for i in range(len(row.gives or ()))]
    node = helper.make_node(type, names, outputs, domain=domain, **attributes)
    fed = list(zip(names, row.inputs, strict=True))[:first_constant]
    constants = [] if first_constant is None else list(zip(names, row.inputs, strict=True))[first_constant:]
    graph = helper.make_graph(
        [node],
        "row",
        [helper.make_tensor_value_info(name, _onnx_type(x), x.array.shape) for name, x in fed],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [_tensor(name, x) for name, x in constants],
    )
    imports = [helper.make_opsetid("", 18)] if domain else []
    model = helper.make_model(graph, opset_imports=[*imports, helper.make_opsetid(domain, opset)], ir_version=9)
    return bytes(model.SerializeToString())


def _onnx_type(x: Typed) -> int:
    if x.element.onnx is None:
        raise InputError(f"ONNX has no element type {x.element}")
    return x.element.onnx.number


def _tensor(name: str, x: Typed) -> Any:
    from onnx import helper

    values = [text.encode() for text in x.array.flat] if x.array.dtype == object else x.array.ravel().tolist()
    return helper.make_tensor(name, _onnx_type(x), x.array.shape, values)
