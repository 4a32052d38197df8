"""The element types in which f16 and bf16 are computed."""

from __future__ import annotations

from typing import Literal, get_args

from irexec.errors import InputError

Precision = Literal["as-written", "f32"]
"""Arithmetic as the model is written, each result rounded to its element type; or f16 and bf16 computed in f32."""

DEFAULT_PRECISION: Precision = "f32"


def check_precision(precision: str) -> None:
    """Raise InputError for what is not a Precision."""
    if precision not in get_args(Precision):
        raise InputError(f"precision is {precision!r}, expected 'as-written' or 'f32'")


def precision_argument(precision: Precision) -> list[str]:
    """The option of a command that computes so, if that is not its default."""
    return [] if precision == DEFAULT_PRECISION else [f"--precision={precision}"]
