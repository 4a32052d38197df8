"""Element types of IR: one row each, with everything that is known of it. Packing and rounding by the row."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from irexec.dtypes.codecs import (
    BFloat16Codec,
    BooleanCodec,
    Codec,
    MiniFloatCodec,
    NativeCodec,
    SmallIntegerCodec,
    StringCodec,
)
from irexec.dtypes.layouts import (
    Exponent8,
    Float4,
    Float8,
    HighBitFirst,
    LowBitsFirst,
    NormalFloat4,
    SplitPlanes,
    WholeBytes,
)
from irexec.errors import InputError, OpError, UnsupportedError


@functools.cache
def lowest(element: Element) -> float | int:
    """The lowest finite value of a numeric type, such as -448 of f8e4m3; of f8e8m0, which has no sign, the smallest.

    Source: ``std::numeric_limits<T>::lowest()`` of the types of OpenVINO (openvino/core/type/bfloat16.hpp: 0xFF7F).
    """
    if not element.is_float:
        return -(1 << (element.bits - 1)) if element.kind == "signed" else 0
    if element.native:
        return float(np.finfo(element.carrier).min)
    if element is BF16:
        # Seven ones after the binary point, where f32 has 23.
        return -(2 - 2.0**-7) * 2.0**127
    # Every code of at most 8 bits is in these bytes.
    codes = element.codec.unpack(np.arange(256, dtype=np.uint8), 256 * 8 // element.bits)
    return float(codes[np.isfinite(codes)].min())


Kind = Literal["float", "signed", "unsigned", "boolean", "string"]


class OnnxType(NamedTuple):
    """An entry of ONNX's TensorProto.DataType."""

    name: str
    number: int


@dataclass(frozen=True, eq=False)
class Element:
    """An element type of IR, such as ``irexec.f32``.

    There is one object for each type, so that types are compared with ``is``.

    Attributes:
        name: as ``element_type`` of a Constant or Parameter spells it ("f32").
        precision: as a port's ``precision`` spells it ("FP32").
        bits: the packed size of one element; 0 for string.
        kind: float, signed, unsigned, boolean or string.
        carrier: the NumPy type in which values of this type travel.
        codec: how it is packed and rounded.
        onnx: the same type in ONNX; None where ONNX has none.
        extension: the name of the NumPy type that the package ml_dtypes adds for it; None where there is none.
    """

    name: str
    precision: str
    bits: int
    kind: Kind
    carrier: np.dtype
    codec: Codec
    onnx: OnnxType | None
    extension: str | None

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], Element], tuple[str]]:
        # Copies and pickles are the same object, since types are compared with ``is``.
        return element, (self.name,)

    @property
    def native(self) -> bool:
        """True if the carrier is the type itself: nothing is rounded."""
        return not self.codec.rounds

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer (boolean is not)."""
        return self.kind in ("signed", "unsigned")

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest number of an integer type."""
        if self.kind == "signed":
            return -(1 << self.bits - 1), (1 << self.bits - 1) - 1
        return 0, (1 << self.bits) - 1


ElementLike: TypeAlias = Element | str | np.dtype | type[np.generic]


def _native(
    name: str,
    precision: str,
    kind: Kind,
    dtype: DTypeLike,
    onnx: tuple[str, int],
    codec: Callable[[np.dtype], Codec] = NativeCodec,
) -> Element:
    carrier = np.dtype(dtype)
    return Element(name, precision, 8 * carrier.itemsize, kind, carrier, codec(carrier), OnnxType(*onnx), None)


def _coded(
    name: str,
    precision: str,
    bits: int,
    kind: Kind,
    dtype: DTypeLike,
    codec: Codec,
    onnx: tuple[str, int] | None,
    extension: str | None,
) -> Element:
    return Element(
        name, precision, bits, kind, np.dtype(dtype), codec, None if onnx is None else OnnxType(*onnx), extension
    )


BOOLEAN = _native("boolean", "BOOL", "boolean", np.bool_, ("BOOL", 9), BooleanCodec)
U1 = _coded("u1", "BIN", 1, "unsigned", np.uint8, SmallIntegerCodec(1, HighBitFirst()), None, "uint1")
U2 = _coded("u2", "U2", 2, "unsigned", np.uint8, SmallIntegerCodec(2, LowBitsFirst(2)), ("UINT2", 25), "uint2")
U3 = _coded("u3", "U3", 3, "unsigned", np.uint8, SmallIntegerCodec(3, SplitPlanes(2, 1)), None, None)
U4 = _coded("u4", "U4", 4, "unsigned", np.uint8, SmallIntegerCodec(4, LowBitsFirst(4)), ("UINT4", 21), "uint4")
U6 = _coded("u6", "U6", 6, "unsigned", np.uint8, SmallIntegerCodec(6, SplitPlanes(4, 2)), None, None)
U8 = _native("u8", "U8", "unsigned", np.uint8, ("UINT8", 2))
U16 = _native("u16", "U16", "unsigned", np.uint16, ("UINT16", 4))
U32 = _native("u32", "U32", "unsigned", np.uint32, ("UINT32", 12))
U64 = _native("u64", "U64", "unsigned", np.uint64, ("UINT64", 13))
I4 = _coded("i4", "I4", 4, "signed", np.int8, SmallIntegerCodec(4, LowBitsFirst(4), signed=True), ("INT4", 22), "int4")
I8 = _native("i8", "I8", "signed", np.int8, ("INT8", 3))
I16 = _native("i16", "I16", "signed", np.int16, ("INT16", 5))
I32 = _native("i32", "I32", "signed", np.int32, ("INT32", 6))
I64 = _native("i64", "I64", "signed", np.int64, ("INT64", 7))
BF16 = _coded("bf16", "BF16", 16, "float", np.float32, BFloat16Codec(), ("BFLOAT16", 16), "bfloat16")
F16 = _native("f16", "FP16", "float", np.float16, ("FLOAT16", 10))
F32 = _native("f32", "FP32", "float", np.float32, ("FLOAT", 1))
F64 = _native("f64", "FP64", "float", np.float64, ("DOUBLE", 11))
NF4 = _coded("nf4", "NF4", 4, "float", np.float32, MiniFloatCodec(NormalFloat4(), LowBitsFirst(4)), None, None)
F8E4M3 = _coded(
    "f8e4m3", "F8E4M3", 8, "float", np.float32,
    MiniFloatCodec(Float8(4, 3, infinity=False), WholeBytes()), ("FLOAT8E4M3FN", 17), "float8_e4m3fn",
)  # fmt: skip
F8E5M2 = _coded(
    "f8e5m2", "F8E5M2", 8, "float", np.float32,
    MiniFloatCodec(Float8(5, 2, infinity=True), WholeBytes()), ("FLOAT8E5M2", 19), "float8_e5m2",
)  # fmt: skip
F8E8M0 = _coded(
    "f8e8m0", "F8E8M0", 8, "float", np.float32, MiniFloatCodec(Exponent8(), WholeBytes()), ("FLOAT8E8M0", 24),
    "float8_e8m0fnu",
)  # fmt: skip
F4E2M1 = _coded(
    "f4e2m1", "F4E2M1", 4, "float", np.float32, MiniFloatCodec(Float4(), LowBitsFirst(4)), ("FLOAT4E2M1", 23),
    "float4_e2m1fn",
)  # fmt: skip
STRING = _coded("string", "STRING", 0, "string", object, StringCodec(), ("STRING", 8), None)

ELEMENTS: tuple[Element, ...] = tuple(row for row in globals().values() if isinstance(row, Element))

_BY_SPELLING = {spelling: e for e in ELEMENTS for spelling in (e.name, e.precision.lower())}
_BY_DTYPE = {e.carrier: e for e in ELEMENTS if e.native}
_BY_EXTENSION = {e.extension: e for e in ELEMENTS if e.extension is not None}


def element(spelling: str) -> Element:
    """The element type that ``spelling`` names, as element_type or as port precision, in any case.

    Raises:
        UnsupportedError: the element type does not exist.
    """
    found = _BY_SPELLING.get(spelling.strip().lower())
    if found is None:
        raise UnsupportedError(f"element type {spelling!r} is not known")
    return found


def element_of(dtype: np.dtype) -> Element:
    """The element type of the values of a NumPy type, including those that ml_dtypes adds.

    Raises:
        UnsupportedError: IR has no such type (complex, datetime, ...).
    """
    if dtype.kind in "US":
        return STRING
    found = _BY_DTYPE.get(dtype) or _BY_EXTENSION.get(dtype.name)
    if found is None:
        raise UnsupportedError(f"NumPy type {dtype} is not an element type of IR")
    return found


def as_element(like: ElementLike) -> Element:
    """The element type that is meant: an Element, its name or port precision in any case, or a NumPy type.

    Raises:
        UnsupportedError: the element type does not exist.
        InputError: it is none of the three.
    """
    if isinstance(like, Element):
        return like
    if isinstance(like, str):
        return element(like)
    if isinstance(like, np.dtype) or (isinstance(like, type) and issubclass(like, np.generic)):
        return element_of(np.dtype(like))
    given: Any = like
    raise InputError(f"{given!r} is not an element type: expected one such as irexec.f32, its name or a NumPy type")


def packed_size(element: Element, count: int) -> int:
    """The number of bytes that ``count`` elements take; raises OpError for strings, whose count does not decide it."""
    return element.codec.size(count)


def unpack(element: Element, raw: np.ndarray, count: int) -> np.ndarray:
    """The first ``count`` elements of packed bytes.

    Args:
        element: the element type.
        raw: uint8, one dimension.
        count: number of elements to read.

    Returns:
        One dimension in the element's carrier; a view on ``raw`` where the type is NumPy's own.

    Raises:
        OpError: there are too few bytes, or the offsets of a string tensor are damaged.
    """
    if element.kind == "string":
        return element.codec.unpack(raw, count)
    size = packed_size(element, count)
    if raw.size < size:
        raise OpError(f"{count} elements of {element} take {size} bytes, there are {raw.size}")
    return element.codec.unpack(raw[:size], count)


def pack(element: Element, array: np.ndarray) -> np.ndarray:
    """The packed bytes of an array in the carrier of ``element``: uint8, one dimension."""
    return element.codec.pack(np.ascontiguousarray(array).reshape(-1))


def round_to(element: Element, array: np.ndarray) -> np.ndarray:
    """The values of ``array`` rounded to ``element``, in its carrier.

    Args:
        element: the type; one that NumPy has itself leaves the array as it is.
        array: values of the carrier, any shape.
    """
    # Arithmetic on an array without axes gives a NumPy scalar.
    return np.asarray(element.codec.round(np.asarray(array)))
