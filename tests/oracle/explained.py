"""Differences between irexec and OpenVINO that are known, and why irexec is right or the question is moot."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from irexec.analysis.portability import DIFFERENCES
from irexec.dtypes.elements import ELEMENTS
from irexec.testing import Case
from irexec.testing.laws import infer
from irexec.testing.rows import exact_facts


@dataclass(frozen=True)
class Known:
    """A difference: the types (none: any), what of a row and of the message it applies to, and the reason."""

    types: tuple[str, ...]
    applies: Applies
    why: str


Applies = Callable[[Case, str], bool]


def _odd(row: Case, difference: str) -> bool:
    """An input holds an infinity or NaN."""
    return any(x.array.dtype.kind == "f" and not np.isfinite(x.array).all() for x in row.inputs)


def _pdpd(row: Case, difference: str) -> bool:
    return row.attributes.get("auto_broadcast") == "pdpd" and row.inputs[0].array.shape != row.inputs[1].array.shape


def _of(*names: str) -> Applies:
    return lambda row, difference: row.inputs[0].element.name in names


def _says(start: str) -> Applies:
    return lambda row, difference: difference.startswith(start)


def _values(applies: Applies) -> Applies:
    """Numbers differ: neither what is inferred nor whether the model runs."""
    return lambda row, difference: difference.startswith("values") and applies(row, difference)


def _looser(row: Case, difference: str) -> bool:
    """Our facts leave more open; that they are wrong no reason explains."""
    return difference.startswith("facts") and " is looser than " in difference


def _of_nothing(row: Case, difference: str) -> bool:
    return row.inputs[0].array.size == 0


def _overflows(row: Case, difference: str) -> bool:
    """A sum, or a product, of bytes may not be one."""
    data = row.inputs[0].array
    wide = np.abs(data.astype(np.float64))
    maximum = np.maximum(wide, 1).prod() if row.type == "ReduceProd" else np.square(wide).sum()
    return _of("i8", "u8")(row, difference) and bool(maximum > np.iinfo(data.dtype).max)


def _cuts(row: Case, difference: str) -> bool:
    """The signal is shorter than the data; of the last axis IRDFT takes about half."""
    if len(row.inputs) < 3:
        return False
    shape, axes, sizes = row.inputs[0].array.shape[:-1], *(x.array.tolist() for x in row.inputs[1:3])
    needed = [*sizes[:-1], *(size // 2 + 1 for size in sizes[-1:])]
    return any(size >= 0 and need < shape[axis] for axis, size, need in zip(axes, sizes, needed, strict=True))


def _within(error: float) -> Applies:
    """No relative error is greater."""

    def applies(row: Case, difference: str) -> bool:
        found = re.search(r"Max relative difference among violations: (\S+)", difference)
        return found is not None and float(found[1]) <= error

    return applies


def _place_of_the_lowest(row: Case, difference: str) -> bool:
    data = row.inputs[0].array
    return row.since > 1 and data.dtype.kind == "u" and bool((data == 0).any()) and difference.startswith("values")


def _beside(row: Case, difference: str) -> bool:
    nothing = "nan location" in difference or "-2147483648" in difference or "(ACTUAL), 0 (DESIRED)" in difference
    return row.attributes.get("rounding_type") == "ceil" and nothing


def _has_nan(row: Case, difference: str) -> bool:
    return any(x.array.dtype.kind == "f" and bool(np.isnan(x.array).any()) for x in row.inputs)


def _of_empty_batch_shape(row: Case, difference: str) -> bool:
    return len(row.inputs) > 3 and row.inputs[3].array.size == 0


def _of_bits(row: Case, difference: str) -> bool:
    return row.attributes.get("destination_type") == "u1" or any(x.element.name == "u1" for x in row.inputs)


def _leaves_the_axis(row: Case, difference: str) -> bool:
    """A begin or an end of a slice lies outside of its axis."""
    axes = row.inputs[5].array.tolist() if len(row.inputs) > 5 else range(row.inputs[2].array.size)
    bounds = zip(row.inputs[2].array.tolist(), row.inputs[3].array.tolist(), strict=True)
    sizes = [row.inputs[0].array.shape[axis] for axis in axes]
    return any(not -size <= one <= size for pair, size in zip(bounds, sizes, strict=True) for one in pair)


def _keeps_its_depth(row: Case, difference: str) -> bool:
    shape, (result, *_) = row.inputs[0].array.shape, infer(row, exact_facts(row))
    return len(shape) == 5 and row.attributes["mode"] == "linear_onnx" and result.static_shape[2] == shape[2]


def _by_less_than(error: float) -> Applies:
    """No absolute error is as large."""

    def applies(row: Case, difference: str) -> bool:
        found = re.search(r"Max absolute difference among violations: (\S+)", difference)
        return found is not None and float(found[1]) < error

    return applies


def _draws(row: Case, difference: str) -> bool:
    """More than one class of a row may be drawn."""
    probs = row.inputs[0].array
    return bool(((probs > (-np.inf if row.attributes["log_probs"] == "true" else 0)).sum(-1) > 1).any())


def _draws_nothing(row: Case, difference: str) -> bool:
    """A row has no class with a probability, or fewer than the samples that take a class once."""
    probs = row.inputs[0].array.astype(np.float64)
    classes = (np.exp(probs) if row.attributes["log_probs"] == "true" else probs) > 0
    wanted = int(row.inputs[1].array.item()) if row.attributes["with_replacement"] == "false" else 1
    return not np.isfinite(probs).all() or bool((classes.sum(-1) < wanted).any())


_BACKPROP = ("ConvolutionBackpropData", "GroupConvolutionBackpropData")
_BITWISE = tuple(f"Bitwise{name}" for name in ("And", "Or", "Xor", "LeftShift", "RightShift"))
_INTEGERS = tuple(one.name for one in ELEMENTS if one.is_integer)
_SMALL = ("i8", "i16", "u8", "u16", "u32", "u64")


def _of_no_extent(row: Case, difference: str) -> bool:
    return row.attributes.get("sampling_ratio") == "0" and "nan location mismatch" in difference


def _one_off_in_integers(row: Case, difference: str) -> bool:
    return row.inputs[0].element.is_integer and "Max absolute difference among violations: 1 " in difference


def _to_one_element(row: Case, difference: str) -> bool:
    return bool((row.inputs[1].array == 1).all()) and _one_off_in_integers(row, difference)


def _does(code: str) -> str:
    """What validate --portability says of the difference."""
    return DIFFERENCES[code].does


KNOWN: tuple[Known, ...] = (
    Known(("LSTMCell",), _values(lambda row, _: row.attributes.get("input_forget") == "true"), _does("IR925")),
    Known(("Multinomial",), _values(_draws), _does("IR937")),
    Known(
        ("Multinomial",),
        lambda row, text: (text.startswith("values") or "chosen at most once" in text) and _draws_nothing(row, text),
        "where no class is left OpenVINO leaves the samples as they were in memory",
    ),
    Known(("PriorBox",), _values(lambda row, _: row.attributes.get("scale_all_sizes") == "false" and bool(row.attributes.get("max_size"))), _does("IR988")),
    Known(("Range",), _values(lambda row, _: row.attributes.get("output_type") in _INTEGERS), _does("IR985")),
    Known(
        ("RegionYolo",),
        lambda row, text: row.attributes["do_softmax"] == "true" and text.startswith("findings") and "channels" in text,
        "OpenVINO infers the shape by the data alone, and computes regions beyond it in memory of others",
    ),
    Known(
        ("StridedSlice",),
        lambda row, text: text.startswith(("findings", "running")) and "is out of range" in text,
        "the reference refuses a single index beside the axis; the plugin takes another one if it is not constant",
    ),
    Known(("Exp",), _values(_has_nan), "the plugin's exponential of NaN is infinite"),
    Known(("Eye",), _values(_of_empty_batch_shape), "without batches the plugin leaves the result as it was in memory"),
    Known((), _values(_pdpd), "operations by pdpd of some types are aligned at the last axes, as IR912 has it"),
    Known(("NonZero",), lambda row, _: row.inputs[0].array.ndim == 0, "of a scalar OpenVINO gives one row of no indices"),
    Known(("SliceScatter",), _values(_leaves_the_axis), "the plugin does not bound begin and end by the axis"),
    Known(("Convert", "ConvertLike"), _values(_of_bits), "of numbers that become bits, or were bits, the plugin loses some"),
    Known(("SoftPlus",), _values(_by_less_than(1e-5)), "openvinotoolkit/openvino#23673: too few digits below zero"),
    Known(("Interpolate",), _values(_keeps_its_depth), "where the depth stays as it is, OpenVINO takes the factor of the height for the width"),
    Known(("AdaptiveAvgPool",), _to_one_element, _does("IR914")),
    Known(("GridSample",), _one_off_in_integers, _does("IR916")),
    Known(("ROIAlign",), _of_no_extent, _does("IR920")),
    Known(("Gelu",), _values(_odd), "the plugin's error function gives NaN for infinities; the product of inf and 2 is inf"),
    Known(
        ("HardSigmoid",),
        lambda row, text: not row.inputs[1].array.any() and _one_off_in_integers(row, text),
        "of negative integers and alpha 0 the plugin gives 0, where the formula gives beta",
    ),
    Known(("HardSigmoid",), lambda row, text: _odd(row, text) and "nan" in text, "the plugin bounds NaN, here it stays NaN"),
    Known((*_BITWISE, "Greater", "GreaterEqual"), _values(_pdpd), _does("IR912")),
    Known(("Less", "LessEqual"), _values(lambda row, text: _pdpd(row, text) and _of(*_SMALL)(row, text)), _does("IR912")),
    Known(
        ("Interpolate",),
        _values(lambda row, _: row.since == 1 and row.attributes["mode"] == "cubic" and row.inputs[0].array.ndim == 3),
        "of three axes the plugin leaves most of a cubic result as it was in memory",
    ),
    Known(("Divide",), _values(lambda row, text: _of("i8", "i16")(row, text) and row.attributes.get("m_pythondiv") != "false"), _does("IR911")),
    Known(("NonMaxSuppression",), lambda row, difference: row.since in (1, 3, 4) and difference.startswith(("facts", "findings")), _does("IR968")),
    Known((), lambda row, text: _of("f64")(row, text) and "inf location" in text, _does("IR929")),
    Known(_BACKPROP, _says("findings"), _does("IR964")),
    Known(("MaxPool",), lambda row, text: _of("f16", "f64")(row, text) and ("inf loc" in text or "e+308" in text), _does("IR918")),
    Known(
        ("Interpolate",),
        lambda row, text: (
            row.attributes["mode"] == "linear_onnx"
            and row.inputs[0].element.is_integer
            and "difference among violations: 1" in text
        ),
        _does("IR915"),
    ),
    Known(("ReduceL1", "ReduceSum", "ReduceProd", "ReduceL2"), _values(_overflows), _does("IR913")),
    Known(("ScatterElementsUpdate",), lambda row, text: row.attributes.get("reduction") == "mean" and _one_off_in_integers(row, text), _does("IR922")),
    Known(
        ("Slice", "StridedSlice", "SliceScatter"),
        _looser,
        "a begin before the axis is its first number; of sizes that are not known OpenVINO counts as if it were not",
    ),
    Known(
        ("Transpose",),
        lambda row, text: row.inputs[1].array.size == 0 and _looser(row, text),
        "an empty order turns all axes round; of an unknown rank OpenVINO makes rank 0 then",
    ),
    Known(("Unique",), _says("findings"), "of an axis that is not known OpenVINO infers what it does of none"),
    Known(
        ("Unique",),
        lambda row, text: len(row.inputs) > 1 and _of("u8")(row, text) and text.startswith("values"),
        "for bytes along an axis the plugin leaves the indices uninitialised",
    ),
    Known(
        ("Squeeze",),
        lambda row, text: "does not admit" in text and "the kernel's" not in text,
        "a size that is not known is taken for 1 where it may be, as the specification has it",
    ),
    Known(
        ("FakeQuantize",),
        lambda row, text: text.startswith("values:") and any(x.array.size > 1 for x in row.inputs[1:]),
        "the plugin takes constant bounds of one rank with the data along another axis; as Parameters it takes them right",
    ),
    Known(("ReduceMax", "ReduceMin"), _values(_of_nothing), _does("IR930")),
    Known(("AvgPool",), _beside, "the plugin divides by the no points of a window beside the data; here that gives 0"),
    Known(("Reshape",), _looser, "data of unknown rank may have no element, and then -1 is 0; OpenVINO counts one at least"),
    Known(
        ("BinaryConvolution",),
        _says("values"),
        "the plugin alone runs it, and gives other values when the filter is not constant; expected values are made by hand",
    ),
    Known(
        ("MVN",),
        lambda row, text: row.since == 2 and text.startswith("values where less"),
        "of data of unknown rank OpenVINO writes across_channels=false, whatever it was",
    ),
    Known(("MaxPool",), _place_of_the_lowest, _does("IR917")),
    Known(
        ("NormalizeL2",),
        _values(lambda row, _: row.inputs[1].array.size == 0),
        "without axes every number but 0 becomes 1, as the specification has it; the plugin divides by its absolute value",
    ),
    Known(("SegmentMax",), _values(lambda row, text: row.attributes["fill_mode"] == "lowest" and not _of("f32", "i32")(row, text)), _does("IR921")),
    Known(
        ("SpaceToBatch",),
        _values(lambda row, _: bool(row.inputs[3].array.any())),
        "beside the data of one channel the plugin reads the next, where there is padding at the end",
    ),
    Known(("SparseFillEmptyRows",), _values(_of_nothing), "of no values OpenVINO leaves the indices as they were in memory"),
    Known(("SquaredDifference",), _values(_of("i8", "u8")), _does("IR923")),
    Known(
        ("Squeeze",),
        lambda row, text: row.inputs[-1].array.size == 0 and text.startswith("findings"),
        "no axes are given, yet OpenVINO wants to see which before it knows the rank",
    ),
    Known(
        ("StridedSlice",),
        lambda row, text: text.startswith(("facts", "findings")) and "1" in row.attributes["ellipsis_mask"],
        "without the numbers of begin OpenVINO's inference puts new axes and the ellipsis elsewhere than with them",
    ),
    Known(("StringTensorPack",), lambda row, text: "\\x01" in text or "\x01" in text, "of an empty text OpenVINO makes one of a byte that was in memory"),
    Known(("RDFT", "IRDFT"), _looser, "where the numbers of signal_size are not known, OpenVINO's inference leaves all axes but the last"),
    Known(
        ("IRDFT",),
        _values(_cuts),
        "of a signal_size that cuts the plugin leaves out numbers at times, and reads others from memory; rows are by the definition",
    ),
    Known(
        ("ScaledDotProductAttention",),
        lambda row, text: text.startswith("facts") and "[...] is looser" in text,
        "what has an unknown rank may stretch the leading axes; OpenVINO's inference takes it to have none",
    ),
    Known(("RandomUniform",), _looser, "of a shape whose length is bounded OpenVINO takes the bound for its length"),
    Known(("ErfInv",), _values(_within(1 / 2000)), "the plugin's approximation is out by up to 1 in 2,000"),
    Known(("Unique",), _looser, "an axis that may have no slice may have no unique one; OpenVINO counts one at least"),
)  # fmt: skip


def reason(row: Case, difference: str) -> str:
    """Why the row may differ so; nothing if that is not known."""
    return next(
        (known.why for known in KNOWN if row.type in (known.types or (row.type,)) and known.applies(row, difference)),
        "",
    )
