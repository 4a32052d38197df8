"""The addresses in the metadata of a package, and in its README: the addresses of the repository that it is built in.

The variable IREXEC_REPOSITORY is the address of the repository, such as https://github.com/NAME/irexec; the release
workflow sets it. A package that is built without the variable has no addresses, and a README with relative links, since
a clone does not know where it is published.
"""

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PAGES = {
    "Source": "",
    "Documentation": "/tree/main/docs",
    "Changelog": "/blob/main/docs/reference/changelog.md",
    "Issues": "/issues",
}


_RELATIVE = re.compile(r"(!\[[^\]]*)?\]\((?!https?:|#)([^)]+)\)")
"""A link or an image of a file in the repository."""


def absolute(text: str, repository: str) -> str:
    """A page in Markdown with the addresses of the files of the repository, where one is given."""
    if not repository:
        return text
    return _RELATIVE.sub(lambda m: f"{m[1] or ''}]({repository}/{'raw' if m[1] else 'blob'}/main/{m[2]})", text)


class ProjectUrls(MetadataHookInterface):
    """Fills in ``project.urls`` and ``project.readme``."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict) -> None:
        """Add the addresses, if the repository is known, and the README."""
        repository = os.environ.get("IREXEC_REPOSITORY", "").rstrip("/")
        metadata["urls"] = {name: repository + page for name, page in _PAGES.items()} if repository else {}
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, repository)}
