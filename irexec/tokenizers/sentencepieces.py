"""Models of SentencePiece: strings to token ids and back, computed by its own library."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from irexec.dtypes.elements import I32, I64, STRING, U8
from irexec.dtypes.strings import encoded
from irexec.errors import OpError, UnsupportedError, check
from irexec.ir.dims import ANY
from irexec.ir.facts import Fact
from irexec.schema.extension import operation
from irexec.schema.inputs import AnyTensor, Rank
from irexec.tokenizers.encodings import of_byte_token
from irexec.tokenizers.packed import Bytes, Offsets, Packed, StringFacts, pack, raw_bytes, string_facts, text, unpack
from irexec.tokenizers.patterns import compile_pattern

Ids = Annotated[Offsets, Rank(2)]

_PACKED, _SPECIAL = [I32, I32, U8], [I32, I32, U8, I32]
_INPUTS = {len(kinds): kinds for kinds in ([STRING], _PACKED, [STRING, *_SPECIAL], [*_PACKED, *_SPECIAL])}
"""Element types of the inputs after the model, by their number."""
_META = re.compile(rb"[.^$*+?()\[\]{}|\\]")


@functools.cache
def _library() -> Any:
    """The module sentencepiece; raises UnsupportedError if it cannot be imported."""
    try:
        with warnings.catch_warnings():
            # Types that SWIG makes have no module, of which Python warns when they are made.
            warnings.filterwarnings("ignore", "builtin type [Ss]wig", DeprecationWarning)
            import sentencepiece
    except ImportError as error:
        raise UnsupportedError(
            f"this needs sentencepiece, which cannot be imported ({error}): "
            "pip install 'irexec[tokenizers-sentencepiece]'"
        ) from None
    return sentencepiece


@functools.lru_cache(maxsize=8)
def _processor(model: bytes) -> Any:
    """The model as the library reads it."""
    try:
        # Without bytes the library makes a processor without a model.
        return _library().SentencePieceProcessor(model_proto=model or b"\0")
    except (RuntimeError, OSError) as error:
        raise OpError(f"the first input is not a model of SentencePiece: {error}") from None


@operation("SentencepieceTokenizer", domain="extension")
def sentencepiece_tokenizer(
    model: Bytes,
    *strings_and_special: AnyTensor,
    nbest_size: int = 0,
    alpha: float = 1.0,
    add_bos: bool = False,
    add_eos: bool = False,
    reverse: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Token ids of strings by a model of SentencePiece, as a sparse matrix: indices, values and shape.

    The strings are a tensor of strings, or begins, ends and chars. Begins, ends, chars and ids of special tokens may
    follow: these are split off first, and each part between them has its own begin of sequence. ``alpha`` is for
    sampling, which other values of ``nbest_size`` than 0 and 1 ask for, and which is not supported.
    """
    if nbest_size not in (0, 1):
        raise UnsupportedError(f"nbest_size is {nbest_size}: tokens that are sampled at random are not supported")
    processor = _processor(model.tobytes())
    has_special = len(strings_and_special) > 3
    first = strings_and_special[: -4 if has_special else None]
    strings = encoded(first[0]) if len(first) == 1 else unpack(*first)
    bos = _ends(processor.bos_id(), "begin") if add_bos else []
    eos = [] if not add_eos else [processor.eos_id()] if has_special else _ends(processor.eos_id(), "end")

    def encode(part: bytes) -> list[int]:
        return [*bos, *processor.encode(part)]

    split = _special(*strings_and_special[-4:]) if has_special else None
    found = [[*(encode(string) if split is None else split(string, encode)), *eos] for string in strings]
    return _sparse([ids[::-1] for ids in found] if reverse else found)


def _ends(token: int, name: str) -> list[int]:
    check(token >= 0, f"the model has no token for the {name} of a sequence")
    return [token]


def _special(
    begins: np.ndarray, ends: np.ndarray, chars: np.ndarray, ids: np.ndarray
) -> Callable[[bytes, Callable[[bytes], list[int]]], list[int]]:
    """A function that encodes the parts of a string between special tokens, each token being its id.

    A token of letters alone is found at the begin or end of a word only.
    """
    tokens = unpack(begins, ends, chars)
    check(len(tokens) == ids.size, f"there are {len(tokens)} special tokens and {ids.size} ids of them")
    known = dict(zip(reversed(tokens), reversed(ids.ravel().tolist()), strict=True))
    quoted = [_META.sub(rb"\\\g<0>", token) for token in tokens]
    choices = [
        rb"\b%b|%b\b" % (one, one) if token.isalpha() or not token else one
        for token, one in zip(tokens, quoted, strict=True)
    ]
    expression = compile_pattern(b"|".join(choices)).expression

    def split(string: bytes, encode: Callable[[bytes], list[int]]) -> list[int]:
        whole, at, found = text(string), 0, []
        for match in expression.finditer(whole):
            if match.start() == match.end():
                break
            if at < match.start():
                found += encode(raw_bytes(whole[at : match.start()]))
            found.append(known[raw_bytes(match.group())])
            at = match.end()
        return found + (encode(raw_bytes(whole[at:])) if at < len(whole) else [])

    return split


def _sparse(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Indices, values and shape of the matrix of rows of different lengths."""
    indices = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    values = [token for row in rows for token in row]
    shape = len(rows), max(map(len, rows), default=0)
    return np.array(indices, np.int64).reshape(-1, 2), np.array(values, np.int32), np.array(shape, np.int64)


@sentencepiece_tokenizer.shape_rule
def _sentencepiece_tokenizer_facts(model: Fact, *strings_and_special: Fact) -> tuple[Fact, Fact, Fact]:
    expected = _INPUTS.get(len(strings_and_special))
    check(expected is not None, f"has {1 + len(strings_and_special)} inputs, expected 2, 4, 6 or 8")
    for number, (fact, element) in enumerate(zip(strings_and_special, expected or [], strict=True), 1):
        check(fact.element in (None, element), f"input {number} has element type {fact.element}, expected {element}")
    return Fact(I64, (ANY, 2)), Fact(I32, (ANY,)), Fact(I64, (2,))


@operation("SentencepieceDetokenizer", domain="extension")
def sentencepiece_detokenizer(model: Bytes, ids: Ids) -> Packed:
    """The text of the token ids of each row; ids from the size of the vocabulary on are left out."""
    processor = _processor(model.tobytes())
    return pack([_known(processor, row, lambda ids: processor.decode(ids).encode()) for row in ids], ids.shape[:1])


@operation("SentencepieceStreamDetokenizer", domain="extension")
def sentencepiece_stream_detokenizer(model: Bytes, ids: Ids) -> Packed:
    """The pieces of the token ids of each row, bytes for tokens such as "<0x0A>", and U+2581 for spaces."""
    processor = _processor(model.tobytes())

    def pieces(ids: list[int]) -> bytes:
        return b"".join(_piece(processor.id_to_piece(token).encode()) for token in ids)

    return pack([_known(processor, row, pieces) for row in ids], ids.shape[:1])


def _piece(piece: bytes) -> bytes:
    return of_byte_token(piece) if piece.startswith(b"<0x") else piece


def _known(processor: Any, row: np.ndarray, decode: Callable[[list[int]], bytes]) -> bytes:
    """The text of the ids of a row that are in the vocabulary."""
    check(not (row < 0).any(), f"there is a negative token id: {row.min(initial=0)}")
    return decode(row[row < processor.get_piece_size()].tolist())


def _text_facts(model: Fact, ids: Fact) -> StringFacts:
    """The shape rule of detokenizers: a string for each row."""
    return string_facts((ANY,) if ids.shape is None else ids.shape[:1])


sentencepiece_detokenizer.shape_rule(_text_facts)
sentencepiece_stream_detokenizer.shape_rule(_text_facts)
