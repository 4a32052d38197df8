"""The options of the commands that run a model to measure it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from irexec.cli.limit_options import threads_option
from irexec.cli.paths import FilePath
from irexec.cli.shape_option import METAVAR, ShapeType


def measuring_options(default_runs: int, *, runs: str, threads: str) -> Callable[[Any], Any]:
    """``-i``, ``--bin``, ``--shape``, ``--seed``, ``--runs`` and ``--threads``; ``runs`` and ``threads`` are the help of the last two."""
    options = (
        click.option(
            "-i",
            "--input",
            "inputs",
            multiple=True,
            metavar="[NAME=]SOURCE",
            help="As for irexec infer; may be repeated. Default: random.",
        ),
        click.option(
            "--bin", "weights", type=FilePath(), help="The weights, if not beside the model under the same name."
        ),
        click.option(
            "--shape",
            "shapes",
            multiple=True,
            type=ShapeType(),
            metavar=METAVAR,
            help="Give an input this shape; may be repeated.",
        ),
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="For random inputs."),
        click.option("--runs", type=click.IntRange(1, 1_000_000), default=default_runs, show_default=True, help=runs),
        threads_option(threads),
    )

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add
