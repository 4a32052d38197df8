"""Types of option values: paths, memory sizes, times and lists of values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from irexec.errors import InputError, OpError
from irexec.messages import is_address

_UNITS = {"": 1} | {unit: 1000**power for power, unit in enumerate("kmgt", 1)}
_UNITS |= {f"{unit}i": 1024**power for power, unit in enumerate("kmgt", 1)}
_SIZE = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE | re.ASCII)


class Text(click.types.StringParamType):
    """Text that is not empty: an empty value is mostly a shell variable that is not set."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the text."""
        if value == "":
            self.fail("the value is empty", param, ctx)
        return super().convert(value, param, ctx)


class Parsed(click.ParamType):
    """Values that a function makes from text.

    Args:
        name: the form of the text, in --help and in messages.
        parse: the function; the text of its ValueError, OpError or InputError is the message about wrong usage.
        of_form: True for a message that begins with the text and the expected form.
    """

    def __init__(self, name: str, parse: Callable[[str], Any], *, of_form: bool = False) -> None:
        self.name, self._parse, self._of_form = name, parse, of_form

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of a text; any other value, such as a default, is as it is."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except (ValueError, OpError, InputError) as error:
            reason = f": {error}" if str(error) else ""
            self.fail(f"{value!r} is not of the form {self.name}{reason}" if self._of_form else str(error), param, ctx)


def _memory_size(text: str) -> int:
    found = _SIZE.fullmatch(text)
    size = 0 if found is None else int(float(found[1]) * _UNITS[(found[2] or "").lower()])
    if size < 1:
        raise ValueError(f"{text!r} is not a size such as 500M, 2G or 1.5GiB")
    return size


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f"{text!r} is not a positive number of seconds")
    return seconds


MEMORY_SIZE = Parsed("size", _memory_size)
"""A number of bytes: 500000000, 500M (10**6), 1.5GiB (2**30)."""
SECONDS = Parsed("seconds", _seconds)
"""A positive number of seconds."""


class ThreadCount(click.IntRange):
    """A number of threads, at most as many as a thread pool may have."""

    def __init__(self) -> None:
        super().__init__(1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Returns the number."""
        self.max = self._maximum()
        count: int = super().convert(value, param, ctx)
        return count

    def _describe_range(self) -> str:
        """The range, as --help shows it."""
        self.max = self._maximum()
        return super()._describe_range()

    @staticmethod
    def _maximum() -> int:
        # Imported here: commands that run nothing have this option, too.
        from irexec.backend.threads import MAX_THREADS

        return MAX_THREADS


def finite_values(*, zero: bool = True) -> Parsed:
    """Finite values, separated by commas; ``zero``: whether 0 is allowed."""

    def parse(text: str) -> tuple[float, ...]:
        try:
            values = tuple(float(part) for part in text.split(","))
        except ValueError:
            raise ValueError(f"{text!r} is not a list of values") from None
        if not all(map(math.isfinite, values)) or (0 in values and not zero):
            raise ValueError(f"{text!r} has a value that is not finite{'' if zero else ' or is 0'}")
        return values

    return Parsed("value[,value...]", parse)


class FilePath(click.Path):
    """A path as text. The empty path, mostly a shell variable that is not set, is refused; ``-`` unless ``allow_dash``,
    since no file of this name is meant; and addresses such as ``s3://bucket/x``, which Python would take for local
    folders.

    Whether the file can be read is not checked: a file that cannot be read has an exit code of its own.
    """

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(readable=False, allow_dash=allow_dash)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the path."""
        if value == "":
            self.fail("'' is not a path", param, ctx)
        if isinstance(value, str) and is_address(value):
            self.fail(f"{value!r} is an address, expected the path of a local file or folder", param, ctx)
        if value == "-" and not self.allow_dash:
            self.fail("'-' stands for neither standard input nor output here, expected a path", param, ctx)
        return super().convert(value, param, ctx)


def beside_model(model: str, suffix: str) -> Path:
    """The file beside MODEL with another suffix, which a command writes unless another one is named.

    Raises:
        click.BadParameter: MODEL is a folder.
    """
    if Path(model).is_dir():
        raise click.BadParameter(f"{model!r} is not a file", param_hint="'MODEL'")
    return Path(model).with_suffix(suffix)
