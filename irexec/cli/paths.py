"""Paths on the command line."""

from __future__ import annotations

from typing import Any

import click


class FilePath(click.Path):
    """A path as text. The empty one is refused: for Python it is the current folder, for whoever gives it a variable that is not set.
    So is ``-`` unless ``allow_dash``: whoever pipes a model into a command would be told that there is no such file.

    Whether the file can be read is left to what reads it: a file that cannot be read has an exit code of its own.
    """

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(readable=False, allow_dash=allow_dash)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        if value == "":
            self.fail("'' is not a path", param, ctx)
        if value == "-" and not self.allow_dash:
            self.fail("'-' stands for neither standard input nor output here, expected a path", param, ctx)
        return super().convert(value, param, ctx)
