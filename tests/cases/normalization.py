"""Rows of normalisation."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses
from tests.cases import Operation
from tests.support.cases import emptied, halves, odd

X = random("f32", 2, 4, 3, 5)
C = [random("f32", 4, low=0.5, high=1.5, seed=i) for i in range(4)]
H = [random("f16", 4, low=0.5, high=1.5, seed=i) for i in range(4)]
batch_norm_inference_5 = Operation("BatchNormInference", 5, epsilon="0.001")
batch_norm_inference_1 = Operation("BatchNormInference", 1, epsilon="0.001")
lrn = Operation("LRN", 1, alpha="0.5", beta="0.75", bias="1", size="3")
group_normalization = Operation("GroupNormalization", 12, num_groups="2", epsilon="1e-5")
mvn_2 = Operation("MVN", 2, eps="1e-3")
mvn_6 = Operation("MVN", 6, normalize_variance="true", eps="1e-2", eps_mode="inside_sqrt")
normalize_l2 = Operation("NormalizeL2", 1, eps_mode="add")
ROWS = [
    batch_norm_inference_5(X, *C, id="2-D"),
    batch_norm_inference_5(random("f32", 3, 4), *C, epsilon="0.01", id="no spatial axes"),
    batch_norm_inference_5(random("f32", 1, 4, 2, 2, 2), *C, epsilon="1e-5", id="3-D"),
    batch_norm_inference_5(random("f16", 2, 4, 3), *H, id="f16"),
    batch_norm_inference_5.facts("f32[?,?,3]", *["f32[4]"] * 4, id="dynamic"),
    batch_norm_inference_5.refuses("f32[2,4,3]", *["f32[5]"] * 4, says="number of channels of gamma differs between inputs: 4 and 5", id="other channels"),
    batch_norm_inference_5.refuses("f32[2,4,3]", *["f32[4]"] * 4, epsilon="-1", says="epsilon -1 is negative", id="negative epsilon"),
    batch_norm_inference_1(C[0], C[1], X, C[2], C[3], id="2-D"),
    batch_norm_inference_1.facts("f32[4]", "f32[4]", "f32[?,4,3]", "f32[4]", "f32[4]", id="dynamic"),
    lrn(X, [1], id="channels"),
    lrn(X, [2, 3], bias="2", id="pixels"),
    lrn(X, [1], alpha="1e-4", size="5", id="usual numbers"),
    lrn(X, [1], size="2", id="even size"),
    # By hand: alpha / size times the sum of squares is 2.5, and the divisor is the root of 3.
    lrn(
        np.array([[[1.0], [2.0]]], np.float32),
        [1],
        alpha="1.5",
        beta="0.5",
        bias="0.5",
        gives=np.array([[[1.0], [2.0]]], np.float32) / np.float32(np.sqrt(3)),
        id="channels of rank 3",
    ),
    lrn.facts("f32[?,4,3]", [1], id="dynamic"),
    case("GRN", 1, X, bias="0.3", id="f32"),
    facts_case("GRN", 1, "f32[?,4,3]", bias="0.3", id="dynamic"),
    group_normalization(X, C[0], C[1], id="two groups"),
    group_normalization(X, C[0], C[1], num_groups="4", epsilon="0.1", id="as many as channels"),
    group_normalization(random("f32", 2, 4, 6), C[0], C[1], num_groups="1", epsilon="1e-3", id="one group, 1-D"),
    group_normalization(random("f16", 2, 4, 6), H[0], H[1], epsilon="1e-3", id="f16"),
    group_normalization.facts("f32[?,?,3]", "f32[4]", "f32[4]", id="dynamic"),
    group_normalization.refuses("f32[2,4]", "f32[4]", "f32[4]", num_groups="3", says="into 3 groups", id="uneven"),
    mvn_2.facts("f32[?,4,3]", eps="1e-5", id="dynamic"),
    mvn_6.facts("f32[?,4,3]", [1], eps="1e-5", id="dynamic"),
    mvn_6.refuses("f32[2,3]", [4], eps="1", says="out of range", id="axis"),
    normalize_l2.facts("f32[?,4,3]", [1], eps="1e-5", id="dynamic"),
    normalize_l2.refuses("f32[2,3]", [4], eps="1e-5", says="axis 4 is out of range", id="axis out of range"),
]  # fmt: skip
for across in ("true", "false"):
    for variance in ("true", "false"):
        ROWS.append(
            mvn_2(X, across_channels=across, normalize_variance=variance, id=f"across {across}, variance {variance}")
        )
for across, axes in (("false", "1, 2, 3"), ("true", "2, 3"), ("false", "1"), ("true", "3")):
    ROWS.append(
        mvn_2(
            X,
            across_channels=across,
            normalize_variance="true",
            reduction_axes=axes,
            id=f"across {across}, reduction_axes {axes}",
        )
    )
for mode in ("inside_sqrt", "outside_sqrt"):
    ROWS += [
        mvn_6(X, [2, 3], eps_mode=mode, id=f"{mode}"),
        mvn_6(X, [-1], eps_mode=mode, id=f"{mode}, last axis"),
        mvn_6(X, [1, 2, 3], normalize_variance="false", eps_mode=mode, id=f"{mode}, mean alone"),
        mvn_6(random("f16", 2, 4, 5), [2], eps_mode=mode, id=f"{mode}, f16"),
    ]
for mode in ("add", "max"):
    ROWS += [
        normalize_l2(X, [1], eps="0.5", eps_mode=mode, id=f"{mode}, channels"),
        normalize_l2(X, [1, 2, 3], eps="0.5", eps_mode=mode, id=f"{mode}, all but the batch"),
        normalize_l2(X, [-1], eps="1e-9", eps_mode=mode, id=f"{mode}, last axis"),
    ]
ROWS += [
    case("GRN", 1, random("f32", 2, 4), bias="0.3", id="no spatial axes"),
    case("GRN", 1, random("f32", 2, 4, 3), bias="1e-3", id="1-D"),
    # By the formula: 1 + the squares of each and its neighbours; OpenVINO's plugin wants the axis counted from the front.
    lrn([[1.0, 2.0, 3.0]], [-1], alpha="3", beta="1", gives=[[1 / 6, 2 / 15, 3 / 14]], id="negative axis"),
    lrn(random("f32", 2, 5), [1], id="rank 2"),
    mvn_2(random("f32", 2, 4, 6), normalize_variance="true", id="1-D, default"),
    mvn_6(random("f32", 3, 4), [0, 1], id="all axes"),
    normalize_l2(random("f32", 3, 4), [1], eps="0.5", id="matrix"),
    normalize_l2(np.zeros((2, 3), np.float32), [1], eps="0.5", eps_mode="max", id="zeros"),
    batch_norm_inference_1(C[0], C[1], random("f32", 2, 4), C[2], C[3], id="no spatial axes"),
    batch_norm_inference_1.refuses(
        "f32[4]",
        "f32[5]",
        "f32[2,4,3]",
        "f32[4]",
        "f32[4]",
        says="number of channels of beta differs between inputs: 4 and 5",
        id="other channels",
    ),
    lrn.refuses("f32[2,4,3]", [3], says="axis 3 is out of range", id="axis out of range"),
    refuses("GRN", 1, "f32[4]", bias="0.3", says="data has rank 1, expected 2, 3 or 4", id="rank 1"),
    mvn_2.refuses(
        "i32[2,4,3]", eps="1e-5", says="data has element type i32, expected a floating-point type", id="integers"
    ),
]
ROWS += [
    *halves(ROWS),
    *odd(ROWS),
    *emptied([row for row in ROWS if row.since == 1], "BatchNormInference", inputs=(2,)),
    *emptied([row for row in ROWS if row.since == 5], "BatchNormInference"),
    *emptied(ROWS, "GRN", "LRN", "MVN", "NormalizeL2", "GroupNormalization"),
]
ROWS += [
    normalize_l2([[1.0, 2.0]], np.zeros(0, np.int64), eps="0.1", id="nothing summed"),
    mvn_6([[1.0, 2.0]], np.zeros(0, np.int64), eps="0.1", id="nothing averaged"),
]
# One number less its mean; OpenVINO does not run it.
ROWS.append(mvn_2(np.float32(1.5), eps="1", gives=np.float32(0), id="scalar"))
# Over no axes: a number less itself, and, as the specification of NormalizeL2 has it, 1. OpenVINO does not run them.
ROWS += [
    mvn_6(np.float32(1.5), np.zeros(0, np.int64), eps="1", gives=np.float32(0), id="scalar"),
    normalize_l2(np.float32(3), np.zeros(0, np.int64), eps="7", gives=np.float32(1), id="scalar"),
]
ROWS += [
    mvn_6(random("f32", 2, 0, 3), [1], eps="1e-3", gives=np.zeros((2, 0, 3), np.float32), id="mean of nothing"),
    mvn_2(
        random("f32", 1, 2, 0), normalize_variance="true", gives=np.zeros((1, 2, 0), np.float32), id="mean of no pixels"
    ),
]
