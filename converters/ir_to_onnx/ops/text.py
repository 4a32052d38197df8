"""Operations on strings."""

from __future__ import annotations

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.registry import exact, inexpressible
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import I64, STRING, Element
from irexec.errors import check


@exact("StringConcat", since="irexec")
def string_concat(ctx: ExportContext, a: Tensor, b: Tensor) -> Tensor:
    """StringConcat."""
    return ctx.emit("StringConcat", a, b)


def text_of(tensor: Tensor, what: str) -> str:
    """The text of a constant string."""
    return str(tensor.require_value(what).reshape(-1)[0])


@exact("StringSplit", since="irexec")
def string_split(ctx: ExportContext, data: Tensor, delimiter: Tensor, *, maxsplit: int) -> tuple[Tensor, ...]:
    """StringSplit of a constant delimiter."""
    limit = None if maxsplit < 0 else maxsplit
    return ctx.emit_all("StringSplit", 2, data, delimiter=text_of(delimiter, "the delimiter"), maxsplit=limit)


@exact("RegexFullMatch", since="irexec")
def regex_full_match(ctx: ExportContext, data: Tensor, pattern: Tensor) -> Tensor:
    """RegexFullMatch of a constant pattern."""
    return ctx.emit("RegexFullMatch", data, pattern=text_of(pattern, "the pattern"))


@exact("StringNormalizer", since="irexec")
def string_normalizer(
    ctx: ExportContext, data: Tensor, stopwords: Tensor, *, case_change_action: str, is_case_sensitive: bool
) -> Tensor:
    """StringNormalizer of constant stopwords."""
    words = [str(word) for word in stopwords.require_value("the list of stopwords").ravel().tolist()]
    return ctx.emit(
        "StringNormalizer", data, case_change_action=case_change_action, is_case_sensitive=int(is_case_sensitive),
        stopwords=words or None,
    )  # fmt: skip


@exact("StringLookup", since="irexec")
def string_lookup(ctx: ExportContext, data: Tensor, keys: Tensor) -> Tensor:
    """LabelEncoder of ai.onnx.ml, of constant keys."""
    words = [str(word) for word in keys.require_value("the list of keys").ravel().tolist()]
    first = {word: i for i, word in reversed(list(enumerate(words)))}
    if not first:
        return ctx.emit("Expand", ctx.constant(-1), ctx.shape_of(data))
    return ctx.emit(
        "LabelEncoder", data, domain="ai.onnx.ml", element=I64, keys_strings=list(first),
        values_int64s=[*first.values()], default_int64=-1,
    )  # fmt: skip


@exact("StringToNumber", since="irexec")
def string_to_number(ctx: ExportContext, data: Tensor, *, destination_type: Element) -> Tensor:
    """Cast."""
    return ctx.cast(data, destination_type)


@exact("AsString", since="irexec")
def as_string(ctx: ExportContext, data: Tensor) -> Tensor:
    """Cast."""
    return ctx.cast(data, STRING)


@exact("StringTokenizer", since="irexec")
def string_tokenizer(
    ctx: ExportContext, data: Tensor, patterns: Tensor, pad_value: Tensor, *, mode: str, mark: bool, min_length: int
) -> Tensor:
    """Tokenizer of com.microsoft, of constant patterns: ONNX Runtime's own operator."""
    words = [str(word) for word in patterns.require_value("the list of patterns").ravel().tolist()]
    check(mode != "tokens" or len(words) == 1, "the expression of a token is one")
    options = {"tokenexp": words[0]} if mode == "tokens" else {"separators": words if mode == "separators" else [""]}
    return ctx.emit(
        "Tokenizer", data, domain="com.microsoft", mark=int(mark), mincharnum=min_length,
        pad_value=text_of(pad_value, "the padding"), **options,
    )  # fmt: skip


_BYTES = "ONNX has no operators on the bytes of strings"
_TOKENS = "a step of OpenVINO's tokenizers, which works on ragged tensors of bytes: ONNX has neither"
inexpressible("StringTensorPack", "StringTensorUnpack", reason=_BYTES, since=15)
inexpressible("StringTensorPack", "StringTensorUnpack", reason=_BYTES, since="extension")
inexpressible(
    "BPETokenizer", "ByteFallback", "BytesToChars", "CaseFold", "CharsMapNormalization", "CharsToBytes",
    "EqualStr", "NormalizeUnicode", "RegexNormalization", "RegexSplit", "SentencepieceDetokenizer",
    "SentencepieceStreamDetokenizer", "SentencepieceTokenizer", "SpecialTokensSplit", "StringToHashBucket",
    "TrieTokenizer", "UTF8Validate", "UnigramTokenizer", "VocabDecoder", "VocabEncoder", "WordpieceTokenizer",
    reason=_TOKENS, since="extension",
)  # fmt: skip
