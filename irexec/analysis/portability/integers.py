"""Differences in integers: rounding, saturation and single bits. IR91x to IR93x."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irexec.analysis.portability.difference import difference, layer_xml

if TYPE_CHECKING:
    from irexec.analysis.portability.layer import ExaminedLayer


@difference(
    "IR911", "integer quotients cut", ("Divide",), "CPU plugin", "values",
    does="the CPU plugin rounds quotients of integers towards zero, also where m_pythondiv asks for rounding "
    "down, as the specification and constant folding do",
    example=layer_xml("Divide-1", 'm_pythondiv="true"', "I32", "I32"),
    repair="If values may be negative, write a FloorMod and subtract its remainder first, or divide floats and "
    "round with Floor.",
)  # fmt: skip
def _quotients_cut(layer: ExaminedLayer) -> bool:
    if layer["m_pythondiv"] is False:
        return False
    divisor = layer.value(1)
    exact = divisor is not None and bool((abs(divisor) == 1).all())
    return (layer.may_be_negative(0) or layer.may_be_negative(1)) and not exact


difference(
    "IR913", "saturated sums of bytes",
    ("ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "Add", "Subtract", "Multiply", "Power", "MatMul"),
    "CPU plugin", "values",
    does="the CPU plugin saturates sums and products of i8 and u8, which wrap in the specification and in "
    "constant folding",
    example=layer_xml("ReduceSum-1", "", "U8", "I64"),
    repair="Convert to i32 before the sum or product.",
)(lambda layer: layer.is_of_bytes() and (layer.is_computed(0) or layer.is_computed(1)))  # fmt: skip


@difference(
    "IR914", "saturated mean of bytes", ("AdaptiveAvgPool",), "CPU plugin", "values", since="2023.1",
    does="the CPU plugin computes the mean of all bytes of a channel as a ReduceMean, whose sum saturates and "
    "whose quotient is cut",
    example=layer_xml("AdaptiveAvgPool-8", "", "U8", "I64"),
    repair="Convert to f32 before the pooling.",
)  # fmt: skip
def _saturated_mean(layer: ExaminedLayer) -> bool:
    sizes = layer.ints(1)
    return layer.is_of_bytes() and sizes is not None and set(sizes) == {1}


IN_F32 = frozenset({
    "Divide", "FloorMod", "Mod", "PRelu", "Power", "ReduceL1", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "Relu",
})  # fmt: skip
"""Operations that the CPU plugin computes in f32 for integers, measured with OpenVINO 2026.4."""


@difference(
    "IR987", "integers of 64 bits computed in 32", (), "CPU plugin", "values",
    does="the CPU plugin holds i64 and u64 in 32 bits, and computes quotients, remainders, powers and reductions of "
    "integers in f32: what these cannot hold wraps, saturates or is rounded, where all other implementations are exact",
    example=layer_xml("Const-1", 'element_type="i64" shape=""', name="large") + "\n"
    + layer_xml("Add-1", "", "I64", "I64"),
    repair="Make sure that values stay within 32 bits, 24 where f32 computes, or split them into two parts.",
)  # fmt: skip
def _in_32_bits(layer: ExaminedLayer) -> bool:
    """Values that are not known are not reported: those of tokens and masks are small."""
    if not layer.is_integer() or layer.definition.type in ("Constant", "Result", "Convert"):
        return False
    known = [value for i in range(min(2, len(layer.node.inputs))) if (value := layer.value(i)) is not None]
    wide = [one for one in known if one.dtype.kind in "iu" and one.dtype.itemsize == 8]
    if layer.element() in ("i64", "u64") and any(((one < -(2**31)) | (one >= 2**31)).any() for one in wide):
        return True
    return layer.definition.type in IN_F32 and any((one != one.astype("f4")).any() for one in known)


difference(
    "IR915", "interpolated bytes rounded", ("Interpolate",), "CPU plugin", "values",
    does="the CPU plugin rounds interpolated bytes to the nearest, where constant folding cuts them",
    example=layer_xml("Interpolate-4", 'mode="linear_onnx"', "U8"),
    repair="Convert to f32 before, and back after it with the rounding that is meant.",
)(lambda layer: layer.is_of_bytes() and layer["mode"] == "linear_onnx")  # fmt: skip


difference(
    "IR916", "sampled bytes rounded", ("GridSample",), "CPU plugin", "values",
    does="the CPU plugin rounds interpolated bytes to the nearest, where constant folding cuts them",
    example=layer_xml("GridSample-9", 'mode="bilinear"', "U8"),
    repair="Convert to f32 before, and back after it with the rounding that is meant.",
)(lambda layer: layer.is_of_bytes() and layer["mode"] in ("bilinear", "bicubic"))  # fmt: skip


difference(
    "IR917", "index of a zero maximum", ("MaxPool",), "CPU plugin", "values",
    does="the CPU plugin gives the first index of a channel for each window of unsigned integers that are all 0, "
    "not an index within the window",
    example='<layer type="MaxPool" version="opset8">\n  <output>\n    <port id="1" precision="U8"/>\n'
    '    <port id="2" precision="I64"/>\n  </output>\n</layer>',
    repair="Convert to i32 or f32 before the pooling.",
)(lambda layer: layer.is_used(1) and layer.element().startswith("u"))  # fmt: skip


difference(
    "IR921", "value of an empty segment", ("SegmentMax",), "CPU plugin", "values",
    does='with fill_mode="lowest" the CPU plugin fills with the lowest value of f32 or i32, which is not that of '
    "this element type",
    example=layer_xml("SegmentMax-16", 'fill_mode="lowest"', "I64"),
    repair="Convert to f32 or i32 before it.",
)(lambda layer: layer["fill_mode"] == "lowest" and layer.element() in ("f16", "bf16", "f64", "i64"))  # fmt: skip


@difference(
    "IR922", "integer mean cut", ("ScatterElementsUpdate",), "CPU plugin", "values", since="2024.1",
    does="the CPU plugin rounds a mean of integers towards zero, the reference rounds it down",
    example=layer_xml("ScatterElementsUpdate-12", 'reduction="mean"', "I32"),
    repair="If values may be negative, compute in floats and round with Floor.",
)  # fmt: skip
def _integer_mean(layer: ExaminedLayer) -> bool:
    return (
        layer["reduction"] == "mean" and layer.is_integer() and (layer.may_be_negative(0) or layer.may_be_negative(2))
    )


difference(
    "IR923", "squared difference of bytes", ("SquaredDifference",), "CPU plugin", "values",
    does="the CPU plugin computes something else for i8 and u8",
    example=layer_xml("SquaredDifference-1", "", "U8", "U8"),
    repair="Convert to i32 or f32 before it.",
)(lambda layer: layer.is_of_bytes())  # fmt: skip


difference(
    "IR931", "bits read from an input", ("Convert",), "CPU plugin", "undefined values",
    does="the CPU plugin converts u1 that is not constant as if each element were a byte",
    example=layer_xml("Convert-1", 'destination_type="f32"', "BIN"),
    repair="Use boolean or u8.",
)(lambda layer: layer.element() == "u1" and layer.value(0) is None)  # fmt: skip


difference(
    "IR938", "integer functions cut by folding", ("Exp", "Log", "Sin", "Asin"), "constant folding", "values",
    does="constant folding cuts the results for integers, the CPU plugin rounds them to the nearest: they depend "
    "on whether the input is constant",
    example=layer_xml("Exp-1", "", "I32"),
    repair="Convert to f32 before, and round after it.",
)(lambda layer: layer.is_integer())  # fmt: skip
