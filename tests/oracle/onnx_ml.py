"""Random attributes of tree ensembles and support vector machines of ai.onnx.ml, of which no attribute stands alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper, numpy_helper

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


def attributes(name: str, data: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
    """The attributes of one of these operators for data of this number of features and this type."""
    found = _OPERATORS[name](data.shape[-1], rng)
    for key in ("nodes_splits", "leaf_weights"):
        if key in found:
            found[key] = numpy_helper.from_array(found[key].astype(data.dtype))
    return found


class _Trees:
    """One to three random trees, as lists of nodes and leaves.

    Attributes:
        nodes: tree, feature, value, mode, and the indices of the nodes where the test is true and false; -1 for leaves.
        leaves: the index of the node of each leaf.
    """

    def __init__(self, features: int, rng: np.random.Generator) -> None:
        self.nodes: list[list[Any]] = []
        self.leaves: list[int] = []
        self.roots: list[int] = []
        self._features, self._rng = features, rng
        for tree in range(int(rng.integers(1, 4))):
            self.roots.append(self._grow(tree, int(rng.integers(0, 4))))

    def _grow(self, tree: int, depth: int) -> int:
        index = len(self.nodes)
        is_leaf = depth == 0
        mode = "LEAF" if is_leaf else _pick(self._rng, *_MODES[:2], *_MODES)
        node = [tree, int(self._rng.integers(self._features)), _numbers(self._rng, 1)[0], mode, -1, -1]
        self.nodes.append(node)
        if is_leaf:
            self.leaves.append(index)
        else:
            node[4], node[5] = self._grow(tree, depth - 1), self._grow(tree, int(self._rng.integers(depth)))
        return index

    def attributes(self) -> dict[str, Any]:
        """The attributes ``nodes_...`` of the operators before version 5."""
        first = [self.roots[node[0]] for node in self.nodes]
        return {
            "nodes_treeids": [node[0] for node in self.nodes],
            "nodes_nodeids": [i - first[i] for i in range(len(self.nodes))],
            "nodes_featureids": [node[1] for node in self.nodes],
            "nodes_values": [node[2] for node in self.nodes],
            "nodes_modes": [node[3] for node in self.nodes],
            "nodes_truenodeids": [max(node[4] - first[i], 0) for i, node in enumerate(self.nodes)],
            "nodes_falsenodeids": [max(node[5] - first[i], 0) for i, node in enumerate(self.nodes)],
            "nodes_missing_value_tracks_true": [int(self._rng.integers(2)) for _ in self.nodes],
        }

    def weights(self, kind: str, targets: int) -> dict[str, Any]:
        """The attributes ``class_...`` or ``target_...``: some leaves have a weight for several targets."""
        entries = [
            (leaf, target) for leaf in self.leaves for target in range(targets)
            if target == leaf % targets or self._rng.random() < 0.3
        ]  # fmt: skip
        trees = [self.nodes[leaf][0] for leaf, _ in entries]
        return {
            f"{kind}_treeids": trees,
            f"{kind}_nodeids": [leaf - self.roots[tree] for (leaf, _), tree in zip(entries, trees, strict=True)],
            f"{kind}_ids": [target for _, target in entries],
            f"{kind}_weights": _numbers(self._rng, len(entries)),
        }


def _pick(rng: np.random.Generator, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _numbers(rng: np.random.Generator, count: int) -> list[float]:
    return [float(x) for x in np.round(rng.normal(0, 2, count), 2)]


def _regressor(features: int, rng: np.random.Generator) -> dict[str, Any]:
    targets = int(rng.integers(1, 4))
    trees = _Trees(features, rng)
    base = {"base_values": _numbers(rng, targets)} if rng.random() < 0.5 else {}
    aggregate = {"aggregate_function": _pick(rng, "SUM", "AVERAGE", "MIN", "MAX")} if rng.random() < 0.6 else {}
    given = {"n_targets": targets, "post_transform": _pick(rng, *_TRANSFORMS[:4])}
    return given | base | aggregate | trees.attributes() | trees.weights("target", targets)


def _classifier(features: int, rng: np.random.Generator) -> dict[str, Any]:
    classes = int(rng.integers(2, 5))
    trees = _Trees(features, rng)
    # A binary classifier may give scores to one class alone.
    targets = 1 if classes == 2 and rng.random() < 0.5 else classes
    base = {"base_values": _numbers(rng, targets)} if rng.random() < 0.3 else {}
    labels: dict[str, Any] = {"classlabels_int64s": list(range(3, 3 + classes))}
    if rng.random() < 0.4:
        labels = {"classlabels_strings": [f"class {i}" for i in range(classes)]}
    given = labels | {"post_transform": _pick(rng, *_TRANSFORMS[:4])}
    return given | base | trees.attributes() | trees.weights("class", targets)


def _ensemble(features: int, rng: np.random.Generator) -> dict[str, Any]:
    """Version 5: nodes and leaves have lists of their own."""
    targets = int(rng.integers(1, 4))
    trees = _Trees(features, rng)
    while any(trees.nodes[root][3] == "LEAF" for root in trees.roots):
        trees = _Trees(features, rng)
    inner = [i for i, node in enumerate(trees.nodes) if node[3] != "LEAF"]
    place = {index: i for i, index in enumerate(inner)} | {index: i for i, index in enumerate(trees.leaves)}
    branches = [[trees.nodes[i][side] for i in inner] for side in (4, 5)]
    (true, true_leafs), (false, false_leafs) = (
        ([place[one] for one in ones], [int(trees.nodes[one][3] == "LEAF") for one in ones]) for ones in branches
    )
    modes = np.array([_MODES.index(trees.nodes[i][3]) for i in inner], np.uint8)
    splits, weights = np.float32([trees.nodes[i][2] for i in inner]), np.float32(_numbers(rng, len(trees.leaves)))
    return {
        "n_targets": targets, "aggregate_function": int(rng.integers(4)), "post_transform": int(rng.integers(4)),
        "tree_roots": [place[root] for root in trees.roots],
        "nodes_featureids": [trees.nodes[i][1] for i in inner], "nodes_splits": splits,
        "nodes_modes": helper.make_tensor("m", 2, modes.shape, modes), "nodes_truenodeids": true,
        "nodes_trueleafs": true_leafs, "nodes_falsenodeids": false, "nodes_falseleafs": false_leafs,
        "leaf_targetids": [int(rng.integers(targets)) for _ in trees.leaves],
        "leaf_weights": weights,
    }  # fmt: skip


def _kernel(rng: np.random.Generator) -> dict[str, Any]:
    parameters = [0.3, float(np.round(rng.normal(), 1)), float(rng.integers(1, 4))]
    return {"kernel_type": _pick(rng, "LINEAR", "POLY", "RBF", "SIGMOID"), "kernel_params": parameters}


def _svm_regressor(features: int, rng: np.random.Generator) -> dict[str, Any]:
    supports = int(rng.integers(1, 5))
    return _kernel(rng) | {
        "n_supports": supports, "support_vectors": _numbers(rng, supports * features),
        "coefficients": _numbers(rng, supports), "rho": _numbers(rng, 1), "one_class": int(rng.random() < 0.2),
        "post_transform": _pick(rng, *_TRANSFORMS[:4]),
    }  # fmt: skip


def _svm_classifier(features: int, rng: np.random.Generator) -> dict[str, Any]:
    classes = int(rng.integers(2, 4))
    each = [int(n) for n in rng.integers(1, 4, classes)]
    pairs = classes * (classes - 1) // 2
    given: dict[str, Any] = {
        "classlabels_ints": list(range(5, 5 + classes)), "vectors_per_class": each,
        "support_vectors": _numbers(rng, sum(each) * features),
        "coefficients": _numbers(rng, sum(each) * (classes - 1)), "rho": _numbers(rng, pairs),
        "post_transform": _pick(rng, *_TRANSFORMS[:4]),
    }  # fmt: skip
    if rng.random() < 0.4:
        given |= {"prob_a": [-abs(x) for x in _numbers(rng, pairs)], "prob_b": _numbers(rng, pairs)}
    return _kernel(rng) | given


_OPERATORS = {
    "TreeEnsembleRegressor": _regressor, "TreeEnsembleClassifier": _classifier, "TreeEnsemble": _ensemble,
    "SVMRegressor": _svm_regressor, "SVMClassifier": _svm_classifier,
}  # fmt: skip
NAMES = frozenset(_OPERATORS)
