"""Rows that differ once they are written as ONNX, each with the reason; patterns of fnmatch over their ids."""

OUT_OF_RANGE = "an index out of range is an error in ONNX"
BY_ZERO = "a division of integers by 0 is not defined in ONNX"
BEYOND = "a float beyond the range of an integer type is not defined in ONNX"
F8 = "ONNX rounds what is beyond the largest value of the type to NaN or infinity by another rule"
OF_RUNTIME = "ONNX Runtime computes the operator less precisely"

EXCEPT: dict[str, str] = {
    "Divide-1-i64 by zero": BY_ZERO,
    "FloorMod-1-i64 by zero": BY_ZERO,
    "Power-1-beyond u32": BEYOND,
    "Swish-4-far below zero*": OF_RUNTIME,
    "ErfInv-17-f64": "ONNX Runtime computes Erf of f64 in f32",
    "Gather-8-out of range is zero": OUT_OF_RANGE,
    "Gather-8-out of nothing": OUT_OF_RANGE,
    "Gather-8-below the range": OUT_OF_RANGE,
    "Convert-1-u16 to f8e5m2": F8,
    "Convert-1-beyond f8e5m2": F8,
    "Convert-1-ties of f8e5m2": F8,
    "Convert-1-ties of f8e8m0": F8,
    "Convert-1-f32 to f8e8m0": F8,
    "Convert-1-no infinity and no NaN in f4e2m1": F8,
}

REFUSED: dict[str, str] = {
    "Convert-1-*to u1": "ONNX lacks the type",
    "Convert-1-*to u2": "ONNX has the type from opset 25 on",
    "Convert-1-*to u3": "ONNX lacks the type",
    "Convert-1-*to u6": "ONNX lacks the type",
    "Convert-1-*beyond u6": "ONNX lacks the type",
    "Convert-1-*to nf4": "ONNX lacks the type",
}
"""Rows that are refused."""
