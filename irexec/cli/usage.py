"""Options that would do nothing are refused: whoever gives them expects that they do."""

from __future__ import annotations

import click
from click.core import ParameterSource


def is_given(name: str) -> bool:
    """Whether the parameter of the running command is on the command line."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_without(option: str, *names: str) -> None:
    """Raise UsageError if one of the parameters is given: they are for ``--option``, which is not.

    Args:
        option: without the dashes.
        names: of parameters.
    """
    for parameter in click.get_current_context().command.params:
        if parameter.name in names and is_given(parameter.name):
            raise click.UsageError(f"{parameter.opts[-1]} is for --{option}, which is not given")
