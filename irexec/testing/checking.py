"""``check``: all that must hold of a row of a plug-in; ``parametrize``: rows as tests of pytest.

The tests of irexec hold these for its own operations in other ways.
"""

from __future__ import annotations

import runpy
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from irexec.analysis.shape_inference import infer_shapes
from irexec.api import compile_model, validate
from irexec.dtypes.elements import F32, I64
from irexec.errors import InputError
from irexec.ir import codes
from irexec.ir.facts import Fact
from irexec.runtime.observation import StepRun
from irexec.testing.kernels import check_kernels
from irexec.testing.laws import LAWS, Arrays, assert_same, can_run, every_law, inferred, refusal, refused_when_it_runs
from irexec.testing.rows import Case, FactsCase, Row, model_of, read_attributes
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
