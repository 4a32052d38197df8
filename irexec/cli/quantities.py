"""Types of option values: memory sizes, times and lists of values."""

from __future__ import annotations

import math
import re
from typing import Any

import click

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
        """Returns the number of bytes."""
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
        """Returns the seconds."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if not 0 < seconds < math.inf:
            return self.fail(f"{value!r} is not a positive number of seconds", param, ctx)
        return seconds


class ThreadCount(click.IntRange):
    """A number of threads, at most as many as a thread pool may have."""

    def __init__(self) -> None:
        super().__init__(1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Returns the number."""
        # Imported here: commands that run nothing have this option, too.
        from irexec.backend.threads import MAX_THREADS

        self.max = MAX_THREADS
        count: int = super().convert(value, param, ctx)
        return count


class Values(click.ParamType):
    """Finite values, separated by commas.

    Args:
        zero: whether 0 is allowed.
    """

    name = "value[,value...]"

    def __init__(self, zero: bool = True) -> None:
        self.zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """Returns the values as a tuple."""
        if isinstance(value, tuple):
            return value
        try:
            values = tuple(float(part) for part in str(value).split(","))
        except ValueError:
            return self.fail(f"{value!r} is not a list of values", param, ctx)
        if not all(map(math.isfinite, values)) or (0 in values and not self.zero):
            return self.fail(f"{value!r} has a value that is not finite{'' if self.zero else ' or is 0'}", param, ctx)
        return values
