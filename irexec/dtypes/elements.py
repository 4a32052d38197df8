"""Element types of IR, their spellings and the NumPy types that carry them.

What NumPy lacks travels in a carrier: bf16, the f8, f4 and nf4 types as float32 that is
already rounded to the type; i4 as int8; u1 to u6 as uint8; string as an object array of str.
Source: openvino ``element_type.cpp``; precision names are those the serializer writes on ports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import DTypeLike

from irexec.errors import UnsupportedError

Kind = Literal["float", "signed", "unsigned", "boolean", "string"]


@dataclass(frozen=True)
class Element:
    """One element type.

    Attributes:
        name: as ``element_type`` of a Constant or Parameter spells it ("f32").
        precision: as a port's ``precision`` spells it ("FP32").
        bits: the packed size of one element; 0 for string.
        kind: float, signed, unsigned, boolean or string.
        carrier: the NumPy type in which values of this type travel.
        native: whether the carrier is the type itself, so that nothing is to be rounded.
    """

    name: str
    precision: str
    bits: int
    kind: Kind
    carrier: np.dtype
    native: bool

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer (boolean is not)."""
        return self.kind in ("signed", "unsigned")


def _row(name: str, precision: str, bits: int, kind: Kind, carrier: DTypeLike, native: bool = True) -> Element:
    return Element(name, precision, bits, kind, np.dtype(carrier), native)


BOOLEAN = _row("boolean", "BOOL", 8, "boolean", np.bool_)
U1 = _row("u1", "BIN", 1, "unsigned", np.uint8, False)
U2 = _row("u2", "U2", 2, "unsigned", np.uint8, False)
U3 = _row("u3", "U3", 3, "unsigned", np.uint8, False)
U4 = _row("u4", "U4", 4, "unsigned", np.uint8, False)
U6 = _row("u6", "U6", 6, "unsigned", np.uint8, False)
U8 = _row("u8", "U8", 8, "unsigned", np.uint8)
U16 = _row("u16", "U16", 16, "unsigned", np.uint16)
U32 = _row("u32", "U32", 32, "unsigned", np.uint32)
U64 = _row("u64", "U64", 64, "unsigned", np.uint64)
I4 = _row("i4", "I4", 4, "signed", np.int8, False)
I8 = _row("i8", "I8", 8, "signed", np.int8)
I16 = _row("i16", "I16", 16, "signed", np.int16)
I32 = _row("i32", "I32", 32, "signed", np.int32)
I64 = _row("i64", "I64", 64, "signed", np.int64)
BF16 = _row("bf16", "BF16", 16, "float", np.float32, False)
F16 = _row("f16", "FP16", 16, "float", np.float16)
F32 = _row("f32", "FP32", 32, "float", np.float32)
F64 = _row("f64", "FP64", 64, "float", np.float64)
NF4 = _row("nf4", "NF4", 4, "float", np.float32, False)
F8E4M3 = _row("f8e4m3", "F8E4M3", 8, "float", np.float32, False)
F8E5M2 = _row("f8e5m2", "F8E5M2", 8, "float", np.float32, False)
F8E8M0 = _row("f8e8m0", "F8E8M0", 8, "float", np.float32, False)
F4E2M1 = _row("f4e2m1", "F4E2M1", 4, "float", np.float32, False)
STRING = _row("string", "STRING", 0, "string", object)

ELEMENTS: tuple[Element, ...] = (
    BOOLEAN, U1, U2, U3, U4, U6, U8, U16, U32, U64, I4, I8, I16, I32, I64,
    BF16, F16, F32, F64, NF4, F8E4M3, F8E5M2, F8E8M0, F4E2M1, STRING,
)  # fmt: skip

_BY_SPELLING = {spelling: e for e in ELEMENTS for spelling in (e.name, e.precision.lower())}
_NATIVE = {e.carrier: e for e in ELEMENTS if e.native}


def element(spelling: str) -> Element:
    """The element type that ``spelling`` names, as element_type or as port precision, in any case.

    Raises:
        UnsupportedError: no such element type.
    """
    found = _BY_SPELLING.get(spelling.strip().lower())
    if found is None:
        raise UnsupportedError(f"element type {spelling!r} is not known")
    return found


def element_of(dtype: np.dtype) -> Element:
    """The element type that a NumPy type is by itself.

    Raises:
        UnsupportedError: the NumPy type is no element type of IR (complex, datetime, ...).
    """
    if dtype.kind in "US":
        return STRING
    found = _NATIVE.get(dtype)
    if found is None:
        raise UnsupportedError(f"NumPy type {dtype} is no element type of IR")
    return found
