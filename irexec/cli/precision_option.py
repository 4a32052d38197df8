"""``--precision``, the same for every command that runs a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import click

from irexec.runtime.precision import DEFAULT_PRECISION, Precision

_HELP = "Compute f16 and bf16 in f32, or as-written: every result is rounded to its type."


def precision_option(prefix: str = "", *, default: str = "") -> Callable[[Any], Any]:
    """The option; ``prefix`` stands before its help. Without a value it is None where ``default`` says what that means."""
    return click.option(
        "--precision",
        type=click.Choice(get_args(Precision)),
        default=None if default else DEFAULT_PRECISION,
        show_default=not default,
        help=f"{prefix}{_HELP}{f' Default: {default}.' if default else ''}",
    )
