"""Runs that stop at the first layer with a value that should not be there, and recorded ranges of tensors."""

from irexec.tools.trapping import sections  # noqa: F401 - it registers them
