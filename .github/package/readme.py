"""README.md for a package: its relative links become addresses of the repository, which ``project.urls`` names."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = re.compile(r"(!\[[^\]]*)?\]\((?!https?:|#)([^)]+)\)")
"""A link or an image of a file in the repository."""


def absolute(text: str, repository: str) -> str:
    """A page in Markdown with the addresses of the files of the repository."""
    return _RELATIVE.sub(lambda m: f"{m[1] or ''}]({repository}/{'raw' if m[1] else 'blob'}/main/{m[2]})", text)


class Readme(MetadataHookInterface):
    """Fills in ``project.readme``."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict) -> None:
        """Add README.md, as PyPI shows it."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute(text, metadata["urls"]["Source"]),
        }
