"""Rows of Convert and ConvertLike: every pair of types."""

import numpy as np

from irexec.testing import case, facts_case, random, refuses, typed
from tests.cases import Operation

# i4 and the types of 8 bits and fewer that are floats; nf4 is never converted to.
SOURCES = {
    "boolean": [True, False], "u1": [0, 1, 1], "u2": [0, 3, 2], "u3": [0, 7, 5], "u4": [0, 15, 7], "u6": [0, 63, 33], "u8": [0, 255, 128, 7],
    "u16": [0, 65535, 300], "u32": [0, 4294967295, 70000], "u64": [0, 2**40, 300], "i4": [-8, 7, -1], "i8": [-128, 127, -1],
    "i16": [-32768, 32767, 300], "i32": [-70000, 2147483647, 300, 0], "i64": [-70000, 2**40 + 3, 300], "bf16": [0.5, -1.75, 100.0],
    "f16": [0.5, -1.75, 100.0, 1000.0], "f32": [0.0, 0.5, -0.5, 1.9, -1.9, 100.7, 300.0], "f64": [0.0, 0.5, -1.9, 100.7], "nf4": [0.0, 1.0, -1.0],
    "f8e4m3": [0.5, -1.75, 100.0], "f8e5m2": [0.5, -1.75, 100.0], "f8e8m0": [0.5, 2.0, 128.0], "f4e2m1": [0.5, -6.0, 3.0],
}  # fmt: skip
TARGETS = [name for name in SOURCES if name != "nf4"]
SCALED = {"nf4", "f8e8m0", "f4e2m1"}
COMMON = {"f16", "f32", "bf16"}

ROWS = []
convert = Operation("Convert", 1)
for source, values in SOURCES.items():
    for target in TARGETS:
        # OpenVINO brings the types of microscaling and nf4 to and from the common float types alone.
        if (source in SCALED and target not in COMMON) or (target in SCALED and source not in COMMON):
            continue
        # OpenVINO's folding saturates only i32 at the largest f16; every other type overflows as IEEE 754 has it.
        gives = np.array([-np.inf, np.inf, 300, 0], np.float16) if (source, target) == ("i32", "f16") else None
        ROWS.append(convert(typed(source, values), destination_type=target, gives=gives, id=f"{source} to {target}"))
ROWS += [
    convert(
        [np.nan, np.inf, -np.inf], destination_type="boolean", gives=np.array([True, True, True]), id="NaN is true"
    ),
    convert(np.float32(3.7), destination_type="i32", id="scalar"),
    convert(random("f32", 0, 2), destination_type="i32", gives=np.zeros((0, 2), np.int32), id="empty"),
    convert([1e6, -1e6, 464.0, 465.0], destination_type="f8e4m3", id="beyond f8e4m3"),
    convert([1e6, -1e6, 61440.0], destination_type="f8e5m2", id="beyond f8e5m2"),
    convert([0.25, 0.75, 2.5, 5.0, -3.5, 100.0], destination_type="f4e2m1", id="ties of f4e2m1"),
    convert([0.75, 1.5, 6.0, -1.0, 0.0], destination_type="f8e8m0", id="ties of f8e8m0"),
    convert([1.0 + 2.0**-8, 1.0 + 3 * 2.0**-8, 3.4e38], destination_type="bf16", id="ties of bf16"),
    convert([65519.0, 65520.0, 2.0**-25, 1.5 * 2.0**-24], destination_type="f16", id="corners of f16"),
    convert(
        typed("f64", [1 + 2.0**-11 + 2.0**-40, 65519.999999, 1e300]),
        destination_type="f16",
        id="f64 to f16 is rounded twice",
    ),
    convert(
        [np.float32(432 - 2.0**-15), 1.0625, 1.1875, 2.0**-10, 1.5 * 2.0**-9],
        destination_type="f8e4m3",
        id="ties of f8e4m3",
    ),
    convert([1.125, 1.375, 61439.99, 2.0**-17, 1.5 * 2.0**-16], destination_type="f8e5m2", id="ties of f8e5m2"),
    convert([np.nan, -np.inf], destination_type="f8e4m3", id="no infinity in f8e4m3"),
    convert([np.nan, np.inf, -np.inf, -0.0], destination_type="f4e2m1", id="no infinity and no NaN in f4e2m1"),
    convert([np.nan, np.inf, -np.inf, -1.0], destination_type="f8e8m0", id="no sign and no infinity in f8e8m0"),
    # OpenVINO does not fold to nf4, and its plugin cancels the way there and back; the codes it gives are in tests/kernels.
    convert(
        [0.0, 0.04, -5.0, 5.0, 0.5, np.nan],
        destination_type="nf4",
        gives=np.float32([0, 0.07958029955625534, -1, 1, 0.44070982933044434, -1]),
        id="f32 to nf4",
    ),
    convert(
        typed("f16", [0.25, -0.25]),
        destination_type="nf4",
        gives=np.float32([0.24611230194568634, -0.28444138169288635]),
        id="f16 to nf4",
    ),
    convert(typed("f64", [2.0**63, -(2.0**70), 3e9, -3e9, 255.9]), destination_type="u8", id="f64 beyond u8"),
    convert(typed("f32", [2.0**31, -(2.0**31), 3e9, 1e30, -1e30]), destination_type="i32", id="f32 beyond i32"),
    convert(typed("f32", [2.0**63, -(2.0**63), 1e30, -1e30]), destination_type="i64", id="f32 beyond i64"),
    convert(typed("f64", [2.0**63, 2.0**64 - 2.0**11, -1.0, 1.5]), destination_type="u64", id="f64 beyond i64 in u64"),
    convert([np.nan, 1.5, -1.5, 300.7], destination_type="u8", id="NaN to u8"),
    convert([-9, 8, 255, 7], destination_type="i4", id="beyond i4"),
    convert([-1, 2, 64, 63], destination_type="u6", id="beyond u6"),
    convert.facts("f32[?,2..5]", destination_type="i32", id="dynamic"),
    convert.refuses("string[2]", destination_type="f32", says="string cannot be converted to f32", id="text"),
    case("ConvertLike", 1, [1.9, -1.9], typed("i32", [7]), id="f32 to i32"),
    case("ConvertLike", 1, [1.9, -1.9], typed("f16", [7]), id="f32 to f16"),
    case("ConvertLike", 1, [300, 2], typed("boolean", [True]), id="i64 to boolean"),
    case("ConvertLike", 1, [1.00390625, 2.0], typed("bf16", [1.0]), id="f32 to bf16"),
    case("ConvertLike", 1, [300, 2], typed("u4", [1]), id="i64 to u4"),
    facts_case("ConvertLike", 1, "f32[?,2]", "i32[...]", id="dynamic"),
]
ROWS += [
    case(
        "ConvertLike", 1, np.zeros((0, 2), np.float32), typed("i32", [1]), gives=np.zeros((0, 2), np.int32), id="empty"
    ),
    case("ConvertLike", 1, [np.nan, np.inf, -np.inf], typed("f16", 1), id="NaN and infinities"),
    case("ConvertLike", 1, typed("f16", 1.5), np.zeros((0, 3), np.float32), gives=np.float32(1.5), id="like nothing"),
    refuses("ConvertLike", 1, "string[2]", "f32[2]", says="string cannot be converted to f32", id="text"),
]
