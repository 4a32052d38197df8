"""The options that limit a run, the same for every command: ``--max-memory``, ``--timeout`` and ``--threads``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import click

from irexec.backend.threads import MAX_THREADS

_UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 1 << 10,
    "mi": 1 << 20,
    "gi": 1 << 30,
    "ti": 1 << 40,
}
_SIZE = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE | re.ASCII)


class MemorySize(click.ParamType):
    """A number of bytes: 500000000, 500M (10**6), 1.5GiB (2**30)."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes."""
        if isinstance(value, int):
            return value
        found = _SIZE.fullmatch(str(value))
        size = 0 if found is None else int(float(found[1]) * _UNITS[(found[2] or "").lower()])
        if size < 1:
            return self.fail(f"{value!r} is not a size such as 500M, 2G or 1.5GiB", param, ctx)
        return size


class Seconds(click.ParamType):
    """A positive number of seconds."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if not 0 < seconds < math.inf:
            return self.fail(f"{value!r} is not a positive number of seconds", param, ctx)
        return seconds


def max_memory_option(help: str = "") -> Callable[[Any], Any]:
    """``--max-memory``; ``help`` replaces its help."""
    text = (
        help
        or "Refuse tensors that would make the process hold more memory than this, such as 2G; default: all that is left."
    )
    return click.option("--max-memory", type=MemorySize(), metavar="SIZE", help=text)


def timeout_option(help: str) -> Callable[[Any], Any]:
    """``--timeout`` with its help."""
    return click.option("--timeout", type=Seconds(), metavar="SECONDS", help=help)


def threads_option(help: str) -> Callable[[Any], Any]:
    """``--threads``."""
    return click.option("--threads", type=click.IntRange(1, MAX_THREADS), help=help)
