"""String tensors packed from and unpacked to their UTF-8 bytes."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from irexec.dtypes.elements import I32, STRING, U8
from irexec.dtypes.strings import encoded
from irexec.errors import check
from irexec.ir.dims import ANY, Size, high, meet_shapes
from irexec.ir.facts import Fact
from irexec.reference.limits import check_memory
from irexec.schema.inputs import VECTOR, IntegerTensor, StringTensor, element_set
from irexec.schema.registry import op
from irexec.schema.shape_rules import unify_elements

Bytes = Annotated[np.ndarray, element_set("u8", U8), VECTOR]


@op("StringTensorPack", since=15)
def string_tensor_pack_15(begins: IntegerTensor, ends: IntegerTensor, symbols: Bytes) -> np.ndarray:
    """Strings decoded from UTF-8: string i is the bytes of ``symbols`` from begins[i] to ends[i].

    Bytes that are not UTF-8 become U+FFFD, as in OpenVINO's Python API. Source: StringTensorPack-15.
    """
    inside = (begins >= 0) & (begins <= ends) & (ends <= len(symbols))
    check(bool(inside.all()), f"begins and ends are not ascending within the {len(symbols)} bytes of symbols")
    # Strings may overlap: a few bytes can be the characters of any number of them.
    check_memory(
        (int((ends.astype(np.int64) - begins.astype(np.int64)).sum()),), symbols.dtype, "the text of the strings"
    )
    text = symbols.tobytes()
    strings = np.empty(begins.size, object)
    spans = zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True)
    strings[:] = [text[begin:end].decode("utf-8", "replace") for begin, end in spans]
    return strings.reshape(begins.shape)


@string_tensor_pack_15.shape_rule
def _string_tensor_pack_15_facts(begins: Fact, ends: Fact, symbols: Fact) -> Fact:
    unify_elements(begins, ends)
    count = None if not symbols.shape else high(symbols.shape[0])
    for name, offsets in (("begins", begins.known), ("ends", ends.known)):
        if offsets is not None and offsets.size and offsets.dtype != object:
            check(int(offsets.min()) >= 0, f"{name} has {offsets.min()}, expected offsets of 0 and more")
            check(
                count is None or int(offsets.max()) <= count, f"{name} has {offsets.max()}, symbols has {count} bytes"
            )
    return Fact(STRING, meet_shapes(begins.shape, ends.shape))


@op("StringTensorUnpack", since=15)
def string_tensor_unpack_15(data: StringTensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The offsets at which the UTF-8 bytes of each string begin and end (i32), and the bytes of all strings (u8).

    Source: StringTensorUnpack-15.
    """
    strings = encoded(data)
    total = sum(map(len, strings))
    check(total < 1 << 31, "the strings have more than 2 GiB of bytes")
    # Joined, and copied for NumPy.
    check_memory((2, total), np.dtype(np.uint8), "the bytes of the strings")
    ends = np.cumsum([len(string) for string in strings], dtype=np.int32).reshape(data.shape)
    lengths = np.array([len(string) for string in strings], np.int32).reshape(data.shape)
    return (ends - lengths).astype(np.int32), ends, np.frombuffer(b"".join(strings), np.uint8).copy()


@string_tensor_unpack_15.shape_rule
def _string_tensor_unpack_15_facts(data: Fact) -> tuple[Fact, Fact, Fact]:
    strings = data.known
    empty = data.shape is not None and 0 in data.shape
    size: Size = 0 if empty else ANY if strings is None else sum(map(len, encoded(strings)))
    return Fact(I32, data.shape), Fact(I32, data.shape), Fact(U8, (size,))


# Tokenizers of OpenVINO before 2024.5 have these operations in their own namespace.
@op("StringTensorPack", since="extension")
def string_tensor_pack_extension(
    begins: IntegerTensor, ends: IntegerTensor, symbols: Bytes, *, mode: Literal["begins_ends"] = "begins_ends"
) -> np.ndarray:
    """Strings decoded from UTF-8, as in StringTensorPack-15."""
    return string_tensor_pack_15(begins, ends, symbols)


string_tensor_pack_extension.shape_rule(_string_tensor_pack_15_facts)


@op("StringTensorUnpack", since="extension")
def string_tensor_unpack_extension(
    data: StringTensor, *, mode: Literal["begins_ends"] = "begins_ends"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The offsets and the UTF-8 bytes of strings, as in StringTensorUnpack-15."""
    return string_tensor_unpack_15(data)


string_tensor_unpack_extension.shape_rule(_string_tensor_unpack_15_facts)
