"""Scores and labels of ai.onnx.ml classifiers of two classes with a single score, and of classes without scores.

Expected values are computed by hand. ONNX Runtime 1.32 agrees where nothing else is said; up to 1.25 it left the scores of
trees without negative weights as they were for LOGISTIC, and it still does for SOFTMAX and SOFTMAX_ZERO, which the
specification says are applied and onnx.reference 1.23 applies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.support.onnx_models import run

X = np.array([[0], [1]], np.float32)


def _model(operator: str, features: int = 1, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node(operator, ["x"], ["label", "scores"], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 1, ["rows", features])],
        [helper.make_tensor_value_info("label", 7, None), helper.make_tensor_value_info("scores", 1, None)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _trees(
    labels: list[int], leaves: list[tuple[int, int, float]], post_transform: str = "NONE", **more: Any
) -> onnx.ModelProto:
    """One tree whose leaves 1 (for the row 0) and 2 (for the row 1) have weights: node, class and weight of each."""
    return _model(
        "TreeEnsembleClassifier", nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2], nodes_featureids=[0] * 3,
        nodes_values=[0.5, 0.0, 0.0], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0], class_treeids=[0] * len(leaves), class_nodeids=[node for node, _, _ in leaves],
        class_ids=[index for _, index, _ in leaves], class_weights=[weight for *_, weight in leaves],
        classlabels_int64s=labels, post_transform=post_transform, **more,
    )  # fmt: skip


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


_PAIRS = {
    "LOGISTIC": lambda s: np.stack([_sigmoid(-s), _sigmoid(s)], 1),
    # exp(s) / (exp(s) + exp(-s)) is the sigmoid of 2s.
    "SOFTMAX": lambda s: np.stack([_sigmoid(-2 * s), _sigmoid(2 * s)], 1),
    "SOFTMAX_ZERO": lambda s: np.stack([_sigmoid(-2 * s), _sigmoid(2 * s)], 1),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("transform", list(_PAIRS))
@pytest.mark.parametrize("weights", [(2.0, 0.25), (-2.0, 0.25)])
@pytest.mark.parametrize("base", [0.0, 0.5])
def test_trees_with_one_score(transform: str, weights: tuple[float, float], base: float) -> None:
    """Gradient boosting. The second label starts at 0.5 if no weight is negative, otherwise at 0."""
    more = {"base_values": [base]} if base else {}
    model = _trees([3, 8], [(1, 0, weights[0]), (2, 0, weights[1])], transform, **more)
    label, scores = run(model, X)
    total = np.array(weights) + base
    assert label.tolist() == np.where(total > (0.5 if min(weights) >= 0 else 0), 8, 3).tolist()
    np.testing.assert_allclose(scores, _PAIRS[transform](total), rtol=1e-6)


@pytest.mark.parametrize("weights", [(2.0, 0.25), (-2.0, 0.25)])
def test_trees_with_one_score_as_it_is(weights: tuple[float, float]) -> None:
    """The first score is 1 minus the second if no weight is negative, otherwise its negative."""
    _, scores = run(_trees([3, 8], [(1, 0, weights[0]), (2, 0, weights[1])]), X)
    first = 1 - np.array(weights) if min(weights) >= 0 else -np.array(weights)
    assert scores.tolist() == np.stack([first, weights], 1).tolist()


def test_trees_with_a_score_of_the_second_class_alone() -> None:
    """The first class has no weights, so that its score is 0."""
    label, scores = run(_trees([3, 8], [(1, 1, 2.0), (2, 1, 0.25)]), X)
    assert (label.tolist(), scores.tolist()) == ([8, 3], [[0, 2], [0, 0.25]])


@pytest.mark.parametrize(
    ("leaves", "expected"),
    [
        pytest.param([(1, 0, -2.0), (2, 0, 0.5)], [3, 3], id="one class"),
        pytest.param([(1, 0, -2.0), (1, 2, -1.0), (2, 0, -2.0), (2, 1, -3.0)], [9, 3], id="two of three"),
        pytest.param([(1, 0, -2.0), (1, 1, 0.0), (1, 2, 0.0), (2, 0, -2.0), (2, 1, 0.0), (2, 2, 0.0)], [6, 6], id="all"),
    ],
)  # fmt: skip
def test_the_label_is_of_a_class_with_a_score(leaves: list[tuple[int, int, float]], expected: list[int]) -> None:
    """Classes for which no reached leaf has a weight have score 0, and are never the label, even if other scores are negative."""
    label, scores = run(_trees([3, 6, 9], leaves), X)
    assert label.tolist() == expected
    assert scores[0, 0] == -2


def test_base_values_are_scores_of_all_classes() -> None:
    label, _ = run(_trees([3, 6, 9], [(1, 0, -2.0), (2, 0, 2.0)], base_values=[0.0, 0.5, 0.0]), X)
    assert label.tolist() == [6, 3]


@pytest.mark.parametrize("transform", list(_PAIRS))
def test_a_linear_classifier_with_one_score(transform: str) -> None:
    model = _model(
        "LinearClassifier", coefficients=[2.0], intercepts=[-0.5], classlabels_ints=[3, 8], post_transform=transform
    )
    label, scores = run(model, X)
    assert label.tolist() == [3, 8]
    np.testing.assert_allclose(scores, _PAIRS[transform](np.array([-0.5, 1.5])), rtol=1e-6)


@pytest.mark.parametrize("transform", list(_PAIRS))
def test_support_vectors_of_two_classes(transform: str) -> None:
    """The scores are x minus 0.25; the first class has the label of positive ones."""
    model = _model(
        "SVMClassifier", coefficients=[1.0, 0.0], kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0], rho=[-0.25],
        support_vectors=[1.0, 1.0], vectors_per_class=[1, 1], classlabels_ints=[3, 8], post_transform=transform,
    )  # fmt: skip
    label, scores = run(model, X)
    assert label.tolist() == [8, 3]
    np.testing.assert_allclose(scores, _PAIRS[transform](np.array([-0.25, 0.75])), rtol=1e-6)


@pytest.mark.parametrize(
    ("aggregate", "expected"), [("MIN", [[-1, 0], [0, 3]]), ("MAX", [[2, 0], [0, 3]]), ("SUM", [[1, 0], [0, 3]])]
)
def test_a_target_without_a_weight_is_0(aggregate: str, expected: list[list[float]]) -> None:
    """As in ONNX Runtime; onnx.reference gives the largest or lowest number for MIN and MAX."""
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["scores"], domain="ai.onnx.ml", n_targets=2, aggregate_function=aggregate,
        nodes_treeids=[0, 0, 0, 1, 1, 1], nodes_nodeids=[0, 1, 2] * 2, nodes_featureids=[0] * 6, nodes_values=[0.5, 0, 0] * 2,
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"] * 2, nodes_truenodeids=[1, 0, 0] * 2, nodes_falsenodeids=[2, 0, 0] * 2,
        target_treeids=[0, 1, 1], target_nodeids=[1, 1, 2], target_ids=[0, 0, 1], target_weights=[2.0, -1.0, 3.0],
    )  # fmt: skip
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 1, ["rows", 1])], [helper.make_tensor_value_info("scores", 1, None)]
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
    (scores,) = run(helper.make_model(graph, opset_imports=opsets, ir_version=8), X)
    np.testing.assert_array_equal(scores, expected)
