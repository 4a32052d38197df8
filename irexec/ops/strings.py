"""Tensors of text, to and from the bytes that they are made of."""

from __future__ import annotations

import numpy as np

from irexec.dtypes.elements import I32, STRING, U8
from irexec.errors import OpError, check
from irexec.ir.dims import ANY, Size, meet_shapes
from irexec.ir.facts import Fact
from irexec.schema.element_checks import check_integers, unify_elements
from irexec.schema.registry import op
from irexec.schema.rules import check_vector


@op("StringTensorPack", since=15)
def string_tensor_pack_15(begins: np.ndarray, ends: np.ndarray, symbols: np.ndarray) -> np.ndarray:
    """Texts from UTF-8 bytes: each reaches from its place in ``begins`` to that in ``ends``. Source: StringTensorPack-15."""
    inside = (begins >= 0) & (begins <= ends) & (ends <= len(symbols))
    check(bool(inside.all()), f"a text reaches beyond the {len(symbols)} bytes of symbols")
    whole = symbols.tobytes()
    texts = np.empty(begins.size, object)
    try:
        texts[:] = [whole[begin:end].decode() for begin, end in zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True)]
    except UnicodeDecodeError as error:
        raise OpError(f"symbols are not UTF-8: {error.reason} at byte {error.start} of a text") from None
    return texts.reshape(begins.shape)


@string_tensor_pack_15.shape_rule
def _string_tensor_pack_15_facts(begins: Fact, ends: Fact, symbols: Fact) -> Fact:
    unify_elements(begins, ends)
    check_integers(begins, "begins")
    check(symbols.element in (None, U8), f"symbols have element type {symbols.element}, expected u8")
    check_vector(symbols, "symbols")
    return Fact(STRING, meet_shapes(begins.shape, ends.shape))


@op("StringTensorUnpack", since=15)
def string_tensor_unpack_15(data: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the UTF-8 bytes of each text begin and end (i32), and the bytes one after the other (u8).

    Source: StringTensorUnpack-15.
    """
    texts = [str(text).encode() for text in data.ravel().tolist()]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int32).reshape(data.shape)
    lengths = np.array([len(text) for text in texts], np.int32).reshape(data.shape)
    return (ends - lengths).astype(np.int32), ends, np.frombuffer(b"".join(texts), np.uint8).copy()


@string_tensor_unpack_15.shape_rule
def _string_tensor_unpack_15_facts(data: Fact) -> tuple[Fact, Fact, Fact]:
    check(data.element in (None, STRING), f"data has element type {data.element}, expected string")
    texts = data.known
    empty = data.shape is not None and 0 in data.shape
    size: Size = 0 if empty else ANY if texts is None else sum(len(str(text).encode()) for text in texts.ravel().tolist())
    return Fact(I32, data.shape), Fact(I32, data.shape), Fact(U8, (size,))
