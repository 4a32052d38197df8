"""Options that would have no effect are refused."""

from __future__ import annotations

from collections.abc import Sequence

import click
from click.core import ParameterSource


def is_given(name: str) -> bool:
    """Whether the parameter of the running command is on the command line."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_without(options: str | Sequence[str], *names: str) -> None:
    """Raise UsageError if one of the parameters is given: they are for ``--option``, which is not.

    Args:
        options: without the dashes; of several, none of which is given, each would do.
        names: of parameters.
    """
    wanted = [options] if isinstance(options, str) else options
    for parameter in click.get_current_context().command.params:
        if parameter.name in names and is_given(parameter.name):
            needed = " or ".join(f"--{option}" for option in wanted)
            raise click.UsageError(
                f"{parameter.opts[-1]} is for {needed}, which {'is' if len(wanted) == 1 else 'are'} not given"
            )
