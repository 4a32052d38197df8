"""The addresses in the metadata of a package: those of the repository that it is built in.

The variable IREXEC_REPOSITORY is the address of the repository, such as https://github.com/NAME/irexec; the release workflow
sets it. A package that is built without the variable has no addresses, since a clone does not know where it is published.
"""

import os

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PAGES = {
    "Source": "",
    "Documentation": "/tree/main/docs",
    "Changelog": "/blob/main/docs/reference/changelog.md",
    "Issues": "/issues",
}


class ProjectUrls(MetadataHookInterface):
    """Fills in ``project.urls``."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict) -> None:
        """Add the addresses, if the repository is known."""
        repository = os.environ.get("IREXEC_REPOSITORY", "").rstrip("/")
        metadata["urls"] = {name: repository + page for name, page in _PAGES.items()} if repository else {}
