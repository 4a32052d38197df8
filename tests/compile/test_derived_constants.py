"""Constants that passes make: which of them are the same."""

from __future__ import annotations

import numpy as np
import pytest

import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.compile.graph import KNOWN_BYTES
from irexec.compile.lower import lower
from irexec.compile.passes.fold_constants import fold_constants
from irexec.compile.rewriting import Rewriting, computation, create
from irexec.dtypes.elements import BF16, F32, I4, I8, I64, Element


@pytest.mark.parametrize(
    ("array", "elements"), [(np.float32([1, 2]), (F32, BF16)), (np.int8([1, 2]), (I8, I4))], ids=["floats", "integers"]
)
def test_equal_bytes_of_two_types_are_two_literals(array: np.ndarray, elements: tuple[Element, Element]) -> None:
    rewriting = Rewriting()
    literals = [rewriting.literal(array, element) for element in (*elements, *elements)]
    assert [value.fact.element for value in literals] == [*elements, *elements]
    assert literals[0].constant is literals[2].constant
    assert literals[1].constant is literals[3].constant


def test_operations_that_were_made_of_one_layer_fold_to_constants_of_their_own() -> None:
    """They may differ in their type, or in an attribute alone."""
    given = np.arange(KNOWN_BYTES, dtype=np.float32).reshape(-1, 4)
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.constant(given)))
    model = builder.model()
    graph, rewriting = lower(model, infer_shapes(model), {}), Rewriting()
    (layer,) = graph
    weights, axis = layer.inputs[0], rewriting.literal(np.array(0), I64)
    made = [
        create(graph, "Negative", "opset1", [weights], {}, [layer]),
        create(graph, "CumSum", "opset3", [weights, axis], {"exclusive": False, "reverse": False}, [layer]),
        create(graph, "CumSum", "opset3", [weights, axis], {"exclusive": False, "reverse": True}, [layer]),
        create(graph, "CumSum", "opset3", [weights, axis], {"exclusive": False, "reverse": True}, [layer]),
    ]
    graph.targets = [operation.output for operation in made]
    fold_constants(graph, rewriting)
    constants = [value.constant for value in graph.targets]
    assert constants[2] is constants[3]
    results = [constant.array() for constant in constants if constant is not None]
    np.testing.assert_array_equal(results[0], -given)
    np.testing.assert_allclose(results[1][:2], [given[0], given[0] + given[1]])
    np.testing.assert_allclose(results[2][-2:], [given[-2] + given[-1], given[-1]])


def test_each_output_of_a_folded_operation_is_a_constant_of_its_own() -> None:
    given = np.arange(KNOWN_BYTES, dtype=np.float32).reshape(-1, 4)
    builder = irexec.Builder("m")
    x = builder.parameter(F32, (1, 2), "x")
    for part in builder.emit("Split", builder.constant(given), builder.constant(1), num_splits=2):
        builder.result(builder.emit("Add", part, x))
    results = irexec.compile_model(builder.model())(np.float32([[0.5, 1.5]])).values()
    for result, part in zip(results, (given[:, :2], given[:, 2:]), strict=True):
        np.testing.assert_array_equal(result, part + np.float32([[0.5, 1.5]]))


def test_attributes_that_cannot_be_hashed_are_equal_to_none() -> None:
    builder = irexec.Builder("m")
    builder.result(builder.emit("Relu", builder.parameter(F32, (2,), "x")))
    model = builder.model()
    (operation,) = lower(model, infer_shapes(model), {})
    assert computation(operation) == computation(operation)
    operation.attributes = {"what": np.zeros(2)}
    assert computation(operation) != computation(operation)
