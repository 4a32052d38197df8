"""Paths on the command line."""

from __future__ import annotations

from typing import Any

import click

from irexec.messages import is_address


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
