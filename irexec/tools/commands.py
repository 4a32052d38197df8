"""Commands of irexec that are shown to the user, to go on with."""

from __future__ import annotations

from irexec.schema.plugins import plugins


def irexec_command(*arguments: str) -> list[str]:
    """The arguments of a command of irexec, with the ``--plugin`` of the command that shows it."""
    return ["irexec", *arguments, *(f"--plugin={name}" for name in plugins.given)]
