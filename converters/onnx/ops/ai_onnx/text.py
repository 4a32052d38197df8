"""Operators on strings, which become operations of irexec: OpenVINO has none."""

from __future__ import annotations

from typing import Literal

import numpy as np

from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.dtypes.elements import STRING
from irexec.ir.graph import Value


def strings(ctx: TranslationContext, values: list[str] | str) -> Value:
    """A constant of strings: a vector of a list, or a scalar."""
    return ctx.constant(np.array(values, object), STRING)


@translates("StringConcat", since=20)
def string_concat(ctx: TranslationContext, x: Value, y: Value) -> Value:
    return ctx.emit("StringConcat", x, y)


@translates("StringSplit", since=20)
def string_split(
    ctx: TranslationContext, x: Value, *, delimiter: str = "", maxsplit: int | None = None
) -> tuple[Value, ...]:
    limit = -1 if maxsplit is None else maxsplit
    return tuple(ctx.emit("StringSplit", x, strings(ctx, delimiter), maxsplit=limit))


@translates("RegexFullMatch", since=20)
def regex_full_match(ctx: TranslationContext, x: Value, *, pattern: str = "") -> Value:
    return ctx.emit("RegexFullMatch", x, strings(ctx, pattern))


@translates("StringNormalizer", since=10)
def string_normalizer(
    ctx: TranslationContext, x: Value, *, case_change_action: Literal["NONE", "LOWER", "UPPER"] = "NONE",
    is_case_sensitive: int = 0, locale: str = "", stopwords: list[str] | None = None,
) -> Value:  # fmt: skip
    """Case is changed as Unicode has it, whatever the locale."""
    return ctx.emit(
        "StringNormalizer", x, strings(ctx, stopwords or []), case_change_action=case_change_action,
        is_case_sensitive=bool(is_case_sensitive),
    )  # fmt: skip
