"""com.microsoft: strings cut into tokens."""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.text import strings
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.errors import OpError
from irexec.ir.graph import Value


@translates("Tokenizer", domain=COM_MICROSOFT)
def tokenizer(
    ctx: TranslationContext, x: Value, *, mark: int, mincharnum: int, pad_value: str,
    separators: list[str] | None = None, tokenexp: str | None = None,
) -> Value:  # fmt: skip
    """Tokens between separators, or those that match an expression; an empty separator cuts between all characters."""
    if (separators is None) == (tokenexp is None):
        raise OpError("either separators or tokenexp must be given")
    if mincharnum < 1:
        raise OpError(f"mincharnum is {mincharnum}, expected 1 or more")
    mode, patterns = "separators", separators or []
    if tokenexp is not None:
        mode, patterns = "tokens", [tokenexp]
    elif patterns == [""]:
        mode, patterns = "characters", []
    return ctx.emit(
        "StringTokenizer", x, strings(ctx, patterns), strings(ctx, pad_value), mode=mode, mark=bool(mark),
        min_length=mincharnum,
    )  # fmt: skip
