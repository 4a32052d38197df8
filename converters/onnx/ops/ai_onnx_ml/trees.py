"""ai.onnx.ml: ensembles of decision trees. All rows descend all trees together, level by level.

Source: ONNX-ML TreeEnsemble-5, TreeEnsembleRegressor-3, TreeEnsembleClassifier-3, and ONNX Runtime
``tree_ensemble_aggregator.h`` where the specification is silent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

import numpy as np
from onnx import TensorProto

from converters.onnx.algorithms.class_scores import best_class, labels_at, post_transformed, scores_of_two
from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.graphs import check_generated, check_unrolled
from converters.onnx.registry import AI_ONNX_ML, translates
from converters.onnx.tensors import array_of
from irexec.dtypes.elements import F32, F64, I64, Element
from irexec.errors import ConversionError, OpError, check
from irexec.ir.dims import ANY
from irexec.ir.graph import Value
from irexec.ir.order import grouped, sort_by_producers
from irexec.messages import counted
from irexec.schema.opdef import Rank

_COMPARE = {
    "BRANCH_LEQ": "LessEqual", "BRANCH_LT": "Less", "BRANCH_GTE": "GreaterEqual", "BRANCH_GT": "Greater",
    "BRANCH_EQ": "Equal", "BRANCH_NEQ": "NotEqual",
}  # fmt: skip
_MODES = [*_COMPARE, "BRANCH_MEMBER"]
_AGGREGATES = {"AVERAGE": "ReduceSum", "SUM": "ReduceSum", "MIN": "ReduceMin", "MAX": "ReduceMax"}
# Maximum number of list elements in a message.
_SHOWN = 20
_POST = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]


@dataclass
class Forest:
    """Nodes and leaves of all trees in one list; both branches of a leaf are the leaf itself."""

    feature: list[int] = field(default_factory=list)
    split: list[float] = field(default_factory=list)
    mode: list[str] = field(default_factory=list)
    missing: list[bool] = field(default_factory=list)
    branches: list[tuple[int, int]] = field(default_factory=list)
    leaf: list[list[tuple[int, float]]] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)

    def add_leaf(self, weights: list[tuple[int, float]]) -> int:
        """Add a leaf; returns its index."""
        index = self.add_node(0, 0.0, "", False)
        self.branches[index] = (index, index)
        self.leaf[index] = weights
        return index

    def add_node(self, feature: int, split: float, mode: str, missing: bool) -> int:
        """Add a node, whose branches are set later; returns its index."""
        self.feature.append(feature)
        self.split.append(split)
        self.mode.append(mode)
        self.missing.append(missing)
        self.branches.append((-1, -1))
        self.leaf.append([])
        return len(self.feature) - 1

    def depth(self) -> int:
        """The number of levels from the roots to the deepest leaf.

        Raises:
            OpError: a root or branch does not exist, the nodes have a cycle, or there are too many levels.
        """
        count = len(self.mode)
        if not self.roots or not all(0 <= root < count for root in self.roots):
            raise OpError(
                f"the roots of the trees are {self.roots[:_SHOWN]}, expected indices of the {count} nodes and leaves"
            )
        below = [set(self.branches[node]) if self.mode[node] else set() for node in range(count)]
        missing = next((node for node in range(count) if not all(0 <= branch < count for branch in below[node])), None)
        if missing is not None:
            raise OpError(f"node {missing} has a branch that does not exist")
        order, stuck = sort_by_producers(below)
        if stuck:
            raise OpError(f"node {stuck[0]} is part of a cycle of nodes, or above one")
        levels = [0] * count
        for node in order:
            levels[node] = max((levels[branch] + 1 for branch in below[node]), default=0)
        maximum = max(levels[root] for root in self.roots)
        check_unrolled(maximum, "the levels of the trees")
        return maximum

    def always_scored(self) -> set[int]:
        """The targets for which every leaf of one tree has a weight."""
        found: set[int] = set()
        for root in self.roots:
            waiting, leaves = [root], set[int]()
            while waiting:
                node = waiting.pop()
                if self.mode[node]:
                    waiting += set(self.branches[node])
                else:
                    leaves.add(node)
            found |= set.intersection(*({target for target, _ in self.leaf[leaf]} for leaf in leaves))
        return found


def _reached_leaves(ctx: TranslationContext, x: Value, forest: Forest) -> Value:
    """The leaf that each row reaches in each tree, (rows, trees)."""
    kind, columns = ctx.element(x), ANY if ctx.fact(x).shape is None else ctx.sizes(x)[1]
    if not all(feature >= 0 and (not isinstance(columns, int) or feature < columns) for feature in forest.feature):
        raise OpError(
            f"features {min(forest.feature)} to {max(forest.feature)} are not among the {columns} columns of the data"
        )
    features, splits = ctx.constant(np.array(forest.feature)), ctx.constant(np.array(forest.split, np.float64), kind)
    falses, trues = (ctx.constant(np.array([pair[i] for pair in forest.branches])) for i in (1, 0))
    modes = sorted({mode for mode in forest.mode if mode})
    kinds = ctx.constant(np.array([modes.index(mode) if mode else 0 for mode in forest.mode]))
    missing = ctx.constant(np.array([forest.missing])[0]) if any(forest.missing) else None
    rows = ctx.unsqueeze(ctx.size(x, 0), [0])
    shape = ctx.emit("Concat", rows, ctx.constant([len(forest.roots)]), axis=0)
    node = ctx.full(ctx.constant(np.array([forest.roots])), shape)
    axis = ctx.constant(0)
    for _ in range(forest.depth()):
        value = ctx.emit("GatherElements", x, ctx.emit("Gather", features, node, axis), axis=1)
        split = ctx.emit("Gather", splits, node, axis)
        comparisons = [Expression(ctx, ctx.emit(_COMPARE[mode], value, split)) for mode in modes]
        is_true = comparisons[0]
        for i, other in enumerate(comparisons[1:], 1):
            is_true = Expression(ctx, ctx.emit("Gather", kinds, node, axis)).equals(i).select(other, is_true)
        if missing is not None:
            nan = Expression(ctx, ctx.emit("IsNaN", value) if kind.is_float else ctx.emit("NotEqual", value, value))
            is_true = is_true | (nan & Expression(ctx, ctx.emit("Gather", missing, node, axis)))
        node = ctx.emit(
            "Select", is_true.value, ctx.emit("Gather", trues, node, axis), ctx.emit("Gather", falses, node, axis)
        )
    return node


def _scores(
    ctx: TranslationContext, reached: Value, forest: Forest, targets: int, aggregate: str, kind: Element
) -> Expression:
    """The aggregated weights of the reached leaves for each target, (rows, targets); 0 for one without a weight, as in
    ONNX Runtime."""
    if aggregate not in _AGGREGATES:
        raise OpError(f"aggregate_function is {aggregate!r}, expected {', '.join(_AGGREGATES)}")
    # The weight of a leaf for targets that it does not have.
    check_generated((len(forest.mode), targets), F64, "the weights of all leaves and targets")
    neutral = {"MIN": np.finfo(kind.carrier).max, "MAX": np.finfo(kind.carrier).min}.get(aggregate, 0.0)
    table = np.full((len(forest.mode), targets), neutral, np.float64)
    for index, weights in enumerate(forest.leaf):
        for target, weight in weights:
            if not 0 <= target < targets:
                raise OpError(f"a leaf has target {target}, expected 0 to {targets - 1}")
            table[index, target] = table[index, target] + weight if aggregate in ("SUM", "AVERAGE") else weight
    leaves = ctx.emit("Gather", ctx.constant(table, kind), reached, ctx.constant(0))
    total = Expression(ctx, ctx.emit(_AGGREGATES[aggregate], leaves, [1], keep_dims=False))
    if neutral and len(forest.always_scored()) < targets:
        nothing, zero = (Expression(ctx, ctx.constant(number, kind)) for number in (neutral, 0))
        total = total.equals(nothing).select(zero, total)
    return total / len(forest.roots) if aggregate == "AVERAGE" else total


@translates("TreeEnsemble", since=5, domain=AI_ONNX_ML)
def tree_ensemble(
    ctx: TranslationContext, x: Annotated[Value, Rank(2)], *, aggregate_function: int = 1, leaf_targetids: list[int],
    leaf_weights: TensorProto, membership_values: TensorProto | None = None, n_targets: int | None = None,
    nodes_falseleafs: list[int], nodes_falsenodeids: list[int], nodes_featureids: list[int],
    nodes_hitrates: TensorProto | None = None, nodes_missing_value_tracks_true: list[int] | None = None,
    nodes_modes: TensorProto, nodes_splits: TensorProto, nodes_trueleafs: list[int], nodes_truenodeids: list[int],
    post_transform: int = 0, tree_roots: list[int],
) -> Value:  # fmt: skip
    """The root of a tree with a single leaf has that leaf as both branches.

    ONNX Runtime 1.32 takes post_transform 1 for LOGISTIC and 2 for SOFTMAX, which the specification has the other way
    round, and transforms the score of a single target by PROBIT alone (onnxruntime#26596).
    """
    forest = Forest()
    weights, splits = _floats(None, leaf_weights), _floats(None, nodes_splits)
    modes = [_mode(mode) for mode in _floats(None, nodes_modes)]
    members = _members(membership_values, modes.count("BRANCH_MEMBER"))
    count = len(modes)
    tracks = list(nodes_missing_value_tracks_true or [0] * count)
    _check_lengths(
        count, nodes_splits=splits, nodes_featureids=nodes_featureids, nodes_missing_value_tracks_true=tracks,
        nodes_truenodeids=nodes_truenodeids, nodes_falsenodeids=nodes_falsenodeids, nodes_trueleafs=nodes_trueleafs,
        nodes_falseleafs=nodes_falseleafs,
    )  # fmt: skip
    _check_lengths(len(leaf_targetids), leaf_weights=weights)
    for i in range(count):
        forest.add_node(nodes_featureids[i], splits[i], modes[i], bool(tracks[i]))
    leaves = [forest.add_leaf([(target, weight)]) for target, weight in zip(leaf_targetids, weights, strict=True)]
    for i in range(count):
        true = _one_of(leaves if nodes_trueleafs[i] else range(count), nodes_truenodeids[i], "a branch")
        false = _one_of(leaves if nodes_falseleafs[i] else range(count), nodes_falsenodeids[i], "a branch")
        forest.branches[i] = (true, false)
    for i in (i for i in range(count) if modes[i] == "BRANCH_MEMBER"):
        _expand_membership(forest, i, next(members))
    forest.roots = list(tree_roots)
    kind = ctx.element(x)
    aggregate = _one_of(["AVERAGE", "SUM", "MIN", "MAX"], aggregate_function, "aggregate_function")
    reached = _reached_leaves(ctx, x, forest)
    scores = _scores(ctx, reached, forest, _targets(n_targets, leaf_targetids), aggregate, kind)
    return post_transformed(ctx, scores.value, _one_of(_POST, post_transform, "post_transform"))


_Item = TypeVar("_Item")


def _one_of(choices: Sequence[_Item], index: int, what: str) -> _Item:
    if not 0 <= index < len(choices):
        raise OpError(f"{what} is {index}, expected 0 to {len(choices) - 1}")
    return choices[index]


def _mode(number: float) -> str:
    check(number.is_integer(), f"a mode is {number:g}, expected an integer")
    return _one_of(_MODES, int(number), "a mode")


def _check_lengths(count: int, **lists: Sequence[object]) -> None:
    """Raise OpError for a list without exactly ``count`` entries."""
    for name, values in lists.items():
        if len(values) != count:
            raise OpError(f"{name} has {counted(len(values), 'entry')}, expected {count}")


def _targets(n_targets: int | None, targets: Sequence[int]) -> int:
    """The number of targets; unless given, the number that the leaves refer to."""
    return n_targets or max(targets, default=0) + 1


def _members(values: TensorProto | None, count: int) -> Iterator[list[float]]:
    """The sets of members; NaN ends each set in ``values``."""
    values_ = np.array(_floats(None, values), np.float64)
    sets = np.split(values_, np.flatnonzero(np.isnan(values_)) + 1)[:-1]
    if len(sets) != count:
        raise OpError(f"membership_values has {counted(len(sets), 'set')} of members for {count} nodes")
    return iter([[float(number) for number in one[:-1]] for one in sets])


def _expand_membership(forest: Forest, node: int, members: Sequence[float]) -> None:
    """Membership as a chain of comparisons."""
    true, false = forest.branches[node]
    index = node
    for i, member in enumerate(members):
        forest.mode[index], forest.split[index] = "BRANCH_EQ", member
        last = i == len(members) - 1
        after = false if last else forest.add_node(forest.feature[node], 0.0, "BRANCH_EQ", forest.missing[node])
        forest.branches[index] = (true, after)
        index = after
    if not members:
        forest.mode[node], forest.branches[node] = "BRANCH_EQ", (false, false)


@dataclass(frozen=True, kw_only=True)
class EnsembleAttributes:
    """The attributes that regressors and classifiers share."""

    base_values: list[float] | None = None
    base_values_as_tensor: TensorProto | None = None
    nodes_falsenodeids: list[int]
    nodes_featureids: list[int]
    nodes_hitrates: list[float] | None = None
    nodes_hitrates_as_tensor: TensorProto | None = None
    nodes_missing_value_tracks_true: list[int] | None = None
    nodes_modes: list[str]
    nodes_nodeids: list[int]
    nodes_treeids: list[int]
    nodes_truenodeids: list[int]
    nodes_values: list[float] | None = None
    nodes_values_as_tensor: TensorProto | None = None
    post_transform: str = "NONE"

    def forest(self, leaves: dict[tuple[int, int], list[tuple[int, float]]]) -> Forest:
        """The forest; ``leaves`` are weights by tree and node. The root of a tree is a branch of no node."""
        forest, values = Forest(), _floats(self.nodes_values, self.nodes_values_as_tensor)
        missing = self.nodes_missing_value_tracks_true or [0] * len(self.nodes_modes)
        _check_lengths(
            len(self.nodes_modes), nodes_treeids=self.nodes_treeids, nodes_nodeids=self.nodes_nodeids,
            nodes_values=values, nodes_featureids=self.nodes_featureids, nodes_truenodeids=self.nodes_truenodeids,
            nodes_falsenodeids=self.nodes_falsenodeids, nodes_missing_value_tracks_true=missing,
        )  # fmt: skip
        keys = list(zip(self.nodes_treeids, self.nodes_nodeids, strict=True))
        index = {key: i for i, key in enumerate(keys)}
        children: set[tuple[int, int]] = set()
        for i, (key, mode) in enumerate(zip(keys, self.nodes_modes, strict=True)):
            if mode == "LEAF":
                forest.add_leaf(leaves.get(key, []))
                continue
            if mode not in _COMPARE:
                raise ConversionError(f"nodes of mode {mode!r} cannot be converted", unsupported=True)
            forest.add_node(self.nodes_featureids[i], values[i], mode, bool(missing[i]))
            both = (key[0], self.nodes_truenodeids[i]), (key[0], self.nodes_falsenodeids[i])
            if not all(branch in index for branch in both):
                raise OpError(f"node {key[1]} of tree {key[0]} has a branch that does not exist")
            forest.branches[i] = (index[both[0]], index[both[1]])
            children.update(both)
        forest.roots = [i for i, key in enumerate(keys) if key not in children]
        return forest

    def base(self) -> list[float]:
        """The value that is added to the score of each target; empty for none."""
        return _floats(self.base_values, self.base_values_as_tensor)


def _leaves(
    trees: Sequence[int], nodes: Sequence[int], targets: Sequence[int], weights: Sequence[float]
) -> dict[tuple[int, int], list[tuple[int, float]]]:
    _check_lengths(len(targets), treeids=trees, nodeids=nodes, weights=weights)
    rows = zip(trees, nodes, targets, weights, strict=True)
    return grouped(((tree, node), (target, weight)) for tree, node, target, weight in rows)


def _floats(plain: Sequence[float] | None, tensor: TensorProto | None) -> list[float]:
    if tensor is None:
        return list(plain or [])
    array, kind = array_of(tensor)
    if kind.kind == "string":
        raise OpError(f"tensor {tensor.name!r} has strings, expected numbers")
    return [float(number) for number in array.reshape(-1)]


def _data(ctx: TranslationContext, x: Value) -> Value:
    """Integers are compared as f32."""
    return x if ctx.element(x) in (F32, F64) else ctx.convert(x, F32)


@translates("TreeEnsembleRegressor", domain=AI_ONNX_ML)
def tree_ensemble_regressor(
    ctx: TranslationContext, x: Annotated[Value, Rank(2)], *, aggregate_function: str = "SUM",
    given: EnsembleAttributes, n_targets: int | None = None, target_ids: list[int], target_nodeids: list[int],
    target_treeids: list[int], target_weights: list[float] | None = None,
    target_weights_as_tensor: TensorProto | None = None,
) -> Value:  # fmt: skip
    weights = _floats(target_weights, target_weights_as_tensor)
    forest = given.forest(_leaves(target_treeids, target_nodeids, target_ids, weights))
    targets, base = _targets(n_targets, target_ids), given.base()
    scores = _scores(ctx, _reached_leaves(ctx, _data(ctx, x), forest), forest, targets, aggregate_function, F32)
    if base:
        _check_lengths(targets, base_values=base)
        scores = scores + Expression(ctx, ctx.constant(np.array(base, np.float32)))
    return post_transformed(ctx, scores.value, given.post_transform)


@translates("TreeEnsembleClassifier", domain=AI_ONNX_ML)
def tree_ensemble_classifier(
    ctx: TranslationContext, x: Annotated[Value, Rank(2)], *, class_ids: list[int], class_nodeids: list[int],
    class_treeids: list[int], class_weights: list[float] | None = None,
    class_weights_as_tensor: TensorProto | None = None, classlabels_int64s: list[int] | None = None,
    classlabels_strings: list[str] | None = None, given: EnsembleAttributes,
) -> tuple[Value, ...]:  # fmt: skip
    """The label and the scores of each row.

    Weights for the first of two classes alone are those of the second; ONNX Runtime leaves the score of the first at 0
    if all weights are for the second. Such a class has its label above 0.5, or above 0 if a weight is negative.
    """
    weights = _floats(class_weights, class_weights_as_tensor)
    count = len(classlabels_strings or classlabels_int64s or [])
    threshold = None
    if count == 2 and len(set(class_ids)) == 1:
        threshold = 0.5 if all(weight >= 0 for weight in weights) else 0.0
    completed = threshold is not None and class_ids[0] == 0
    forest = given.forest(_leaves(class_treeids, class_nodeids, class_ids, weights))
    reached = _reached_leaves(ctx, _data(ctx, x), forest)
    scores = _scores(ctx, reached, forest, 1 if completed else count, "SUM", F32)
    base = given.base()
    if base and not completed:
        _check_lengths(count, base_values=base)
    if base:
        scores = scores + Expression(ctx, ctx.constant(np.array(base[-1:] if completed else base, np.float32)))
    if threshold is None:
        with_score = scores if base or count == 2 else _of_scored_classes(scores, reached, forest, count)
        index = best_class(ctx, with_score.value)
    else:
        one = scores.value if completed else ctx.emit("Gather", scores.value, ctx.constant([1]), ctx.constant(1))
        index = ctx.convert(ctx.emit("Squeeze", (Expression(ctx, one) > threshold).value, [1]), I64)
    label = labels_at(ctx, index, classlabels_int64s, classlabels_strings)
    if not completed:
        return label, post_transformed(ctx, scores.value, given.post_transform)
    complementary = given.post_transform == "PROBIT" or (given.post_transform == "NONE" and threshold == 0.5)
    return label, scores_of_two(scores, given.post_transform, complementary=complementary)


def _of_scored_classes(scores: Expression, reached: Value, forest: Forest, count: int) -> Expression:
    """The scores of the classes for which a reached leaf has a weight; the lowest number for the other classes.

    ONNX Runtime chooses the label of three or more classes among them.
    """
    ctx = scores.ctx
    if len(forest.always_scored()) == count:
        return scores
    table = np.array([[target in {i for i, _ in leaf} for target in range(count)] for leaf in forest.leaf])
    has_weight = ctx.emit("Gather", ctx.constant(table), reached, ctx.constant(0))
    has_score = Expression(ctx, ctx.emit("ReduceLogicalOr", has_weight, [1], keep_dims=False))
    return has_score.select(scores, Expression(ctx, ctx.constant(np.finfo(np.float32).min, F32)))
