"""The option of all commands that read weights."""

from __future__ import annotations

import click

no_mmap = click.option(
    "--no-mmap", "mmap", flag_value=False, default=True, is_flag=True,
    help="Read the .bin into memory at once instead of mapping it: another program may then change it meanwhile.",
)  # fmt: skip
