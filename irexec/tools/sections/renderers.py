"""The renderers of ``irexec.records``: they know the sections of every type."""

from irexec.display import plain, sections_of
from irexec.display.hypertext import notebook
from irexec.tools.sections import (  # noqa: F401 - they register sections
    models,
    plans,
    runs,
)


def text(value: object) -> str:
    """The sections of a value as text."""
    return plain(sections_of(value))


def html(value: object) -> str:
    """The sections of a value as HTML for a notebook."""
    return notebook(value)
