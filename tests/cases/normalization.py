"""Rows of normalisation."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses
from tests.support.cases import emptied, halves, odd

X = random("f32", 2, 4, 3, 5)
C = [random("f32", 4, low=0.5, high=1.5, seed=i) for i in range(4)]
H = [random("f16", 4, low=0.5, high=1.5, seed=i) for i in range(4)]
ROWS = [
    case("BatchNormInference", 5, X, *C, epsilon="0.001", id="2-D"),
    case("BatchNormInference", 5, random("f32", 3, 4), *C, epsilon="0.01", id="no spatial axes"),
    case("BatchNormInference", 5, random("f32", 1, 4, 2, 2, 2), *C, epsilon="1e-5", id="3-D"),
    case("BatchNormInference", 5, random("f16", 2, 4, 3), *H, epsilon="0.001", id="f16"),
    facts_case("BatchNormInference", 5, "f32[?,?,3]", *["f32[4]"] * 4, epsilon="0.001", id="dynamic"),
    refuses(
        "BatchNormInference",
        5,
        "f32[2,4,3]",
        *["f32[5]"] * 4,
        epsilon="0.001",
        says="number of channels of gamma differs between inputs: 4 and 5",
        id="other channels",
    ),
    refuses(
        "BatchNormInference",
        5,
        "f32[2,4,3]",
        *["f32[4]"] * 4,
        epsilon="-1",
        says="epsilon -1 is negative",
        id="negative epsilon",
    ),
    case("BatchNormInference", 1, C[0], C[1], X, C[2], C[3], epsilon="0.001", id="2-D"),
    facts_case(
        "BatchNormInference", 1, "f32[4]", "f32[4]", "f32[?,4,3]", "f32[4]", "f32[4]", epsilon="0.001", id="dynamic"
    ),
    case("LRN", 1, X, [1], alpha="0.5", beta="0.75", bias="1", size="3", id="channels"),
    case("LRN", 1, X, [2, 3], alpha="0.5", beta="0.75", bias="2", size="3", id="pixels"),
    case("LRN", 1, X, [1], alpha="1e-4", beta="0.75", bias="1", size="5", id="usual numbers"),
    case("LRN", 1, X, [1], alpha="0.5", beta="0.75", bias="1", size="2", id="even size"),
    # By hand: alpha / size times the sum of squares is 2.5, and the divisor is the root of 3.
    case(
        "LRN",
        1,
        np.array([[[1.0], [2.0]]], np.float32),
        [1],
        alpha="1.5",
        beta="0.5",
        bias="0.5",
        size="3",
        gives=np.array([[[1.0], [2.0]]], np.float32) / np.float32(np.sqrt(3)),
        id="channels of rank 3",
    ),
    facts_case("LRN", 1, "f32[?,4,3]", [1], alpha="0.5", beta="0.75", bias="1", size="3", id="dynamic"),
    case("GRN", 1, X, bias="0.3", id="f32"),
    facts_case("GRN", 1, "f32[?,4,3]", bias="0.3", id="dynamic"),
    case("GroupNormalization", 12, X, C[0], C[1], num_groups="2", epsilon="1e-5", id="two groups"),
    case("GroupNormalization", 12, X, C[0], C[1], num_groups="4", epsilon="0.1", id="as many as channels"),
    case(
        "GroupNormalization",
        12,
        random("f32", 2, 4, 6),
        C[0],
        C[1],
        num_groups="1",
        epsilon="1e-3",
        id="one group, 1-D",
    ),
    case("GroupNormalization", 12, random("f16", 2, 4, 6), H[0], H[1], num_groups="2", epsilon="1e-3", id="f16"),
    facts_case(
        "GroupNormalization", 12, "f32[?,?,3]", "f32[4]", "f32[4]", num_groups="2", epsilon="1e-5", id="dynamic"
    ),
    refuses(
        "GroupNormalization",
        12,
        "f32[2,4]",
        "f32[4]",
        "f32[4]",
        num_groups="3",
        epsilon="1e-5",
        says="into 3 groups",
        id="uneven",
    ),
    facts_case("MVN", 2, "f32[?,4,3]", eps="1e-5", id="dynamic"),
    facts_case(
        "MVN", 6, "f32[?,4,3]", [1], normalize_variance="true", eps="1e-5", eps_mode="inside_sqrt", id="dynamic"
    ),
    refuses(
        "MVN",
        6,
        "f32[2,3]",
        [4],
        normalize_variance="true",
        eps="1",
        eps_mode="inside_sqrt",
        says="out of range",
        id="axis",
    ),
    facts_case("NormalizeL2", 1, "f32[?,4,3]", [1], eps="1e-5", eps_mode="add", id="dynamic"),
    refuses(
        "NormalizeL2",
        1,
        "f32[2,3]",
        [4],
        eps="1e-5",
        eps_mode="add",
        says="axis 4 is out of range",
        id="axis out of range",
    ),
]
for across in ("true", "false"):
    for variance in ("true", "false"):
        ROWS.append(
            case(
                "MVN",
                2,
                X,
                across_channels=across,
                normalize_variance=variance,
                eps="1e-3",
                id=f"across {across}, variance {variance}",
            )
        )
for across, axes in (("false", "1, 2, 3"), ("true", "2, 3"), ("false", "1"), ("true", "3")):
    ROWS.append(
        case(
            "MVN",
            2,
            X,
            across_channels=across,
            normalize_variance="true",
            reduction_axes=axes,
            eps="1e-3",
            id=f"across {across}, reduction_axes {axes}",
        )
    )
for mode in ("inside_sqrt", "outside_sqrt"):
    ROWS += [
        case("MVN", 6, X, [2, 3], normalize_variance="true", eps="1e-2", eps_mode=mode, id=f"{mode}"),
        case("MVN", 6, X, [-1], normalize_variance="true", eps="1e-2", eps_mode=mode, id=f"{mode}, last axis"),
        case("MVN", 6, X, [1, 2, 3], normalize_variance="false", eps="1e-2", eps_mode=mode, id=f"{mode}, mean alone"),
        case(
            "MVN",
            6,
            random("f16", 2, 4, 5),
            [2],
            normalize_variance="true",
            eps="1e-2",
            eps_mode=mode,
            id=f"{mode}, f16",
        ),
    ]
for mode in ("add", "max"):
    ROWS += [
        case("NormalizeL2", 1, X, [1], eps="0.5", eps_mode=mode, id=f"{mode}, channels"),
        case("NormalizeL2", 1, X, [1, 2, 3], eps="0.5", eps_mode=mode, id=f"{mode}, all but the batch"),
        case("NormalizeL2", 1, X, [-1], eps="1e-9", eps_mode=mode, id=f"{mode}, last axis"),
    ]
ROWS += [
    case("GRN", 1, random("f32", 2, 4), bias="0.3", id="no spatial axes"),
    case("GRN", 1, random("f32", 2, 4, 3), bias="1e-3", id="1-D"),
    # By the formula: 1 + the squares of each and its neighbours; OpenVINO's plugin wants the axis counted from the front.
    case(
        "LRN",
        1,
        [[1.0, 2.0, 3.0]],
        [-1],
        alpha="3",
        beta="1",
        bias="1",
        size="3",
        gives=[[1 / 6, 2 / 15, 3 / 14]],
        id="negative axis",
    ),
    case("LRN", 1, random("f32", 2, 5), [1], alpha="0.5", beta="0.75", bias="1", size="3", id="rank 2"),
    case("MVN", 2, random("f32", 2, 4, 6), normalize_variance="true", eps="1e-3", id="1-D, default"),
    case(
        "MVN",
        6,
        random("f32", 3, 4),
        [0, 1],
        normalize_variance="true",
        eps="1e-2",
        eps_mode="inside_sqrt",
        id="all axes",
    ),
    case("NormalizeL2", 1, random("f32", 3, 4), [1], eps="0.5", eps_mode="add", id="matrix"),
    case("NormalizeL2", 1, np.zeros((2, 3), np.float32), [1], eps="0.5", eps_mode="max", id="zeros"),
    case("BatchNormInference", 1, C[0], C[1], random("f32", 2, 4), C[2], C[3], epsilon="0.001", id="no spatial axes"),
    refuses(
        "BatchNormInference",
        1,
        "f32[4]",
        "f32[5]",
        "f32[2,4,3]",
        "f32[4]",
        "f32[4]",
        epsilon="0.001",
        says="number of channels of beta differs between inputs: 4 and 5",
        id="other channels",
    ),
    refuses(
        "LRN",
        1,
        "f32[2,4,3]",
        [3],
        alpha="0.5",
        beta="0.75",
        bias="1",
        size="3",
        says="axis 3 is out of range",
        id="axis out of range",
    ),
    refuses("GRN", 1, "f32[4]", bias="0.3", says="data has rank 1, expected 2, 3 or 4", id="rank 1"),
    refuses(
        "MVN",
        2,
        "i32[2,4,3]",
        eps="1e-5",
        says="data has element type i32, expected a floating-point type",
        id="integers",
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
    case("NormalizeL2", 1, [[1.0, 2.0]], np.zeros(0, np.int64), eps="0.1", eps_mode="add", id="nothing summed"),
    case(
        "MVN",
        6,
        [[1.0, 2.0]],
        np.zeros(0, np.int64),
        normalize_variance="true",
        eps="0.1",
        eps_mode="inside_sqrt",
        id="nothing averaged",
    ),
]
# One number less its mean; OpenVINO does not run it.
ROWS.append(case("MVN", 2, np.float32(1.5), eps="1", gives=np.float32(0), id="scalar"))
# Over no axes: a number less itself, and, as the specification of NormalizeL2 has it, 1. OpenVINO does not run them.
ROWS += [
    case(
        "MVN",
        6,
        np.float32(1.5),
        np.zeros(0, np.int64),
        normalize_variance="true",
        eps="1",
        eps_mode="inside_sqrt",
        gives=np.float32(0),
        id="scalar",
    ),
    case(
        "NormalizeL2",
        1,
        np.float32(3),
        np.zeros(0, np.int64),
        eps="7",
        eps_mode="add",
        gives=np.float32(1),
        id="scalar",
    ),
]
ROWS += [
    case(
        "MVN",
        6,
        random("f32", 2, 0, 3),
        [1],
        normalize_variance="true",
        eps="1e-3",
        eps_mode="inside_sqrt",
        gives=np.zeros((2, 0, 3), np.float32),
        id="mean of nothing",
    ),
    case(
        "MVN",
        2,
        random("f32", 1, 2, 0),
        normalize_variance="true",
        eps="1e-3",
        gives=np.zeros((1, 2, 0), np.float32),
        id="mean of no pixels",
    ),
]
